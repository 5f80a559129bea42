"""Files that Arrow reads and writes, and those that Spark does."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakegate.audit.report import Verdict
from lakegate.job.jobspec import JobSpec
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass import text_rows
from spark_jobs.one_pass.examined import WAY, Examined
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.one_pass.text import Text
from spark_jobs.write.files import DataFiles
from spark_jobs.write.quarantine import Quarantine, quarantined_rows
from tests.fakes import lying_parquet
from tests.fakes.lakes import data_files, layout_for
from tests.spark.conftest import GOOD, Job, changed, parquet
from tests.spark.measuring import contract_of, custom, options
from tests.spark.test_group import _ingest, _specs

pytestmark = pytest.mark.spark
Contract = Callable[..., str]


def _way(report: Any) -> str:
    return str(report.engine["write"])


_SKU = pa.struct({"sku": pa.string()})
_AREA = pa.struct({"code": pa.string(), "size": pa.int64()})


def _nested(area: list[Any], lines: list[Any]) -> bytes:
    columns = {"area": pa.array(area, _AREA), "lines": pa.array(lines, pa.list_(_SKU))}
    return parquet({"id": [*range(len(area))], **columns})


def _of_nested(table: str, **of_sku: Any) -> str:
    code = {"name": "code", "logicalType": "string", "required": True}
    size = {"name": "size", "logicalType": "integer", "logicalTypeOptions": {"minimum": 0}}
    sku = {"name": "sku", "logicalType": "string", **of_sku}
    columns: list[dict[str, Any]] = [
        {"name": "id", "logicalType": "integer", "unique": True},
        {"name": "area", "logicalType": "object", "properties": [code, size]},
        {
            "name": "lines",
            "logicalType": "array",
            "required": True,
            "items": {"logicalType": "object", "properties": [sku]},
        },
    ]
    return contract_of(columns, (), table)


def test_a_file_with_nested_columns_is_written_by_arrow(job: Job, table: str) -> None:
    """Arrow answers the checks of structs, and of lists as a whole, Spark those of their items."""
    area = [{"code": "x", "size": 0}, None, {"code": None, "size": -1}]
    body = _nested(area, [[{"sku": "a"}, {"sku": None}], [], None])
    report = job.ingest(body, _of_nested(table, required=True), table)
    assert (report.verdict, _way(report)) == (Verdict.REJECTED, WAY)
    assert {each.id: (each.tier, each.counted) for each in report.failed} == {
        "area.code.nullValues": ("arrow", 1),
        "area.size.invalidValues": ("arrow", 1),
        "lines.nullValues": ("arrow", 1),
        "lines[].sku.nullValues": ("scan", 1),
    }
    rows = job.rows(table, report.branch)
    assert [row["area"] and row["area"].asDict() for row in rows] == area
    assert [row["lines"] and [each.sku for each in row["lines"]] for row in rows] == [
        ["a", None],
        [],
        None,
    ]


def test_a_group_of_nested_files_is_written_by_arrow(job: Job, table: str) -> None:
    """Files with nested columns share a commit; one whose leaves disagree is left alone.

    It is not published, although Spark can read it.
    """
    bodies = {f"fits {n}": _nested([{"code": "x", "size": n}], [[]]) for n in (1, 2)}
    rows = [[{"code": "x", "size": 1}, None], [None, {"code": "x", "size": 1}]]
    one, other = (_nested(each, [[], []]) for each in rows)
    bodies["disagrees"] = lying_parquet.grafted(one, other, 2)
    reports = _ingest(job, _specs(job, bodies, _of_nested(table), table))
    assert [_way(report) for report in reports[:2]] == [WAY] * 2
    assert [len(report.group) for report in reports] == [2, 2, 0]
    damaged = reports[2].reason
    assert damaged
    assert (reports[2].verdict, damaged.code) == (Verdict.ERRORED, "CORRUPT_FILE")
    assert "the parts of its column area do not belong together" in damaged.message
    assert sorted(row["area"].size for row in job.rows(table, reports[0].branch)) == [1, 2]


def test_passes_in_tasks_find_the_same(job: Job, contract: Contract, table: str) -> None:
    """The row groups of a large file are measured, divided and written in Spark's tasks."""
    columns = {**GOOD, "id": [1, 2, 2], "amount": [0.0, 101.0, None], "more": ["x", "y", "z"]}
    body = parquet(columns, row_group_size=1)
    settings = options(quarantine={"maxRows": 1}, extraColumns="drop")
    text = json.dumps(json.loads(contract(amount=options(onBadRow="quarantine"))) | settings)
    spec = job.spec(job.services.land(f"{table}/large", body), text, table)
    storage = Storage(spec, job.services.s3, boto3.client("secretsmanager"))
    asked = storage.contract()
    here = prepared(storage, asked, spec.limits).examined()
    layout = layout_for(asked, folder=storage.address("tests/"))
    files = DataFiles(storage, layout, asked, spec)
    there = prepared(storage, asked, spec.limits, job.warm_spark, most_here=0).examined(files)
    assert (there.measured, there.changes) == (here.measured, here.changes)
    assert "more (string)" in there.changes[0]
    written = [pq.read_table(BytesIO(storage.object(each.location))) for each in there.files]
    assert pa.concat_tables(written)["id"].to_pylist() == [1, 2]
    assert there.apart.part == here.apart.part
    (out,) = _quarantined(there, job.warm_spark)
    assert out["reasons"] == ["amount.invalidValues"]


_LOGICAL = {"id": "integer", "name": "string"}
_TEXTS = {
    "csv": 'id,x,name\r\n1,,"a, b"\r\nx,,c\r\n\r\n2,,ä\r\n3\r\n-1,,z\r\n4,1,""\r\n',
    "json": '{"id":1,"name":"a"}\n{"id":"x"}\n{"name":"ä","id":2}\n{"id":3,"x":1}\n{"id":-4}\n',
}


@pytest.mark.parametrize(
    ("format_", "size"), [("csv", 1), ("csv", 20), ("json", 1), ("json", 1000)]
)
def test_texts_in_tasks_find_the_same(job: Job, table: str, format_: str, size: int) -> None:
    """The parts of a large text are read and written in Spark's tasks as in the driver."""
    columns: list[Any] = [
        {"name": n, "logicalType": type_, "unique": True} for n, type_ in _LOGICAL.items()
    ]
    columns[0] |= {"logicalTypeOptions": {"minimum": 0}, **options(onBadRow="quarantine")}
    of: Any = {"format": format_, "extraColumns": "drop", "quarantine": {"maxRows": 9}}
    asked_text = contract_of(columns, [{"metric": "rowCount", "mustBe": 1}], table, **of)
    landed = job.services.land(f"{table}/large", _TEXTS[format_].encode())
    spec = job.spec(landed, asked_text, table)
    storage = Storage(spec, job.services.s3, None)
    text = Text.open(storage, asked := storage.contract(), spec.limits)
    lake, kept = data_files(asked)
    here = text_rows.in_driver(text, 1000, kept)
    layout = layout_for(asked, folder=storage.address("tests/"))
    files = DataFiles(storage, layout, asked, spec)
    there = text_rows.in_tasks(text, job.warm_spark, files, size)
    assert (there.measured, there.rows) == (here.measured, here.rows)
    assert (there.changes, here.changes) == (
        ("column x of the file is not in the contract: left out",),
    ) * 2
    for part in ("rows", "first", "present", "units"):
        assert getattr(there.apart.part, part) == getattr(here.apart.part, part)
    told = _quarantined(there, job.warm_spark)
    assert told == _quarantined(here, job.warm_spark)
    assert len(told) == there.rows.quarantined == there.rows.bad + 1
    written = [pq.read_table(BytesIO(storage.object(each.location))) for each in there.files]
    assert pa.concat_tables(written).to_pylist() == lake.rows(here.files[0]).to_pylist()
    assert (len(written) > 1) is (size < 1000)


_MANY_BAD = b"id,name\n" + (b"x," + b"n" * 1000 + b"\n") * (17 << 10)


def test_tasks_hand_over_few_rows(job: Job, table: str) -> None:
    """A file of whose part very many rows stay out is for Spark, as the driver would hold them."""
    columns: list[Any] = [{"name": n, "logicalType": type_} for n, type_ in _LOGICAL.items()]
    columns[0] |= {"logicalTypeOptions": {"minimum": 0}, **options(onBadRow="quarantine")}
    asked = contract_of(columns, [], table, format="csv", quarantine={"maxRows": 9})
    text, _ = _text(job, table, asked)
    with pytest.raises(MustRewrite, match="very many of its rows stay out"):
        text_rows.in_tasks(text, job.warm_spark, None)


def test_tasks_keep_unparseable_rows(job: Job, table: str) -> None:
    """Where no check asks for their cells, tasks write very many bad rows, and return a few."""
    columns = [{"name": n, "logicalType": type_} for n, type_ in _LOGICAL.items()]
    text, spec = _text(
        job, table, contract_of(columns, [{"metric": "rowCount", "mustBe": 1}], table, format="csv")
    )
    storage = Storage(spec, job.services.s3, None)
    layout = layout_for(text.contract, folder=storage.address("tests/"))
    quarantine = Quarantine(storage, "2026-01-02T03:04:05+00:00")
    files = DataFiles(storage, layout, text.contract, spec, quarantine)
    part = text_rows.in_tasks(text, job.warm_spark, files, 4 << 20).apart.part
    assert (part.bad, part.texts) == (17 << 10, [])
    assert len(part.first) <= 10 * len(part.kept)
    assert len(part.kept) > 1
    kept = [pq.read_table(BytesIO(storage.object(file.path))) for file in part.kept]
    assert [len(rows) for rows in kept] == [file.rows for file in part.kept]
    assert set(pa.concat_tables(kept)["row"].to_pylist()) == {"x," + "n" * 1000}
    assert sum(map(len, kept)) == part.bad


def _text(job: Job, table: str, asked: str) -> tuple[Text, JobSpec]:
    spec = job.spec(job.services.land(f"{table}/large", _MANY_BAD), asked, table)
    storage = Storage(spec, job.services.s3, None)
    return Text.open(storage, storage.contract(), spec.limits), spec


def _quarantined(found: Examined, spark: SparkSession) -> list[Any]:
    apart = found.apart
    return quarantined_rows(apart.source(spark).rows, apart.contract).collect()


def test_a_damaged_footer_leaves_the_group_as_it_is(
    job: Job, contract: Contract, table: str
) -> None:
    """Files whose footers are described wrongly are left alone; the others are still a group."""
    bodies = {f"fits {n}": changed(id=[n, n + 10, n + 20]) for n in (1, 2)}
    intact = bodies["fits 1"]
    begin = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for at, byte in ((0, 0), (0, 1), (3, 17)):  # no schema, one that is no list, one of truths
        damaged = bytearray(intact)
        damaged[begin + at] = byte
        bodies[f"damaged at {at} by {byte}"] = bytes(damaged)
    reports = _ingest(job, _specs(job, bodies, contract(), table))
    assert [len(report.group) for report in reports] == [2, 2, 0, 0, 0]


def _of_real_table(table: str) -> str:
    """Return the contract of a table with partitions, order, provenance and a check in SQL."""
    columns: list[dict[str, Any]] = [
        {"name": "id", "logicalType": "integer", "unique": True},
        {
            "name": "day",
            "logicalType": "date",
            "partitioned": True,
            **options(partitionTransform="month"),
        },
    ]
    checks = [custom("rowExpression", expression="10 / id > 0", mustBe=0)]
    settings = {"sortOrder": ["id desc"], "provenance": "all"}
    return contract_of(columns, checks, table, format="csv", **settings)


def _days(*ids: int) -> bytes:
    return ("id,day\n" + "".join(f"{n},2026-{n % 2 + 1:02}-03\n" for n in ids)).encode()


def test_a_group_of_a_real_table_is_written_by_arrow(job: Job, table: str) -> None:
    """Files share a commit into partitions, and one query answers the owner's SQL for all."""
    bodies = {"one": _days(1, 2, 3), "two": _days(4), "breaks it": _days(5, -6)}
    specs = _specs(job, bodies, _of_real_table(table), table)
    reports = _ingest(job, specs)
    assert [each.verdict for each in reports] == [Verdict.PASSED] * 2 + [Verdict.REJECTED]
    assert [_way(report) for report in reports] == [WAY] * 3
    assert [len(report.group) for report in reports] == [2, 2, 0]
    assert [len(report.files) for report in reports] == [2, 1, 2]
    rows = job.rows(table, reports[0].branch)
    found = {row["id"]: (row["ingestion_id"], row["row_number"]) for row in rows}
    one, two = (report.ingestion for report in reports[:2])
    assert found == {1: (one, 1), 2: (one, 2), 3: (one, 3), 4: (two, 1)}
    files = job.services.at(reports[0].branch).load_table(table).inspect.files().to_pylist()
    assert sorted(each["partition"]["day_month"] for each in files) == [672, 672, 673]
    february = job.session(reports[0].branch).table(f"lake.{table}").where("day > '2026-02-01'")
    assert sorted(row["id"] for row in february.collect()) == [1, 3]


def test_a_check_that_fails_on_a_row_spares_the_other_files(job: Job, table: str) -> None:
    """If the owner's SQL cannot be evaluated for one file of a group, the others still pass."""
    bodies = {"one": _days(1), "no answer": _days(7, 0), "two": _days(4)}
    reports = _ingest(job, _specs(job, bodies, _of_real_table(table), table))
    assert [each.verdict for each in reports] == [
        Verdict.PASSED,
        Verdict.ERRORED,
        Verdict.PASSED,
    ]


def test_columns_in_any_physical_order_can_be_deleted_from(
    job: Job, contract: Contract, table: str
) -> None:
    """A file whose columns lie in another order is read by all, and a DELETE removes one row."""
    body = lying_parquet.swapped(parquet(GOOD, use_dictionary=False))
    report = job.ingest(body, contract(), table)
    assert (report.verdict, _way(report)) == (Verdict.PASSED, WAY)
    job.publish(report)
    assert len(job.rows(table, "main")) == len(job.rows_by_pyiceberg(table)) == 3
    job.session("main", "publisher").sql(f"DELETE FROM lake.{table} WHERE id = 2")
    assert sorted(row["id"] for row in job.rows(table, "main")) == [1, 3]
