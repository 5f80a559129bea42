"""Queue the ingestions of a table that cannot be published at once.

With checks of the whole table, each ingestion that main takes makes all others audit again. So
they are published one after the other: first those in a re-audit, then by the time they landed.
Those that a shared run takes are not even started before (landing_order.py).
A change that main refused has priority as well, and every file of its table waits for it: the
whole change has to run again, and a stream of files would refuse it for ever. A restoration has it
from the start, since it is for one state of the table only.

An ingestion that has not changed for longer than a job may take is not waited for, so a stuck
one blocks no other for ever. The queue only saves work: an ingestion published out of turn,
because an index lagged behind, breaks nothing.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from itertools import islice

from functions.adapters.all import Adapters
from functions.model import queueing
from functions.model.ingestion import Ingestion, State, landing
from functions.pipeline.start.landing_order import (
    NEVER,
    comes_after,
    comes_between,
    is_overtaken,
    members_of,
    next_in_order,
    place,
)
from lakegate import times

_MOST = 100  # that the ledger reads at once


def must_wait(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether another ingestion has to be published first."""
    since = _patience(adapters)
    members = members_of(adapters, ingestion)
    until = max(each.landed.landed_at for each in members)
    listed = [i for table in ingestion.tables for i in adapters.ledger.waiting(table, until)]
    if _waits_for_its_turn(adapters, ingestion, listed):
        return True
    if comes_after(adapters, members, listed, since):
        return True
    waiting = _as_saved(adapters, listed, queueing.is_queued)
    whole = ingestion.terms.checks_whole_table
    queue = [each for each in waiting if whole or queueing.has_priority(each)]
    own = [ingestion, *(each for each in listed if each.id in ingestion.group)]
    start = min(map(_place, own))  # they are published together
    return not ingestion.turn and any(
        _place(each) < start and each.saved_at > since
        for each in queue
        if each.id != ingestion.id and not any(_waits_for(each, one) for one in own)
    )


def keeps_order(adapters: Adapters, members: Sequence[Ingestion]) -> bool:
    """Return whether no other file comes between those of a group, in flight or on main.

    It matters where files remove rows of others. Where they are compared only, a file whose event
    came late is compared with the later ones, too.
    """
    if len(members) == 1 or not members[0].terms.is_ordered:
        return True
    is_parted = comes_between(adapters, members, _patience(adapters))
    return not (is_parted or is_overtaken(adapters, members))


def next_in_queue(adapters: Adapters, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Return the next ingestion to publish after `done`, or to start, if any."""
    if done.terms.is_ordered:
        return _startable(next_in_order(adapters, done, tried)) if done.ended else None
    waits_with_others = done.terms.checks_whole_table or done.is_compared
    had_priority = done.change and (done.is_retried or queueing.restores(done))
    if not (waits_with_others or had_priority):
        return None
    ready = None if queueing.is_queued(done) else _audited(adapters, done, tried)
    return ready or _startable(next_in_order(adapters, done, tried))


def _audited(adapters: Adapters, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Return the first ingestion in the queue of one of its tables that waits to be published."""
    queues = (queued(adapters, table, _may_wait) for table in done.tables)
    firsts = (next((each for each in queue if each.id not in tried), None) for queue in queues)
    return next((each for each in firsts if each and each.state is State.AUDITED), None)


def _startable(ingestion: Ingestion | None) -> Ingestion | None:
    ready = ingestion and (queueing.is_held(ingestion) or ingestion.state is State.AUDITED)
    return ingestion if ready else None


def queued(
    adapters: Adapters, table: str, belongs: Callable[[Ingestion], bool] = queueing.is_queued
) -> list[Ingestion]:
    """Return the first hundred ingestions in the table's queue, in their order."""
    put_first = adapters.ledger.waiting(table, NEVER)
    in_order = filter(belongs, adapters.ledger.waiting_in_order(table))
    first = {each.id: each for each in (*put_first, *islice(in_order, _MOST))}
    return _as_saved(adapters, list(first.values()), belongs)


def _as_saved(
    adapters: Adapters, listed: Sequence[Ingestion], belongs: Callable[[Ingestion], bool]
) -> list[Ingestion]:
    first = sorted(filter(belongs, listed), key=_place)[:_MOST]
    now = adapters.ledger.together([each.id for each in first])  # the index that listed them lags
    return sorted(filter(belongs, now), key=_place)


def _may_wait(ingestion: Ingestion) -> bool:
    return queueing.is_queued(ingestion) or ingestion.state is State.AUDITED


def _waits_for(older: Ingestion, ingestion: Ingestion) -> bool:
    """Return whether it is an older version that waits for this one to end (see replace.py)."""
    return older.landed.uri == ingestion.landed.uri and older.is_decided


def _place(ingestion: Ingestion) -> tuple[bool, str, str]:
    return not queueing.has_priority(ingestion), *landing(ingestion)


def _waits_for_its_turn(
    adapters: Adapters, ingestion: Ingestion, listed: Sequence[Ingestion]
) -> bool:
    """Return whether main lost it, and earlier ones of its table are not published again yet.

    They are published again in their first order, as far as it matters: a change comes between the
    files before and after it, and the versions of a key come one after the other. Other ingestions
    of the table come after them. They themselves wait for nothing else, so no two ingestions wait
    for each other.
    """
    earlier = [each.id for each in listed if _takes_turn_before(each, ingestion)]
    return any(_takes_turn_before(each, ingestion) for each in adapters.ledger.read(earlier))


def _takes_turn_before(one: Ingestion, other: Ingestion) -> bool:
    ordered = one.terms.is_ordered or other.terms.is_ordered
    matters = one.change or other.change or ordered or one.landed.uri == other.landed.uri
    return bool(one.turn and matters) and place(one) < place(other)


def _patience(adapters: Adapters) -> str:
    settings = adapters.settings
    longest = timedelta(minutes=settings.job_timeout_minutes, seconds=2 * settings.grace_seconds)
    return times.earlier(adapters.now(), longest)
