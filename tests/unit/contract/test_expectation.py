"""Expectations: their evaluation and their wording."""

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakegate.contract.expectations import Expectation, Operator, Unit

COUNTS = st.integers(0, 10**6)
OPPOSITES = (
    (Operator.EQUAL, Operator.NOT_EQUAL),
    (Operator.MORE, Operator.AT_MOST),
    (Operator.LESS, Operator.AT_LEAST),
    (Operator.BETWEEN, Operator.NOT_BETWEEN),
)


def expect(
    operator: Operator, low: str, high: str | None = None, unit: Unit = Unit.ROWS
) -> Expectation:
    return Expectation(operator, Decimal(low), Decimal(high) if high else None, unit)


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
@settings(deadline=None)
@given(value=COUNTS, low=COUNTS, width=st.integers(1, 100), more=COUNTS, unit=st.sampled_from(Unit))
def test_each_operator_says_the_contrary_of_its_opposite(
    one: Operator, other: Operator, value: int, low: int, width: int, more: int, unit: Unit
) -> None:
    """Exactly one of an operator and its opposite, with the same thresholds, is met."""
    first = Expectation(one, Decimal(low), Decimal(low + width), unit)
    second = Expectation(other, Decimal(low), Decimal(low + width), unit)
    assert first.met(value, value + more) != second.met(value, value + more)


@settings(deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_measure_meets_itself(value: float) -> None:
    """A float is equal to its own digits as a threshold, however many there are."""
    same = {op: expect(op, repr(value), repr(value)).met(value, 3) for op in Operator}
    met = {Operator.EQUAL, Operator.AT_LEAST, Operator.AT_MOST, Operator.BETWEEN}
    assert {op for op, is_met in same.items() if is_met} == met


@settings(deadline=None)
@given(value=COUNTS, low=COUNTS, width=st.integers(1, 100))
def test_between_is_at_least_and_at_most(value: int, low: int, width: int) -> None:
    """Between includes both bounds and all values between them."""
    between = expect(Operator.BETWEEN, str(low), str(low + width))
    at_least = expect(Operator.AT_LEAST, str(low))
    at_most = expect(Operator.AT_MOST, str(low + width))
    assert between.met(value, value) == (at_least.met(value, value) and at_most.met(value, value))


@settings(deadline=None)
@given(value=COUNTS, threshold=COUNTS)
def test_rows_are_compared_as_numbers(value: int, threshold: int) -> None:
    """For rows, each operator compares as its name says, for any total."""
    met = {op: expect(op, str(threshold)).met(value, 7) for op in Operator if "tween" not in op}
    assert met == {
        Operator.EQUAL: value == threshold,
        Operator.NOT_EQUAL: value != threshold,
        Operator.MORE: value > threshold,
        Operator.AT_LEAST: value >= threshold,
        Operator.LESS: value < threshold,
        Operator.AT_MOST: value <= threshold,
    }


@settings(deadline=None)
@given(rows=st.integers(1, 10**12), share=st.integers(0, 1000))
def test_percent_is_exact(rows: int, share: int) -> None:
    """A share exactly at its threshold meets at-most and fails less-than, for any total."""
    assume(rows * share % 1000 == 0)
    value = rows * share // 1000
    threshold = Decimal(share) / 10
    assert Expectation(Operator.AT_MOST, threshold, None, Unit.PERCENT).met(value, rows)
    assert not Expectation(Operator.LESS, threshold, None, Unit.PERCENT).met(value, rows)
    assert not Expectation(Operator.AT_MOST, threshold, None, Unit.PERCENT).met(value + 1, rows)


@settings(deadline=None)
@given(digits=st.integers(-(10**15) + 1, 10**15 - 1), scale=st.integers(0, 15))
def test_a_float_is_the_number_that_it_is_written_as(digits: int, scale: int) -> None:
    """A float is compared by its decimal notation, regardless of its last binary digit."""
    threshold = Decimal(digits).scaleb(-scale)
    value = float(threshold)
    near = math.nextafter(value, math.inf)
    for each in (value, near if f"{near:.15g}" == f"{value:.15g}" else value):
        assert Expectation(Operator.EQUAL, threshold, None, Unit.NUMBER).met(each, 1)
        assert not Expectation(Operator.MORE, threshold, None, Unit.NUMBER).met(each, 1)
        assert not Expectation(Operator.LESS, threshold, None, Unit.NUMBER).met(each, 1)


def test_no_row_of_no_rows_is_zero_percent() -> None:
    """Any share of an empty file is zero percent."""
    assert expect(Operator.EQUAL, "0", unit=Unit.PERCENT).met(0, 0)
    assert not expect(Operator.MORE, "0", unit=Unit.PERCENT).met(0, 0)


@pytest.mark.parametrize(
    ("expectation", "wording"),
    [
        (expect(Operator.EQUAL, "0"), "0 rows"),
        (expect(Operator.AT_LEAST, "1"), "at least 1 row"),
        (expect(Operator.BETWEEN, "10", "2000"), "between 10 and 2,000 rows"),
        (expect(Operator.AT_MOST, "0.50", unit=Unit.PERCENT), "at most 0.5 % of rows"),
        (expect(Operator.LESS, "10"), "fewer than 10 rows"),
        (expect(Operator.LESS, "10", unit=Unit.PERCENT), "less than 10 % of rows"),
        (expect(Operator.MORE, "1000"), "more than 1,000 rows"),
        (expect(Operator.NOT_EQUAL, "0"), "anything but 0 rows"),
        (expect(Operator.NOT_BETWEEN, "5", "9"), "fewer than 5 or more than 9 rows"),
    ],
)
def test_an_expectation_is_worded_for_people(expectation: Expectation, wording: str) -> None:
    """The wording of an expectation names operator, number and unit."""
    assert expectation.wording == wording


@pytest.mark.parametrize(
    ("unit", "value", "rows", "words"),
    [
        (Unit.ROWS, 1, 842, "1 row"),
        (Unit.ROWS, 12345, 99999, "12,345 rows"),
        (Unit.PERCENT, 12, 842, "1.43 % of rows (12 of 842)"),
        (Unit.PERCENT, 842, 842, "100 % of rows (842 of 842)"),
        (Unit.PERCENT, 0, 0, "0 % of rows (0 of 0)"),
        (Unit.PERCENT, 1, 3000000, "0.0000333 % of rows (1 of 3,000,000)"),
    ],
)
def test_a_value_is_worded_in_the_expectations_unit(
    unit: Unit, value: int, rows: int, words: str
) -> None:
    """The measured value is worded in the unit of the expectation."""
    assert Expectation(Operator.EQUAL, Decimal(0), None, unit).found(value, rows) == words
