"""A table is stored as its contract says, and every engine reads the same rows from it."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from lakegate.audit.report import AuditReport
from lakegate.contract.model import parse
from spark_jobs.audit import tier_scan
from spark_jobs.files.source import BAD_ROW, Source
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass.examined import WAY
from spark_jobs.spark.session import open_session
from spark_jobs.write.append import append_counted, open_table
from tests.services import fresh_session
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of, custom, options

pytestmark = pytest.mark.spark
_TRANSFORM = "partitionTransform"


def column(name: str, type_: str, transform: str = "", **more: Any) -> dict[str, Any]:
    """Return a column by which the table is partitioned; `type_` is its logical type, or both."""
    logical, _, physical = type_.partition(" ")
    declared = {
        "name": name,
        "logicalType": logical,
        **({"physicalType": physical} if physical else {}),
    }
    given = options(**{_TRANSFORM: transform}) if transform else {}
    return {**declared, "partitioned": True, **given, **more}


@dataclass(frozen=True)
class Lake:
    """A table, its contracts and its files."""

    job: Job
    name: str

    def contract(self, *columns: Mapping[str, Any], description: str = "", **settings: Any) -> str:
        """Return a contract over `id` and these columns."""
        id_ = {"name": "id", "logicalType": "integer", "required": True}
        text = contract_of([id_, *columns], (), self.name, **settings)
        said = f'"schema": [{{"description": "{description}", '
        return text.replace('"schema": [{', said) if description else text

    def publish(self, contract: str, body: bytes) -> AuditReport:
        report = self.job.ingest(body, contract, self.name)
        self.job.publish(report)
        return report

    def table(self, branch: str = "main") -> Table:
        return self.job.services.at(branch).load_table(self.name)

    def files(self, branch: str = "main") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table(branch).inspect.files().to_pylist()
        return found

    def stored(self, file: Mapping[str, Any]) -> bytes:
        bucket, _, key = file["file_path"].removeprefix("s3://").partition("/")
        return bytes(self.job.services.s3.get_object(Bucket=bucket, Key=key)["Body"].read())


@pytest.fixture
def lake(job: Job, table: str) -> Lake:
    return Lake(job, table)


_DAYS = [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(2024, 12, 31), None]
_TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 59, 59, tzinfo=UTC),
    None,
]
_LOCAL = [each and each.replace(tzinfo=None) for each in _TIMES]
_NUMBERS = [-11, -1, 0, 9, 10, 2**40, None]
_TEXTS = ["", "a b/ü%?#=", "abc", "abcdef", "\U0001f600\U0001f600x", None]
_PRICES = [Decimal("-10.65"), Decimal("10.65"), None]
# Of each type values, and the transforms that it is partitioned by, each in a column of its own.
_PARTITIONED: Mapping[str, tuple[pa.DataType, Sequence[Any], Sequence[str]]] = {
    "date": (pa.date32(), _DAYS, ("day", "month", "year", "bucket[8]")),
    "timestamp": (pa.timestamp("us", "UTC"), _TIMES, ("day", "hour")),
    "timestamp timestamp_ntz": (pa.timestamp("us"), _LOCAL, ("month", "year")),
    "integer": (pa.int64(), _NUMBERS, ("bucket[4]", "bucket[16]", "truncate[10]", "identity")),
    "string": (pa.string(), _TEXTS, ("truncate[1]", "truncate[4]", "identity", "bucket[4]")),
    "number decimal(9,2)": (pa.decimal128(9, 2), _PRICES, ("identity",)),
    # Of other digits, as pyiceberg reads no manifest with one decimal type twice.
    "number decimal(8,2)": (pa.decimal128(8, 2), _PRICES, ("truncate[50]",)),
}
_ROWS = 14


def test_rows_are_in_the_partition_that_iceberg_defines(lake: Lake, tmp_path: Path) -> None:
    """In a table with a column for each transform every row has the partition that they define.

    They are computed in plain Python, not by the library that writes. Spark, pyiceberg and DuckDB
    read the rows that landed.
    """
    columns: list[dict[str, Any]] = []
    arrays = {"id": pa.array(range(_ROWS))}
    for type_, (arrow, values, transforms) in _PARTITIONED.items():
        for transform in transforms:
            columns.append(column(name := f"c{len(columns)}", type_, transform))
            arrays[name] = pa.array([values[n % len(values)] for n in range(_ROWS)], arrow)
    report = lake.publish(lake.contract(*columns), parquet(arrays))
    table, partitions = lake.table(), []
    for field, stated in zip(table.spec().fields, columns, strict=True):
        assert str(field.transform) == stated["customProperties"][0]["value"]
        defined = field.transform.transform(table.schema().find_type(field.source_id))
        found = pa.array([defined(each) for each in arrays[stated["name"]].to_pylist()])
        if str(field.transform) == "day":  # its partitions are dates
            found = found.cast(pa.int32()).cast(pa.date32())
        partitions.append(found.to_pylist())
    wanted, files = Counter(zip(*partitions, strict=True)), lake.files()
    assert {tuple(f["partition"].values()): f["record_count"] for f in files} == wanted
    assert (len(files), report.rows_written) == (len(wanted), _ROWS)
    landed = pa.table(arrays).to_pylist()
    by_spark = sorted(lake.job.rows(lake.name, "main"), key=_id)
    assert by_spark == [{name: _shown(value) for name, value in row.items()} for row in landed]
    by_duckdb = lake.job.rows_by_duckdb(lake.name, tmp_path / "duckdb")
    for read in (lake.job.rows_by_pyiceberg(lake.name), by_duckdb):
        assert sorted(read, key=_id) == landed


def _id(row: Mapping[str, Any]) -> Any:
    return row["id"]


def _shown(value: Any) -> Any:
    """Return a value as Spark's own Python rows have it: timestamps in the machine's zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


_DAY = column("day", "date", "day")
_AMOUNT = {
    "name": "amount",
    "logicalType": "integer",
    "quality": [
        {"metric": "nullValues", "mustBe": 25},
        custom("sum", mustBe=sum(n % 7 for n in range(1000) if n % 40)),
        {"metric": "invalidValues", "arguments": {"maximum": 5}, "mustBe": 139},
    ],
}


@pytest.mark.parametrize(
    ("columns", "order"),
    [
        ([_DAY, _AMOUNT], None),
        ([{**_DAY, "partitioned": False}, _AMOUNT], ["amount desc nulls last"]),
        ([_DAY, _AMOUNT], ["amount desc nulls last", "id"]),
    ],
    ids=["partitioned", "sorted", "both"],
)
def test_each_row_is_counted_once_and_a_partition_gets_one_file(
    job: Job, table: str, columns: list[dict[str, Any]], order: list[str] | None
) -> None:
    """Measures and row counts are exact though eight tasks read rows of ten partitions.

    Each partition has one file, and the rows of a file are sorted.
    """
    lake = Lake(job, table)
    settings: dict[str, Any] = {"sortOrder": order} if order else {}
    text = lake.contract(*columns, **settings)
    spec = job.spec(job.services.land("tests/first", b"x"), text, table)
    fresh_session(job.warm_spark)
    token = Storage.connect(spec).nessie_token()
    spark, contract = open_session(spec, token), parse(text, "a test")
    branch = Branch(spec.nessie_uri, spec.branch, token)
    amount = "CASE WHEN id % 40 <> 0 THEN id % 7 END"
    rows = spark.range(0, 1000, 1, 8).selectExpr(
        "id",
        "date_add(DATE '2024-01-01', CAST(id % 10 AS int)) AS day",
        f"{amount} AS amount",
        f"CAST(NULL AS string) AS `{BAD_ROW}`",
    )
    opened = open_table(spark, spec, branch, contract)
    run, counted, _ = append_counted(spec, branch, Source(rows, (), 1000), contract, opened)
    assert (counted.read, run.written) == (1000, 1000)
    found = tier_scan.answer(run, contract.checks)
    assert found["amount.sum"].value == sum(n % 7 for n in range(1000) if n % 40)
    files = lake.files(spec.branch)
    if columns[0]["partitioned"]:
        assert [file["record_count"] for file in files] == [100] * 10
    for file in files if order else ():
        amounts = pq.read_table(io.BytesIO(lake.stored(file)))["amount"].to_pylist()
        assert amounts == sorted(amounts, key=lambda n: (n is None, -(n or 0)))


_LINES = {
    "name": "lines",
    "logicalType": "array",
    "description": 'What was sold: Ben\'s \\ "own".',
    "items": {
        "logicalType": "object",
        "properties": [{"name": "sku", "logicalType": "string", "description": "Its number."}],
    },
}
_SIZE, _CODEC = "write.target-file-size-bytes", "write.parquet.compression-codec"


def rows_of(first: int, **more: Any) -> bytes:
    """Return a file with an id and a day in each of two months."""
    days = [date(2024, 1, 31), date(2024, 2, 1)]
    return parquet({"id": pa.array([first, first + 1]), "day": pa.array(days), **more})


def test_descriptions_and_properties_reach_the_table(lake: Lake) -> None:
    """Comments of the table and its columns, and table properties, are in the table's metadata."""
    settings = {"tableProperties": {_SIZE: 4194304, _CODEC: "gzip", "format-version": 2}}
    contract = lake.contract(_LINES, description="Orders.", write="spark", **settings)
    lines = pa.array([[{"sku": "x"}]], pa.list_(pa.struct({"sku": pa.string()})))
    report = lake.publish(contract, parquet({"id": pa.array([1]), "lines": lines}))
    table = lake.table()
    assert (table.properties["comment"], table.format_version) == ("Orders.", 2)
    assert (table.properties[_SIZE], table.properties[_CODEC]) == ("4194304", "gzip")
    assert table.schema().find_field("lines").doc == _LINES["description"]
    assert table.schema().find_field("lines.element.sku").doc == "Its number."
    assert report.schema_changes == ()
    (file,) = lake.files()
    group = pq.read_metadata(io.BytesIO(lake.stored(file))).row_group(0)
    assert group.column(0).compression == "GZIP"


def test_a_newer_contract_changes_the_layout_with_its_first_file(lake: Lake) -> None:
    """Partitions, order, properties and comments change on the file's branch, and are published.

    Files that are in the table stay as they were, and the next file changes nothing more.
    """
    plain = {"name": "Day", "logicalType": "date"}
    lake.publish(lake.contract(plain), rows_of(1))
    monthly = lake.contract(
        column("day", "date", "month", description="When."),
        description="Orders.",
        sortOrder=["day desc", "id"],
        tableProperties={_CODEC: "snappy"},
    )
    before = lake.table().metadata
    report = lake.job.ingest(rows_of(3), monthly, lake.name)
    assert report.schema_changes == (
        "table: new files partitioned by month(day)",
        "table: new files sorted by day desc nulls last, id asc nulls first",
        f"table: property {_CODEC} set to snappy",
        "table: 2 comments set",
    )
    assert lake.table().metadata == before
    lake.job.publish(report)
    assert [str(field.transform) for field in lake.table().spec().fields] == ["month"]
    assert [field.source_id for field in lake.table().sort_order().fields] == [2, 1]
    assert lake.table().schema().find_field("Day").doc == "When."
    assert lake.publish(monthly, rows_of(5)).schema_changes == ()
    assert sorted(file["spec_id"] for file in lake.files()) == [0, 1, 1, 1, 1]
    none = lake.contract({**plain, "partitioned": False}, sortOrder=[])
    assert lake.publish(none, rows_of(7)).schema_changes == (
        "table: no longer partitioned",
        "table: no longer sorted",
    )
    lake.publish(monthly, rows_of(9))
    assert lake.table().spec().spec_id == 1
    silent = lake.publish(lake.contract(plain), rows_of(11))
    assert (silent.schema_changes, lake.table().spec().spec_id) == ((), 1)
    assert sorted(row["id"] for row in lake.job.rows(lake.name, "main")) == [*range(1, 13)]
    assert sorted(lake.table().scan().to_arrow()["id"].to_pylist()) == [*range(1, 13)]


def test_files_of_any_layout_are_written_by_arrow(lake: Lake) -> None:
    """Partitions and order, of the contract or of the table alone, need no Spark."""
    plain = {"name": "day", "logicalType": "date"}
    sorted_, silent = lake.contract(plain, sortOrder=["day"]), lake.contract(plain)
    parted = lake.contract(column("day", "date", "day"), sortOrder=[])
    described = lake.contract(plain, description="Orders.")
    reports = [
        lake.publish(each, rows_of(2 * n + 1))
        for n, each in enumerate((silent, sorted_, silent, parted, described))
    ]
    assert {report.engine["write"] for report in reports} == {WAY}
    assert [len(report.files) for report in reports] == [1, 1, 1, 2, 2]
    assert reports[-1].schema_changes == ("table: 1 comment set",)
    assert sorted(row["id"] for row in lake.job.rows(lake.name, "main")) == [*range(1, 11)]
