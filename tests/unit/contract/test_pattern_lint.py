"""The refusal of patterns that could occupy a job without end."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.tables.patterns import finder
from lakegate.ecma_patterns import PATTERNS, PatternUnsupported
from lakegate.pattern_lint import LONGEST, refuse_slow, slow_text
from tests.unit.contract.contract_texts import contract_text, problems_of
from tests.unit.contract.pattern_examples import QUICK, SLOW_ELSEWHERE, SLOW_IN_JAVA

SLOW = [*(pattern for pattern, *_ in SLOW_IN_JAVA), *SLOW_ELSEWHERE]
PARTS = [
    "a",
    "ab",
    "[ab]",
    ".",
    "\\d",
    "(",
    "(?:",
    "(?=",
    ")",
    "|",
    "*",
    "+",
    "?",
    "{2}",
    "{1,3}",
    "{2,}",
    "$",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_can_take_very_long_is_refused(pattern: str) -> None:
    """Nested or adjacent repetitions that match the same text are refused with the reason."""
    with pytest.raises(PatternUnsupported, match="can take very long"):
        refuse_slow(pattern)


@pytest.mark.parametrize("pattern", [*QUICK, *PATTERNS.values()])
def test_a_pattern_as_people_write_them_is_taken(pattern: str) -> None:
    """Common patterns are valid."""
    refuse_slow(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_the_text_that_is_shown_does_not_have_the_pattern(pattern: str) -> None:
    """The slow example lacks the pattern, so that the search runs to its end, and it is short."""
    text = slow_text(pattern)
    assert text is not None
    assert len(text) <= LONGEST + 3
    assert not finder(pattern)(text)


def test_repetitions_that_are_nested_too_deep_to_be_judged_are_refused() -> None:
    """A pattern with repetitions too deep to analyse is refused."""
    with pytest.raises(PatternUnsupported, match="too large"):
        refuse_slow("[ab]c" * 100_000)
    with pytest.raises(PatternUnsupported, match="too large"):
        refuse_slow("((((((((((a{9}b){9}c){9}d){9}e){9}f){9}g){9}h){9}i){9}j){9}k){9}")


def test_groups_without_end_are_refused() -> None:
    """A pattern of nothing but brackets does not exhaust the stack."""
    with pytest.raises(PatternUnsupported, match="nested deeper"):
        refuse_slow("(" * 10_000 + "a" + ")" * 10_000)


def test_a_contract_with_such_a_pattern_is_refused_at_its_line() -> None:
    """The parser refuses such a pattern at its line, and so do the check, the push and the job."""
    column = '- name: c\n  logicalType: string\n  logicalTypeOptions: {pattern: "^(a+)+$"}'
    (problem,) = problems_of(contract_text(column))
    field = "schema[0].properties[1].logicalTypeOptions.pattern"
    assert (problem.line, problem.field) == (11, field)
    assert "can take very long" in problem.reason


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(PARTS), max_size=10).map("".join))
def test_every_pattern_is_judged_or_refused(pattern: str) -> None:
    """Every pattern is accepted or refused, and the slow example lacks the pattern."""
    with suppress(PatternUnsupported):
        text = slow_text(pattern)
        assert text is None or len(text) <= LONGEST + 3
