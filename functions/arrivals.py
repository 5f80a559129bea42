"""All that an ingestion can be of: files that landed, and changes that people asked for."""

from collections.abc import Iterator

from functions.ingestion import Ingestion
from functions.intake import take_in
from functions.world import World
from lakegate.change import MOST_CHARACTERS, Change
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject


def arrivals(world: World) -> Iterator[LandedObject]:
    """Every landed object, and every change's text."""
    yield from world.landing.landed()
    yield from world.lake.changes()


def ask(world: World, change: Change) -> Ingestion:
    """Put a change's text and begin its ingestion; asked for before, it is found and carried on.

    The sweep finishes what a crash leaves once the text is put. Raises LakegateError where it can
    be told at once that it would come to nothing.
    """
    tables = sorted(stored.contract.table for stored in world.lake.contracts())
    if change.table not in tables:
        known = ", ".join(tables) or "none"
        message = f"there is no contract for {change.table}; there are contracts for: {known}"
        raise LakegateError("NO_CONTRACT", message)
    if not change.statement.strip():
        raise LakegateError("NO_STATEMENT", "there is no statement: give a DELETE, UPDATE or MERGE")
    if len(change.statement) > MOST_CHARACTERS:
        message = f"the statement has {len(change.statement):,} characters, {MOST_CHARACTERS:,} at"
        todo = "most are kept: put its rows into a table, and MERGE from there"
        raise LakegateError("STATEMENT_TOO_LONG", f"{message} {todo}")
    return take_in(world, world.lake.put_change(change))
