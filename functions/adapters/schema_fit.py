"""Decide whether a table's newer schema reads files written with an older one."""

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
    StructType,
)


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
