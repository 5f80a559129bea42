"""All tiers give the same answers, and large contracts are answered completely."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakegate.contract.model import parse
from lakegate.report import AuditReport, Status
from spark_jobs.audit import tier_scan, tier_statistics
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import NO_RUN, contract_of

pytestmark = pytest.mark.spark
_FACETS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_ANY = {"mustBeGreaterOrEqualTo": 0}
_OLD = datetime(1582, 10, 15, 1, 2, 3, 456789, tzinfo=UTC)
_STEP = timedelta(microseconds=1)
# A column's types, Arrow's type, three values in order, and how a contract writes them.
_KINDS: Sequence[tuple[str, str, pa.DataType, Sequence[Any], Sequence[Any]]] = (
    ("integer", "int", pa.int32(), (-5, 0, 7), (-5, 0, 7)),
    ("integer", "bigint", pa.int64(), (-(2**60), 3, 2**60), (-(2**60), 3, 2**60)),
    (
        *("number", "decimal(12,2)", pa.decimal128(12, 2)),
        [Decimal(text) for text in ("-1.50", "0.00", "12.25")],
        (-1.5, 0, 12.25),
    ),
    ("number", "float", pa.float32(), (-0.5, 0.0, 0.10000000149011612), (-0.5, 0, 0.1)),
    ("number", "double", pa.float64(), (-0.5, 0.0, 0.1), (-0.5, 0, 0.1)),
    (
        *("date", "date", pa.date32()),
        (date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)),
        ("0001-01-01", "1969-12-31", "9999-12-31"),
    ),
    (
        *("timestamp", "timestamp", pa.timestamp("us", tz="UTC")),
        (_OLD, _OLD + _STEP, _OLD + 2 * _STEP),
        [(_OLD + n * _STEP).isoformat() for n in range(3)],
    ),
    (
        *("timestamp", "timestamp_ntz", pa.timestamp("us")),
        [(_OLD + n * _STEP).replace(tzinfo=None) for n in range(3)],
        [(_OLD + n * _STEP).replace(tzinfo=None).isoformat() for n in range(3)],
    ),
)  # fmt: skip


def _columns() -> Iterator[tuple[dict[str, Any], pa.Array]]:
    """Yield columns of each kind with bounds in statistics: full, with a null, empty; odd zeros.

    Before them come columns that statistics do not answer.
    """
    stated = [
        {"metric": "invalidValues", "arguments": {"pattern": "^n[0-9]$"}, **_ANY},
        {"metric": "missingValues", "arguments": {"missingValues": ["", None]}, **_ANY},
    ]
    text = {"name": "text", "logicalType": "string", "quality": stated}
    yield text, pa.array(["n1\n", "", None])
    items = {"logicalType": "string", "required": True}
    yield {"name": "tags", "logicalType": "array", "items": items}, pa.array([["a"], [None], None])
    for logical, physical, arrow, (low, mid, high), written in _KINDS:
        for name, values in (
            ("full", [low, mid, high]),
            ("some", [low, None, high]),
            ("none", [None] * 3),
            ("flat", [mid] * 3),
        ):
            facets = _FACETS if name in ("full", "flat") else _FACETS[:2]
            column = _column(f"{name} {physical}", logical, physical, written, facets)
            yield column, pa.array(values, arrow)
    zeros = {
        "negative": [-0.0] * 3,
        "zero": [0.0] * 3,
        "nan": [0.0, math.nan, 0.1],
        "odd": [math.nan] * 3,
    }
    for name, values in zeros.items():
        for type_, arrow in (("double", pa.float64()), ("float", pa.float32())):
            yield (
                _column(f"{name} {type_}", "number", type_, (0, -0.0, 0.1)),
                pa.array(values, arrow),
            )


def _column(
    name: str,
    logical: str,
    physical: str,
    bounds: Sequence[Any],
    facets: Sequence[str] = _FACETS,
) -> dict[str, Any]:
    invalid = [
        {"id": f"{facet} {bound}", "metric": "invalidValues", "arguments": {facet: bound}, **_ANY}
        for facet in facets
        for bound in bounds
    ]
    nulls = {"id": "nulls", "metric": "nullValues", **_ANY}
    return {
        "name": name,
        "logicalType": logical,
        "physicalType": physical,
        "quality": [nulls, *invalid],
    }


def _run(job: Job, report: AuditReport, text: str) -> Run:
    """Return a run over the files that a reported run appended."""
    session = job.session(report.branch)
    there = iceberg.find_iceberg_table(session, table_name(report.table))
    contract, files = parse(text, "tiers.yaml"), tuple(iceberg.added_files(there))
    return Run(session, NO_RUN, "", contract, there, files)


def test_every_tier_gives_the_same_answer(job: Job, table: str) -> None:
    """Statistics, the append and scans give the same number, and the report has it."""
    columns = list(_columns())
    text = contract_of([column for column, _ in columns], table=table, write="spark")
    body = parquet({column["name"]: values for column, values in columns})
    report = job.ingest(body, text, table)
    run = _run(job, report, text)
    checks = run.contract.checks
    scanned = {id_: each.value for id_, each in tier_scan.answer(run, checks).items()}
    stated = {id_: each.value for id_, each in tier_statistics.answer(run, checks).items()}
    assert stated == {id_: scanned[id_] for id_ in stated}
    reported = {check.id: check for check in report.checks if check.id in scanned}
    assert {id_: check.counted for id_, check in reported.items()} == scanned
    by_statistics = {id_ for id_, check in reported.items() if check.tier == "manifests"}
    assert by_statistics == set(stated)
    _expect_statistics(by_statistics)
    appended = {c.id: c.counted for c in report.checks if c.tier == "append"}
    texts = {"text.invalidValues": 2, "text.missingValues": 2, "tags[].nullValues": 1}
    assert appended.items() >= texts.items()


def _expect_statistics(ids: set[str]) -> None:
    """Assert that statistics answered where they can: counts always, and bounds that hold."""
    for _, physical, _, _, written in _KINDS:
        for name in ("full", "some", "none", "flat"):
            assert f"{name} {physical}.nulls" in ids
            assert f"{name} {physical}.minimum {written[0]}" in ids
            assert f"{name} {physical}.maximum {written[2]}" in ids
        assert f"flat {physical}.exclusiveMinimum {written[0]}" in ids
        assert f"full {physical}.exclusiveMinimum {written[0]}" not in ids
    assert "negative double.minimum 0" in ids
    assert "nan double.minimum 0" not in ids


_WIDE, _CHECKED = 500, 150


def test_one_bad_cell_of_500_columns_is_found(job: Job, table: str) -> None:
    """Of 301 checks on 500 columns exactly the one with the bad cell fails (case 40).

    Statistics are kept for all columns, far beyond Iceberg's first hundred, where Spark writes.
    """
    rule = {"logicalTypeOptions": {"pattern": "^v[0-9]$"}, "required": True}
    rules: list[dict[str, Any]] = [*[rule] * _CHECKED, *[{}] * (_WIDE - _CHECKED)]
    rules[-1] = {"required": True}
    columns = [{"name": f"c{n}", "logicalType": "string", **each} for n, each in enumerate(rules)]
    good = {column["name"]: ["v1", "v2", "v3"] for column in columns}
    body = parquet({**good, "c137": ["v1", "v2", "3"]})
    report = job.ingest(body, contract_of(columns, table=table, write="spark"), table)
    assert [check.id for check in report.failed] == ["c137.invalidValues"]
    assert sum(c.status is Status.PASS for c in report.checks) == 2 * _CHECKED + 3
    found = {c.id: (c.tier, c.counted) for c in report.checks if c.metric == "nullValues"}
    assert f"c{_WIDE - 1}.nullValues" in found
    assert set(found.values()) == {("manifests", 0)}


def test_four_levels_deep_is_checked_and_comes_again(job: Job, table: str) -> None:
    """A value four levels deep is checked, in the table's first file and in the next (34)."""
    sku = {"name": "sku", "logicalType": "string", "required": True}
    lines = {"logicalType": "array", "items": {"logicalType": "object", "properties": [sku]}}
    order = {"logicalType": "object", "properties": [{"name": "lines", **lines}]}
    text = contract_of([{"name": "order", **order}], table=table)
    good = [{"lines": [{"sku": "a"}, None]}, {"lines": []}, {"lines": None}, None]
    job.publish(job.ingest(parquet({"order": good}), text, table))
    bad = [*good[1:], {"lines": [{"sku": "a"}, {"sku": None}, {"sku": None}]}]
    report = job.ingest(parquet({"order": bad}), text, table)
    assert [(c.id, c.counted) for c in report.failed] == [("order.lines[].sku.nullValues", 1)]
