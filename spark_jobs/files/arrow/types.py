"""The Arrow types of a contract's columns, as Iceberg has them in Parquet. Pure."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from lakegate.contract.columns import Column
from spark_jobs.schema.types import Array, Map, Struct, Type, digits, parse

TIMES: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
PLAIN: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    **TIMES,
}


def schema_of(columns: Iterable[Column], ids: Mapping[str, int] | None = None) -> pa.Schema:
    """Return the types of columns, with the field id of each place (`files.places`) in `ids`.

    Raises ValueError for a type that Iceberg does not have.
    """
    return pa.schema([_field(c.name, parse(c.type), c.name, ids or {}) for c in columns])


def type_of(column: Column) -> pa.DataType:
    """Return the type of a column's values. Raises ValueError as `schema_of`."""
    return schema_of([column]).types[0]


def sql_type(type_: pa.DataType) -> Type:
    """Return the type of Iceberg's whose values these are. Raises ValueError without one."""
    if pa.types.is_struct(type_):
        if len({each.name.lower() for each in type_}) < type_.num_fields:
            raise ValueError("Iceberg has no struct with a field twice")
        return Struct(tuple((each.name, sql_type(each.type)) for each in type_))
    if pa.types.is_map(type_):
        return Map(sql_type(type_.key_type), sql_type(type_.item_type))
    if pa.types.is_list(type_):
        return Array(sql_type(type_.value_type))
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    iceberg_type = next((name for name, plain in PLAIN.items() if plain == type_), "")
    if not iceberg_type:
        raise ValueError(f"Iceberg has no type {type_}")
    return iceberg_type


def is_of(type_: pa.DataType, column: Column) -> bool:
    """Return if values have a column's type, whatever the items of lists and maps are called."""
    try:
        return sql_type(type_) == parse(column.type)
    except ValueError:
        return False


def _field(
    name: str, type_: Type, path: str, ids: Mapping[str, int], *, nullable: bool = True
) -> pa.Field:
    metadata = {"PARQUET:field_id": str(ids[path])} if path in ids else None
    return pa.field(name, _type(type_, path, ids), nullable, metadata)


def _type(type_: Type, path: str, ids: Mapping[str, int]) -> pa.DataType:
    match type_:
        case Struct(fields):
            return pa.struct([_field(n, inner, f"{path}.{n}", ids) for n, inner in fields])
        case Array(item):
            return pa.list_(_field("element", item, f"{path}.list.element", ids))
        case Map(key, value):
            group = f"{path}.key_value"
            return pa.map_(
                _field("key", key, f"{group}.key", ids, nullable=False),
                _field("value", value, f"{group}.value", ids),
            )
    if type_.startswith("decimal("):
        return pa.decimal128(*digits(type_))
    if type_ not in PLAIN:
        raise ValueError(f"Iceberg has no type {type_}")
    return PLAIN[type_]
