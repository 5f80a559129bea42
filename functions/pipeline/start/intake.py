"""Begin the ingestion of a landed object, or of a change that was requested.

Each step first reads what is there, so it can be repeated: after a crash at any point, or for an
event that comes twice, a repetition ends as an undisturbed run does.
"""

from collections.abc import Iterator
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.adapters.s3 import contracts_of
from functions.model.ingestion import NOT_STARTED, Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.pipeline.outcome.finish import finish
from functions.pipeline.outcome.restorations import require_not_undone
from functions.pipeline.start.submit import submit
from functions.telemetry import logger
from lakegate.errors import LakegateError
from lakegate.job.change import LONGEST_NAME, LONGEST_REASON, MOST_CHARACTERS, Change, retraction
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.text import few


def take_in(adapters: Adapters, landed: LandedObject) -> Ingestion:
    """Begin the ingestion of a landed object, or continue it where an earlier try stopped."""
    timed = replace(landed, landed_at=landed.landed_at or adapters.now())
    first = Ingestion(id=ingestion_id(landed), landed=timed).step("landed", timed.landed_at)
    with logger.append_context_keys(ingestion=first.id, key=landed.key):
        known = adapters.ledger.together([first.id])
        return finish(adapters, _continued(adapters, *known) if known else _begun(adapters, first))


def _continued(adapters: Adapters, known: Ingestion) -> Ingestion:
    if _needs_job(known):
        return submit(adapters, known)
    logger.info("known already", extra={"state": known.state})
    return known


def _begun(adapters: Adapters, first: Ingestion) -> Ingestion:
    """Submit a new ingestion; the first write of that begins it, as each write is paid for."""
    try:
        return submit(adapters, first)
    except Exception:
        adapters.ledger.begin(first)  # lists are to show it, whatever failed
        raise


def _needs_job(ingestion: Ingestion) -> bool:
    """Return whether the first job run of the attempt is still to be started."""
    return ingestion.state in NOT_STARTED and not ingestion.is_reaudit


def arrivals(adapters: Adapters) -> Iterator[LandedObject]:
    """Yield every landed object, and every change's text."""
    yield from adapters.landing.landed()
    yield from adapters.lake.changes()


def retract(adapters: Adapters, published: Ingestion, by: str, reason: str) -> Ingestion:
    """Request that main's table loses the rows of a published file; return the request's ingestion.

    It is one change for each file: repeated, it continues the first request. Raise LakegateError as
    `require_retractable` and `ask`, and NAME_NEEDED.
    """
    require_name(by, reason)
    require_retractable(published)
    return ask(adapters, retraction(published.tables[0], published.id, by, reason))


def require_retractable(published: Ingestion) -> None:
    """Raise LakegateError unless its rows can be removed: it is a published file of one table."""
    if published.state is not State.PUBLISHED:
        message = f"only a published file can be retracted: {status_text(published)}"
        raise LakegateError("NOT_PUBLISHED", message)
    if published.change or len(published.tables) != 1:
        what = "a change" if published.change else "a batch of several tables"
        message = f"{what} cannot be retracted: undo it by `lakegate restore`, table by table"
        raise LakegateError("NOT_ONE_FILE", message)
    if published.terms.is_ordered:
        message = (
            f"the rows of {published.name} replaced others ({published.terms.write_mode}),"
            f" which are not in the table any more: commit {published.merge_hash} changed it, and"
            " main's commit before that still has them\ndrop a file with the right rows, or go"
            " back to that commit by `lakegate restore`"
        )
        raise LakegateError("ROWS_REPLACED", message)


def require_name(by: str, reason: str) -> None:
    """Raise LakegateError NAME_NEEDED without a name and a reason, TEXT_TOO_LONG with long ones."""
    if not by.strip() or not reason.strip():
        message = "give your name and a reason: main's log records both"
        raise LakegateError("NAME_NEEDED", message)
    _require_short(by, reason)


def _require_short(by: str, reason: str) -> None:
    for what, text, most in (("name", by, LONGEST_NAME), ("reason", reason, LONGEST_REASON)):
        if len(text.strip()) > most:
            message = f"the {what} has {len(text):,} characters, {most:,} at most are kept"
            raise LakegateError("TEXT_TOO_LONG", f"{message}\nGive a shorter one.")


def ask(adapters: Adapters, change: Change) -> Ingestion:
    """Put a change's text and begin its ingestion; a repeated request continues the first one.

    The sweep continues what a crash left. Raise LakegateError if it cannot be run, or was undone.
    """
    tables = sorted(contracts_of(adapters.lake, change.table))
    if change.table not in tables:
        known = few(tables)
        message = f"there is no contract for {change.table}; there are contracts for: {known}"
        raise LakegateError("NO_CONTRACT", message)
    if not change.statement.strip():
        raise LakegateError("NO_STATEMENT", "there is no statement: give a DELETE, UPDATE or MERGE")
    if change.only_token not in ("", change.token):
        message = (
            "this is no SQL: `lakegate retract` removes the rows of a file, `lakegate restore` "
            "gives a table the rows of an earlier commit, and `lakegate gate` those of a branch"
        )
        raise LakegateError("NOT_SQL", message)
    if len(change.statement) > MOST_CHARACTERS:
        message = (
            f"the statement has {len(change.statement):,} characters, {MOST_CHARACTERS:,} at most "
            "are kept: put its rows into a table, and MERGE from there"
        )
        raise LakegateError("STATEMENT_TOO_LONG", message)
    _require_short(change.by, change.message)
    require_not_undone(adapters, change)
    return take_in(adapters, adapters.lake.put_change(change))
