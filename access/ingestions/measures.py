"""Measures of a deployment for monitoring, read from the ledger's indexes alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.notes.freshness import Freshness
from functions.model.shown_state import ShownState
from lakegate import times

Labels = tuple[tuple[str, str], ...]
LATELY = timedelta(days=1)  # indexed by day: what landed earlier would cost more with each day


@dataclass(frozen=True)
class Measure:
    """A measure and its values by labels, such as (("table", "shop.orders"),).

    Files without a contract have the table "". Times are seconds since 1970, in UTC.
    """

    name: str
    about: str
    values: Mapping[Labels, float]


def measures(ledger: Ledger, now: str) -> list[Measure]:
    """Return a deployment's measures at a time (ISO 8601 in UTC)."""
    moment = datetime.fromisoformat(now)
    since, until = times.text(moment - LATELY), times.text(moment + timedelta(hours=1))
    landed = [each for each in ledger.landed(since, until) if not each.is_member]
    in_flight = [each for each in ledger.unfinished("9999") if each.state in IN_FLIGHT]
    return [
        *_landed_measures(landed),
        *_open_measures([*ledger.open_failures()]),
        *_in_flight_measures(in_flight),
        *_table_measures(ledger.freshness()),
    ]


def _landed_measures(landed: Iterable[IngestionSummary]) -> Iterator[Measure]:
    files: Counter[Labels] = Counter()
    rows: Counter[Labels] = Counter()
    for each in landed:
        for table in each.tables or ("",):
            files[("table", table), ("state", ShownState.of(each).value)] += 1
            if each.state is State.PUBLISHED:
                rows[(("table", table),)] += each.rows_for(table)
    yield Measure("files", "Files that landed in the last 24 hours, by their state now.", files)
    yield Measure("rows_published", "Rows of those that are published.", rows)


def _open_measures(failures: Iterable[IngestionSummary]) -> Iterator[Measure]:
    """Yield measures of what waits for a decision; the oldest landing comes first."""
    counted: Counter[Labels] = Counter(
        (("table", table), ("state", each.state.value))
        for each in failures
        for table in each.tables or ("",)
    )
    yield Measure("waiting_for_decision", "Failed files that wait for a decision.", counted)
    landed = [each.landed_at for each in failures]
    about = "When the oldest of them landed."
    yield Measure("oldest_waiting_for_decision_timestamp_seconds", about, _oldest(landed))


def _in_flight_measures(in_flight: Iterable[Ingestion]) -> Iterator[Measure]:
    tables = (table for each in in_flight for table in each.tables or ("",))
    counted: Counter[Labels] = Counter((("table", table),) for table in tables)
    yield Measure("in_flight", "Files without a final state.", counted)
    landed = [each.landed.landed_at for each in in_flight]
    about = "When the oldest of them landed."
    yield Measure("oldest_in_flight_timestamp_seconds", about, _oldest(landed))


def _table_measures(freshness: Freshness) -> Iterator[Measure]:
    """Yield measures of the tables whose contract says how often files must come."""
    late: dict[Labels, float] = {}
    last: dict[Labels, float] = {}
    for table, at in freshness.arrived.items():
        late[(("table", table),)] = table in freshness.overdue
        last[(("table", table),)] = _seconds(at)
    yield Measure("table_late", "1 if the table's next file is overdue.", late)
    about = "When the table last got a file, or was first seen without one."
    yield Measure("table_last_file_timestamp_seconds", about, last)


def _oldest(landed: Iterable[str]) -> dict[Labels, float]:
    first = min(landed, default="")
    return {(): _seconds(first)} if first else {}


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
