"""Places in the queue of a table: tell which ingestions wait there, and which go first."""

from functions.model.ingestion import NOT_STARTED, RETRIED, Ingestion, State


def is_held(one: Ingestion) -> bool:
    """Return whether it is to be started once no earlier file of its table is in flight."""
    return one.takes_turns and one.state is State.LANDED and not one.is_shared


def awaits_run(one: Ingestion) -> bool:
    """Return whether it is known where its rows go, and no job run of its own has begun."""
    return one.state in NOT_STARTED and bool(one.tables)


def is_queued(one: Ingestion) -> bool:
    """Return whether other ingestions of its table may have to wait (see table_queue.py)."""
    is_compared = one.is_compared and not one.ended
    is_audited = one.terms.checks_whole_table and one.state is State.AUDITED
    return has_priority(one) or is_compared or is_audited


def has_priority(one: Ingestion) -> bool:
    """Return whether other ingestions of its table wait for it.

    Main refused it; or it restores the table, which must be as it was when a person looked at it.
    """
    runs_whole = one.change is not None or (bool(one.parts) and one.terms.checks_whole_table)
    comes_first = one.is_retried or restores(one)
    return one.is_reaudit or (runs_whole and comes_first and one.state in RETRIED)


def restores(one: Ingestion) -> bool:
    """Return whether it gives its table the rows of an earlier commit."""
    return one.change is not None and bool(one.change.restores)


def is_waiting(one: Ingestion) -> bool:
    """Return whether it may have a place in its tables' queues.

    The first of a group stands there for all, unless each has a place of its own.
    """
    has_turn = one.takes_turns and not one.ended
    is_first = not one.group or one.group[0] == one.id
    stands = one.state is State.AUDITED and (is_first or one.terms.checks_whole_table)
    return stands or has_priority(one) or bool(one.turn) or has_turn
