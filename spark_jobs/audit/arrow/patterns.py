r"""Have RE2, the engine of Arrow and duckdb, search for contracts' patterns, in linear time.

RE2 reads Java's notation, as far as `java_pattern` uses it, but for lookahead. Some of the rest
means something else there: `means_the_same` names what surely does not.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from lakegate.ecma_patterns import BOUNDARY, java_tokens

# Not \B, which RE2 also finds between the bytes of a character: it refuses what stands for it.
_RE2 = {BOUNDARY: r"\b"}
_KNOWN = {"(?:", ")", "|", r"\A", r"\z", BOUNDARY}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9,]+\})\??")
# Java may begin a search within a surrogate pair, so a set must have all characters beyond
# Unicode's first plane or none: no range may reach the surrogates (D800 to DFFF), or that far.
_BELOW = r"(?:[A-Za-z0-9]|\\[^A-Za-z0-9]|\\x\{(?:[0-9a-c]?[0-9a-f]{1,3}|d[0-7][0-9a-f]{2})\})"
_NOT_SPACE = re.escape(java_tokens(r"\S")[0][1:-1])
_ABOVE = r"\\x\{[ef][0-9a-f]{3}\}"
_MEMBER = rf"(?:{_BELOW}(?:-{_BELOW})?|{_ABOVE}(?:-{_ABOVE})?|\\[dDwWnr]|{_NOT_SPACE})"
_PART = re.compile(rf"\[\^?{_MEMBER}+\]|{_MEMBER}|{_QUANTIFIER.pattern}")


@lru_cache(maxsize=4096)
def re2_pattern(pattern: str) -> str:
    """Return the RE2 pattern for an ECMA-262 one; "" if RE2 cannot search for it.

    RE2 has no lookahead, and limits the size of a pattern. Raises PatternUnsupported, as
    `java_pattern` does.
    """
    re2 = "".join(_RE2.get(part, part) for part in java_tokens(pattern))
    try:
        _fits_nothing(re2)  # compiles it
    except ValueError:  # Arrow's error is one, too
        return ""
    return re2


@lru_cache(maxsize=4096)
def means_the_same(pattern: str) -> bool:
    """Return if RE2 surely finds an ECMA-262 pattern in the same texts as Java.

    Not so with lookahead, `\\B`, general categories, of which RE2 has other tables, characters
    beyond Unicode's first plane, and a repeated group that may be empty. Raises PatternUnsupported,
    as `java_pattern` does.
    """
    parts = java_tokens(pattern)
    return (
        re2_pattern(pattern) != ""
        and all(part in _KNOWN or _PART.fullmatch(part) for part in parts)
        and not any(_fits_nothing(group) for group in _repeated_groups(parts))
    )


def _repeated_groups(parts: Sequence[str]) -> Iterator[str]:
    """Yield the groups that are repeated, without boundaries, which never hold in an empty text."""
    opened: list[int] = []
    for at, (part, next_) in enumerate(pairwise((*parts, ""))):
        if part == "(?:":
            opened.append(at)
        elif part == ")":
            group = parts[opened.pop() : at + 1]
            if _QUANTIFIER.fullmatch(next_):
                yield "".join(each for each in group if each != BOUNDARY)


def _fits_nothing(re2: str) -> bool:
    """Return whether a pattern is found in the empty text. Raises ValueError if it is none."""
    import pyarrow as pa  # the help of commands does without it
    import pyarrow.compute as pc

    # Not by pa.array, which imports pandas where it is installed.
    empty = pa.StringArray.from_buffers(1, pa.py_buffer(bytes(8)), pa.py_buffer(b""))
    return bool(pc.match_substring_regex(empty, re2)[0].as_py())
