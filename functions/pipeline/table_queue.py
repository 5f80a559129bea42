"""Queue the ingestions of a table that cannot be published at once.

With checks of the whole table, each ingestion that main takes makes all others audit again. So they
are published one after the other: first those in a re-audit, then by the time they landed. A change
that main refused has priority as well, and every file of its table waits for it: the whole change
has to run again, and a stream of files would refuse it for ever.

An ingestion that has not changed for longer than a job may take is not waited for, so a stuck one
blocks no other for ever. The queue only saves work: an ingestion published out of turn, because an
index lagged behind, breaks nothing.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from operator import attrgetter

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from lakegate import times

_MOST = 100  # that the ledger reads at once


def must_wait(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether another ingestion has to be published first."""
    since = _patience(adapters)
    listed = [each for table in ingestion.tables for each in queued(adapters, table)]
    queue = [each for each in listed if each.has_priority or ingestion.checks_whole_table]
    return any(
        _place(each) < _place(ingestion) and each.saved_at > since
        for each in queue
        if each.id != ingestion.id and not _waits_for(each, ingestion)
    )


def next_in_queue(adapters: Adapters, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Return the next ingestion to publish after `done`, if any."""
    if done.is_queued or not (done.checks_whole_table or (done.change and done.is_retried)):
        return None
    queues = (queued(adapters, table, _may_wait) for table in done.tables)
    firsts = (next((each for each in queue if each.id not in tried), None) for queue in queues)
    return next((each for each in firsts if each and each.state is State.AUDITED), None)


def queued(
    adapters: Adapters, table: str, belongs: Callable[[Ingestion], bool] = attrgetter("is_queued")
) -> list[Ingestion]:
    """Return the first hundred ingestions in the table's queue, in their order."""
    listed = [*adapters.ledger.going_first(table), *adapters.ledger.waiting(table)]
    first = sorted(filter(belongs, listed), key=_place)[:_MOST]
    now = adapters.ledger.together([each.id for each in first])  # the index that listed them lags
    return sorted(filter(belongs, now), key=_place)


def _may_wait(ingestion: Ingestion) -> bool:
    return ingestion.is_queued or ingestion.state is State.AUDITED


def _waits_for(older: Ingestion, ingestion: Ingestion) -> bool:
    """Return whether it is an older version that waits for this one to end (see replace.py)."""
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
