"""Compute the costs of what the schedule starts, sweep and upkeep, for `benchmarks.scale`."""

from collections.abc import Iterator
from math import ceil

from benchmarks.parameters import HOURS, PRICES, Aws, Settings, Upkeep
from functions.operations.recovery.forgotten import PAGES

SWEEPS = ("versions kept", "a sweep", "everything is found within", "a month of sweeps")
UPKEEP = ("commits in `KeepDays` (30)", "the daily function takes", "a month of it")
VERSIONS_A_PAGE = 1000  # at most (API reference, "ListObjectVersions")
_AWS, _SETTINGS, _UPKEEP = Aws.known(), Settings(), Upkeep()
_LOOKUP = 0.5  # read units of an item, as BatchGetItem reads it for the sweep
_LONGEST = 900  # seconds of a Lambda
_DAYS = HOURS / 24
_MILLION = 1_000_000


def pages_listed(kept: int) -> int:
    """Return how many pages of the landing bucket a sweep lists."""
    return min(max(1, ceil(kept / VERSIONS_A_PAGE)), PAGES)


def sweeps_a_round(kept: int) -> int:
    """Return how many sweeps list the whole landing bucket once."""
    return ceil(max(1, kept) / VERSIONS_A_PAGE / PAGES)


def sweeps() -> Iterator[tuple[str, ...]]:
    """Yield the cost of the search for forgotten objects, by the versions kept."""
    for kept in (10, 10_000, 1_000_000, 10_000_000):
        pages, weeks = pages_listed(kept), _DAYS / 7
        seconds = pages * (_AWS.listing + 10 * _AWS.lookup)  # once a week, with all look-ups
        found = (_SETTINGS.grace + sweeps_a_round(kept) * _SETTINGS.sweep) / 60
        a_month = HOURS * 3600 / _SETTINGS.sweep
        thorough = weeks * kept * _LOOKUP * PRICES.dynamodb_read_m
        dollars = (a_month * pages * PRICES.s3_put_m + thorough) / _MILLION
        yield f"{kept:,}", f"{seconds:,.1f} s at most", _minutes(found), f"${dollars:,.2f}"


def _minutes(found: float) -> str:
    return f"{found:.0f} minutes" if found < 180 else f"{found / 60:.0f} hours"


def upkeep() -> Iterator[tuple[str, ...]]:
    """Yield the cost of the daily function, by the commits that it reads."""
    for commits in (1_000, 10_000, 100_000):
        seconds = commits * _UPKEEP.seconds
        a_day = commits * _UPKEEP.reads * PRICES.s3_get_m / _MILLION
        a_day += seconds * _UPKEEP.gigabytes * PRICES.lambda_gb_second
        takes = f"{seconds:,.0f} s" if seconds < _LONGEST else f"{seconds:,.0f} s: **too long**"
        yield f"{commits:,}", takes, f"${a_day * _DAYS:,.2f}"
