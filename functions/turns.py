"""Whose turn it is among the ingestions of a table whose checks look beyond the file.

Each one that main takes has all the others audited again. So they go one after the other: first
who is being audited again, then who landed first. Nobody waits for one that has not moved for
longer than a job may take, so what is stuck holds up no other for ever. Turns only save work:
whoever acts out of turn, because an index lagged behind, breaks nothing.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from functions.ingestion import Ingestion, State
from functions.world import World
from lakegate import times

_MOST = 100  # that the ledger reads at once


def must_wait(world: World, ingestion: Ingestion) -> bool:
    """Whether it is another one's turn."""
    since = _patience(world)
    return any(
        each.id != ingestion.id and _place(each) < _place(ingestion) and _moved(each) > since
        for each in in_line(world, ingestion.table)
    )


def next_in_line(world: World, done: Ingestion, tried: Collection[str]) -> Ingestion | None:
    """Who is to be published now that `done` is in nobody's way; None where that is nobody."""
    if not done.looks_beyond or done.is_in_line:
        return None
    first = next((each for each in in_line(world, done.table) if each.id not in tried), None)
    return first if first and first.state is State.AUDITED else None


def in_line(world: World, table: str) -> list[Ingestion]:
    """The ingestions of a table that are in line, or the first hundred of them, in their order."""
    listed = [*world.ledger.audited_again(table), *world.ledger.waiting(table)]
    first = sorted((each for each in listed if each.is_in_line), key=_place)[:_MOST]
    now = world.ledger.together([each.id for each in first])  # the index that listed them lags
    return sorted((each for each in now if each.is_in_line), key=_place)


def _place(ingestion: Ingestion) -> tuple[bool, str, str]:
    return not ingestion.is_again, ingestion.landed.landed_at, ingestion.id


def _moved(ingestion: Ingestion) -> str:
    return max(ingestion.times.values())


def _patience(world: World) -> str:
    settings = world.settings
    longest = timedelta(minutes=settings.job_timeout_minutes, seconds=2 * settings.grace_seconds)
    return times.text(datetime.fromisoformat(world.now()) - longest)
