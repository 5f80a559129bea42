"""Only compatible newer schemas read a table's older files as written."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from functions.adapters.iceberg.fit import reads_as_written


def field(id_: int, name: str, type_: IcebergType, *, required: bool = False) -> NestedField:
    return NestedField(id_, name, type_, required=required)


def schema(*columns: NestedField) -> Schema:
    return Schema(field(1, "id", LongType()), *columns)


def struct(*fields: NestedField) -> NestedField:
    return field(2, "at", StructType(*fields))


def items(item: IcebergType, *, required: bool = False) -> NestedField:
    return field(2, "items", ListType(3, item, element_required=required))


def named(value: IcebergType) -> NestedField:
    return field(2, "named", MapType(3, StringType(), 4, value, value_required=False))


X, Y = field(3, "x", IntegerType()), field(4, "y", StringType())
WIDE_X = field(3, "x", LongType())

READ = [
    (field(2, "a", IntegerType()), field(2, "a", LongType())),
    (field(2, "a", FloatType()), field(2, "a", DoubleType())),
    (field(2, "a", DecimalType(8, 2)), field(2, "a", DecimalType(12, 2))),
    (field(2, "a", LongType(), required=True), field(2, "a", LongType())),
    (struct(X), struct(Y, WIDE_X)),
    (items(IntegerType()), items(LongType())),
    (items(StructType(X)), items(StructType(X, Y))),
    (named(IntegerType()), named(LongType())),
]


@pytest.mark.parametrize(("written", "current"), READ)
def test_a_schema_that_grew_reads_older_files(written: NestedField, current: NestedField) -> None:
    """Wider types and new nullable fields, also nested ones, are compatible in one direction."""
    assert reads_as_written(schema(written), schema(current))
    assert not reads_as_written(schema(current), schema(written))


@pytest.mark.parametrize(
    ("written", "current"),
    [
        (field(2, "a", LongType()), field(2, "b", LongType())),
        (field(2, "a", LongType()), field(3, "a", LongType())),
        (field(2, "a", IntegerType()), field(2, "a", DoubleType())),
        (field(2, "a", DecimalType(8, 2)), field(2, "a", DecimalType(12, 3))),
        (struct(X), struct(X, field(4, "y", StringType(), required=True))),
        (struct(X), struct(field(3, "y", IntegerType()))),
        (struct(X), items(IntegerType())),
        (items(IntegerType()), items(IntegerType(), required=True)),
    ],
)
def test_a_schema_that_changed_otherwise_does_not(
    written: NestedField, current: NestedField
) -> None:
    """Another name, id or kind, a narrower type, or a required missing value is incompatible."""
    assert not reads_as_written(schema(written), schema(current))


def test_a_new_column_may_have_required_parts() -> None:
    """A new nullable column may have required parts."""
    inner = StructType(field(3, "x", LongType(), required=True))
    assert reads_as_written(schema(), schema(field(2, "at", inner)))
