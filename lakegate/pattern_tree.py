"""A Java pattern as a tree."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lakegate.ecma_patterns import BOUNDARY, NO_BOUNDARY, java_tokens

BEGIN, END, NEVER = r"\A", r"\z", ""
_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d+)(?:(,)(\d+)?)?\})\??", re.ASCII)
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class One:
    """One character of a set in Java's notation; or BEGIN or END of the text; or NEVER."""

    of: str


@dataclass(frozen=True)
class All:
    """Parts in sequence; without parts, the empty text."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Either:
    """Alternatives."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Repeat:
    """A part, repeated `low` to `high` times; `high` may be unlimited."""

    part: "Tree"
    low: int
    high: int | None


Tree = One | All | Either | Repeat


def tree(pattern: str) -> Tree:
    """Return the tree of an ECMA-262 pattern. Raises PatternUnsupported, as `java_pattern` does.

    A lookahead is a path that is tried and ends, while the search goes on beside it.
    """
    return _alternatives(chain(java_tokens(pattern), (")",)))


def _alternatives(tokens: Iterator[str]) -> Tree:
    """Return the alternatives up to the bracket that closes the group."""
    found: list[list[Tree]] = [[]]
    for part in tokens:
        if part == ")":
            break
        if part == "|":
            found.append([])
        elif quantifier := _QUANTIFIER.fullmatch(part):
            found[-1].append(Repeat(found[-1].pop(), *_times(quantifier)))
        elif part not in (BOUNDARY, NO_BOUNDARY):
            found[-1].append(_part(part, tokens))
    return _of([All(tuple(parts)) for parts in found])


def _part(first: str, tokens: Iterator[str]) -> Tree:
    if first == "(?:":
        return _alternatives(tokens)
    if first in ("(?=", "(?!"):
        return Either((All((_alternatives(tokens), One(NEVER))), All(())))
    return One(first)


def _of(alternatives: Sequence[Tree]) -> Tree:
    return alternatives[0] if len(alternatives) == 1 else Either(tuple(alternatives))


def _times(quantifier: re.Match[str]) -> tuple[int, int | None]:
    if quantifier[1]:
        return _COUNTS[quantifier[1]]
    low = int(quantifier[2])
    return low, (int(quantifier[4]) if quantifier[4] else None if quantifier[3] else low)
