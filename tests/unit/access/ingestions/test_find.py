"""The ingestions that people ask for are found, in their order."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from access.ingestions.find import Wanted, newest, waiting
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState, state_words
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.unit.cli.cli_examples import ERRORED, LANDED, PUBLISHED, REJECTED

_NOW = "2026-03-09T12:00:00.000+00:00"
_ADA = Approval("Ada", "a refund", _NOW, ("total.range",))


def at(ingestion: Ingestion, day: int, **changes: object) -> Ingestion:
    """Return an ingestion that landed on a day of March 2026."""
    landed = replace(ingestion.landed, landed_at=f"2026-03-{day:02}T12:00:00.000+00:00")
    return replace(ingestion, id=f"{day:032}", landed=landed).but(**changes)


_EVERY = (
    at(PUBLISHED, 1),
    at(REJECTED, 2, decisions=Decisions(discarded=True)),
    at(REJECTED, 3, superseded_by="n" * 32),
    at(REJECTED, 4),
    at(ERRORED, 5),
    at(PUBLISHED, 6, decisions=Decisions(_ADA)),
    at(LANDED, 7),
)


@pytest.fixture
def ledger() -> Any:
    """Return a ledger with an ingestion a day."""
    made = FakeLedger(FakeClock().now)
    for each in _EVERY:
        made.begin(each)
    return made


def days(found: tuple[Ingestion, ...]) -> list[int]:
    """Return the days on which ingestions landed."""
    return [int(each.id) for each in found]


@pytest.mark.parametrize(
    ("wanted", "expected", "more"),
    [
        (Wanted(), [7, 6, 5, 4, 3, 2, 1], False),
        (Wanted(limit=0), [7, 6, 5, 4, 3, 2, 1], False),
        (Wanted(limit=2), [7, 6], True),
        (Wanted(limit=7), [7, 6, 5, 4, 3, 2, 1], False),
        (Wanted(since="2026-03-05T12:00:00.000+00:00"), [7, 6, 5], False),
        (Wanted(since="2026-03-05T12:00:00.000+00:00", limit=1), [7], True),
        (Wanted(table="shop.orders", limit=1), [6], True),
        (Wanted(table="shop.returns"), [], False),
        (Wanted(state=ShownState.PUBLISHED), [6, 1], False),
        (Wanted(state=ShownState.REJECTED), [4], False),
        (Wanted(state=ShownState.DISCARDED), [2], False),
        (Wanted(state=ShownState.SUPERSEDED), [3], False),
        (Wanted(state=ShownState.LANDED), [7], False),
        (Wanted(state=ShownState.REJECTED, since="2026-03-05"), [], False),
    ],
)
def test_the_newest_come_first(
    ledger: Any, wanted: Wanted, expected: list[int], *, more: bool
) -> None:
    """Ingestions are found by table, shown state and time, newest first, up to the limit."""
    found = newest(ledger, wanted, _NOW)
    assert (days(found.ingestions), found.more) == (expected, more)


@pytest.mark.parametrize("state", [ShownState.REJECTED, ShownState.ERRORED])
def test_failures_that_were_decided_are_not_read_for_those_that_were_not(
    ledger: Any, state: ShownState
) -> None:
    """They stay for ever, and there may be very many."""
    for number in range(10, 20):
        ledger.begin(at(REJECTED, number, state=State(state), decisions=Decisions(discarded=True)))
    ledger.read_by_id = 0
    assert len(newest(ledger, Wanted(state=state), _NOW).ingestions) == 1
    assert ledger.read_by_id == 1


class _ByDay(FakeLedger):
    """A ledger that knows how many days of its index were read."""

    days = 0

    def landed(self, since: str, until: str) -> Iterator[IngestionSummary]:
        """Yield what landed between two times, a query for each day of the index."""
        first, last = (datetime.fromisoformat(each) for each in (since, until))
        self.days += (last - first).days + 1
        return super().landed(since, until)


@pytest.mark.parametrize("limit", [0, 2, 50])
def test_a_time_long_ago_reads_the_ledger_and_not_each_day_since(limit: int) -> None:
    """All since the year 1 is found without a query for each of its days."""
    ledger: Any = _ByDay(FakeClock().now)
    for each in _EVERY:
        ledger.begin(each)
    wanted = Wanted(since="0001-01-01T00:00:00.000+00:00", limit=limit)
    found = newest(ledger, wanted, "2028-01-01T00:00:00.000+00:00")
    assert days(found.ingestions) == [7, 6, 5, 4, 3, 2, 1][: limit or None]
    assert ledger.days < 400


def test_what_landed_long_ago_is_found(ledger: Any) -> None:
    """An ingestion older than the index that is read first is listed all the same."""
    assert days(newest(ledger, Wanted(), "2028-01-01T00:00:00.000+00:00").ingestions)[-1] == 1


@pytest.mark.parametrize(
    ("wanted", "expected", "more"),
    [
        (Wanted(), [4, 5], False),
        (Wanted(limit=1), [4], True),
        (Wanted(table="shop.orders"), [4], False),
        (Wanted(state=ShownState.ERRORED), [5], False),
        (Wanted(since="2026-03-05"), [5], False),
    ],
)
def test_the_oldest_that_waits_for_a_decision_comes_first(
    ledger: Any, wanted: Wanted, expected: list[int], *, more: bool
) -> None:
    """What failed and is neither discarded nor superseded waits, oldest first."""
    found = waiting(ledger, wanted)
    assert (days(found.ingestions), found.more) == (expected, more)


def test_what_was_decided_meanwhile_does_not_wait(ledger: Any) -> None:
    """An ingestion that the index still shows as open is left out once somebody decided."""
    ledger.save(ledger.get(_EVERY[3].id).but(decisions=Decisions(discarded=True)))
    ledger.behind[_EVERY[3].id] = 1
    assert days(waiting(ledger, Wanted()).ingestions) == [5]


@pytest.mark.parametrize(
    ("ingestion", "words"),
    [
        (_EVERY[0], "published"),
        (_EVERY[1], "discarded"),
        (_EVERY[2], "superseded"),
        (_EVERY[3], "rejected"),
        (_EVERY[5], "published (approved by Ada)"),
        (at(REJECTED, 8, decisions=Decisions(_ADA)), "rejected"),
        (at(ERRORED, 8, decisions=Decisions(discarded=True), superseded_by="n" * 32), "discarded"),
    ],
)
def test_a_state_is_said_as_people_mean_it(ingestion: Ingestion, words: str) -> None:
    """A settled failure is discarded or superseded, and an approval has its name; in lists, too."""
    summary = IngestionSummary.from_json(IngestionSummary.of(ingestion).to_json())
    assert state_words(ingestion) == state_words(summary) == words
    assert {state.value for state in State} < {state.value for state in ShownState}
