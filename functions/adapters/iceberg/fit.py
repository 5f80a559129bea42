"""Decide whether a table reads, as they were written, files of a branch's table of its name.

The branch's table is an earlier state of the table, or another table, which the branch's own writer
created. docs/adr/0032-files-of-another-table.md says why the files of both can be registered.
"""

from collections.abc import Collection, Iterable, Iterator

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
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
    StructType,
)

from functions.adapters.iceberg.errors import CannotRebase
from functions.adapters.iceberg.files import manifests_of
from functions.adapters.iceberg.manifests import live


def require_fit(
    written: Table, files: Collection[DataFile], current: Table, registered: Collection[str]
) -> None:
    """Raise CannotRebase unless `current` reads `files` of the table `written` as written.

    `registered` are the addresses of all files that are registered together. Another table must
    have no other file: such a file held rows that were on main once, or that were not audited.
    """
    same = written.metadata.table_uuid == current.metadata.table_uuid
    if not same and any(path not in registered for path in _files(written)):
        raise CannotRebase("TABLE_REPLACED", "the table on main was dropped and created again")
    if any(written.specs()[id_] != current.specs().get(id_) for id_ in specs_of(files)):
        raise CannotRebase("PARTITIONING_CHANGED", "the partitioning of the table on main changed")
    orders = {file.sort_order_id for file in files if file.sort_order_id}
    if any(written.sort_orders().get(id_) != current.sort_orders().get(id_) for id_ in orders):
        raise CannotRebase("ORDER_CHANGED", "the sort order of the table on main changed")
    clash = not same and _uses_dropped_ids(written, current.schema())
    if clash or not reads_as_written(written.schema(), current.schema()):
        raise CannotRebase("COLUMNS_CHANGED", "the columns of the table on main changed")


def specs_of(files: Iterable[DataFile]) -> set[int]:
    """Return the ids of the partition specs with which files were written."""
    return {file.spec_id for file in files}


def _uses_dropped_ids(written: Table, current: Schema) -> bool:
    """Return whether a column has the id of one that the written table dropped.

    The files may have values under that id.
    """
    new = current.field_ids - written.schema().field_ids
    return any(id_ <= written.metadata.last_column_id for id_ in new)


def _files(table: Table) -> Iterator[str]:
    """Yield the addresses of the table's data files and delete files."""
    for manifest in manifests_of(table):
        for entry in live(manifest, table.io):
            yield entry.data_file.file_path


def reads_as_written(written: Schema, current: Schema) -> bool:
    """Return whether the newer schema has every value of the older files under its name.

    Each field id, including nested ones, must exist with the same name and the same or a wider type
    (Iceberg specification, "Schema evolution"). A column that the files lack, or that may be null
    in them, must not be required.
    """
    return _reads(written.as_struct(), current.as_struct())


def _reads(written: IcebergType, current: IcebergType) -> bool:
    if not isinstance(written, StructType | ListType | MapType):
        return _is_wider(written, current)
    if type(current) is not type(written):
        return False
    before = {field.field_id: field for field in _parts(written)}
    now = {field.field_id: field for field in _parts(current)}
    kept = all(_kept(field, now.get(id_)) for id_, field in before.items())
    return kept and not any(field.required for id_, field in now.items() if id_ not in before)


def _kept(written: NestedField, current: NestedField | None) -> bool:
    if current is None or current.name != written.name:
        return False
    if current.required and not written.required:
        return False
    return _reads(written.field_type, current.field_type)


def _parts(type_: IcebergType) -> tuple[NestedField, ...]:
    match type_:
        case StructType():
            return type_.fields
        case ListType():
            return (type_.element_field,)
        case MapType():
            return (type_.key_field, type_.value_field)
        case _:
            return ()


def _is_wider(written: IcebergType, current: IcebergType) -> bool:
    """Unlike pyiceberg's `promote`, refuse a change of a decimal's scale."""
    match written, current:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return written.scale == current.scale and written.precision <= current.precision
        case _:
            return current == written
