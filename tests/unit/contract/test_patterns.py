"""The translation of ECMA-262 patterns to Java."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.tables.patterns import finder
from lakegate.ecma_patterns import PatternUnsupported, java_pattern

FOUND = [
    (r"^[0-9]{5}$", "12345"),
    (r"[0-9]{5}", "no. 12345, really"),
    (r"a|^b$", "bab"),
    (r"^.$", "é"),
    (r"^.$", "😀"),
    (r"^[^a]$", "\n"),
    (r"^\s$", "\u00a0"),
    (r"^[\s]$", "\ufeff"),
    (r"^\S$", "\u0085"),
    (r"^[^\S]$", "\u2028"),
    (r"^\v$", "\x0b"),
    (r"^[\w-.]+$", "a-b.c"),
    (r"^[a-\d]+$", "a-1"),
    (r"^[a-]+$", "a-"),
    (r"^[&&a]+$", "&a&"),
    (r"^[[a]+$", "[a["),
    (r"^[\b]$", "\b"),
    (r"^\x41\u0042$", "AB"),
    (r"^\ud83d\ude00$", "😀"),
    (r"\bno\b", "oh no!"),
    (r"\Bo\b", "no"),
    (r"^(?=.*\d)(?!x).{2,}?$", "a1"),
    (r"^(ab)+?$", "abab"),
    (r"^a]}$", "a]}"),
    (r"^#\ \#$", "# #"),
    (r"^\p{Lu}\P{Lu}[^\p{L}]$", "Éé1"),
    (r"^[\p{Sc}\P{S}]+$", "€a"),
    (r"^\\p$", "\\p"),
    (r"^\\z$", "\\z"),
]
NOT_FOUND = [
    (r"^[0-9]{5}$", "12345\n"),
    (r"^[0-9]{5}$", "12345\r\n"),
    (r"^[0-9]{5}$", "x\n12345"),
    (r"^\d$", "\u0663"),
    (r"^\w$", "é"),
    (r"^.$", "\u2028"),
    (r"^.$", "\r"),
    (r"^\v$", "\r"),
    (r"^[[a]]$", "a"),
    (r"^[a&&b]$", "ab"),
    (r"\bé", "é"),
    (r"\p{Lu}", "é"),
    (r"[^\p{N}]", "٣"),
]
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
    """Return whether Java would find the pattern, by Python's `re` with Java's notation."""
    return finder(pattern)(value)


@pytest.mark.parametrize(("pattern", "value"), FOUND)
def test_a_value_that_ecma_finds_is_found(pattern: str, value: str) -> None:
    """The translation finds every value that ECMA-262 with the flag u finds."""
    assert finds(pattern, value)


@pytest.mark.parametrize(("pattern", "value"), NOT_FOUND)
def test_a_value_that_ecma_does_not_find_is_not_found(pattern: str, value: str) -> None:
    """The translation does not match values that only Java would, such as a line end after `$`."""
    assert not finds(pattern, value)


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
        finds(pattern, "a")
