"""Decide if a landed Parquet file can be a data file of an Iceberg table as it is. Pure.

Such a file is what Iceberg's own writer could have written, or what all of Iceberg's readers read
alike. They know fewer types than Spark's reader, and convert nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lakegate.contract.model import Contract
from spark_jobs.files.limits import Compact
from spark_jobs.files.places import Element, Place, elements, fields, places
from spark_jobs.schema.types import Array, Map, Struct

TEXTS = ("csv", "tsv", "json")  # which Arrow decodes first
LARGEST_ROW_GROUP = 256 << 20  # bytes uncompressed, as a reader may hold one in memory

# Field ids of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, KeyValue.
_SCHEMA, _ROWS, _ROW_GROUPS, _KEY_VALUES, _WRITER, _ENCRYPTION, _SIGNING_KEY = 2, 3, 4, 5, 6, 8, 9
_CHUNKS, _GROUP_SIZE, _GROUP_ROWS = 1, 2, 3
_FILE_PATH, _META, _COLUMN_KEY, _ENCRYPTED_META = 1, 3, 8, 9
_META_TYPE, _META_ENCODINGS, _META_PATH, _META_CODEC, _META_PAGES = 1, 2, 3, 4, 13
_PAGE_TYPE, _PAGE_ENCODING = 1, 2
_KEY, _VALUE = 1, 2
# SchemaElement
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = (
    *(1, 2, 3, 4, 5, 6, 7, 8),
    10,
)
_REQUIRED, _REPEATED = 0, 2

_CODECS = {0: "none", 1: "snappy", 2: "gzip", 6: "zstd"}
# Plain, and the two of dictionaries. Iceberg's reader by batches fails on others, such as newer
# ones, and RLE where it is not of levels but of a boolean column.
_ENCODINGS, _OF_LEVELS, _DICTIONARY_PAGE = {0, 2, 8}, {3, 4}, 2

# A column's description: the physical type, the logical type, and the older "converted type".
_BOOLEAN, _INT32, _INT64, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = 0, 1, 2, 4, 5, 6, 7
_Annotation = tuple[Mapping[int, Any] | None, int | None]
_NOT: _Annotation = (None, None)


def _whole(bits: int, converted: int) -> tuple[_Annotation, ...]:
    signed = {10: {1: bytes([bits]), 2: True}}
    return _NOT, (signed, converted), (signed, None), (None, converted)


def _either(logical: Mapping[int, Any], converted: int) -> tuple[_Annotation, ...]:
    return (logical, converted), (logical, None), (None, converted)


_MICROSECONDS: Mapping[int, Any] = {2: {}}
_UTC = {8: {1: True, 2: _MICROSECONDS}}
_LOCAL = {8: {1: False, 2: _MICROSECONDS}}
_TYPES: Mapping[str, tuple[int, tuple[_Annotation, ...]]] = {
    "boolean": (_BOOLEAN, (_NOT,)),
    "int": (_INT32, _whole(32, 17)),
    "bigint": (_INT64, _whole(64, 18)),
    "float": (_FLOAT, (_NOT,)),
    "double": (_DOUBLE, (_NOT,)),
    "string": (_BYTE_ARRAY, _either({1: {}}, 0)),
    "binary": (_BYTE_ARRAY, (_NOT,)),
    "date": (_INT32, _either({6: {}}, 6)),
    "timestamp": (_INT64, _either(_UTC, 10)),
    "timestamp_ntz": (_INT64, ((_LOCAL, 10), (_LOCAL, None))),  # 10 alone means UTC
}
_LISTS, _MAPS = _either({3: {}}, 3), _either({2: {}}, 1)
_REPEATING: tuple[_Annotation, ...] = (_NOT, (None, 2))  # 2 is of a map's keys and values
_OF_DECIMALS = 5
_DAYS = ("date", "timestamp", "timestamp_ntz")
# Their days before 15 October 1582 may be of the Julian calendar, which Iceberg does not have.
_OLD_WRITERS = (b"parquet-mr", b"impala")
_SPARK, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"


def why_never(contract: Contract) -> str:
    """Return why the rows of all files of a contract must be written again; "" if need not be."""
    return next(_of_contract(contract), "")


def why_rewritten(footer: bytes, contract: Contract) -> str:
    """Return why a file's rows must be written again; "" if it can be a data file as it is.

    The file with this footer is within the limits (`check_parquet`).
    """
    read = Compact(footer)
    try:
        described = read.struct()
        read.end()
        return next(_of_footer(described, contract), "")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"its footer cannot be understood: {error!r}"


def _of_contract(contract: Contract) -> Iterator[str]:
    if contract.write == "rewrite":
        yield "its contract has write: rewrite"
    if contract.format not in ("parquet", *TEXTS):
        yield f"its format is {contract.format}"
    if contract.transform:
        yield "its contract has a transform"
    if contract.layout.partitions or contract.layout.order:
        yield "its contract partitions or sorts the table"
    if contract.provenance:
        yield "its contract adds columns of provenance to each row"
    if contract.extra_columns == "add":
        yield "its contract adds columns to the table"


def _of_footer(footer: dict[int, Any], contract: Contract) -> Iterator[str]:
    yield from _of_encryption(footer)
    yield from _of_columns(footer[_SCHEMA], contract)
    yield from _of_calendar(footer, contract)
    yield from _of_row_groups(footer)


def _of_encryption(footer: dict[int, Any]) -> Iterator[str]:
    chunks = list(_chunks(footer))
    if {_ENCRYPTION, _SIGNING_KEY} & footer.keys() or any(
        {_COLUMN_KEY, _ENCRYPTED_META} & chunk.keys() for chunk in chunks
    ):
        yield "it is encrypted or signed"
    if any(_FILE_PATH in chunk for chunk in chunks):
        yield "its columns are in other files"


def _of_columns(schema: list[dict[int, Any]], contract: Contract) -> Iterator[str]:
    named: defaultdict[str, dict[str, Element]] = defaultdict(dict)
    for path, element in (found := elements(schema)):
        named[path[0]][".".join(path)] = element
    different = {path for column in named.values() for path in column}
    if named.keys() != {column.name for column in contract.columns} or len(different) < len(found):
        yield "its columns are not exactly the contract's"
    for column in contract.columns:
        wanted = {place.path: place for place in places(contract)[column.name]}
        there = named[column.name]
        if there.keys() != wanted.keys() or not all(_fits(there[p], wanted[p]) for p in wanted):
            yield f"its column {column.name} is not {column.type} as Iceberg writes it"


def _fits(element: Element, place: Place) -> bool:
    annotation = (element.get(_LOGICAL), element.get(_CONVERTED))
    if place.type is None or element[_REPETITION] == _REPEATED:
        return place.type is None and element[_REPETITION] == _REPEATED and annotation in _REPEATING
    if place.is_key and element[_REPETITION] != _REQUIRED:
        return False
    match place.type:
        case str(type_):
            return _fits_leaf(element, annotation, type_)
        case Struct():
            return annotation == _NOT
        case Array():
            return annotation in _LISTS
        case Map():
            return annotation in _MAPS


def _fits_leaf(element: Element, annotation: _Annotation, type_: str) -> bool:
    if type_.startswith("decimal("):
        return annotation[1] in (None, _OF_DECIMALS) and _fits_decimal(element, type_)
    physical, annotations = _TYPES.get(type_, (None, ()))
    return element[_TYPE] == physical and annotation in annotations


def _fits_decimal(element: Element, type_: str) -> bool:
    """Return if an element is a decimal of the type's precision and scale.

    Iceberg writes few digits as integers, many as bytes; its readers go by the physical type.
    """
    digits = type_.removeprefix("decimal(").removesuffix(")").split(",")
    precision, scale = int(digits[0]), int(digits[1])
    logical = element.get(_LOGICAL, {_OF_DECIMALS: {1: scale, 2: precision}})
    longest = {_INT32: 9, _INT64: 18}.get(element[_TYPE], 0)
    if element[_TYPE] == _FIXED:
        longest = len(str(1 << (8 * element[_LENGTH] - 1))) - 1
    return (
        logical == {_OF_DECIMALS: {1: scale, 2: precision}}
        and (element.get(_SCALE, 0), element.get(_PRECISION)) == (scale, precision)
        and precision <= longest
    )


def _of_calendar(footer: dict[int, Any], contract: Contract) -> Iterator[str]:
    notes = {each[_KEY]: each.get(_VALUE, b"") for each in footer.get(_KEY_VALUES, ())}
    by_spark, writer = notes.get(_SPARK, b""), footer.get(_WRITER, b"")
    unsure = not by_spark and (not writer or writer.startswith(_OLD_WRITERS))
    legacy = _LEGACY in notes or by_spark.startswith((b"1.", b"2."))
    if (unsure or legacy) and any(place.type in _DAYS for place in fields(contract)):
        yield "its writer may have counted days by the Julian calendar"


def _of_row_groups(footer: dict[int, Any]) -> Iterator[str]:
    groups = footer[_ROW_GROUPS]
    # Arrow finds a column by its place, other readers by its name.
    columns = [path for path, each in elements(footer[_SCHEMA]) if not each.get(_CHILDREN)]
    paths = [[name.encode() for name in path] for path in columns]
    if any([chunk[_META][_META_PATH] for chunk in group[_CHUNKS]] != paths for group in groups):
        yield "a row group has other columns than its schema"
    if not footer[_ROWS]:
        yield "it has no rows"
    if sum(group[_GROUP_ROWS] for group in groups) != footer[_ROWS]:
        yield "its footer counts its rows in two ways"
    if any(group[_GROUP_SIZE] > LARGEST_ROW_GROUP for group in groups):
        yield f"it has a row group of more than {LARGEST_ROW_GROUP:,} bytes"
    chunks = [chunk[_META] for chunk in _chunks(footer)]
    if any(chunk[_META_CODEC] not in _CODECS for chunk in chunks):
        yield f"its compression is not one of {', '.join(_CODECS.values())}"
    if not all(_ENCODINGS.issuperset(_encodings(chunk)) for chunk in chunks):
        yield "it has an encoding that not all readers know"


def _encodings(chunk: dict[int, Any]) -> set[int]:
    """Return the encodings of a column's values, as far as they differ from those of levels."""
    if _META_PAGES in chunk:
        data = (page for page in chunk[_META_PAGES] if page[_PAGE_TYPE] != _DICTIONARY_PAGE)
        return {page[_PAGE_ENCODING] for page in data}
    of_levels = set() if chunk[_META_TYPE] == _BOOLEAN else _OF_LEVELS
    return set(chunk[_META_ENCODINGS]) - of_levels


def _chunks(footer: dict[int, Any]) -> Iterator[dict[int, Any]]:
    return (chunk for group in footer[_ROW_GROUPS] for chunk in group[_CHUNKS])
