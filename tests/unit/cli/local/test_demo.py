from dataclasses import replace
from datetime import date

import pytest

from access.ingestions.follow import TrackedIngestion
from cli.local.demo import next_days, refuse_surprises
from lakegate.errors import LakegateError
from tests.unit.cli.cli_examples import ERRORED, PUBLISHED, REJECTED

_PREFIX = "nyc/flights/"
_GOOD, _BAD = [TrackedIngestion(PUBLISHED)] * 4, TrackedIngestion(REJECTED)


def test_each_demo_goes_on_where_the_last_one_stopped() -> None:
    """The first demo uses the first five days of 2013, a later one the days that follow."""
    first = next_days(_PREFIX, set())
    second = next_days(_PREFIX, {*first, "shop/orders/a.csv"})

    assert list(first.values()) == [date(2013, 1, n) for n in range(1, 6)]
    assert next(iter(first)) == "nyc/flights/2013-01-01.parquet"
    assert list(second.values()) == [date(2013, 1, n) for n in range(6, 11)]


def test_a_year_comes_to_its_end() -> None:
    """With too few days left, the error says how to start over."""
    landed: set[str] = set()
    for _ in range(365 // 5):
        landed |= next_days(_PREFIX, landed).keys()

    with pytest.raises(LakegateError, match="make clean"):
        next_days(_PREFIX, landed)


_LOST = TrackedIngestion(replace(REJECTED, reason=None, state=ERRORED.state))


def test_a_demo_that_ends_well_is_silent() -> None:
    """A demo with good days published and the broken one rejected succeeds."""
    refuse_surprises(_GOOD, _BAD, written=4, gained=4)


@pytest.mark.parametrize(
    ("good", "bad", "gained", "said"),
    [
        ([*_GOOD[1:], TrackedIngestion(ERRORED)], _BAD, 4, "but is errored: no contract claims"),
        (_GOOD, TrackedIngestion(PUBLISHED), 4, "should be rejected, but is published"),
        (_GOOD, _BAD, 3, "4 rows were published, but main has 3 more"),
        (_GOOD, _LOST, 4, "rejected, but"),
    ],
)
def test_a_demo_that_goes_wrong_says_so(
    good: list[TrackedIngestion], bad: TrackedIngestion, gained: int, said: str
) -> None:
    """An unexpected state or a missing row fails the demo."""
    with pytest.raises(LakegateError, match="DEMO_FAILED") as caught:
        refuse_surprises(good, bad, written=4, gained=gained)

    assert said in caught.value.message
