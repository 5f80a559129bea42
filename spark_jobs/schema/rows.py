"""Read the types of Spark's rows, and convert rows to the contract's columns without loss."""

from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.columns import ITEM, VALUE, Column, quoted
from spark_jobs.schema.types import Array, Map, Struct, Type, parse


def struct_of(schema: T.StructType) -> Struct:
    """Return the columns of rows, or the fields of a struct, as a tree."""
    return Struct(tuple((field.name, type_of(field.dataType)) for field in schema))


def type_of(type_: T.DataType) -> Type:
    """Return Spark's type as a tree, which keeps any name exactly, unlike the type's own text."""
    match type_:
        case T.StructType():
            return struct_of(type_)
        case T.ArrayType():
            return Array(type_of(type_.elementType))
        case T.MapType():
            return Map(type_of(type_.keyType), type_of(type_.valueType))
        case _:
            return type_.simpleString()


def not_null(type_: T.DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths within a type that allow no null, outer ones first."""
    match type_:
        case T.StructType():
            for field in type_:
                place = (*path, field.name)
                if not field.nullable:
                    yield place
                yield from not_null(field.dataType, place)
        case T.ArrayType():
            if not type_.containsNull:
                yield (*path, ITEM)
            yield from not_null(type_.elementType, (*path, ITEM))
        case T.MapType():
            if not type_.valueContainsNull:
                yield (*path, VALUE)
            yield from not_null(type_.valueType, (*path, VALUE))


def landed(schema: T.StructType, columns: Sequence[Column]) -> list[Expression]:
    """Return the expressions that select `columns` from rows that fit; absent ones are null."""
    wanted = Struct(tuple((column.name, parse(column.type)) for column in columns))
    return _fields(lambda name: F.col(quoted(name)), struct_of(schema), wanted)


def conformed(value: Expression, type_: Type, wanted: Type) -> Expression:
    """Convert a value of the type `type_` to `wanted`, which it fits; absent fields are null."""
    if type_ == wanted:
        return value
    match type_, wanted:
        case Struct(), Struct():
            fields = _fields(value.getField, type_, wanted)
            return F.when(value.isNotNull(), F.struct(*fields))
        case Array(), Array():
            return F.transform(value, lambda item: conformed(item, type_.item, wanted.item))
        case Map(), Map():
            keyed = F.transform_keys(value, lambda key, _: conformed(key, type_.key, wanted.key))
            return F.transform_values(
                keyed, lambda _, each: conformed(each, type_.value, wanted.value)
            )
        case _:
            return value.cast(str(wanted))


def _fields(get: Callable[[str], Expression], struct: Struct, wanted: Struct) -> list[Expression]:
    """Return the wanted fields, of which `get` returns those that are found by their own names."""
    there = {name.lower(): (name, type_) for name, type_ in struct.fields}
    values = []
    for name, type_ in wanted.fields:
        own, own_type = there.get(name.lower(), ("", "void"))
        value = get(own) if own else F.lit(None)
        values.append(conformed(value, own_type, type_).alias(name))
    return values
