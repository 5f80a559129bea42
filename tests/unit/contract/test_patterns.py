"""The translation of ECMA-262 patterns to Java."""

import re
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakegate.ecma_patterns import PatternUnsupported, java_pattern
from spark_jobs.audit.arrow.patterns import re2_pattern

REFUSED = {
    "": "empty",
    "(?<=a)b": "look-behind",
    "(?<name>a)": "names",
    "(?i)abc": "flags",
    r"(a)\1": r"\\1 is not supported",
    r"\k<a>": r"\\k",
    r"\h": r"\\h",
    r"\u{1F600}": r"\\u",
    r"\p{Script=Latin}": r"\\p",
    r"\cJ": r"\\c",
    r"\01": r"\\0",
    "a++": "nothing before",
    "a**": "nothing before",
    "^*": "nothing before",
    "|*": "nothing before",
    "(*)": "nothing before",
    "(?=a)*": "nothing before",
    "a{2,1}": "larger number first",
    "a{,2}": "begins no repetition",
    "a{99999}": "begins no repetition",
    "{a}": "begins no repetition",
    "(a": "never closed",
    "a)": "closes no group",
    "[a": "never closed",
    "[a-": "never closed",
    "[]": "empty classes",
    "[^]": "empty classes",
    "[z-a]": "larger end first",
    "a\\": "ends in a single",
    r"\ud83d": "surrogate",
    r"\ude00\ude00": "surrogate",
}


def finds(pattern: str, value: str) -> bool:
    """Return whether RE2 finds the translated pattern."""
    return bool(pc.match_substring_regex(pa.array([value]), re2_pattern(pattern))[0].as_py())


@pytest.mark.parametrize(("pattern", "reason"), REFUSED.items())
def test_an_untranslatable_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    """A pattern that Java would read differently is refused, and the reason names the part."""
    with pytest.raises(PatternUnsupported, match=reason):
        java_pattern(pattern)


def test_general_categories_are_javas_own() -> None:
    """Unicode's general categories have the same notation in both."""
    assert java_pattern(r"^\p{Lu}[\P{L}]$") == r"\A[\p{Lu}][\P{L}]\z"


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1))
def test_an_escaped_text_finds_exactly_itself(text: str) -> None:
    """An escaped text matches exactly itself."""
    pattern = "^" + re.sub(r"([\^$\\.*+?()\[\]{}|/])", r"\\\1", text) + "$"
    assert finds(pattern, text)
    assert not finds(pattern, text + "\n")


@settings(deadline=None)
@given(st.text(st.sampled_from("ab1^$.|()[]{}*+?\\-,=:!<dDwWsSbBvpPxu&😀\n"), max_size=12))
def test_every_pattern_is_translated_or_refused(pattern: str) -> None:
    """Every pattern is translated into one that compiles, or refused with a reason."""
    with suppress(PatternUnsupported):
        assert re2_pattern(pattern) or any(part in pattern for part in ("(?=", "(?!", "\\B"))
