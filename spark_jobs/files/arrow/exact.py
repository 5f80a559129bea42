"""Decide if Arrow reads a landed file as exactly what its contract declares. Pure.

Nothing is converted: what Spark's reader would read in another way, or convert, is left to it.
Columns that the file has more or less are as the contract says.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakegate.contract.model import Contract
from spark_jobs.files.arrow.places import elements, fields
from spark_jobs.files.arrow.thrift import Compact
from spark_jobs.files.arrow.types import is_of, sql_type
from spark_jobs.schema.compare import Comparison, compare, undeclared

TEXTS = ("csv", "tsv", "json")  # which Arrow decodes in blocks
LARGEST_ROW_GROUP = 256 << 20  # bytes uncompressed, as one is held in memory
MOST_VALUES = 64 << 20  # of a row group: in dictionaries and runs many take few bytes
_OTHERS = "its columns are not those that the contract allows"

# Field ids of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, KeyValue,
# SchemaElement.
_SCHEMA, _ROWS, _ROW_GROUPS, _KEY_VALUES, _WRITER, _ENCRYPTION, _SIGNING_KEY = 2, 3, 4, 5, 6, 8, 9
_CHUNKS, _GROUP_SIZE = 1, 2
_FILE_PATH, _META, _COLUMN_KEY, _ENCRYPTED_META = 1, 3, 8, 9
_VALUES = 5
_KEY, _VALUE = 1, 2
_CONVERTED, _LOGICAL = 6, 10
_ENUM = 4  # of converted types, and of logical ones

_DAYS = ("date", "timestamp", "timestamp_ntz")
# Their days before 15 October 1582 may be of the Julian calendar, which Iceberg does not have.
_OLD_WRITERS = (b"parquet-mr", b"impala")
_SPARK, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"


def why_never(contract: Contract) -> str:
    """Return why Spark must write the rows of all files of a contract; "" if it need not."""
    return next(_contract_reasons(contract), "")


def compared(schema: pa.Schema, contract: Contract) -> Comparison:
    """Compare the columns of a Parquet file with the contract's. Raises as `sql_type`."""
    return compare([(each.name, sql_type(each.type)) for each in schema], contract)


def why_inexact(footer: bytes, schema: pa.Schema, contract: Contract) -> str:
    """Return why Spark must read a Parquet file; "" if Arrow reads it as the contract says.

    The file with this footer, in which Arrow has found a schema, is within the limits and does not
    contradict itself (`check_parquet`).
    """
    read = Compact(footer)
    try:
        described = read.struct()
        read.end()
        return next(_footer_reasons(described, schema, contract), "")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"its footer cannot be understood: {error!r}"


def _contract_reasons(contract: Contract) -> Iterator[str]:
    if contract.write == "spark":
        yield "its contract has write: spark"
    if contract.format not in ("parquet", *TEXTS):
        yield f"its format is {contract.format}"
    if contract.transform:
        yield "its contract has a transform"


def _footer_reasons(footer: dict[int, Any], schema: pa.Schema, contract: Contract) -> Iterator[str]:
    yield from _encryption_reasons(footer)
    yield from _enum_reasons(footer)
    yield from _column_reasons(schema, contract)
    yield from _calendar_reasons(footer, schema)
    yield from _row_group_reasons(footer)


def _encryption_reasons(footer: dict[int, Any]) -> Iterator[str]:
    chunks = [chunk for group in footer[_ROW_GROUPS] for chunk in group[_CHUNKS]]
    if {_ENCRYPTION, _SIGNING_KEY} & footer.keys() or any(
        {_COLUMN_KEY, _ENCRYPTED_META} & chunk.keys() for chunk in chunks
    ):
        yield "it is encrypted or signed"
    if any(_FILE_PATH in chunk for chunk in chunks):
        yield "its columns are in other files"


def _enum_reasons(footer: dict[int, Any]) -> Iterator[str]:
    for path, each in elements(footer[_SCHEMA]):
        if each.get(_CONVERTED) == _ENUM or _ENUM in each.get(_LOGICAL, {}):
            yield f"its column {path[0]} is an ENUM, which Arrow takes for bytes and Spark for text"


def _column_reasons(schema: pa.Schema, contract: Contract) -> Iterator[str]:
    names = {name.lower(): name for name in schema.names}
    there = [column for column in contract.columns if column.name.lower() in names]
    if not 0 < len(schema.names) == len(names) or {c.name for c in there} - {*schema.names}:
        yield _OTHERS
    for column in there:
        if not is_of(schema.field(column.name).type, column):
            yield f"its column {column.name} is not {column.type} as Iceberg has it"
    try:
        if compared(schema, contract).findings:
            yield _OTHERS
    except ValueError as error:
        yield f"only Spark converts one of its columns: {error}"


def _calendar_reasons(footer: dict[int, Any], schema: pa.Schema) -> Iterator[str]:
    notes = {each[_KEY]: each.get(_VALUE, b"") for each in footer.get(_KEY_VALUES, ())}
    by_spark, writer = notes.get(_SPARK, b""), footer.get(_WRITER, b"")
    unsure = not by_spark and (not writer or writer.startswith(_OLD_WRITERS))
    legacy = _LEGACY in notes or by_spark.startswith((b"1.", b"2."))
    columns = tuple(undeclared(each.name, sql_type(each.type)) for each in schema)
    if (unsure or legacy) and any(place.type in _DAYS for place in fields(columns)):
        yield "its writer may have counted days by the Julian calendar"


def _row_group_reasons(footer: dict[int, Any]) -> Iterator[str]:
    groups = footer[_ROW_GROUPS]
    paths = [".".join(path) for path, _ in elements(footer[_SCHEMA])]
    if len({*paths}) < len(paths):
        yield "two of its columns have the same path"
    if not footer[_ROWS]:
        yield "it has no rows"
    if any(group[_GROUP_SIZE] > LARGEST_ROW_GROUP for group in groups):
        yield f"it has a row group of more than {LARGEST_ROW_GROUP:,} bytes"
    if any(sum(each[_META][_VALUES] for each in group[_CHUNKS]) > MOST_VALUES for group in groups):
        yield f"it has a row group of more than {MOST_VALUES:,} values"
