"""Parse and write Spark SQL types. Pure, and without Spark."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakegate.contract.columns import quoted

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
    parsed = _type(_next(rest), rest)
    if next(rest, None) is not None:
        raise ValueError(f"{text} is not a type: there is text after its end")
    return parsed


def walk(type_: Type) -> Iterator[Type]:
    """Yield a type and all within it, outer ones first."""
    yield type_
    match type_:
        case Struct(fields):
            for _, each in fields:
                yield from walk(each)
        case Array(item):
            yield from walk(item)
        case Map(key, value):
            yield from walk(key)
            yield from walk(value)


def digits(decimal: str) -> tuple[int, int]:
    """Return the digits of a type such as decimal(12,2): all, and those after the point."""
    precision, after = map(int, re.findall(r"\d+", decimal))
    return precision, after


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
    token = _next(rest)
    if token != wanted:
        raise ValueError(f"expected {wanted} instead of {token}")


def _read(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)
