"""All tiers give the same answers, and large contracts are answered completely."""

import io
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakegate.contract.model import parse
from lakegate.report import Status, Verdict
from spark_jobs.audit import tier_scan, tier_statistics
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from tests.spark.conftest import Job
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
    """Yield columns of each kind with bounds in statistics: full, with a null, empty; odd zeros."""
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


def _parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def test_every_tier_gives_the_same_answer(job_runner: Job, table: str) -> None:
    """Statistics and scans give the same number, and the report has it."""
    columns = list(_columns())
    text = contract_of([column for column, _ in columns], table=table)
    body = _parquet({column["name"]: values for column, values in columns})
    _, report = job_runner.ingest(body, text, table)
    session, contract = job_runner.session(report.branch), parse(text, "tiers.yaml")
    there = iceberg.find_iceberg_table(session, table_name(table))
    run = Run(session, NO_RUN, "", contract, there, tuple(iceberg.added_files(there)))
    scanned = {id_: each.value for id_, each in tier_scan.answer(run, contract.checks).items()}
    stated = {id_: each.value for id_, each in tier_statistics.answer(run, contract.checks).items()}
    assert stated == {id_: scanned[id_] for id_ in stated}
    reported = {check.id: check for check in report.checks if check.id in scanned}
    assert {id_: check.counted for id_, check in reported.items()} == scanned
    by_statistics = {id_ for id_, check in reported.items() if check.tier == "manifests"}
    assert by_statistics == set(stated)
    _expect_statistics(by_statistics)


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


def test_the_appends_pass_counts_as_a_scan_does(job_runner: Job, table: str) -> None:
    """A check gets the same number from the append and from a scan of the files."""
    stated = [
        {"metric": "invalidValues", "arguments": {"pattern": "^n[0-9]$"}, **_ANY},
        {"metric": "missingValues", "arguments": {"missingValues": ["", None]}, **_ANY},
    ]
    items = {"logicalType": "string", "required": True}
    columns: list[dict[str, Any]] = [
        {"name": "name", "logicalType": "string", "quality": stated},
        {"name": "tags", "logicalType": "array", "items": items},
    ]
    text = contract_of(columns, table=table)
    names, tags = ["n1", "n1\n", "", None], [["a"], [None], [], None]
    _, report = job_runner.ingest(_parquet({"name": names, "tags": tags}), text, table)
    session, contract = job_runner.session(report.branch), parse(text, "tiers.yaml")
    there = iceberg.find_iceberg_table(session, table_name(table))
    run = Run(session, NO_RUN, "", contract, there, tuple(iceberg.added_files(there)))
    scanned = {id_: each.value for id_, each in tier_scan.answer(run, contract.checks).items()}
    ridden = {c.id: c.counted for c in report.checks if c.tier == "append"}
    assert ridden == scanned == dict(zip(scanned, (2, 2, 1), strict=True))


_WIDE, _CHECKED = 500, 300


def _wide(bad: int = -1) -> bytes:
    columns = {f"c{n}": ["v1", "v2", "v3"] for n in range(_WIDE)}
    if bad >= 0:
        columns[f"c{bad}"] = ["v1", "v2", "3"]
    return _parquet(columns)


def test_one_bad_cell_of_500_columns_is_found(job_runner: Job, table: str) -> None:
    """Of 300 checks on 500 columns exactly the one with the bad cell fails (case 40)."""
    rule = {"logicalTypeOptions": {"pattern": "^v[0-9]$"}, "required": True}
    checked: list[dict[str, Any]]
    checked = [{"name": f"c{n}", "logicalType": "string", **rule} for n in range(_CHECKED // 2)]
    more = [{"name": f"c{n}", "logicalType": "string"} for n in range(_CHECKED // 2, _WIDE)]
    text = contract_of([*checked, *more], table=table)
    code, good = job_runner.ingest(_wide(), text, table, "tests/good")
    assert (code, sum(c.status is Status.PASS for c in good.checks)) == (0, _CHECKED + 3)
    code, report = job_runner.ingest(_wide(bad=137), text, table, "tests/bad")
    assert (code, [check.id for check in report.failed]) == (3, ["c137.invalidValues"])
    tiers = {check.tier for check in report.checks if check.metric == "nullValues"}
    assert tiers == {"manifests"}


def test_the_500th_column_has_statistics(job_runner: Job, table: str) -> None:
    """Statistics are kept for all columns, far beyond Iceberg's first hundred."""
    columns: list[dict[str, Any]]
    columns = [{"name": f"c{n}", "logicalType": "string"} for n in range(_WIDE - 1)]
    last = {"name": f"c{_WIDE - 1}", "logicalType": "string", "required": True}
    text = contract_of([*columns, last], table=table)
    _, report = job_runner.ingest(_wide(), text, table)
    found = next(check for check in report.checks if check.id == f"c{_WIDE - 1}.nullValues")
    assert (found.tier, found.counted) == ("manifests", 0)


def test_four_levels_deep_is_checked_and_comes_again(job_runner: Job, table: str) -> None:
    """A value four levels deep is checked, in the table's first file and in the next (34)."""
    sku = {"name": "sku", "logicalType": "string", "required": True}
    lines = {"logicalType": "array", "items": {"logicalType": "object", "properties": [sku]}}
    order = {"logicalType": "object", "properties": [{"name": "lines", **lines}]}
    text = contract_of([{"name": "order", **order}], table=table)
    good = [{"lines": [{"sku": "a"}, None]}, {"lines": []}, {"lines": None}, None]
    code, first = job_runner.ingest(_parquet({"order": good}), text, table, "tests/first")
    assert (code, first.verdict) == (0, Verdict.PASSED)
    catalog = job_runner.services.catalog
    assert catalog.merge(first.branch, first.audited_hash, first.base_hash, "Publish", {"k": "v"})
    bad = [*good[1:], {"lines": [{"sku": "a"}, {"sku": None}, {"sku": None}]}]
    code, report = job_runner.ingest(_parquet({"order": bad}), text, table, "tests/second")
    assert (code, [(c.id, c.counted) for c in report.failed]) == (
        3,
        [("order.lines[].sku.nullValues", 1)],
    )
