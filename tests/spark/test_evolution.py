"""Schema evolution over real Spark, Nessie and Iceberg."""

import io
import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from functions.adapters.iceberg import Tables
from functions.adapters.nessie import CannotRebase
from functions.model.ingestion import Intent
from lakegate.report import AuditReport, Verdict
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Table:
    """A table with its contract and its files."""

    job: Job
    name: str

    def contract(
        self, columns: str, format_: str = "parquet", more: str = "", **settings: str
    ) -> str:
        """Return a contract over id and the `columns`, each as `name type` in Spark SQL."""
        listed = "".join(f"\n  - {{property: {k}, value: {v}}}" for k, v in settings.items())
        each = [column.strip().partition(" ") for column in columns.split(";") if column]
        declared = "".join(
            f"\n      - {{name: {name}, logicalType: {_LOGICAL[type_]}, physicalType: '{type_}'}}"
            for name, _, type_ in each
        )
        return f"""
kind: DataContract
apiVersion: v3.1.0
id: {self.name}
version: 1.0.0
status: active
customProperties:
  - {{property: format, value: {format_}}}{listed}
schema:
  - name: {self.name}
    logicalType: object
    properties:
      - {{name: id, logicalType: integer, required: true}}{declared}{more}
"""

    def ingest(self, contract: str, body: bytes) -> AuditReport:
        return self.job.ingest(body, contract, self.name, f"{self.name}/{uuid.uuid4().hex}")[1]

    def publish(self, report: AuditReport) -> None:
        assert report.verdict is Verdict.PASSED, report.reason
        catalog = self.job.services.catalog
        assert catalog.merge(
            report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"}
        )

    def rows(self, branch: str = "main") -> list[dict[str, Any]]:
        return sorted(self.job.rows(self.name, branch), key=lambda row: row["id"])

    def registered(self, report: AuditReport) -> str:
        """Register a report's files on a fresh branch of main, by metadata only."""
        services = self.job.services
        fresh = f"{report.branch}-{uuid.uuid4().hex}"
        services.catalog.create_branch(fresh)
        tables = Tables(services.nessie_uri, services.tokens["publisher"], services.s3)
        intent = Intent(report.branch, report.audited_hash)
        if failed := tables.append_again(self.name, [intent], fresh):
            raise failed[intent]
        return fresh


_LOGICAL = {
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "string": "string",
    "decimal(8,2)": "number",
    "decimal(10,2)": "number",
}


@pytest.fixture
def lake(job_runner: Job, table: str) -> Table:
    return Table(job_runner, table)


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), **columns}), file)
    return file.getvalue()


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def test_a_column_of_no_contract_fails_is_dropped_or_added(lake: Table) -> None:
    """An undeclared column fails the file, is dropped or is added, by the contract's policy."""
    body = parquet(a=ints(1, 2), more=["x", "y"])
    refused = lake.ingest(lake.contract("a int"), body)
    assert refused.reason is not None
    assert refused.reason.code == "EXTRA_COLUMN"
    dropped = lake.ingest(lake.contract("a int", extraColumns="drop"), body)
    assert lake.rows(dropped.branch) == [{"id": 1, "a": 1}, {"id": 2, "a": 2}]
    assert "more (string)" in dropped.schema_changes[0]
    added = lake.ingest(lake.contract("a int", extraColumns="add"), body)
    assert lake.rows(added.branch)[0] == {"id": 1, "a": 1, "more": "x"}
    assert added.verdict is Verdict.PASSED
    assert "more (string)" in added.schema_changes[0]


def test_an_added_column_stays_for_files_with_and_without_it(lake: Table) -> None:
    """An added column comes to main with its file; other files have null or values of its type."""
    contract = lake.contract("a int", extraColumns="add")
    lake.publish(lake.ingest(contract, parquet(a=ints(1, 2))))
    with_it = lake.ingest(contract, parquet(a=ints(3, 4), more=["x", "y"]))
    assert with_it.schema_changes[-1] == "table: column more added as string"
    lake.publish(with_it)
    lake.publish(lake.ingest(contract, parquet(a=ints(5, 6))))
    lake.publish(lake.ingest(contract, parquet(a=ints(7, 8), MORE=["z", None])))
    found = {row["a"]: row["more"] for row in lake.rows()}
    assert found == {1: None, 2: None, 3: "x", 4: "y", 5: None, 6: None, 7: "z", 8: None}
    other = lake.ingest(contract, parquet(a=ints(9, 9), more=ints(1, 2)))
    assert other.reason is not None
    assert other.reason.code == "TYPE_MISMATCH"


def test_cells_of_text_are_added_as_text(lake: Table) -> None:
    """An undeclared column of a CSV file is a string in the table."""
    contract = lake.contract("a int", "csv", extraColumns="add")
    report = lake.ingest(contract, b"id,more,a\n1,007,3\n")
    assert lake.rows(report.branch) == [{"id": 1, "a": 3, "more": "007"}]


@pytest.mark.parametrize(("format_", "body"), [("parquet", parquet()), ("csv", b"id\n1\n2\n")])
def test_a_missing_column_is_null_where_the_contract_says_so(
    lake: Table, format_: str, body: bytes
) -> None:
    """With missingColumns: null a missing column is null, and the report says so."""
    refused = lake.ingest(lake.contract("a int", format_), body)
    assert refused.reason is not None
    assert refused.reason.code == "MISSING_COLUMN"
    report = lake.ingest(lake.contract("a int", format_, missingColumns="null"), body)
    assert lake.rows(report.branch) == [{"id": 1, "a": None}, {"id": 2, "a": None}]
    assert report.schema_changes == ("column a is not in the file: its rows have null",)


def test_a_decimal_is_never_rounded(lake: Table) -> None:
    """A file with more decimal digits than the contract is refused."""
    body = parquet(a=pa.array([1, 2], pa.decimal128(10, 4)))
    report = lake.ingest(lake.contract("a decimal(10,2)"), body)
    assert report.reason is not None
    assert (report.reason.code, report.audited_hash) == ("TYPE_MISMATCH", "")
    assert "decimal(10,4)" in report.reason.message


def test_a_new_column_and_wider_types_are_published_with_the_file(lake: Table) -> None:
    """A newer contract changes the table in the file's own commit; old rows stay."""
    old = lake.contract("a int; f float; d decimal(8,2)")
    money = pa.array([1, None], pa.decimal128(8, 2))
    floats = pa.array([0.5, None], pa.float32())
    lake.publish(lake.ingest(old, parquet(a=ints(1, None), f=floats, d=money)))
    new = lake.contract("b string; a bigint; f double; d decimal(10,2)")
    big = {"a": [2**40, 2], "f": [0.1, 0.2], "d": pa.array([99999999, 2], pa.decimal128(10, 2))}
    before = lake.rows()
    report = lake.ingest(new, parquet(b=["x", "y"], **big))
    assert report.schema_changes == (
        "table: column b added as string",
        "table: column a widened from int to bigint",
        "table: column f widened from float to double",
        "table: column d widened from decimal(8,2) to decimal(10,2)",
    )
    assert lake.rows() == before
    lake.publish(report)
    rows = lake.rows()
    assert [(row["a"], row["f"], row["b"]) for row in rows if row["b"] is None] == [
        (1, 0.5, None),
        (None, None, None),
    ]
    assert {(row["a"], row["f"], str(row["d"])) for row in rows if row["b"]} == {
        (2**40, 0.1, "99999999.00"),
        (2, 0.2, "2.00"),
    }


# Columns that a table with `a bigint` cannot get, a file that has them, and the advice.
IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    ("b int", {"b": ints(1, 2)}, "missingColumns"),
    ("a string", {"a": ["x", "y"]}, "declare bigint again"),
    ("a int", {"a": ints(1, 2)}, "declare bigint again"),
]


def test_what_a_table_cannot_become_stops_the_file(lake: Table) -> None:
    """A missing column, another type or a narrower one is refused with advice."""
    lake.publish(lake.ingest(lake.contract("a bigint"), parquet(a=[1, 2])))
    for columns, file, what in IMPOSSIBLE:
        report = lake.ingest(lake.contract(columns), parquet(**file))
        assert report.reason is not None
        assert report.reason.code == "TABLE_MISMATCH"
        assert what in report.reason.message


def test_a_file_of_the_older_contract_is_registered_after_newer_ones(lake: Table) -> None:
    """A data file of the older contract can be registered in main's newer table."""
    old, new = lake.contract("a int"), lake.contract("a bigint; b string")
    lake.publish(lake.ingest(old, parquet(a=ints(1, 2))))
    waiting = lake.ingest(old, parquet(a=ints(3, 4)))
    lake.publish(lake.ingest(new, parquet(a=[2**40, 6], b=["x", "y"])))
    fresh = lake.registered(waiting)
    rows = lake.rows(fresh)
    assert {(row["a"], row["b"]) for row in rows} == {
        *((1, None), (2, None), (3, None), (4, None)),
        *((2**40, "x"), (6, "y")),
    }


def test_a_file_is_registered_only_once_main_has_its_columns(lake: Table) -> None:
    """Files with a new column are registered only once main has that column."""
    old, new = lake.contract("a int"), lake.contract("a bigint; b string")
    lake.publish(lake.ingest(old, parquet(a=ints(1, 2))))
    waiting = lake.ingest(new, parquet(a=[2**40, 4], b=["x", "y"]))
    lake.publish(lake.ingest(old, parquet(a=ints(7, 8))))
    with pytest.raises(CannotRebase, match="COLUMNS_CHANGED"):
        lake.registered(waiting)
    lake.publish(lake.ingest(new, parquet(a=[9, 10], b=["r", "s"])))
    found = {(row["a"], row["b"]) for row in lake.rows(lake.registered(waiting))}
    assert found >= {(1, None), (7, None), (9, "r"), (2**40, "x"), (4, "y")}


_PLACE = """
      - name: place
        logicalType: object
        properties:
          - {name: city, logicalType: string}
          - {name: zip, logicalType: integer, required: %s}
      - name: lines
        logicalType: array
        items:
          logicalType: object
          properties:
            - {name: n, logicalType: integer, physicalType: %s}
            - {name: price, logicalType: number}
"""


def nested(place: dict[str, Any], line: dict[str, Any]) -> bytes:
    n = pa.array([[line], None], pa.list_(pa.struct({k: TYPES[k] for k in line})))
    return parquet(place=pa.array([place, None], pa.struct({k: TYPES[k] for k in place})), lines=n)


TYPES = {
    "city": pa.string(),
    "zip": pa.int32(),
    "ZIP": pa.int32(),
    "n": pa.int32(),
    "price": pa.float32(),
    "more": pa.string(),
}


def test_nested_columns_are_matched_by_name_and_grow(lake: Table) -> None:
    """Fields of structs come in any order, wider, absent or new, by the policy."""
    policy = {"extraColumns": "add", "missingColumns": "null"}
    small, wide = (
        lake.contract("", more=_PLACE % ("false", t), **policy) for t in ("int", "bigint")
    )
    lake.publish(lake.ingest(small, nested({"ZIP": 7, "city": "Oslo"}, {"price": 0.5, "n": 1})))
    report = lake.ingest(wide, nested({"zip": 8, "more": "x"}, {"n": 2}))
    assert set(report.schema_changes) == {
        "column place.zip: int widened to bigint",
        "column place.city is not in the file: its rows have null",
        "column place.more (string) of the file is not in the contract: added, nullable",
        "column lines[].n: int widened to bigint",
        "column lines[].price is not in the file: its rows have null",
        "table: column place.more added as string",
        "table: column lines[].n widened from int to bigint",
    }
    lake.publish(report)
    found = [(row["place"], row["lines"]) for row in lake.rows() if row["place"]]
    plain = [(place.asDict(), [line.asDict() for line in lines]) for place, lines in found]
    assert sorted(plain, key=str) == [
        ({"city": "Oslo", "zip": 7, "more": None}, [{"n": 1, "price": 0.5}]),
        ({"city": None, "zip": 8, "more": "x"}, [{"n": 2, "price": None}]),
    ]
    assert [row["lines"] for row in lake.rows() if not row["place"]] == [None, None]


def test_a_nested_field_that_is_required_must_be_there(lake: Table) -> None:
    """A missing required nested field is a finding that names its path."""
    contract = lake.contract("", more=_PLACE % ("true", "int"), missingColumns="null")
    report = lake.ingest(contract, nested({"city": "Oslo"}, {"n": 1, "price": 0.5}))
    assert report.reason is not None
    assert report.reason.code == "MISSING_COLUMN"
    assert "'place.zip'" in report.reason.message


def test_a_table_that_allows_no_null_takes_a_bad_file_as_evidence(lake: Table) -> None:
    """NOT NULL is lifted on the branch, so that the audit can show the bad row."""
    services = lake.job.services
    catalog = RestCatalog(
        "lake", uri=f"{services.nessie_uri}/iceberg/main", token=services.tokens["publisher"]
    )
    catalog.create_namespace_if_not_exists("tests")
    required = NestedField(1, "id", LongType(), required=True)
    catalog.create_table(lake.name, Schema(required, NestedField(2, "a", IntegerType())))
    report = lake.ingest(lake.contract("a int"), parquet(id=[1, None], a=ints(1, 2)))
    assert [check.id for check in report.failed] == ["id.nullValues"]
    assert report.schema_changes == ("table: NOT NULL lifted from column id",)
    assert len(lake.job.rows(lake.name, report.branch)) == 2


SPELT = """
      - name: {0}
        logicalType: integer
        physicalType: int
        required: true
        logicalTypeOptions: {{minimum: 1, maximum: 9}}
        quality:
          - metric: duplicateValues
            mustBe: 0
            customProperties: [{{property: scope, value: table}}]
"""


def test_a_column_spelt_in_another_case_is_the_same(lake: Table) -> None:
    """A contract may spell a column in another case: the table keeps its own spelling."""
    first = lake.ingest(lake.contract("", more=SPELT.format("Amount")), parquet(Amount=ints(1, 2)))
    lake.publish(first)
    contract = lake.contract("", more=SPELT.format("amount"))
    second = lake.ingest(contract, parquet(amount=ints(3, 4)))
    lake.publish(second)
    assert sorted(row["Amount"] for row in lake.rows()) == [1, 2, 3, 4]
    third = lake.ingest(contract, parquet(AMOUNT=ints(4, 10)))
    assert [(check.id, check.counted) for check in third.failed] == [
        ("amount.invalidValues", 1),
        ("amount.duplicateValuesInTable", 1),
    ]
