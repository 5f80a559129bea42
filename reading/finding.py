"""Patterns of contracts as Python's regular expressions: what Spark's `rlike` finds, they find."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import groupby

from lakegate.patterns import java_pattern

_LAST = 0x10FFFF
_ESCAPE = re.compile(r"\\(?:x\{(?P<point>\w+)\}|(?P<sign>[pP])\{(?P<category>\w+)\}|.)", re.DOTALL)


def finder(pattern: str) -> Callable[[str], bool]:
    """Tells of a value whether the ECMA-262 pattern is found in it, as Java would.

    Characters that are newer than this Python's Unicode have no general category here.
    Raises PatternUnsupported, as `java_pattern` does.
    """
    # What `java_pattern` writes, Python reads alike but for \z, \x{…} and \p{…}.
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
    """All characters in (or not in) a general category, as they are written within `[…]`."""
    points = range(_LAST + 1)
    runs = groupby(points, lambda point: _is_in(point, category) is within)
    ranges = [list(run) for fits, run in runs if fits]
    return "".join(f"{_character(run[0])}-{_character(run[-1])}" for run in ranges)


def _is_in(point: int, category: str) -> bool:
    return unicodedata.category(chr(point)).startswith(category)


def _character(point: int) -> str:
    return f"\\U{point:08x}"
