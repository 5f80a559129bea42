"""Patterns that could keep a job busy for ever are refused before they are in force."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.check_sql import finder
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
    """Repetitions that match the same, inside or after each other, are refused with the reason."""
    with pytest.raises(PatternUnsupported, match="can take very long"):
        refuse_slow(pattern)


@pytest.mark.parametrize("pattern", [*QUICK, *PATTERNS.values()])
def test_a_pattern_as_people_write_them_is_taken(pattern: str) -> None:
    """The common patterns for common things are no trouble."""
    refuse_slow(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_the_text_that_is_shown_does_not_have_the_pattern(pattern: str) -> None:
    """Only a text without the pattern keeps a search busy to the end, and it need not be long."""
    text = slow_text(pattern)
    assert text is not None
    assert len(text) <= LONGEST + 3
    assert not finder(pattern)(text)


def test_repetitions_that_are_nested_too_deep_to_be_judged_are_refused() -> None:
    """What cannot be judged is not taken."""
    with pytest.raises(PatternUnsupported, match="too large"):
        refuse_slow("((((((((((a{9}b){9}c){9}d){9}e){9}f){9}g){9}h){9}i){9}j){9}k){9}")


def test_groups_without_end_are_refused() -> None:
    """A pattern of brackets alone does not exhaust the stack."""
    with pytest.raises(PatternUnsupported, match="nested deeper"):
        refuse_slow("(" * 10_000 + "a" + ")" * 10_000)


def test_a_contract_with_such_a_pattern_is_refused_at_its_line() -> None:
    """Whoever parses contracts refuses the pattern: the check, the push and the job."""
    column = '- name: c\n  logicalType: string\n  logicalTypeOptions: {pattern: "^(a+)+$"}'
    (problem,) = problems_of(contract_text(column))
    field = "schema[0].properties[1].logicalTypeOptions.pattern"
    assert (problem.line, problem.field) == (11, field)
    assert "can take very long" in problem.reason


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(PARTS), max_size=10).map("".join))
def test_every_pattern_is_judged_or_refused(pattern: str) -> None:
    """Whatever is written, there is an answer, and a text that is shown does not have it."""
    with suppress(PatternUnsupported):
        text = slow_text(pattern)
        assert text is None or len(text) <= LONGEST + 3
