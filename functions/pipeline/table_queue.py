"""Whose turn it is among the ingestions of a table.

Where checks look beyond the file, each one that main takes has all the others audited again. So
they go one after the other: first who is being audited again, then who landed first. A change that
main refused goes first as well, and every file of its table waits for it: it has to run as a whole
once more, and a stream of files would refuse it for ever.

Nobody waits for one that has not moved for longer than a job may take, so what is stuck holds up
no other for ever. Turns only save work: whoever acts out of turn, because an index lagged behind,
breaks nothing.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from operator import attrgetter

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from lakegate import times

_MOST = 100  # that the ledger reads at once


def must_wait(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Whether it is another one's turn."""
    since = _patience(adapters)
    listed = [each for table in ingestion.tables for each in in_line(adapters, table)]
    line = [each for each in listed if each.has_priority or ingestion.checks_whole_table]
    return any(
        _place(each) < _place(ingestion) and each.saved_at > since
        for each in line
        if each.id != ingestion.id and not _waits_itself(each, ingestion)
    )


def next_in_line(adapters: Adapters, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Who is to be published now that `done` is in nobody's way; None where that is nobody."""
    if done.is_queued or not (done.checks_whole_table or (done.change and done.is_retried)):
        return None
    lines = (in_line(adapters, table, _may_wait) for table in done.tables)
    firsts = (next((each for each in line if each.id not in tried), None) for line in lines)
    return next((each for each in firsts if each and each.state is State.AUDITED), None)


def in_line(
    adapters: Adapters, table: str, belongs: Callable[[Ingestion], bool] = attrgetter("is_queued")
) -> list[Ingestion]:
    """The ingestions of a table that are in line, or the first hundred of them, in their order."""
    listed = [*adapters.ledger.going_first(table), *adapters.ledger.waiting(table)]
    first = sorted(filter(belongs, listed), key=_place)[:_MOST]
    now = adapters.ledger.together([each.id for each in first])  # the index that listed them lags
    return sorted(filter(belongs, now), key=_place)


def _may_wait(ingestion: Ingestion) -> bool:
    return ingestion.is_queued or ingestion.state is State.AUDITED


def _waits_itself(older: Ingestion, ingestion: Ingestion) -> bool:
    """Return whether it is an older version that waits for how this one ends (see stale.py)."""
    same = (older.landed.bucket, older.landed.key) == (
        ingestion.landed.bucket,
        ingestion.landed.key,
    )
    return same and older.is_decided


def _place(ingestion: Ingestion) -> tuple[bool, str, str]:
    return not ingestion.has_priority, ingestion.landed.landed_at, ingestion.id


def _patience(adapters: Adapters) -> str:
    settings = adapters.settings
    longest = timedelta(minutes=settings.job_timeout_minutes, seconds=2 * settings.grace_seconds)
    return times.text(datetime.fromisoformat(adapters.now()) - longest)
