"""Find the differences between two sets of columns, by path and by name without case. Pure.

The found columns are a file's or a table's; the wanted columns are a contract's.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakegate.contract.columns import ITEM, KEY, VALUE
from spark_jobs.schema.types import Array, Map, Struct, Type

_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "float", "double"},
    "smallint": {"int", "bigint", "float", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
}
# The digits of each type's largest integer, and the digits up to which it holds every integer.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_HOLDS = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18, "float": 7, "double": 15}
_TIMES = {"date", "timestamp", "timestamp_ntz"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class Kind(StrEnum):
    """The kind of a difference."""

    WIDENING = "widening"  # every value found is one of the wanted type, unchanged
    LOSSY = "lossy"  # a cast there is, and it could change values, or fail
    IMPOSSIBLE = "impossible"
    MISSING = "missing"
    EXTRA = "extra"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Difference:
    """A difference at one path; a type is "" on the side without a column.

    `path` has field names, and ITEM, KEY or VALUE within arrays and maps. It is spelt as wanted, or
    as found where no such column is wanted.
    """

    kind: Kind
    path: tuple[str, ...]
    found: str = ""
    wanted: str = ""

    @property
    def name(self) -> str:
        """Return the path as text: `address.city`, `lines[].sku`."""
        return "".join(
            step if step in (ITEM, KEY, VALUE) or not n else f".{step}"
            for n, step in enumerate(self.path)
        )


def differences(type_: Type, wanted: Type, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield every difference, outer ones first.

    A found type of "" is not compared, because text formats have no types, nor is `void`, always
    null.
    """
    if type_ in ("", "void"):
        return
    if isinstance(type_, Struct) and isinstance(wanted, Struct):
        yield from _fields(type_, wanted, path)
    elif isinstance(type_, Array) and isinstance(wanted, Array):
        yield from differences(type_.item, wanted.item, (*path, ITEM))
    elif isinstance(type_, Map) and isinstance(wanted, Map):
        yield from differences(type_.key, wanted.key, (*path, KEY))
        yield from differences(type_.value, wanted.value, (*path, VALUE))
    elif type_ != wanted:
        yield Difference(_relation(type_, wanted), path, str(type_), str(wanted))


def _fields(struct: Struct, wanted: Struct, path: tuple[str, ...]) -> Iterator[Difference]:
    there = {name.lower(): type_ for name, type_ in struct.fields}
    expected = {name.lower() for name, _ in wanted.fields}
    times = Counter(name.lower() for name, _ in struct.fields)
    for name, type_ in struct.fields:
        if times.pop(name.lower(), 0) > 1:
            yield Difference(Kind.DUPLICATE, (*path, name), str(type_))
    for name, type_ in wanted.fields:
        if name.lower() not in there:
            yield Difference(Kind.MISSING, (*path, name), "", str(type_))
    for name, type_ in struct.fields:
        if name.lower() not in expected:
            yield Difference(Kind.EXTRA, (*path, name), str(type_))
    for name, type_ in wanted.fields:
        yield from differences(there.get(name.lower(), ""), type_, (*path, name))


def _relation(actual: Type, wanted: Type) -> Kind:
    """Return how two different types relate that are not both struct, array or map."""
    if not (isinstance(actual, str) and isinstance(wanted, str)):
        return Kind.IMPOSSIBLE
    if _widens(actual, wanted):
        return Kind.WIDENING
    numbers = all(type_ in _HOLDS or _DECIMAL.fullmatch(type_) for type_ in (actual, wanted))
    return Kind.LOSSY if numbers or {actual, wanted} <= _TIMES else Kind.IMPOSSIBLE


def _widens(actual: str, wanted: str) -> bool:
    if wanted in _WIDER.get(actual, ()):
        return True
    source, target = _digits(actual), _decimal(wanted)
    if source and target:
        return source[1] <= target[1] and source[0] - source[1] <= target[0] - target[1]
    decimal = _decimal(actual)
    return decimal is not None and decimal[1] == 0 and decimal[0] <= _HOLDS.get(wanted, 0)


def _digits(type_: str) -> tuple[int, int] | None:
    """Return the digits of an integer or decimal: all, and those after the decimal point."""
    return (_DIGITS[type_], 0) if type_ in _DIGITS else _decimal(type_)


def _decimal(type_: str) -> tuple[int, int] | None:
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None
