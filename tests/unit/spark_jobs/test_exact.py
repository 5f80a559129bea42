"""Landed Parquet files that Arrow reads as their contract says, and the reasons of all others."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.contract.model import Contract, parse
from spark_jobs.files.arrow.exact import (
    LARGEST_ROW_GROUP,
    MOST_VALUES,
    compared,
    why_inexact,
    why_never,
)
from spark_jobs.files.arrow.parquet import ArrowFile, MustRewrite
from spark_jobs.files.source import LocalFile
from tests.fakes import lying_parquet, thrift
from tests.fakes.parquet_files import (
    PROPERTIES,
    ROWS,
    by_arrow,
    by_duckdb,
    declared,
    footer_of,
    written,
)
from tests.spark.measuring import contract_of


def contract(types: dict[str, str], **settings: Any) -> Contract:
    """Return a contract whose columns have these types."""
    return of_columns([declared(*each) for each in types.items()], **settings)


def of_columns(columns: list[dict[str, Any]], **settings: Any) -> Contract:
    """Return a contract with these columns."""
    return parse(contract_of(columns, [{"metric": "rowCount", "mustBe": 1}], **settings), "a test")


ALL = of_columns(PROPERTIES)


def reason(file: bytes, wanted: Contract) -> str:
    """Return why Spark must read a file; "" if it need not."""
    footer = footer_of(file)[1]
    try:
        return why_inexact(footer, ArrowFile(LocalFile(Path()), footer).schema, wanted)
    except MustRewrite as why:
        return str(why)


def why(column: pa.Array, type_: str, **options: Any) -> str:
    """Return why Spark must read a file with the column `c` for a type in the contract."""
    return reason(written(pa.table({"c": column}), **options), contract({"c": type_}))


@pytest.mark.parametrize("name", by_arrow())
def test_arrow_reads_its_own_files(name: str) -> None:
    """Files of Arrow's writer have the contract's types, whatever their pages are like."""
    assert reason(by_arrow()[name], ALL) == ""


def test_arrow_reads_duckdbs_files(tmp_path: Path) -> None:
    """Files of DuckDB's writer have the contract's types, in either version of its format."""
    assert reason(by_duckdb(ROWS, tmp_path), ALL) == ""
    assert reason(by_duckdb(ROWS, tmp_path, ", PARQUET_VERSION v2"), ALL) == ""


def test_columns_may_come_in_any_order() -> None:
    """Columns are found by their names."""
    backwards = ROWS.select(ROWS.column_names[::-1])
    assert reason(written(backwards), ALL) == ""


_INTS = pa.array([1, None])


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (_INTS.cast("int8"), "int"),
        (_INTS.cast("int16"), "int"),
        (_INTS.cast("int32"), "bigint"),
        (_INTS.cast("int64"), "int"),
        (_INTS.cast("uint32"), "int"),
        (_INTS.cast("uint32"), "bigint"),
        (_INTS.cast("uint64"), "bigint"),
        (_INTS.cast("int64"), "decimal(9,2)"),
        (_INTS.cast("int64"), "boolean"),
        (_INTS.cast("int64"), "timestamp"),
        (_INTS.cast("int32"), "date"),
        (_INTS.cast("float32"), "double"),
        (_INTS.cast("float64"), "float"),
        (pa.array([None], pa.float16()), "float"),
        (pa.nulls(1), "int"),
        (pa.array([None], pa.decimal128(9, 2)), "decimal(10,2)"),
        (pa.array([None], pa.decimal128(9, 2)), "decimal(9,3)"),
        (pa.array([None], pa.decimal128(9, 0)), "int"),
        (pa.array([b"x"]), "string"),
        (pa.array(["x"]), "binary"),
        (pa.array([b"x"], pa.binary(1)), "binary"),
        (pa.array([None], pa.uuid()), "string"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("ms", "UTC")), "timestamp"),
        (pa.array([1], pa.timestamp("ns", "UTC")), "timestamp"),
        (pa.array([1], pa.timestamp("us", "UTC")), "bigint"),
        (pa.array([1], pa.timestamp("us", "UTC")), "date"),
        (pa.array([1], pa.time64("us")), "bigint"),
        (pa.array([1], pa.date32()), "int"),
    ],
)
def test_another_type_is_for_spark(column: pa.Array, type_: str) -> None:
    """Arrow converts nothing, however small the difference."""
    assert why(column, type_) == f"its column c is not {type_} as Iceberg has it"


@pytest.mark.parametrize("field", [6, 10], ids=["converted type", "logical type"])
def test_an_enum_is_for_spark(field: int) -> None:
    """An ENUM is text for Spark, and bytes for Arrow, also in a column that the contract lacks."""
    plain = written(pa.table({"c": [1], "state": [b"new"]}))
    body = lying_parquet.declared(plain, "state", {4: (12, {})}, 4)
    before, metadata = thrift.footer(body)
    del metadata[2][1][1][-1][16 - field]  # only one of the two says it
    of_bytes = contract({"c": "bigint", "state": "binary"})
    added = contract({"c": "bigint"}, extraColumns="add")
    only = thrift.with_footer(before, metadata)
    assert all("state is an ENUM" in reason(only, wanted) for wanted in (of_bytes, added))


def test_times_of_96_bits_are_for_spark() -> None:
    """Times in INT96 have more digits than a timestamp."""
    column = pa.array([1], pa.timestamp("us", "UTC"))
    assert "not timestamp" in why(column, "timestamp", use_deprecated_int96_timestamps=True)


_PAIR = pa.struct({"a": pa.string(), "b": pa.int64()})
_NESTED: dict[str, dict[str, Any]] = {
    "struct": {
        "logicalType": "object",
        "properties": [declared("a", "string"), declared("b", "bigint")],
    },
    "array": {"logicalType": "array", "items": {"logicalType": "integer"}},
    "map": {
        "logicalType": "map",
        "map": {"key": {"logicalType": "string"}, "value": {"logicalType": "integer"}},
    },
}


@pytest.mark.parametrize(
    ("kind", "type_", "fits"),
    [
        ("struct", _PAIR, True),
        ("struct", pa.struct([*_PAIR][::-1]), False),
        ("struct", pa.struct({"a": pa.string()}), False),
        ("struct", pa.struct([*_PAIR, pa.field("c", pa.int32())]), False),
        ("struct", pa.struct({"A": pa.string(), "b": pa.int64()}), False),
        ("struct", pa.struct({"a": pa.string(), "b": pa.int32()}), False),
        ("struct", pa.list_(_PAIR), False),
        ("struct", pa.string(), False),
        ("array", pa.list_(pa.int64()), True),
        ("array", pa.list_(pa.int32()), False),
        ("array", pa.list_(pa.list_(pa.int64())), False),
        ("array", pa.int64(), False),
        ("array", pa.struct({"list": pa.struct({"element": pa.int64()})}), False),
        ("map", pa.map_(pa.string(), pa.int64()), True),
        ("map", pa.map_(pa.string(), pa.string()), False),
        ("map", pa.list_(pa.struct({"key": pa.string(), "value": pa.int64()})), False),
    ],
)
def test_nested_columns_have_the_contracts_shape(
    kind: str, type_: pa.DataType, *, fits: bool
) -> None:
    """A nested column is read by Arrow if all that is in it is the contract's, in its order."""
    file = written(pa.table({"c": pa.array([None], type_)}))
    found = reason(file, of_columns([{"name": "c", **_NESTED[kind]}]))
    assert found == "" if fits else "its column c is not" in found


def test_lists_of_another_layout_are_lists() -> None:
    """Lists whose items have another name, as of older writers, have the same values."""
    lists = written(pa.table({"c": [[1]]}), use_compliant_nested_type=False)
    assert reason(lists, of_columns([{"name": "c", **_NESTED["array"]}])) == ""


def test_a_writers_own_note_is_not_believed() -> None:
    """The types are those of Parquet: what Arrow's writer noted beside them decides nothing."""
    for type_ in (pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()):
        assert why(pa.array(["x"]).cast(type_), "string") == ""
    zoned = pa.array([1], pa.timestamp("us", "Europe/Berlin"))
    assert why(zoned, "timestamp") == ""


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (["C"], {"extraColumns": "drop", "missingColumns": "null"}),
        (["c", "C"], {"extraColumns": "drop"}),
        (["c", "d", "D"], {"extraColumns": "drop"}),
        (["c", "row_number"], {"extraColumns": "add", "provenance": "all"}),
        (["c", "d"], {"missingColumns": "null"}),
        (["d"], {"extraColumns": "drop"}),
        ([], {"missingColumns": "null"}),
    ],
)
def test_other_columns_are_for_spark(names: list[str], allowed: dict[str, Any]) -> None:
    """Arrow reads no file that the contract refuses, or with a name in another case or twice."""
    file = written(pa.table([pa.array([1])] * len(names), names))
    assert reason(file, contract({"c": "bigint"}, **allowed)) == (
        "its columns are not those that the contract allows"
    )


@pytest.mark.parametrize(
    ("names", "allowed", "columns", "change"),
    [
        (["d", "c"], {"extraColumns": "drop"}, ["c"], "d (bigint) of the file is not in the"),
        (["d", "c"], {"extraColumns": "add"}, ["c", "d"], "added, nullable"),
        (["c"], {"missingColumns": "null"}, ["c", "e"], "its rows have null"),
    ],
)
def test_columns_may_be_more_or_fewer(
    names: list[str], allowed: dict[str, Any], columns: list[str], change: str
) -> None:
    """A file with other columns than the contract's is Arrow's if the contract allows them."""
    file = written(pa.table({name: [1] for name in names}))
    wanted = contract({name: "bigint" for name in columns if name != "d"}, **allowed)
    assert reason(file, wanted) == ""
    found = compared(ArrowFile(LocalFile(Path()), footer_of(file)[1]).schema, wanted)
    assert [each.name for each in found.columns] == columns
    assert change in " ".join(found.changes)


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (pa.uint8(), "type uint8"),
        (pa.struct({"a": pa.int8(), "A": pa.int8()}), "struct with a field twice"),
        (pa.list_(pa.int8()), "type int8"),
        (pa.map_(pa.string(), pa.time64("us")), "type time64[us]"),
        (pa.decimal128(9, 2), ""),
        (pa.map_(pa.string(), pa.struct({"a": pa.list_(pa.date32())})), ""),
    ],
)
def test_a_column_that_only_spark_converts_is_for_spark(type_: pa.DataType, why: str) -> None:
    """A column besides the contract's has a type that a table can have, or Spark says which."""
    file = written(pa.table({"c": [1], "d": pa.array([None], type_)}))
    found = reason(file, contract({"c": "bigint"}, extraColumns="drop"))
    assert found == (why and f"only Spark converts one of its columns: Iceberg has no {why}")


def test_two_columns_of_one_path_are_for_spark() -> None:
    """Arrow would read two columns for one, also where only one of them has parts."""
    file = written(pa.table({"c": [1], "s": [{"t": 1}], "s.t": [{"u": 1}]}))
    found = reason(file, contract({"c": "bigint"}, extraColumns="drop"))
    assert found == "two of its columns have the same path"


def test_a_column_that_is_left_out_may_make_a_calendar_unsure() -> None:
    """Spark reads the days of all columns, so those that are left out count as well."""
    pages, footer = thrift.footer(written(pa.table({"c": [1], "day": _OLD["day"]})))
    footer.pop(6)
    file = thrift.with_footer(pages, footer)
    assert "calendar" in reason(file, contract({"c": "bigint"}, extraColumns="drop"))


@pytest.mark.parametrize("codec", ["brotli", "lz4"])
def test_any_codec_is_read(codec: str) -> None:
    """A codec that other readers lack is no obstacle, as the pages are written anew."""
    assert why(_INTS, "bigint", compression=codec) == ""


def test_a_file_without_rows_is_for_spark() -> None:
    """A file without rows is no data file."""
    assert why(pa.array([], pa.int64()), "bigint") == "it has no rows"


def test_a_large_row_group_is_for_spark() -> None:
    """A row group that a reader may be unable to hold is written again in smaller ones."""
    group = 6, LARGEST_ROW_GROUP
    assert _changed_reason(lambda footer: lying_parquet.groups(footer)[0].update({2: group})) == ""
    larger = 6, LARGEST_ROW_GROUP + 1
    found = _changed_reason(lambda footer: lying_parquet.groups(footer)[0].update({2: larger}))
    assert "bytes" in found
    for most, part in ((MOST_VALUES - 3, ""), (MOST_VALUES - 2, "values")):
        found = _changed_reason(partial(_declare, most))
        assert part in found
        assert bool(found) == bool(part)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda footer: footer.update({8: (12, {})}), "encrypted"),
        (lambda footer: footer.update({9: (8, b"key")}), "signed"),
        (lambda footer: _chunk(footer).update({8: (12, {1: (12, {})})}), "encrypted"),
        (lambda footer: _chunk(footer).update({9: (8, b"hidden")}), "encrypted"),
        (lambda footer: _chunk(footer).update({1: (8, b"other.parquet")}), "other files"),
        (lambda footer: footer.pop(4), "cannot read it"),
        (lambda footer: footer.update({4: (5, 1)}), "cannot read it"),
        (lambda footer: _elements(footer)[0].update({3: (5, 2)}), "not bigint"),
        (lambda footer: _elements(footer)[0].update({6: (5, 10)}), "not bigint"),
        (lambda footer: _elements(footer)[1].update({4: (8, b"id")}), "not those"),
    ],
)
def test_a_strange_footer_is_for_spark(change: Callable[[Any], Any], part: str) -> None:
    """Encryption, data in other files and contradictions are left to Spark."""
    assert part in _changed_reason(change)


def _changed_reason(change: Callable[[Any], Any]) -> str:
    file = lying_parquet.changed(lambda footer: change(footer) and None)
    return reason(file, contract({"id": "bigint", "name": "string"}))


def _elements(footer: Any) -> list[Any]:
    return list(footer[2][1][1][1:])


def _declare(values: int, footer: Any) -> None:
    """Declare so many values for the first column."""
    _chunk(footer)[3][1][5] = 6, values


def _chunk(footer: Any) -> Any:
    return lying_parquet.groups(footer)[0][1][1][1][0]


_OLD = pa.table({"day": pa.array([1], pa.date32())})


@pytest.mark.parametrize(
    ("writer", "notes", "is_sure"),
    [
        (b"parquet-cpp-arrow version 26.0.1", {}, True),
        (b"parquet-mr version 1.17.0 (build 1)", {b"org.apache.spark.version": b"4.1.1"}, True),
        (b"parquet-mr version 1.17.0 (build 1)", {b"org.apache.spark.version": b"3.0.0"}, True),
        (b"parquet-mr version 1.10.1 (build 1)", {b"org.apache.spark.version": b"2.4.8"}, False),
        (
            b"parquet-mr version 1.17.0 (build 1)",
            {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""},
            False,
        ),
        (b"parquet-mr version 1.8.1 (build 1)", {}, False),
        (b"impala version 2.0", {}, False),
        (b"", {}, False),
        (None, {}, False),
    ],
)
def test_an_unsure_calendar_is_for_spark(
    writer: bytes | None, notes: dict[bytes, bytes], is_sure: bool
) -> None:
    """Where Spark would convert days or refuse to guess, Arrow reads no files with dates."""
    for table, type_ in ((_OLD, "date"), (pa.table({"day": [1]}), "bigint")):
        noted = table.replace_schema_metadata(notes)
        pages, footer = thrift.footer(written(noted))
        footer.pop(6)
        if writer is not None:
            footer[6] = 8, writer
        file = thrift.with_footer(pages, footer)
        found = reason(file, contract({"day": type_}))
        assert ("calendar" in found) is (type_ == "date" and not is_sure)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"write": "spark"}, "write: spark"),
        ({"write": "auto"}, ""),
        ({"transform": "SELECT c FROM file"}, "transform"),
        ({"format": "orc"}, "format is orc"),
        ({"extraColumns": "add"}, ""),
    ],
)
def test_a_contract_may_need_new_rows(settings: dict[str, str], part: str) -> None:
    """A transform, another format or the setting `write: spark` makes every file Spark's."""
    found = why_never(contract({"c": "bigint"}, **settings))
    assert part in found
    assert bool(found) == bool(part)


def test_decimals_may_be_whole_numbers_or_bytes() -> None:
    """A decimal is read in each form, at any precision."""
    for precision in range(1, 39):
        for whole in (True, False):
            column = pa.array([None], pa.decimal128(precision, 1))
            found = why(column, f"decimal({precision},1)", store_decimal_as_integer=whole)
            assert found == ""
