"""Give a Parquet footer the field ids of an Iceberg table. Pure.

A Parquet file's footer is a struct in Thrift's compact protocol (parquet.thrift: FileMetaData).
Iceberg's readers find columns by the field ids in it. The footer is at the end of the file, so
another footer changes no position of a page.
"""

from collections.abc import Iterable, Mapping

from spark_jobs.files.limits import Compact
from spark_jobs.files.places import elements

# Field ids and types of parquet.thrift: FileMetaData, SchemaElement, KeyValue.
_SCHEMA, _ROW_GROUPS, _KEY_VALUES, _ENCRYPTION, _SIGNING_KEY = 2, 4, 5, 8, 9
_REPETITION, _FIELD_ID = 3, 9
_REPEATED = 2
_KEY = 1
_I32, _STRUCT = 5, 12
# RowGroup, ColumnChunk, ColumnMetaData. What a writer says about values may be wrong, and a reader
# that believes it leaves rows out: statistics, page indexes, bloom filters.
_CHUNKS, _META = 1, 3
_PAGE_INDEXES, _SAYINGS = {4, 5, 6, 7}, {12, 14, 15, 16, 17}
MAGIC = b"PAR1"

# What an earlier writer noted about its own schema. It says other field ids, or types that Iceberg
# does not have, such as times in a zone other than UTC: pyarrow and older pyiceberg believe it
# rather than the columns' own description.
_OTHER_SCHEMAS = (b"ARROW:schema", b"iceberg.schema")

_Part = tuple[int, int, bytes]


def file_end(footer: bytes) -> bytes:
    """Return how a Parquet file with this footer ends: the footer, its length and the magic."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def with_field_ids(footer: bytes, ids: Mapping[str, int]) -> bytes:
    """Return the footer with the field id of each element of the schema, by its path (`places`).

    It has no statistics, indexes and bloom filters, and no notes on schemas that contradict it. All
    else stays as it was. Raises ValueError for a footer that cannot be read, with other columns
    than `ids`, or encrypted. Groups that repeat have no id.
    """
    read = Compact(footer)
    parts = list(read.parts())
    read.end()
    found = [id_ for id_, _, _ in parts]
    if found.count(_SCHEMA) != 1 or len(set(found)) < len(found):
        raise ValueError("a field is missing, or there twice")
    if {_ENCRYPTION, _SIGNING_KEY} & set(found):
        raise ValueError("the file is encrypted")
    try:
        return _struct((id_, type_, _changed(id_, value, ids)) for id_, type_, value in parts)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"a field has an unexpected type: {error!r}") from error


def _changed(id_: int, value: bytes, ids: Mapping[str, int]) -> bytes:
    if id_ == _SCHEMA:
        return _list(_schema(list(Compact(value).structs()), ids))
    if id_ == _ROW_GROUPS:
        return _list(map(_plain_group, Compact(value).structs()))
    if id_ == _KEY_VALUES:
        return _list(each for each in Compact(value).structs() if not _is_other_schema(each))
    return value


def _schema(schema: list[bytes], ids: Mapping[str, int]) -> list[bytes]:
    """Return the schema's elements, the root first, with the columns' field ids."""
    root, *others = schema
    found = elements([Compact(each).struct() for each in schema])
    paths = [".".join(path) for path, _ in found]
    named = [p for p, (_, e) in zip(paths, found, strict=True) if e.get(_REPETITION) != _REPEATED]
    if sorted(named) != sorted(ids) or len(set(paths)) < len(paths):
        raise ValueError("its columns are not those of the table")
    return [root, *(_with_id(e, ids.get(path)) for e, path in zip(others, paths, strict=True))]


def _with_id(element: bytes, field_id: int | None) -> bytes:
    parts = [part for part in Compact(element).parts() if part[0] != _FIELD_ID]
    if field_id is not None:
        parts.append((_FIELD_ID, _I32, _zigzag(field_id)))
    return _struct(sorted(parts, key=lambda part: part[0]))


def _plain_group(row_group: bytes) -> bytes:
    """Return a row group that says nothing about its values."""
    parts = Compact(row_group).parts()
    return _struct((i, t, _plain_chunks(v) if i == _CHUNKS else v) for i, t, v in parts)


def _plain_chunks(chunks: bytes) -> bytes:
    return _list(
        _struct((i, t, _without(v, _SAYINGS) if i == _META else v) for i, t, v in parts)
        for parts in map(_kept, Compact(chunks).structs())
    )


def _kept(chunk: bytes) -> list[_Part]:
    return [part for part in Compact(chunk).parts() if part[0] not in _PAGE_INDEXES]


def _without(struct: bytes, fields: set[int]) -> bytes:
    return _struct(part for part in Compact(struct).parts() if part[0] not in fields)


def _is_other_schema(key_value: bytes) -> bool:
    return Compact(key_value).struct().get(_KEY) in _OTHER_SCHEMAS


# Thrift's compact protocol, written


def _struct(parts: Iterable[_Part]) -> bytes:
    out, last = bytearray(), 0
    for id_, type_, value in parts:
        is_short = 0 < id_ - last < 16  # the difference from the field before
        out += bytes([(id_ - last) << 4 | type_]) if is_short else bytes([type_]) + _zigzag(id_)
        out += value
        last = id_
    return bytes(out) + b"\0"


def _list(structs: Iterable[bytes]) -> bytes:
    items = list(structs)
    count = len(items)
    head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
    return head + b"".join(items)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else ~(value << 1))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])
