"""Deviations of a measure from published runs, and the stored baselines."""

import itertools
import random
from dataclasses import replace
from math import inf

import pytest

from lakegate.audit.drift import FEWEST, Baselines, baseline, comparable, deviation, digest
from lakegate.audit.report import AuditReport, Baseline, Status
from lakegate.contract.checks import Check, Drift, Metric
from lakegate.contract.expectations import Expectation, Operator, Unit
from lakegate.contract.rules import Rule
from lakegate.errors import LakegateError, Permanent
from tests.fakes.examples import PASSED, REPORT

AT_MOST_4 = Expectation(Operator.AT_MOST, 4, None, Unit.NUMBER)  # type: ignore[arg-type]


def drift(of: Metric = Metric.ROWS, columns: tuple[str, ...] = ()) -> Check:
    """Return a check of drift."""
    return Check("d", Metric.DRIFT, columns, Drift(of, Rule()), AT_MOST_4)


def run(number: int, value: float, status: Status = Status.PASS, rule: str = "r") -> AuditReport:
    """Return the report of a run that measured a value."""
    check = replace(PASSED, id="d", status=status, baseline=Baseline(rule, value, 0))
    at = f"2026-03-01T12:{number:02}:00.000+00:00"
    return replace(REPORT, ingestion=f"{number:032x}", started_at=at, checks=(check,))


def published(*reports: AuditReport) -> Baselines:
    """Return the baselines after these runs were published."""
    known = Baselines("shop.orders")
    for report in reports:
        known = known.adding(report)
    return known


def off(check: Check, before: list[float], value: float, rows: int = 1000) -> float:
    """Return the deviation of a value from earlier values."""
    runs = [run(n, each, rule=digest(check)) for n, each in enumerate(before)]
    return deviation(check, baseline(check, value, published(*runs)), rows)


@pytest.mark.parametrize(
    ("before", "value", "expected"),
    [
        ([100, 102, 98, 101, 99, 103, 97], 100, 0),
        ([100, 110, 90, 105, 95, 115, 85], 130, 30 / (1.4826 * 10)),
        ([1000] * 7, 1040, 4),  # 1 % of the median
        ([10] * 7, 14, 4),  # one row
        ([0] * 7, 3, 3),
    ],
)
def test_rows_are_measured_in_robust_deviations(
    before: list[float], value: float, expected: float
) -> None:
    """A deviation is the distance from the median in units of 1.4826 times the MAD.

    The unit is at least 1 % of the median and at least one row.
    """
    assert off(drift(), before, value) == pytest.approx(expected)


def test_one_strange_run_before_hides_nothing() -> None:
    """One outlier in the baseline does not hide a deviation, as it would in a mean."""
    assert off(drift(), [100, 101, 99, 100, 102, 98, 100, 100_000], 5_000) > 1000


def test_numbers_have_no_least_unit_of_their_own() -> None:
    """Any change of a constant number is a deviation, and an unchanged number has none."""
    check = drift(Metric.MEAN, ("price",))
    assert off(check, [0.0] * 7, 0.1) == inf
    assert off(check, [0.0] * 7, 0.0) == 0


def test_counts_of_rows_are_compared_as_shares() -> None:
    """Counts of rows are compared as shares of all rows, with one row as the least unit."""
    check = drift(Metric.NULL, ("price",))
    assert comparable(check, 20, 2000) == comparable(check, 10, 1000) == 1
    assert off(check, [0.0] * 7, comparable(check, 3, 1000), rows=1000) == pytest.approx(3)


def test_the_last_thirty_runs_count() -> None:
    """The baseline is the newest 30 published runs, in any order of addition."""
    runs = [run(n, n) for n in range(40)]
    random.Random(1).shuffle(runs)  # noqa: S311 - no secret
    assert published(*runs).values("d", "r") == list(range(10, 40))


def test_order_and_repetition_change_nothing() -> None:
    """The order and the repetition of additions do not change the baselines."""
    runs = [run(n, n) for n in range(4)]
    expected = published(*runs)
    for order in itertools.permutations([*runs, runs[2]]):
        assert published(*order) == expected


def test_another_rule_begins_again() -> None:
    """A changed rule begins a new baseline; a changed threshold does not."""
    known = published(run(1, 5.0, rule="old"), run(2, 6.0, rule="new"))
    assert known.values("d", "new") == [6.0]
    check = drift(Metric.MEAN, ("price",))
    looser = replace(check, expect=replace(AT_MOST_4, threshold=9))  # type: ignore[arg-type]
    assert digest(looser) == digest(check)
    assert digest(replace(check, where="a > 1")) != digest(check)
    assert digest(replace(check, columns=("other",))) != digest(check)
    assert digest(drift(Metric.SUM, ("price",))) != digest(check)


def test_an_accepted_run_is_where_the_baseline_restarts() -> None:
    """An accepted run restarts the baseline, and earlier values stay out even if added late."""
    strange = run(8, 900.0, Status.FAIL)
    known = published(*(run(n, 100.0) for n in range(8)))
    accepted = known.accepting(strange, "Ann", "a new shop", "now")
    assert accepted.values("d", "r") == [900.0]
    assert accepted.adding(run(3, 100.0)).adding(run(9, 901.0)).values("d", "r") == [900.0, 901.0]
    found = accepted.accepted(strange.ingestion)
    assert found
    assert (found.by, found.reason, found.since) == ("Ann", "a new shop", strange.started_at)


def test_accepting_again_changes_nothing() -> None:
    """A repeated or outdated acceptance changes nothing and is reported as such."""
    known = published(run(1, 1.0))
    accepted = known.accepting(run(2, 9.0, Status.WARN), "Ann", "why", "then")
    assert accepted.accepting(run(2, 9.0, Status.WARN), "Bob", "too", "now") == accepted
    later = accepted.accepting(run(3, 99.0, Status.FAIL), "Ann", "why", "now")
    with pytest.raises(LakegateError, match="later run"):
        later.accepting(run(2, 9.0, Status.WARN), "Ann", "why", "now")


def test_only_the_unusual_is_accepted() -> None:
    """A run whose drift checks all passed has nothing to accept."""
    with pytest.raises(LakegateError, match="unusual"):
        published().accepting(run(2, 9.0), "Ann", "why", "now")


def test_the_document_is_read_as_it_was_written() -> None:
    """Values and acceptances are read back as written, and an invalid document is refused."""
    known = published(run(1, 1.5)).accepting(run(2, 9.0, Status.FAIL), "Ann", "why", "now")
    assert Baselines.from_json(known.to_json()) == known
    for text in ("", "[]", "{}", '{"schema": "baselines/2", "table": "t", "series": {}}'):
        with pytest.raises(Permanent, match="BAD_BASELINES"):
            Baselines.from_json(text)


def test_seven_runs_are_the_fewest() -> None:
    """The least number of runs is the one in the guide."""
    assert FEWEST == 7
