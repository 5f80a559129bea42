"""Find ingestions in the ledger for people: the newest ones, and those that wait for a decision."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING

from functions.adapters.all import Adapters
from functions.model.ingestion import ALERTED, IN_FLIGHT, Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState
from lakegate import times

if TYPE_CHECKING:  # boto3 takes a second to import, which help does not need
    from functions.adapters.ledger.ledger import Ledger

# The index has a query for each day: further back it costs more than the whole ledger.
_LATELY, _AT_MOST = timedelta(days=30), timedelta(days=366)
_OPEN = tuple(ShownState(state.value) for state in ALERTED)
_INDEXED = {state.value: (state,) for state in IN_FLIGHT} | dict.fromkeys(
    (ShownState.DISCARDED.value, ShownState.SUPERSEDED.value), ALERTED
)


@dataclass(frozen=True)
class Wanted:
    """The ingestions to find: of a `table`, in a `state`, landed `since` (ISO 8601, UTC).

    At most `limit` are read, 0 for all.
    """

    table: str = ""
    state: ShownState | None = None
    since: str = ""
    limit: int = 50

    def includes(self, each: Ingestion | IngestionSummary, landed_at: str) -> bool:
        """Return whether an ingestion that landed then is one of them."""
        return (
            (not self.table or self.table in each.tables)
            and (self.state is None or ShownState.of(each) is self.state)
            and landed_at >= self.since
        )


@dataclass(frozen=True)
class Matches:
    """Ingestions in the wanted order; there are `more` than the limit allows."""

    ingestions: tuple[Ingestion, ...]
    more: bool = False


def find(adapters: Adapters, wanted: Wanted, *, is_waiting: bool) -> Matches:
    """Return the wanted ingestions: those that wait for a decision, or else any, newest first."""
    if is_waiting:
        return waiting(adapters.ledger, wanted)
    return newest(adapters.ledger, wanted, adapters.now())


def newest(ledger: "Ledger", wanted: Wanted, now: str) -> Matches:
    """Return the wanted ingestions, newest landing first.

    The index by day is read first, and the whole ledger only if it does not fill the limit.
    """
    if wanted.state in _OPEN:
        return still_waiting(ledger, reversed([*ledger.open_failures()]), wanted)
    if wanted.state and wanted.state.value in _INDEXED:
        states = _INDEXED[wanted.state.value]
        return _sorted(chain.from_iterable(map(ledger.in_state, states)), wanted)
    if wanted.since or wanted.limit:
        moment = datetime.fromisoformat(now)
        since = max(wanted.since, times.text(moment - (_AT_MOST if wanted.since else _LATELY)))
        until = times.text(moment + timedelta(hours=1))  # clocks differ
        ids = _first(ledger.landed(since, until), wanted)
        if since == wanted.since or 0 < wanted.limit < len(ids):
            return _cut(ledger.together(ids), wanted.limit)
    return _sorted(_in_any_state(ledger, wanted.state), wanted)


def waiting(ledger: "Ledger", wanted: Wanted) -> Matches:
    """Return the wanted ingestions that failed and wait for a decision, oldest landing first."""
    return still_waiting(ledger, ledger.open_failures(), wanted)


def still_waiting(ledger: "Ledger", briefs: Iterable[IngestionSummary], wanted: Wanted) -> Matches:
    """Return the wanted ones of `Ledger.open_failures` that nobody has decided about since."""
    matches = _cut(ledger.together(_first(briefs, wanted)), wanted.limit)
    return Matches(tuple(each for each in matches.ingestions if each.is_open), matches.more)


def _first(briefs: Iterable[IngestionSummary], wanted: Wanted) -> list[str]:
    """Return the ids of the first that are wanted, one more than the limit if there are more."""
    ids = (brief.id for brief in briefs if wanted.includes(brief, brief.landed_at))
    return list(islice(ids, wanted.limit + 1 if wanted.limit else None))


def _in_any_state(ledger: "Ledger", state: ShownState | None) -> Iterator[Ingestion]:
    return ledger.in_state(State(state.value)) if state else ledger.all()


def _sorted(every: Iterable[Ingestion], wanted: Wanted) -> Matches:
    ingestions = [each for each in every if wanted.includes(each, each.landed.landed_at)]
    ingestions.sort(key=lambda each: each.landed.landed_at, reverse=True)
    return _cut(ingestions, wanted.limit)


def _cut(ingestions: Sequence[Ingestion], limit: int) -> Matches:
    return Matches(tuple(ingestions[:limit] if limit else ingestions), 0 < limit < len(ingestions))
