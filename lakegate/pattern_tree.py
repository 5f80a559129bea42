"""A pattern as a tree, from the parts that it has in Java."""

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
    """One character of a set, written as Java has it; or the text's BEGIN or END; or NEVER."""

    of: str


@dataclass(frozen=True)
class All:
    """Parts, one after the other; without any, the empty text."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Either:
    """Alternatives."""

    parts: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Repeat:
    """A part, `low` times at least and `high` times at most, which may be without end."""

    part: "Tree"
    low: int
    high: int | None


Tree = One | All | Either | Repeat


def tree(pattern: str) -> Tree:
    """The tree of an ECMA-262 pattern. Raises PatternUnsupported, as `java_pattern` does.

    A lookahead is a way that is tried and leads nowhere, beside which the search goes on.
    """
    return _alternatives(chain(java_tokens(pattern), (")",)))


def _alternatives(tokens: Iterator[str]) -> Tree:
    """What stands before the bracket that closes the group."""
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
