"""Owners hear once that the next file of a table is overdue, and once that it came."""

import re
from datetime import timedelta

import pytest

from functions.model.notes.freshness import Freshness
from functions.sweep import sweep
from tests.fakes.deployment import ORDERS, TABLE
from tests.fakes.job import rejected
from tests.fakes.metrics import metrics_of
from tests.fakes.scenario import KEY, Scenario

_HOUR = 3600
_DAILY = "[{property: frequency, value: 1, unit: d}, {property: latency, value: 2, unit: h}]"


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment whose table gets a file a day, two hours late at most."""
    made = Scenario()
    text = ORDERS.replace("[{property: frequency, value: 10, unit: y}]", _DAILY)
    assert text != ORDERS
    made.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())
    return made


def titles(deployment: Scenario) -> list[str]:
    """Return the alerts about missing files so far."""
    return [alert.text for _, alert in deployment.alerts.posted if alert.cause == "OVERDUE"]


def look(deployment: Scenario, hours: float) -> list[str]:
    """Let hours pass, sweep, and return the alerts about missing files."""
    deployment.clock.pass_(hours * _HOUR)
    sweep(deployment.adapters)
    return titles(deployment)


def test_an_overdue_file_is_told_once_and_its_arrival_once(deployment: Scenario) -> None:
    """A day and two hours after the last file the owner hears of it, later that one came."""
    look(deployment, 0)
    deployment.run(KEY)
    deployment.settle()
    assert look(deployment, 25) == []
    (first,) = look(deployment, 2)
    assert first.startswith(f"Overdue: {TABLE}, no file since ")
    assert look(deployment, 30) == [first]
    deployment.run("shop/orders/b.parquet")
    deployment.settle()
    assert look(deployment, 0) == [first, f"Came: {TABLE} got a file"]
    assert re.search(r"on main since \d+ Mar 2026, ", str(deployment.alerts.posted[-1][1].blocks))
    assert len(look(deployment, 25)) == 2
    assert len(look(deployment, 2)) == 3


def test_late_tables_are_counted_at_each_sweep(
    deployment: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metric `Late` says how many tables are overdue now, also when none is."""

    def late(hours: float) -> list[float]:
        found = metrics_of(lambda: look(deployment, hours), capsys)
        return [many for name, many, _ in found if name == "Late"]

    look(deployment, 0)
    assert late(25) == [0]
    assert late(2) == late(2) == [1]


def test_a_rejected_file_is_none(deployment: Scenario) -> None:
    """A file whose audit failed leaves its table overdue: it has no rows on main."""
    look(deployment, 25)
    deployment.run(KEY, script=rejected)
    assert len(look(deployment, 27)) == 1


def test_a_new_table_has_as_much_time_for_its_first_file(deployment: Scenario) -> None:
    """The time of a table without files begins when the sweep first sees its contract.

    No last file is claimed then.
    """
    assert look(deployment, 0) == []
    assert look(deployment, 25) == []
    (told,) = look(deployment, 2)
    assert "last file" not in told


def test_a_crash_before_the_save_repeats_the_alert(deployment: Scenario) -> None:
    """If the ledger cannot be reached the next sweep tells owners, under the same name."""
    look(deployment, 0)
    deployment.fail("ledger.save_freshness")
    look(deployment, 27)
    assert len(look(deployment, 0)) == 1


def test_a_table_whose_contract_expects_nothing_more_is_forgotten() -> None:
    """Without an expectation a table is neither overdue nor said to have its file."""
    before = Freshness("2026-03-01", {"a.b": "2026-02-01"}, ("a.b",))
    after = before.after({}, {}, "2026-03-02T00:00:00.000+00:00")
    assert (after.arrived, after.overdue, after.changed(before)) == ({}, (), [])


def test_more_time_is_no_file() -> None:
    """A table that is overdue no more because its contract allows more time got no file."""
    before = Freshness("2026-03-01", {"a.b": "2026-02-01T00:00:00.000Z"}, ("a.b",))
    after = before.after({}, {"a.b": timedelta(days=99)}, "2026-03-02T00:00:00.000+00:00")
    assert (after.overdue, after.changed(before)) == ((), [])


def test_an_older_commit_moves_no_arrival_back() -> None:
    """Of main's log and what is known, the later time counts."""
    now = "2026-03-02T00:00:00.000Z"
    before = Freshness(now, {"a.b": "2026-03-01T12:00:00.000Z"})
    after = before.after({"a.b": "2026-03-01T11:00:00.000Z"}, {"a.b": timedelta(days=1)}, now)
    assert after.arrived == before.arrived
    assert Freshness.from_json(after.to_json(), 0) == after


def test_no_table_stays_overdue_whose_contract_expects_no_file(deployment: Scenario) -> None:
    """Once the last contract that expected files is out of force, none is late any more."""
    look(deployment, 0)
    look(deployment, 27)
    assert deployment.ledger.freshness().overdue == (TABLE,)
    for contract in deployment.lake.contracts(None):
        deployment.lake.delete_objects([contract.key])
    assert len(look(deployment, 1)) == 1
    assert deployment.ledger.freshness().overdue == ()
