r"""Translate patterns to RE2's notation, which Arrow searches with. Pure.

Only patterns that find the same texts in Java are translated: RE2 has no lookahead, and its tables
of Unicode's categories are of another version. Java may begin a search within a surrogate pair, so
a set of characters has all characters beyond Unicode's first plane or none.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakegate.ecma_patterns import BOUNDARY, NO_BOUNDARY, PatternUnsupported, java_tokens
from lakegate.pattern_tree import BEGIN, END, All, Either, One, Repeat, Tree, tree

_UNTRANSLATED = ("(?=", "(?!", BOUNDARY, NO_BOUNDARY)
_MEMBER = re.compile(r"\\x\{([0-9a-f]+)\}|\\([dDwW])|\\([\W_nr])|([^\\])", re.DOTALL)
_LINE_ENDS = {"\\n": 10, "\\r": 13}
_LAST, _FIRST_SURROGATE, _LAST_SURROGATE, _SECOND_PLANE = 0x10FFFF, 0xD800, 0xDFFF, 0x10000
_NAMED = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)]}
_Ranges = list[tuple[int, int]]


@lru_cache(maxsize=4096)
def re2_pattern(pattern: str) -> str | None:
    """Return the RE2 pattern that finds the same texts as `java_pattern`; None without one."""
    try:
        if any(token in _UNTRANSLATED for token in java_tokens(pattern)):
            return None
        found = _written(tree(pattern))
        pc.match_substring_regex(pa.array([""]), found)  # compiles it
    except (PatternUnsupported, pa.ArrowInvalid):  # RE2 limits the size of a pattern
        return None
    return found


def _written(part: Tree) -> str:
    """Return the part in RE2's notation. Raises PatternUnsupported for what it may not share."""
    match part:
        case One(of):
            return of if of in (BEGIN, END) else _set(of)
        case All(parts):
            return "".join(map(_written, parts))
        case Either(parts):
            return f"(?:{'|'.join(map(_written, parts))})"
        case Repeat(repeated, low, high):
            if _may_be_empty(repeated):
                raise PatternUnsupported("engines differ in how they repeat an empty text")
            return f"(?:{_written(repeated)}){{{low},{'' if high is None else high}}}"


def _may_be_empty(part: Tree) -> bool:
    match part:
        case One(of):
            return of in (BEGIN, END)
        case All(parts):
            return all(map(_may_be_empty, parts))
        case Either(parts):
            return any(map(_may_be_empty, parts))
        case Repeat(repeated, low, _):
            return low == 0 or _may_be_empty(repeated)


def _set(java: str) -> str:
    """Return a set of characters by its ranges."""
    inner = java[1:-1] if java.startswith("[") else java
    negated = java.startswith("[^")
    found = _merged(_members(inner[1:] if negated else inner))
    ranges = _others(found) if negated else found
    beyond = sum(_shared(each, _FIRST_SURROGATE, _LAST_SURROGATE) for each in ranges)
    beyond += sum(_shared(each, _SECOND_PLANE, _LAST) for each in ranges)
    if beyond not in (0, _LAST - _SECOND_PLANE + 1 + _LAST_SURROGATE - _FIRST_SURROGATE + 1):
        raise PatternUnsupported("Java may begin the search within a surrogate pair")
    if not ranges:
        raise PatternUnsupported("the set is empty")
    written = (rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in ranges)
    return f"[{''.join(written)}]"


def _members(inner: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a set's members."""
    at = 0
    while at < len(inner):
        found, at = _member(inner, at)
        if isinstance(found, list):
            yield from found
        elif inner[at : at + 1] == "-":
            last, at = _member(inner, at + 1)
            if isinstance(last, list):
                raise PatternUnsupported("a range ends in a set")
            yield found, last
        else:
            yield found, found


def _member(inner: str, at: int) -> tuple[int | _Ranges, int]:
    """Return a member, as a code point or as ranges, and the place after it."""
    found = _MEMBER.match(inner, at)
    if not found:  # such as \p{L}
        raise PatternUnsupported("engines differ in the characters of a category")
    point, named, escaped, plain = found.groups()
    if named:
        ranges = _NAMED[named.lower()]
        return (_others(ranges) if named.isupper() else ranges), found.end()
    if point:
        return int(point, 16), found.end()
    return _LINE_ENDS.get(found[0], ord(escaped or plain)), found.end()


def _merged(ranges: Iterator[tuple[int, int]]) -> _Ranges:
    merged: _Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _others(ranges: _Ranges) -> _Ranges:
    """Return the ranges of all code points outside these ranges, which are in order."""
    starts = (0, *(high + 1 for _, high in ranges))
    ends = (*(low - 1 for low, _ in ranges), _LAST)
    return [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]


def _shared(one: tuple[int, int], low: int, high: int) -> int:
    return max(0, min(one[1], high) - max(one[0], low) + 1)
