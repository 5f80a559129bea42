"""Rows are divided by partitions as pyiceberg defines them, and sorted as Iceberg orders values."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import types as ice
from pyiceberg.transforms import parse_transform

from lakegate.contract.columns import Column
from lakegate.contract.reading.layout import SortKey
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.types import type_of
from spark_jobs.write.layout import Layout, Order, PartitionField, Spec
from spark_jobs.write.partitions import arranged

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
_TYPES: dict[str, tuple[ice.PrimitiveType, st.SearchStrategy[Any], list[str]]] = {
    "int": (ice.IntegerType(), st.integers(-(2**31) + 100, 2**31 - 1), ["truncate[7]"]),
    "bigint": (ice.LongType(), st.integers(-(2**63) + 100, 2**63 - 1), ["truncate[7]"]),
    "string": (ice.StringType(), st.text(max_size=9), ["truncate[3]"]),
    "binary": (ice.BinaryType(), st.binary(max_size=9), ["truncate[3]"]),
    "decimal(9,2)": (
        ice.DecimalType(9, 2),
        st.decimals(-9_999_999, 9_999_999, places=2),
        ["truncate[7]"],
    ),
    "date": (ice.DateType(), st.dates(date(1, 1, 2)), ["year", "month", "day"]),
    "timestamp": (
        ice.TimestamptzType(),
        _MOMENTS.map(lambda each: each.replace(tzinfo=UTC)),
        ["year", "month", "day", "hour"],
    ),
    "timestamp_ntz": (ice.TimestampType(), _MOMENTS, ["year", "month", "day", "hour"]),
    "boolean": (ice.BooleanType(), st.booleans(), []),
}
_CASES = [
    (type_, transform)
    for type_, (_, _, own) in _TYPES.items()
    for transform in ("identity", *own, *(["bucket[5]"] if type_ != "boolean" else []))
]


def _internal(value: Any) -> Any:
    """Return a value as pyiceberg's transforms take it: dates are days, times microseconds."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def _readable(value: Any, type_: ice.IcebergType) -> Any:
    """Return a value that pyiceberg has transformed as Iceberg writes it in JSON."""
    if value is None:
        return None
    if isinstance(type_, ice.DateType):
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if isinstance(type_, ice.TimestampType | ice.TimestamptzType):
        moment = _EPOCH + timedelta(microseconds=value)
        zoned = isinstance(type_, ice.TimestamptzType)
        return (moment if zoned else moment.replace(tzinfo=None)).isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.hex().upper() if isinstance(value, bytes) else value


def _divided(
    rows: pa.Table, columns: dict[str, str], *, by: dict[str, str], order: tuple[SortKey, ...] = ()
) -> list[tuple[dict[int, Any], list[Any]]]:
    fields = tuple(PartitionField(*each, 1000 + n) for n, each in enumerate(by.items()))
    layout = Layout({}, {}, "", spec=Spec(1, fields), order=Order(1, order))
    named = {name: Column(name, type_, "any") for name, type_ in columns.items()}
    return [(part, found.to_pylist()) for part, found in arranged(rows, layout, named)]


@pytest.mark.parametrize(("type_", "transform"), _CASES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_each_row_is_in_its_partition(type_: str, transform: str, data: st.DataObject) -> None:
    """A row has the partition of its value, null that of null, and no partition comes twice."""
    theirs, some, _ = _TYPES[type_]
    values = data.draw(st.lists(some | st.none(), min_size=1, max_size=20))
    rows = pa.table({"c": pa.array(values, type_of(Column("c", type_, "any")))})
    found = _divided(rows, {"c": type_}, by={"c": transform})
    defined = parse_transform(transform)
    define: Callable[[Any], Any] = defined.transform(theirs)
    result = defined.result_type(theirs)
    for partition, each in found:
        expected = {_readable(define(_internal(row["c"])), result) for row in each}
        assert {partition[1000]} == expected
    assert len({str(partition) for partition, _ in found}) == len(found)
    every = [row["c"] for _, each in found for row in each]
    assert sorted(map(str, every)) == sorted(map(str, rows["c"].to_pylist()))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2) | st.none(), st.sampled_from(["a", "b", "ä", None]))),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_rows_of_a_partition_are_sorted(
    pairs: list[Any], descending: bool, first: bool, alone: bool
) -> None:
    """Rows are in the order of all keys, and equal rows in that of the file."""
    table = pa.table(
        {
            "n": pa.array([n for n, _ in pairs], pa.int32()),
            "s": pa.array([s for _, s in pairs], pa.string()),
            "at": pa.array(range(len(pairs)), pa.int64()),
        }
    )
    order = (SortKey("s", descending, first), SortKey("n", not descending, not first))
    columns = {"n": "int", "s": "string", "at": "bigint"}
    found = _divided(table, columns, by={} if alone else {"n": "identity"}, order=order)
    for _, rows in found:
        assert rows == sorted(rows, key=lambda row: (_place(row, order), row["at"]))
    assert sorted(row["at"] for _, rows in found for row in rows) == list(range(len(pairs)))


def _place(row: dict[str, Any], order: tuple[SortKey, ...]) -> list[Any]:
    """Return where a row stands by its keys."""
    places: list[Any] = []
    for key in order:
        value = row[key.column]
        rank = ["a", "b", "ä"].index(value) if isinstance(value, str) else value
        places.append((value is None) is not key.nulls_first)
        places.append(0 if rank is None else -rank if key.descending else rank)
    return places


def test_no_row_has_no_partition() -> None:
    """Without rows there is nothing to write."""
    rows = pa.table({"n": pa.array([], pa.int32())})
    assert _divided(rows, {"n": "int"}, by={"n": "bucket[3]"}) == []


def test_very_many_partitions_are_for_spark() -> None:
    """Rows that would become a thousand files and more are left to Spark."""
    rows = pa.table({"n": pa.array(range(1001), pa.int32())})
    assert len(_divided(rows.slice(1), {"n": "int"}, by={"n": "identity"})) == 1000
    with pytest.raises(MustRewrite, match="partitions"):
        _divided(rows, {"n": "int"}, by={"n": "identity"})
