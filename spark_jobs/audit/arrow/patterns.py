r"""Have RE2, the engine of Arrow and duckdb, search for contracts' patterns, in linear time.

RE2 reads the few notations of Java that `java_pattern` writes, but for lookahead.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from lakegate.ecma_patterns import BOUNDARY, NO_BOUNDARY, java_tokens

_RE2 = {BOUNDARY: r"\b", NO_BOUNDARY: r"\B"}
_CATEGORY = re.compile(r"\\[pP]\{")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9,]+\})\??")


@lru_cache(maxsize=4096)
def re2_pattern(pattern: str) -> str:
    """Return the RE2 pattern for an ECMA-262 one; "" if RE2 cannot search for it.

    RE2 has no lookahead, and limits the size of a pattern. Raises PatternUnsupported, as
    `java_pattern` does.
    """
    found = "".join(_RE2.get(part, part) for part in java_tokens(pattern))
    try:
        _finds(found, "")  # compiles it
    except ValueError:  # Arrow's error is one, too
        return ""
    return found


@lru_cache(maxsize=4096)
def means_the_same(pattern: str) -> bool:
    """Return if RE2 finds an ECMA-262 pattern in the same texts as Java.

    Not so with lookahead, which it lacks, with general categories, for which it has other tables,
    and maybe with a repeated group that matches nothing: Java ends a loop there, whatever its
    minimum. Raises PatternUnsupported, as `java_pattern` does.
    """
    parts = java_tokens(pattern)
    return (
        re2_pattern(pattern) != ""
        and not any(map(_CATEGORY.search, parts))
        and not any(_finds(group, "") for group in _repeated_groups(parts))
    )


def _repeated_groups(parts: Sequence[str]) -> Iterator[str]:
    """Yield the groups that are repeated, without `\\b` and `\\B`, as one may hold elsewhere."""
    opened: list[int] = []
    for at, (part, next_) in enumerate(pairwise((*parts, ""))):
        if part == "(?:":
            opened.append(at)
        elif part == ")":
            group = parts[opened.pop() : at + 1]
            if _QUANTIFIER.fullmatch(next_):
                yield "".join(each for each in group if each not in _RE2)


def _finds(re2: str, text: str) -> bool:
    import pyarrow as pa  # the help of commands does without it
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([text]), re2)[0].as_py())
