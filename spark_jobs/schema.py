"""A file's columns against the contract's: by name without case, and no cast that could lose. Pure.

Spark would cast silently, read a missing column as nulls and drop an extra one; here each of them
is a finding.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lakegate.contract import Contract

_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "float", "double"},
    "smallint": {"int", "bigint", "float", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
}
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


@dataclass(frozen=True)
class Finding:
    """One way in which a file's columns break the contract; `code` is the reason's code."""

    code: str
    column: str
    message: str


def compare(found: Sequence[tuple[str, str]], contract: Contract) -> list[Finding]:
    """What is wrong with a file whose columns are `found`: (name, Spark SQL type), in order.

    A type of "" is not compared: text formats have no types, their cells are cast one by one.
    """
    types = {name.lower(): type_ for name, type_ in found}
    expected = {column.name.lower() for column in contract.columns}
    return [
        *_duplicates([name for name, _ in found]),
        *[_missing(c.name, found) for c in contract.columns if c.name.lower() not in types],
        *[_extra(name) for name, _ in found if name.lower() not in expected],
        *[
            _mismatch(c.name, types[c.name.lower()], c.type)
            for c in contract.columns
            if not fits(types.get(c.name.lower(), ""), c.type)
        ],
    ]


def fits(found: str, wanted: str) -> bool:
    """Whether every value of the type `found` is a value of the type `wanted`, unchanged."""
    if found in ("", "void", wanted) or wanted in _WIDER.get(found, ()):
        return True
    target = _decimal(wanted)
    source = _decimal(found) or (_INTEGER_DIGITS.get(found, 0), 0)
    if not target or source == (0, 0):
        return False
    return source[1] <= target[1] and source[0] - source[1] <= target[0] - target[1]


def _decimal(type_: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", type_)
    return (int(match[1]), int(match[2])) if match else None


def _duplicates(names: list[str]) -> list[Finding]:
    repeated = [name for name, n in Counter(n.lower() for n in names).items() if n > 1]
    return [
        Finding("DUPLICATE_COLUMN", name, f"column {name!r} is there more than once")
        for name in repeated
    ]


def _missing(name: str, found: Sequence[tuple[str, str]]) -> Finding:
    there = ", ".join(n for n, _ in found)[:300] or "none"
    return Finding("MISSING_COLUMN", name, f"column {name!r} is missing; the file has: {there}")


def _extra(name: str) -> Finding:
    return Finding("EXTRA_COLUMN", name, f"column {name!r} is not in the contract")


def _mismatch(name: str, found: str, wanted: str) -> Finding:
    return Finding(
        "TYPE_MISMATCH", name, f"column {name!r} is {found}, which does not fit {wanted}"
    )
