"""Schema evolution over real Spark, Nessie and Iceberg."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import (
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimeType,
    UUIDType,
)

from functions.adapters.iceberg.errors import CannotRebase
from infra.local.settings import LAKE_BUCKET
from lakegate.audit.report import AuditReport
from spark_jobs.spark import iceberg
from spark_jobs.spark.jvm import java
from tests.spark.conftest import Job, reason
from tests.spark.conftest import parquet as file_of
from tests.spark.measuring import UNIQUE, contract_of, options, whole_table

pytestmark = pytest.mark.spark
_ID = NestedField(1, "id", LongType())
_REQUIRED = NestedField(1, "id", LongType(), required=True), NestedField(2, "a", IntegerType())
_LOGICAL = {"int": "integer", "bigint": "integer", "string": "string"}


@dataclass(frozen=True)
class Table:
    """A table with its contract and its files."""

    job: Job
    name: str

    def contract(
        self, columns: str, format_: str = "parquet", *more: Mapping[str, Any], **settings: str
    ) -> str:
        """Return a contract over id and the `columns`, each as `name type` in Spark SQL."""
        each = [column.strip().partition(" ") for column in columns.split(";") if column]
        declared = [
            {"name": name, "logicalType": _LOGICAL.get(type_, "number"), "physicalType": type_}
            for name, _, type_ in each
        ]
        id_ = {"name": "id", "logicalType": "integer", "required": True}
        return contract_of([id_, *declared, *more], (), self.name, format=format_, **settings)

    def ingest(self, contract: str, body: bytes) -> AuditReport:
        return self.job.ingest(body, contract, self.name)

    def publish(self, contract: str, body: bytes) -> AuditReport:
        report = self.ingest(contract, body)
        self.job.publish(report)
        return report

    def rows(self, branch: str = "main") -> list[dict[str, Any]]:
        return sorted(self.job.rows(self.name, branch), key=lambda row: row["id"])

    def made_elsewhere(self, *fields: NestedField, **more: Any) -> IcebergTable:
        """Create the table on main as another engine does, with these fields, and return it."""
        main = self.job.services.at("main")
        main.create_namespace_if_not_exists("tests")
        return main.create_table(self.name, Schema(*fields, **more))


@pytest.fixture
def lake(job: Job, table: str) -> Table:
    return Table(job, table)


def parquet(**columns: Any) -> bytes:
    return file_of({"id": pa.array([1, 2], pa.int64()), **columns})


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def test_a_new_column_and_wider_types_are_published_with_the_file(lake: Table) -> None:
    """A newer contract changes the table in the file's own commit; old rows stay."""
    old = lake.contract("a int; f float; d decimal(8,2)")
    money = pa.array([1, None], pa.decimal128(8, 2))
    floats = pa.array([0.5, None], pa.float32())
    lake.publish(old, parquet(a=ints(1, None), f=floats, d=money))
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
    lake.job.publish(report)
    rows = lake.rows()
    assert [(row["a"], row["f"], row["b"]) for row in rows if row["b"] is None] == [
        (1, 0.5, None),
        (None, None, None),
    ]
    assert {(row["a"], row["f"], str(row["d"])) for row in rows if row["b"]} == {
        (2**40, 0.1, "99999999.00"),
        (2, 0.2, "2.00"),
    }
    without = lake.ingest(lake.contract("a bigint; f double; d decimal(10,2)"), parquet(**big))
    assert reason(without).code == "TABLE_MISMATCH"
    assert "missingColumns" in reason(without).message


def test_a_file_is_registered_only_once_main_has_its_columns(lake: Table) -> None:
    """Files with a new column are registered only once main has that column.

    A file of the older contract can be registered before and after that.
    """
    old, new = lake.contract("a int"), lake.contract("a bigint; b string")
    lake.publish(old, parquet(a=ints(1, 2)))
    older = lake.ingest(old, parquet(a=ints(3, 4)))
    newer = lake.ingest(new, parquet(a=[2**40, 6], b=["x", "y"]))
    lake.publish(old, parquet(a=ints(7, 8)))
    with pytest.raises(CannotRebase, match="COLUMNS_CHANGED"):
        lake.job.registered(newer)
    lake.publish(new, parquet(a=[9, 10], b=["r", "s"]))
    main = {*((n, None) for n in (1, 2, 7, 8)), (9, "r"), (10, "s")}
    for waiting, own in ((newer, {(2**40, "x"), (6, "y")}), (older, {(3, None), (4, None)})):
        rows = lake.rows(lake.job.registered(waiting))
        assert {(row["a"], row["b"]) for row in rows} == main | own


def _nested(n: str, *, required: bool = False) -> list[Mapping[str, Any]]:
    """Return the columns place, a struct, and lines, an array of structs."""
    place = [
        {"name": "city", "logicalType": "string"},
        {"name": "zip", "logicalType": "integer", "required": required},
    ]
    line = [
        {"name": "n", "logicalType": "integer", "physicalType": n},
        {"name": "price", "logicalType": "number"},
    ]
    items = {"logicalType": "object", "properties": line}
    return [
        {"name": "place", "logicalType": "object", "properties": place},
        {"name": "lines", "logicalType": "array", "items": items},
    ]


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
    small, wide = (lake.contract("", "parquet", *_nested(n), **policy) for n in ("int", "bigint"))
    lake.publish(small, nested({"ZIP": 7, "city": "Oslo"}, {"price": 0.5, "n": 1}))
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
    lake.job.publish(report)
    found = [(row["place"], row["lines"]) for row in lake.rows() if row["place"]]
    plain = [(place.asDict(), [line.asDict() for line in lines]) for place, lines in found]
    assert sorted(plain, key=str) == [
        ({"city": "Oslo", "zip": 7, "more": None}, [{"n": 1, "price": 0.5}]),
        ({"city": None, "zip": 8, "more": "x"}, [{"n": 2, "price": None}]),
    ]
    assert [row["lines"] for row in lake.rows() if not row["place"]] == [None, None]


def test_a_nested_field_that_is_required_must_be_there(lake: Table) -> None:
    """A missing required nested field is a finding that names its path."""
    nested_columns = _nested("int", required=True)
    contract = lake.contract("", "parquet", *nested_columns, missingColumns="null")
    report = lake.ingest(contract, nested({"city": "Oslo"}, {"n": 1, "price": 0.5}))
    assert reason(report).code == "MISSING_COLUMN"
    assert "'place.zip'" in reason(report).message


def test_a_table_that_allows_no_null_takes_a_bad_file_as_evidence(lake: Table) -> None:
    """NOT NULL is lifted on the branch, so that the audit can show the bad row."""
    lake.made_elsewhere(*_REQUIRED)
    report = lake.ingest(lake.contract("a int"), parquet(id=[1, None], a=ints(1, 2)))
    assert [check.id for check in report.failed] == ["id.nullValues"]
    assert report.schema_changes == ("table: NOT NULL lifted from column id",)
    assert len(lake.job.rows(lake.name, report.branch)) == 2


def test_identifier_fields_are_named_with_the_remedy(lake: Table) -> None:
    """They allow no bad row on the branch; once they are dropped the same file passes."""
    lake.made_elsewhere(*_REQUIRED, identifier_field_ids=[1])
    refused = lake.ingest(lake.contract("a int"), parquet(a=ints(1, 2)))
    assert reason(refused).code == "TABLE_MISMATCH"
    assert f"ALTER TABLE {lake.name} DROP IDENTIFIER FIELDS id" in reason(refused).message
    others = lake.job.session("main", "publisher")
    table = iceberg.find_iceberg_table(others, f"lake.{lake.name}")
    assert table is not None
    table.updateSchema().setIdentifierFields(java(others).java.util.ArrayList()).commit()
    report = lake.publish(lake.contract("a int"), parquet(a=ints(1, 2)))
    assert report.schema_changes == ("table: NOT NULL lifted from column id",)


def test_what_iceberg_refuses_of_a_column_is_the_reason(lake: Table) -> None:
    """A column named as a partition that another writer declared is refused, not tried again."""
    others = lake.job.session("main", "publisher")
    others.sql("CREATE NAMESPACE IF NOT EXISTS lake.tests")
    columns = "(id bigint, a int) USING iceberg PARTITIONED BY (bucket(4, a))"
    others.sql(f"CREATE TABLE lake.{lake.name} {columns}")
    report = lake.ingest(
        lake.contract("a int; a_bucket string"), parquet(a=ints(1, 2), a_bucket=["x", "y"])
    )
    assert reason(report).code == "TABLE_MISMATCH"
    assert "a_bucket" in reason(report).message


@pytest.mark.parametrize("extra", ["fail", "add"])
def test_a_type_that_spark_lacks_is_the_reason(lake: Table, extra: str) -> None:
    """A table of another engine may have one, and no retry changes that."""
    lake.made_elsewhere(_ID, NestedField(2, "a", TimeType()))
    report = lake.ingest(lake.contract("", extraColumns=extra), parquet())
    assert reason(report).code == "TABLE_MISMATCH"
    assert "Spark does not support time fields" in reason(report).message


@pytest.mark.parametrize(
    ("type_", "physical", "value"), [(UUIDType(), "string", "7"), (FixedType(4), "binary", b"7")]
)
def test_a_value_that_another_engines_type_lacks_is_the_reason(
    lake: Table, type_: PrimitiveType, physical: str, value: Any
) -> None:
    """Spark reads both types as wider ones, and Iceberg refuses the value without a second try."""
    lake.made_elsewhere(_ID, NestedField(2, "a", type_))
    a = {"name": "a", "logicalType": "string", "physicalType": physical}
    report = lake.ingest(lake.contract("", "parquet", a), parquet(a=[value, value]))
    assert reason(report).code == "BAD_VALUE"


def test_a_layout_that_iceberg_refuses_is_the_reason(lake: Table) -> None:
    """A column that an earlier file added has the name of a newer contract's partition."""
    adding = lake.contract("a int", extraColumns="add")
    lake.publish(adding, parquet(a=ints(1, 2), a_bucket_4=["x", "y"], a_bucket=["x", "y"]))
    bucket = options(partitionTransform="bucket[4]")
    a = {"name": "a", "logicalType": "integer", "physicalType": "int", "partitioned": True}
    text = lake.contract("", "parquet", {**a, **bucket}, extraColumns="add")
    report = lake.ingest(text, parquet(a=ints(3, 4)))
    assert reason(report).code == "TABLE_MISMATCH"
    assert "a_bucket" in reason(report).message


def test_a_column_spelt_in_another_case_is_the_same(lake: Table) -> None:
    """A contract may spell a column in another case: the table keeps its own spelling."""
    amount = {
        "logicalType": "integer",
        "physicalType": "int",
        "required": True,
        "logicalTypeOptions": {"minimum": 1, "maximum": 9},
        "quality": [whole_table(UNIQUE)],
    }
    first, contract = (
        lake.contract("", "parquet", {"name": name, **amount}) for name in ("Amount", "amount")
    )
    lake.publish(first, parquet(Amount=ints(1, 2)))
    lake.publish(contract, parquet(amount=ints(3, 4)))
    assert sorted(row["Amount"] for row in lake.rows()) == [1, 2, 3, 4]
    third = lake.ingest(contract, parquet(AMOUNT=ints(4, 10)))
    assert [(check.id, check.counted) for check in third.failed] == [
        ("amount.invalidValues", 1),
        ("amount.duplicateValuesInTable", 1),
    ]


def _schema(table: Table) -> Schema:
    schema: Schema = table.job.services.at("main").load_table(table.name).schema()
    return schema


def _renamed(table: Table, new: str, former: str, **more: Any) -> str:
    column = {"name": new, "logicalType": "integer", "physicalType": "bigint"}
    past = {"customProperties": [{"property": "formerName", "value": former}]}
    settings = {name: more.pop(name) for name in ("droppedColumns",) if name in more}
    return table.contract("", "parquet", {**column, **past, **more}, **settings)


def test_a_column_is_renamed_and_another_dropped_with_a_file(lake: Table) -> None:
    """Both happen on the file's branch alone, and field ids are kept, so that old rows stay."""
    lake.publish(lake.contract("a bigint; b string"), file_of({"id": [1], "a": [7], "b": ["x"]}))
    before = {f.name: f.field_id for f in _schema(lake).fields}
    text = _renamed(lake, "c", "a", droppedColumns=["b"])
    report = lake.ingest(text, file_of({"id": [2], "c": [8]}))
    assert report.schema_changes == ("table: column a renamed to c", "table: column b dropped")
    assert lake.rows() == [{"id": 1, "a": 7, "b": "x"}]
    lake.job.publish(report)
    assert lake.rows() == [{"id": 1, "c": 7}, {"id": 2, "c": 8}]
    after = {f.name: f.field_id for f in _schema(lake).fields}
    assert after == {"id": before["id"], "c": before["a"]}
    assert lake.publish(text, file_of({"id": [3], "c": [9]})).schema_changes == ()


def test_keys_of_before_a_renaming_still_count(lake: Table) -> None:
    """A key that main has under the column's former name is found by a check of the whole table."""
    lake.publish(lake.contract("a bigint"), file_of({"id": [1, 2], "a": [7, 8]}))
    text = _renamed(lake, "c", "a", quality=[whole_table(UNIQUE)])
    report = lake.ingest(text, file_of({"id": [3, 4], "c": [8, 9]}))
    assert [check.id for check in report.failed] == ["c.duplicateValuesInTable"]
    assert lake.ingest(text, file_of({"id": [3], "c": [9]})).failed == ()


def test_a_name_by_which_older_files_are_read_is_no_new_column(lake: Table) -> None:
    """Of files that another writer has registered, a column's values never become another one's.

    Without field ids Iceberg reads them by the table's name mapping, which keeps former names.
    """
    key = f"data/{uuid.uuid4()}.parquet"
    body = file_of({"id": [1], "a": [7]})
    lake.job.services.s3.put_object(Bucket=LAKE_BUCKET, Key=key, Body=body)
    theirs = lake.made_elsewhere(_ID, NestedField(2, "a", LongType()))
    theirs.add_files([f"s3://{LAKE_BUCKET}/{key}"])
    renamed = _renamed(lake, "c", "a")
    lake.publish(renamed, file_of({"id": [2], "c": [8]}))
    before = [{"id": 1, "c": 7}, {"id": 2, "c": 8}]
    assert lake.rows() == before
    again = lake.ingest(
        lake.contract("c bigint; a bigint"), file_of({"id": [3], "c": [9], "a": [9]})
    )
    assert reason(again).code == "TABLE_MISMATCH"
    assert "'a'" in reason(again).message
