"""Rows say where they come from, the same on every way into their table."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakegate.audit.report import AuditReport, Verdict
from lakegate.contract.model import parse
from lakegate.errors import Permanent
from lakegate.job.change import Effect, retraction
from lakegate.job.jobspec import JobSpec
from spark_jobs.files.open import open_source
from spark_jobs.files.source import LocalFile
from spark_jobs.write.provenance import one_file_rows, require_each_number
from tests.spark.conftest import Job, orc_file, parquet, reason
from tests.spark.measuring import NO_RUN, contract_of, options, reading_session
from tests.spark.test_group import _ingest as ingest_together
from tests.spark.test_group import _specs as specs_of

pytestmark = pytest.mark.spark
_ROWS = 3_000
_LANDED_AT = "2026-11-02T08:30:00.000Z"
_ORIGIN = ("landed_key", "landed_version", "ingestion_id", "row_number")


def _csv(columns: Mapping[str, Any]) -> bytes:
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *lines, ""]).encode()


def _objects(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _json(columns: Mapping[str, Any]) -> bytes:
    return "\n".join([*map(json.dumps, _objects(columns)), ""]).encode()


_WRITERS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "parquet": ("parquet", lambda rows: parquet(rows, row_group_size=500)),
    "csv": ("csv", _csv),
    "json": ("json", _json),
    "json array": ("json", lambda rows: json.dumps(_objects(rows)).encode()),
    "orc": ("orc", lambda rows: orc_file(rows, stripe_size=1024)),
}


def _contract(table: str, *properties: Mapping[str, Any], **settings: Any) -> str:
    id_ = {"name": "id", "logicalType": "integer", "required": True}
    given = {"provenance": "all", **settings}
    return contract_of([id_, *properties], (), table, **given)


@pytest.mark.parametrize("kind", list(_WRITERS))
def test_rows_are_numbered_as_they_stand_in_the_file(job: Job, tmp_path: Path, kind: str) -> None:
    """Whatever the format and however many tasks read it, a row's number is its place."""
    format_, write = _WRITERS[kind]
    spark = reading_session(job.warm_spark)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4k")
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    file = tmp_path / "file"
    file.write_bytes(write({"id": [2 * n for n in range(1, _ROWS + 1)]}))
    contract = parse(_contract("tests.test", format=format_), "a test")
    source = open_source(spark, str(file), contract, LocalFile(file))
    rows = one_file_rows(source.rows, contract.provenance, NO_RUN)
    found = {row["id"]: row["row_number"] for row in rows.collect()}
    assert found == {2 * n: n for n in range(1, _ROWS + 1)}
    if kind in ("parquet", "csv", "json"):
        assert source.rows.rdd.getNumPartitions() > 1


def test_a_number_that_is_not_the_rows_count_is_refused() -> None:
    """A file that was read in other parts than were counted is not published."""
    provenance = parse(_contract("tests.test"), "a test").provenance
    require_each_number(provenance, 3, 3)
    require_each_number(provenance, 0, None)
    with pytest.raises(Permanent, match="numbered up to 2"):
        require_each_number(provenance, 3, 2)


def _origin(spec: JobSpec, number: int) -> tuple[Any, ...]:
    landed = spec.landed
    return landed.key, landed.version, spec.ingestion, number, "2026-11-02 08:30:00"


def _spec(job: Job, body: bytes, contract: str, table: str, name: str = "file") -> JobSpec:
    (spec,) = specs_of(job, {name: body}, contract, table)
    return replace(spec, landed=replace(spec.landed, landed_at=_LANDED_AT))


def _found(job: Job, table: str, branch: str) -> dict[int, tuple[Any, ...]]:
    session = job.session(branch)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    rows = session.table(f"lake.{table}").selectExpr("*", "CAST(landed_at AS STRING) AS time")
    return {row["id"]: tuple(row[n] for n in (*_ORIGIN, "time")) for row in rows.collect()}


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_of_a_group_have_their_own_origin(job: Job, table: str, kind: str) -> None:
    """In a shared run each row names its own file."""
    format_, write = _WRITERS[kind]
    bodies = {f"f{n}": write({"id": [100 * n + m for m in range(1, 9)]}) for n in range(1, 4)}
    specs = [
        replace(each, landed=replace(each.landed, landed_at=_LANDED_AT))
        for each in specs_of(job, bodies, _contract(table, format=format_), table)
    ]
    reports = ingest_together(job, specs)
    assert {len(report.group) for report in reports} == {3}
    wanted = {100 * n + m: _origin(spec, m) for n, spec in enumerate(specs, 1) for m in range(1, 9)}
    assert _found(job, table, reports[0].branch) == wanted


def test_quarantined_rows_count_and_partitions_do_not_matter(job: Job, table: str) -> None:
    """Rows after a quarantined one keep their number, in whichever partition they are."""
    day = {"name": "day", "logicalType": "date", "partitioned": True}
    least = {
        "name": "n",
        "logicalType": "integer",
        "logicalTypeOptions": {"minimum": 0},
        **options(onBadRow="quarantine"),
    }
    text = _contract(table, least, day, format="csv", quarantine={"maxRows": 1})
    body = b"id,n,day\n1,1,2013-01-02\n2,-1,2013-01-01\n3,1,2013-01-01\n4,1,2013-01-02\n"
    spec = _spec(job, body, text, table)
    report = job.run(spec)
    assert (report.verdict, report.rows_rejected) == (Verdict.PASSED, 1)
    assert _found(job, table, report.branch) == {n: _origin(spec, n) for n in (1, 3, 4)}


def _publish(job: Job, spec: JobSpec) -> AuditReport:
    report = job.run(spec)
    job.publish(report)
    return report


def test_columns_come_with_a_newer_contract_and_a_rebase_keeps_them(job: Job, table: str) -> None:
    """Rows of before have no origin; a rebased file's rows keep theirs."""
    old = contract_of([{"name": "id", "logicalType": "integer", "required": True}], (), table)
    _publish(job, _spec(job, parquet({"id": [1]}), old, table, "old"))
    first = _spec(job, parquet({"id": [2]}), _contract(table), table, "first")
    second = _spec(job, parquet({"id": [3]}), _contract(table), table, "second")
    refused = job.run(second)
    report = _publish(job, first)
    assert "table: column row_number added as bigint" in report.schema_changes
    found = _found(job, table, job.registered(refused))
    assert found == {1: (None,) * 5, 2: _origin(first, 1), 3: _origin(second, 1)}


def test_a_file_cannot_forge_its_origin(job: Job, table: str) -> None:
    """A column of the file with the name of an origin is refused where columns are added."""
    text = _contract(table, extraColumns="add")
    body = parquet({"id": [1], "INGESTION_ID": ["forged"]})
    report = job.run(_spec(job, body, text, table))
    assert report.verdict is Verdict.REJECTED
    assert "column of provenance" in reason(report).message


def _retract(job: Job, report: AuditReport, contract: str) -> AuditReport:
    """Return the report of the change that retracts a published file."""
    change = retraction(report.table, report.ingestion, "Ann", "wrong day")
    return job.run(replace(job.change(change, contract), earlier_report=report.key))


def _two(job: Job, table: str, text: str) -> tuple[AuditReport, AuditReport]:
    """Publish two files, of three rows and of two; return their reports."""
    one, other = (
        _publish(job, _spec(job, parquet({"id": ids}), text, table, str(ids))) for ids in _IDS
    )
    return one, other


_IDS = [1, 2, 3], [4, 5]


def _plain(table: str) -> str:
    return contract_of([{"name": "id", "logicalType": "integer", "required": True}], (), table)


@pytest.mark.parametrize("contract", [_contract, _plain])
def test_a_retracted_files_rows_are_removed(
    job: Job, table: str, contract: Callable[[str], str]
) -> None:
    """Exactly its rows go, with columns of provenance and without."""
    text = contract(table)
    first, second = _two(job, table, text)
    found = _retract(job, first, text)
    assert (found.verdict, found.effect) == (Verdict.PASSED, Effect(5, 2, 0, 3))
    assert {row["id"] for row in job.rows(table, found.branch)} == {4, 5}
    job.publish(found)
    last = _retract(job, second, text)
    assert (last.verdict, last.effect) == (Verdict.PASSED, Effect(2, 0, 0, 2))


def _compacted(job: Job, table: str) -> None:
    """Rewrite the table's data files on main into one."""
    session = job.session("main", "publisher")
    name = f"lake.{table}"
    session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => "
        "map('rewrite-all', 'true'))"
    ).collect()
    assert session.sql(f"SELECT DISTINCT _file FROM {name}").count() == 1


def test_a_compacted_files_rows_are_retracted_by_their_column(job: Job, table: str) -> None:
    """After compaction the rows are found by their ingestion."""
    text = _contract(table)
    first, _ = _two(job, table, text)
    _compacted(job, table)
    found = _retract(job, first, text)
    assert (found.verdict, found.effect) == (Verdict.PASSED, Effect(5, 2, 0, 3))
    assert {r["id"] for r in job.rows(table, found.branch)} == {4, 5}


def test_scattered_rows_are_not_guessed(job: Job, table: str) -> None:
    """Without columns, a file whose data files were rewritten is not retracted."""
    text = _plain(table)
    first, _ = _two(job, table, text)
    _compacted(job, table)
    found = _retract(job, first, text)
    assert (found.verdict, reason(found).code) == (Verdict.ERRORED, "ROWS_SCATTERED")
