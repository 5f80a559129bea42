"""Parse and write Spark SQL types, and cast columns to the contract's types. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.columns import ITEM, VALUE, Column, quoted

_TOKEN = re.compile(r"`(?:[^`]|``)*`|[<>,:]|(?:\([^)]*\)|[^<>,:`(])+")
_PLAIN = re.compile(r"\w+")


@dataclass(frozen=True)
class Struct:
    """A struct: named fields in order."""

    fields: tuple[tuple[str, "Type"], ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{_written(name)}:{type_}' for name, type_ in self.fields)}>"


@dataclass(frozen=True)
class Array:
    """An array of one item type."""

    item: "Type"

    def __str__(self) -> str:
        return f"array<{self.item}>"


@dataclass(frozen=True)
class Map:
    """A map with one key type and one value type."""

    key: "Type"
    value: "Type"

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


# Other types are their own text, such as decimal(12,2).
Type = str | Struct | Array | Map


def parse(text: str) -> Type:
    """Parse a type such as `struct<a:int,b:array<string>>`.

    Raises ValueError when the text is no type.
    """
    rest = iter([token.strip() for token in _TOKEN.findall(text) if token.strip()])
    found = _type(_next(rest), rest)
    if next(rest, None) is not None:
        raise ValueError(f"{text} is not a type: there is text after its end")
    return found


def _type(head: str, rest: Iterator[str]) -> Type:
    if head.lower() not in ("struct", "array", "map"):
        if head in "<>,:" or head.startswith("`"):
            raise ValueError(f"{head} is not a type")
        return re.sub(r"\s*([(),])\s*", r"\1", head.lower())
    _expect("<", rest)
    if head.lower() == "struct":
        return Struct(tuple(_fields(rest)))
    first = _type(_next(rest), rest)
    if head.lower() == "array":
        _expect(">", rest)
        return Array(first)
    _expect(",", rest)
    second = _type(_next(rest), rest)
    _expect(">", rest)
    return Map(first, second)


def _fields(rest: Iterator[str]) -> Iterator[tuple[str, Type]]:
    each = _next(rest)
    while each != ">":
        _expect(":", rest)
        yield _read(each), _type(_next(rest), rest)
        each = _next(rest)
        if each == ",":
            each = _next(rest)
        elif each != ">":
            raise ValueError(f"expected , or > instead of {each}")


def _next(rest: Iterator[str]) -> str:
    token = next(rest, "")
    if not token:
        raise ValueError("the type is incomplete")
    return token


def _expect(wanted: str, rest: Iterator[str]) -> None:
    found = _next(rest)
    if found != wanted:
        raise ValueError(f"expected {wanted} instead of {found}")


def _read(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


# Conversion of rows to the contract's columns, by name and without loss


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


def columns_of(schema: T.StructType) -> list[tuple[str, str]]:
    """Return the columns of rows as (name, Spark SQL type), in order."""
    return [(name, str(type_)) for name, type_ in struct_of(schema).fields]


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
    there = {name.lower(): (name, type_) for name, type_ in struct_of(schema).fields}
    values = []
    for column in columns:
        name, found = there.get(column.name.lower(), ("", "void"))
        value = F.col(quoted(name)) if name else F.lit(None)
        values.append(conformed(value, found, parse(column.type)).alias(column.name))
    return values


def conformed(value: Expression, found: Type, wanted: Type) -> Expression:
    """Convert a value of the type `found` to `wanted`, which it fits; absent fields are null."""
    if found == wanted:
        return value
    match found, wanted:
        case Struct(), Struct():
            fields = [_field(value, found, name, type_) for name, type_ in wanted.fields]
            return F.when(value.isNotNull(), F.struct(*fields))
        case Array(), Array():
            return F.transform(value, lambda item: conformed(item, found.item, wanted.item))
        case Map(), Map():
            keyed = F.transform_keys(value, lambda key, _: conformed(key, found.key, wanted.key))
            return F.transform_values(
                keyed, lambda _, each: conformed(each, found.value, wanted.value)
            )
        case _:
            return value.cast(str(wanted))


def _field(value: Expression, found: Struct, name: str, wanted: Type) -> Expression:
    there = {each.lower(): (each, type_) for each, type_ in found.fields}
    if name.lower() not in there:
        return F.lit(None).cast(str(wanted)).alias(name)
    own, type_ = there[name.lower()]
    return conformed(value.getField(own), type_, wanted).alias(name)
