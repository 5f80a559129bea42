r"""Have RE2, the engine of Arrow and duckdb, search for contracts' patterns, in linear time.

RE2 reads Java's notation, as far as `java_pattern` uses it, but for lookahead. Some of the rest
means something else there: `means_the_same` names what surely does not.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakegate.ecma_patterns import BOUNDARY, NO_BOUNDARY, java_tokens

_RE2 = {BOUNDARY: r"\b", NO_BOUNDARY: r"\B"}
_ASSERTIONS = {r"\A", r"\z", BOUNDARY}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9,]+\})\??")
# Java may begin a search within a surrogate pair, so a set must have all characters beyond
# Unicode's first plane or none: no range may reach the surrogates (D800 to DFFF), or that far.
_BELOW = r"(?:[A-Za-z0-9]|\\[^A-Za-z0-9]|\\x\{(?:[0-9a-c]?[0-9a-f]{1,3}|d[0-7][0-9a-f]{2})\})"
_NOT_SPACE = re.escape(java_tokens(r"\S")[0][1:-1])
_ABOVE = r"\\x\{[ef][0-9a-f]{3}\}"
_MEMBER = rf"(?:{_BELOW}(?:-{_BELOW})?|{_ABOVE}(?:-{_ABOVE})?|\\[dDwW]|{_NOT_SPACE})"
_SET = re.compile(rf"\[\^?{_MEMBER}+\]|{_MEMBER}")


@lru_cache(maxsize=4096)
def re2_pattern(pattern: str) -> str:
    """Return the RE2 pattern for an ECMA-262 one; "" if RE2 cannot search for it.

    RE2 has no lookahead, and limits the size of a pattern. Raises PatternUnsupported, as
    `java_pattern` does.
    """
    found = "".join(_RE2.get(token, token) for token in java_tokens(pattern))
    try:
        pc.match_substring_regex(pa.array([""]), found)  # compiles it
    except pa.ArrowInvalid:
        return ""
    return found


@lru_cache(maxsize=4096)
def means_the_same(pattern: str) -> bool:
    """Return if RE2 surely finds the pattern in the same texts as Java.

    Not so with lookahead, `\\B`, general categories, of which RE2 has other tables, characters
    beyond Unicode's first plane, and an assertion in a group that is repeated.
    """
    tokens = java_tokens(pattern)
    known = {*_ASSERTIONS, "(?:", ")", "|"}
    plain = all(
        token in known or _QUANTIFIER.fullmatch(token) or _SET.fullmatch(token) for token in tokens
    )
    return plain and _ASSERTIONS.isdisjoint(_repeated(tokens)) and re2_pattern(pattern) != ""


def _repeated(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the tokens of the groups that are repeated."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token == "(?:":
            opened.append(at)
        elif token == ")":
            begin = opened.pop()
            if _QUANTIFIER.fullmatch("".join(tokens[at + 1 : at + 2])):
                yield from tokens[begin:at]
