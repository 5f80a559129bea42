"""Contracts' patterns as Python's regular expressions, which match what Spark's `rlike` matches."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import groupby

from lakegate.ecma_patterns import java_pattern

_LAST = 0x10FFFF
_ESCAPE = re.compile(r"\\(?:x\{(?P<point>\w+)\}|(?P<sign>[pP])\{(?P<category>\w+)\}|.)", re.DOTALL)


def finder(pattern: str) -> Callable[[str], bool]:
    """Return a function that searches a value for an ECMA-262 pattern, as Java would.

    Characters newer than this Python's Unicode have no general category here. Raises
    PatternUnsupported, as `java_pattern` does.
    """
    # Python reads the output of `java_pattern` alike except for \z, \x{…} and \p{…}.
    search = re.compile(_ESCAPE.sub(_in_python, java_pattern(pattern)), re.ASCII).search
    return lambda value: search(value) is not None


def _in_python(escape: re.Match[str]) -> str:
    if escape["point"]:
        return _character(int(escape["point"], 16))
    if escape["category"]:
        return _members(escape["category"], within=escape["sign"] == "p")
    return r"\Z" if escape[0] == r"\z" else escape[0]


@cache
def _members(category: str, *, within: bool) -> str:
    """Return all characters in (or not in) a general category, as written within `[…]`."""
    points = range(_LAST + 1)
    runs = groupby(points, lambda point: _is_in(point, category) is within)
    ranges = [list(run) for fits, run in runs if fits]
    return "".join(f"{_character(run[0])}-{_character(run[-1])}" for run in ranges)


def _is_in(point: int, category: str) -> bool:
    return unicodedata.category(chr(point)).startswith(category)


def _character(point: int) -> str:
    return f"\\U{point:08x}"
