"""Change an ingestion as realign decided."""

from functions.model.audit_outcome import AuditOutcome
from functions.model.commits import Commit
from functions.model.ingestion import SET_BACK, Ingestion, State
from functions.model.merge_commit import Published
from functions.operations.decisions.failed import next_attempt
from functions.operations.decisions.withdrawal import WITHDRAWN, without_rows
from functions.operations.recovery.realign_plan import Decision, Kind
from lakegate.audit.report import Reason


def carried_out(decision: Decision, at: str, head: str, *, pinned: bool) -> Ingestion:
    """Return the ingestion after the decision; unchanged where the ledger needs no change.

    `head` is main's head: no commit up to there published it. `pinned` says that its job is to run
    by the contract's version by which it was published.
    """
    now, kinds = decision.ingestion, decision.kinds
    if Kind.PUBLISH_AGAIN in kinds or Kind.RUN_AGAIN in kinds:
        return _again(now, at, head, pinned=pinned)
    if Kind.LOST in kinds:
        ended = without_rows(now, head).step(SET_BACK, at, announced=False)
        reason = Reason(WITHDRAWN, decision.why)
        return ended.step(State.ERRORED.value, at, state=State.ERRORED, reason=reason)
    if Kind.ADOPT in kinds and decision.commit:
        now = _adopted(now, at, *decision.commit)
    if Kind.REOPEN in kinds:
        now = now.step(SET_BACK, at, superseded_by="", alerted=False)
    return now.but(recorded=0) if Kind.RECORD_AGAIN in kinds else now


def _again(now: Ingestion, at: str, head: str, *, pinned: bool) -> Ingestion:
    """Return it at the start of another attempt, with the decisions that were made on it."""
    return next_attempt(now.step(SET_BACK, at)).but(
        base_hash=head,
        merge_hash="",
        reason=now.reason if now.decisions.approval else None,
        decisions=now.decisions,
        audit=AuditOutcome(duplicate_of=now.audit.duplicate_of),
        contract_pinned=pinned or now.contract_pinned,
        alerted=False,
        announced=False,
        cleaned=False,
        recorded=0,
    )


def _adopted(now: Ingestion, at: str, commit: Commit, one: Published) -> Ingestion:
    """Return it as published by an earlier attempt, whose commit main has again."""
    end = {"state": State.PUBLISHED, "merge_hash": commit.hash, "group": ()}
    return one.adopted(now).step(State.PUBLISHED.value, at, **end)
