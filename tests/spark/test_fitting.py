"""Parquet files that become data files of their table, and those that Spark appends."""

from collections.abc import Callable
from typing import Any

import boto3
import pyarrow as pa
import pytest

from lakegate.report import Verdict
from spark_jobs.fitting import examine
from spark_jobs.storage import Storage
from tests.fakes import lying_parquet
from tests.spark.conftest import GOOD, Job, changed, parquet
from tests.spark.measuring import contract_of
from tests.spark.test_group import _ingest, _specs

pytestmark = pytest.mark.spark
Contract = Callable[..., str]


def _way(report: Any) -> str:
    return str(report.engine["write"])


def test_a_fitting_file_is_registered(job: Job, contract: Contract, table: str) -> None:
    """It has the rows that Spark would write, and the report names way, tier and one data file."""
    report = job.ingest(changed(), contract(), table)
    assert (report.verdict, _way(report)) == (Verdict.PASSED, "registered")
    assert {check.tier for check in report.checks} == {"file", "arrow"}
    assert (len(report.files), report.rows_read, report.rows_written) == (1, 3, 3)
    rows = job.rows(table, report.branch)
    assert [list(row.values()) for row in rows] == [
        list(row) for row in zip(*GOOD.values(), strict=True)
    ]


def test_a_second_file_is_registered_beside_the_first(
    job: Job, contract: Contract, table: str
) -> None:
    """A registered file finds the columns of a table that exists, whatever their order."""
    job.publish(job.ingest(changed(), contract(), table))
    other = dict(reversed(list(GOOD.items())))
    report = job.ingest(parquet({**other, "id": [4, 5, 6]}), contract(), table)
    assert _way(report) == "registered"
    rows = job.rows(table, report.branch)
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4, 5, 6]
    assert sorted(str(row["day"]) for row in rows) == sorted(2 * [str(day) for day in GOOD["day"]])


@pytest.mark.parametrize(
    ("why", "columns"),
    [
        ("its column id is not bigint", {"id": pa.array([1, 2, 3], pa.int32())}),
        ("name is not UTF-8", {"name": pa.array([b"n1", b"\xff", None]).view(pa.string())}),
    ],
)
def test_any_other_file_is_rewritten(
    job: Job, contract: Contract, table: str, why: str, columns: dict[str, Any]
) -> None:
    """Spark appends or rejects a file that does not fit, and the report says why."""
    report = job.ingest(changed(**columns), contract(), table)
    assert report.engine.get("write", "").startswith(f"rewritten: {why}")


def test_a_file_that_fails_is_registered_with_samples(
    job: Job, contract: Contract, table: str
) -> None:
    """A rejected file's branch has its rows, and the report shows those that broke the check."""
    report = job.ingest(changed(amount=[0.0, 100.5, None]), contract(), table)
    assert (report.verdict, _way(report)) == (Verdict.REJECTED, "registered")
    (failed,) = report.failed
    assert (failed.id, failed.tier, failed.counted) == ("amount.invalidValues", "arrow", 1)
    assert [row["amount"] for row in failed.samples] == ["100.5"]
    assert len(job.rows(table, report.branch)) == 3


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


def test_a_file_with_nested_columns_is_registered(job: Job, table: str) -> None:
    """Arrow answers the checks of structs, and of lists as a whole, Spark those of their items."""
    area = [{"code": "x", "size": 0}, None, {"code": None, "size": -1}]
    body = _nested(area, [[{"sku": "a"}, {"sku": None}], [], None])
    report = job.ingest(body, _of_nested(table, required=True), table)
    assert (report.verdict, _way(report)) == (Verdict.REJECTED, "registered")
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


def test_a_group_of_nested_files_is_registered(job: Job, table: str) -> None:
    """Files with nested columns share a commit; one whose leaves disagree is left alone."""
    bodies = {f"fits {n}": _nested([{"code": "x", "size": n}], [[]]) for n in (1, 2)}
    rows = [[{"code": "x", "size": 1}, None], [None, {"code": "x", "size": 1}]]
    one, other = (_nested(each, [[], []]) for each in rows)
    bodies["disagrees"] = lying_parquet.grafted(one, other, 2)
    reports = _ingest(job, _specs(job, bodies, _of_nested(table), table))
    assert [_way(report) for report in reports[:2]] == ["registered"] * 2
    assert [len(report.group) for report in reports] == [2, 2, 0]
    assert sorted(row["area"].size for row in job.rows(table, reports[0].branch)) == [1, 2]


def test_damage_that_spark_overlooks_is_an_error(job: Job, table: str) -> None:
    """A file whose leaves disagree is not published, although Spark can read it."""
    rows = [[{"code": "x", "size": 1}, None], [None, {"code": "x", "size": 1}]]
    one, other = (_nested(each, [[], []]) for each in rows)
    body = lying_parquet.grafted(one, other, 2)
    report = job.ingest(body, _of_nested(table), table)
    assert report.reason
    assert (report.verdict, report.reason.code) == (Verdict.ERRORED, "CORRUPT_FILE")
    assert "the parts of its column area do not belong together" in report.reason.message


def test_passes_in_tasks_find_the_same(job: Job, contract: Contract, table: str) -> None:
    """The row groups of a large file are measured in Spark's tasks as in the driver."""
    body = parquet({**GOOD, "id": [1, 2, 2]}, row_group_size=1)
    spec = job.spec(job.services.land(f"{table}/large", body), contract(), table)
    storage = Storage(spec, job.services.s3, boto3.client("secretsmanager"))
    here = examine(storage, storage.contract(), spec.limits)
    there = examine(storage, storage.contract(), spec.limits, job.warm_spark, most_here=0)
    assert there.found.columns == here.found.columns
    assert there.measured == here.measured
    assert here.metadata.num_row_groups == 3


def test_a_damaged_footer_leaves_the_group_as_it_is(
    job: Job, contract: Contract, table: str
) -> None:
    """Files whose footers are described wrongly are left alone; the others are still a group."""
    packed = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
    bodies = {f"packed {n}": parquet({**GOOD, "id": [7, 8, n]}, **packed) for n in (1, 2)}
    intact = bodies["packed 1"]
    begin = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for at, byte in ((0, 0), (0, 1), (3, 17)):  # no schema, one that is no list, one of truths
        damaged = bytearray(intact)
        damaged[begin + at] = byte
        bodies[f"damaged at {at} by {byte}"] = bytes(damaged)
    reports = _ingest(job, _specs(job, bodies, contract(), table))
    assert [len(report.group) for report in reports] == [2, 2, 0, 0, 0]


def test_a_group_is_registered_and_appended(job: Job, contract: Contract, table: str) -> None:
    """Files that fit share one commit, files that do not share another, and each has its report."""
    packed = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
    bodies = {f"fits {n}": changed(id=[n, n + 10, n + 20]) for n in (1, 2)}
    bodies |= {f"packed {n}": parquet({**GOOD, "id": [7, 8, n]}, **packed) for n in (1, 2)}
    reports = _ingest(job, _specs(job, bodies, contract(), table))
    assert [_way(report) for report in reports] == ["registered"] * 2 + ["rewritten"] * 2
    assert [len(report.group) for report in reports] == [2] * 4
    assert len({report.branch for report in reports}) == 2
    assert sorted(row["id"] for row in job.rows(table, reports[0].branch)) == [1, 2, 11, 12, 21, 22]
