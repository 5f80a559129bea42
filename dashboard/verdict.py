"""The verdict on an ingestion: what became of main, why, and what to do. Pure."""

from collections.abc import Iterator

from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.shown_state import is_approved
from functions.notifications.failure_text import failure_advice, is_gone
from lakegate.text import count
from lakegate.times import moment

_UNCHANGED = "Main is unchanged"


def verdict(one: Ingestion) -> str:
    """Return the verdict in a few sentences."""
    return " ".join(_sentences(one))


def _sentences(one: Ingestion) -> Iterator[str]:
    if not one.ended:
        yield _in_flight(one)
    elif one.state is State.PUBLISHED:
        yield from _published(one)
    else:
        yield _unpublished(one)
        yield _rest(one)


def _in_flight(one: Ingestion) -> str:
    if one.turn:
        return "Main lost its rows, and they are being published again."
    if approval := one.decisions.approval:
        return f"{_UNCHANGED} yet: {approval.by} approved it, and it is being published."
    return f"{_UNCHANGED} until its checks pass."


def _published(one: Ingestion) -> Iterator[str]:
    when = moment(one.times.get("published", ""))
    if one.change:
        added, removed = count(one.audit.rows, "row"), count(one.audit.replaced_rows, "row")
        yield f"Main got the change on {when}: {added} added, {removed} removed."
    else:
        yield f"Main got its {count(one.audit.rows, 'row')} on {when}."
    if many := len(one.audit.warnings):
        yield f"{count(many, 'check')} warned."


def _unpublished(one: Ingestion) -> str:
    """Return that main has none of its rows, and the reason, which may begin with a column."""
    main = "Its rows are gone from main" if is_gone(one) else _UNCHANGED
    words = " ".join(one.reason_text.split()).rstrip(".")
    return f"{main}: {words}." if words else f"{main}."


def _rest(one: Ingestion) -> str:
    """Return what is left to do."""
    if one.decisions.discarded:
        return f"It was discarded{one.by_whom('discarded')}; a replay reads it again."
    if one.superseded_by:
        return "A newer version of it is published: nothing is left to decide."
    return failure_advice(one) if one.state in ALERTED else ""


def overruled(one: Ingestion) -> str:
    """Return who published it although checks failed, and why; "" if nobody had to."""
    approval = one.decisions.approval
    if not approval or not is_approved(one):
        return ""
    checks = f" although {', '.join(approval.checks)} failed" if approval.checks else ""
    when = moment(approval.at)
    return f"Published anyway by {approval.by}{checks}, {when}: {approval.reason}"
