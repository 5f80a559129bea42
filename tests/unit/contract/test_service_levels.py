"""How often files are expected, by a contract's `slaProperties`."""

from datetime import timedelta

import pytest

from lakegate.contract.model import parse
from lakegate.contract.reading.service_levels import Expected
from tests.unit.contract.contract_texts import HEAD, contract_text, problems_of

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


def text(*levels: str) -> str:
    """Return a contract with these service levels."""
    return contract_text(head=f"{HEAD}slaProperties: [{', '.join(levels)}]\n")


@pytest.mark.parametrize(
    ("levels", "expected", "words"),
    [
        (["{property: frequency, value: 1, unit: d}"], Expected(_DAY), "every 1 day"),
        (["{property: frequency, value: 2}"], Expected(2 * _DAY), "every 2 days"),
        (
            ["{property: latency, value: 90, unit: m}", "{property: frequency, value: 1, unit: w}"],
            Expected(7 * _DAY, 1.5 * _HOUR),
            "every 1 week, 90 minutes late",
        ),
        (
            ["{property: frequency, value: 0.5, unit: hours, element: shop.orders.id}"],
            Expected(0.5 * _HOUR),
            "every 30 minutes",
        ),
        (["{property: frequency, value: 1, unit: yr}"], Expected(365 * _DAY), "every 365 days"),
        (["{property: freshness, value: 2, unit: d}"], Expected(2 * _DAY), "every 2 days"),
        (
            [
                "{property: frequency, value: 1, unit: d}",
                "{property: latency, value: 9, unit: h}",
                "{property: freshness, value: 26, unit: h}",
            ],
            Expected(_DAY, 2 * _HOUR),
            "every 1 day, 2 hours late",
        ),
        (
            ["{property: frequency, value: 2, unit: d}", "{property: freshness, value: 1}"],
            Expected(_DAY),
            "every 1 day",
        ),
    ],
)
def test_a_frequency_is_expected(levels: list[str], expected: Expected, words: str) -> None:
    """A file is expected at its frequency, late by the latency at most, and within freshness."""
    found = parse(text(*levels), "test").expected
    assert found == expected
    assert found.wording == words


@pytest.mark.parametrize("own", ["orders", "shop.orders.id", "id", "shop.lines, shop.orders"])
def test_a_level_of_another_table_does_not_count(own: str) -> None:
    """Of several tables in one file each has the levels whose element is it, or a part of it."""
    levels = [
        f"{{property: frequency, value: 1, element: '{own}'}}",
        "{property: frequency, value: 7, element: shop.orders_old}",
        "{property: freshness, value: 1, unit: h, element: lines.id}",
    ]
    assert parse(text(*levels), "test").expected == Expected(_DAY)
    assert parse(text(*levels[1:]), "test").expected is None


@pytest.mark.parametrize(
    "levels",
    [
        [],
        ["{property: latency, value: 4, unit: h}"],
        ["{property: latency, value: 500ms}"],
        ["{property: retention, value: for ever}", "{property: timeOfAvailability, value: 9:00}"],
    ],
)
def test_other_service_levels_expect_no_file(levels: list[str]) -> None:
    """Without a frequency or freshness no file is expected, whatever else is promised."""
    assert parse(text(*levels), "test").expected is None


@pytest.mark.parametrize(
    ("level", "reason"),
    [
        ("{property: frequency, value: 0}", "above 0"),
        ("{property: frequency, value: .nan}", "above 0"),
        ("{property: frequency, value: daily}", "above 0"),
        ("{property: frequency, value: true}", "above 0"),
        ("{property: frequency, unit: d}", "above 0"),
        ("{property: frequency, value: 1, unit: fortnight}", "'fortnight' is no unit of time"),
        ("{property: freshness, value: 11, unit: y}", "longer than ten years"),
        ("{property: frequency, value: .inf, unit: y}", "longer than ten years"),
    ],
)
def test_no_duration_is_refused(level: str, reason: str) -> None:
    """A frequency or freshness that is no duration is a problem with its place."""
    (problem,) = problems_of(text(level))
    assert problem.line == HEAD.count("\n") + 1
    assert reason in problem.reason
