"""Patterns in RE2's notation find what ECMA-262 says, or are declined."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakegate.ecma_patterns import PATTERNS
from spark_jobs.audit.arrow.patterns import re2_pattern
from tests.unit.contract.pattern_examples import QUICK


def finds(pattern: str, text: str) -> bool:
    """Return if Arrow finds the translated pattern in a text."""
    translated = re2_pattern(pattern)
    assert translated is not None
    return bool(pc.match_substring_regex(pa.array([text]), translated)[0].as_py())


@pytest.mark.parametrize(
    ("pattern", "found", "lost"),
    [
        ("a.c", ["abc", "xa\x85cx", "a😀c"], ["a\nc", "a\rc", "a\u2028c", "a\u2029c", "ac"]),
        ("^a$", ["a"], ["a\n", "ba", ""]),
        (r"\d", ["0", "x9"], ["\u0663", ""]),
        (r"^\w$", ["_", "Z"], ["é", "\u017f", "\u212a"]),
        (r"^\s$", ["\u00a0", "\ufeff", "\u2028", "\v"], ["\u200b", "\x1c", "\x85"]),
        (r"^\S$", ["\u200b", "😀", "\x85"], ["\u3000"]),
        (r"^[^\Wa-c]$", ["d", "_"], ["a", "-"]),
        (r"^[\w.-]+$", ["a-b.c", "_"], ["a b"]),
        (r"^[a\]^-]$", ["]", "^", "-"], ["\\", "b"]),
        (r"^[^a]$", ["\n", "😀", "\x00"], ["a", "bb"]),
        ("^(a|b?c){2}$", ["aa", "abc", "cc"], ["a", "ab"]),
        ("^a{2,3}?$", ["aa", "aaa"], ["a", "aaaa"]),
        (r"^\\_\.$", ["\\_."], ["\\_a"]),
    ],
)
def test_a_pattern_finds_what_the_standard_says(
    pattern: str, found: list[str], lost: list[str]
) -> None:
    """Sets, ends, groups and repetitions mean in RE2 what they mean in ECMA-262."""
    assert [text for text in (*found, *lost) if finds(pattern, text)] == found


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "a(?!b)",
        r"\bno\b",
        r"\p{L}",
        r"[\P{Lu}]",
        "😀",
        "[^😀]",
        r"[\u0000-\uffff]",
        r"^[^\ud83d\ude00]$",
        "(a?)*",
        "(^)*",
        "(a|){2}",
        "a{1001}",
        "((a{100}){100}){100}",
        "(a",
    ],
)
def test_what_engines_may_see_differently_is_declined(pattern: str) -> None:
    """Look-around, categories, halves of surrogate pairs and repeated nothing are declined."""
    assert re2_pattern(pattern) is None


def test_common_patterns_are_translated() -> None:
    """All formats, and most patterns that people write, need no Spark."""
    assert [name for name, pattern in PATTERNS.items() if re2_pattern(pattern) is None] == []
    assert sum(re2_pattern(pattern) is None for pattern in QUICK) < 0.3 * len(QUICK)
