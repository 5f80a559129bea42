"""Decide on a rejected or errored ingestion: replay, publish anyway, discard.

Each decision begins with one conditional write to the ledger, so that only one of several owners,
commands and sweeps succeeds; the others get an error with the new state. The sweep, or the same
command again, completes the steps after that write.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model.audit_outcome import AuditOutcome
from functions.model.decisions import Approval
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.operations.decisions.preconditions import (
    overtaken,
    require_failed,
    require_newest,
    require_original,
    require_publishable,
    require_rows,
    require_unmended,
)
from functions.operations.decisions.withdrawal import withdrawn
from functions.pipeline.outcome.finish import finish
from functions.pipeline.outcome.reports import report_of
from functions.pipeline.publication.publish import publish
from functions.pipeline.start.intake import require_name
from functions.pipeline.start.submit import submit
from functions.telemetry import logger
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import branch_name

_TRIES = 5
_SWEEP = "the sweep continues it"


@dataclass(frozen=True)
class Outcome:
    """The result of a decision; `left` names unfinished steps, "" where all is done."""

    ingestion: Ingestion
    left: str = ""


def replay(
    adapters: Adapters,
    ingestion: Ingestion,
    *,
    by: str = "",
    original: bool = False,
    despite: str = "",
) -> Outcome:
    """Run the job again on a fresh branch, by the current contract or the original one.

    The ledger records who asked. `despite` names the newer version of its key beside which it may
    be published. Raises LakegateError when the ingestion is not rejected or errored, nor lost by
    main, may not be run by such a contract, or has another newer version.
    """
    ingestion = withdrawn(adapters, ingestion)
    require_failed(ingestion, "replayed")
    require_newest(adapters, ingestion, despite, "replay")
    if original:
        require_original(adapters, ingestion)

    def decide(now: Ingestion) -> Ingestion:
        _require_undecided(ingestion, now)
        require_unmended(adapters, now)
        replayed = _replayed(now, by, adapters.now(), original=original)
        return replayed.but(decisions=replace(replayed.decisions, despite=despite))

    replayed = save_decision(adapters, ingestion, decide)
    try:
        return Outcome(finish(adapters, submit(adapters, replayed)))
    except LakegateError as error:
        return Outcome(_latest(adapters, replayed), f"{error.message}; {_SWEEP}")


def publish_anyway(
    adapters: Adapters,
    ingestion: Ingestion,
    by: str,
    reason: str,
    *,
    despite: str = "",
    null_unreadable: bool = False,
) -> Outcome:
    """Publish rejected rows; the merge commit records who decided it, and why.

    Rows with unparseable cells are left out; with `null_unreadable` they are published with null in
    such cells. If the branch was written the other way, the job runs again. `despite` names the
    newer version of its key beside which it may be published. Raises LakegateError when the
    ingestion is not rejected, has no audited rows on its branch, or has another newer version.
    """
    require_name(by, reason)
    require_publishable(adapters, ingestion, despite)
    report = report_of(adapters, ingestion)
    checks = tuple(check.id for check in report.failed) if report else ()
    as_wanted = report is None or not must_run_again(report, null_unreadable=null_unreadable)

    def decide(now: Ingestion) -> Ingestion:
        require_unmended(adapters, now)
        _require_seen(ingestion, now)
        approved = _approved(now, Approval(by.strip(), reason.strip(), adapters.now(), checks))
        _require_undecided(ingestion, now)
        approved = approved.but(decisions=replace(approved.decisions, despite=despite))
        return approved if as_wanted else _run_again(approved, null_unreadable=null_unreadable)

    approved = save_decision(adapters, ingestion, decide)
    try:
        if as_wanted:
            return Outcome(publish(adapters, approved))
        return Outcome(finish(adapters, submit(adapters, approved)))
    except LakegateError as error:
        return Outcome(_latest(adapters, approved), f"{error.message}; {_SWEEP}")


def _require_seen(seen: Ingestion, now: Ingestion) -> None:
    """Raise LakegateError MOVED_ON where it failed again, for another reason than a person saw."""
    if now.reason and now.reason_code != seen.reason_code:
        message = f"it is {now.state} for another reason by now: {now.reason.message}"
        raise LakegateError("MOVED_ON", message)


def _require_undecided(seen: Ingestion, now: Ingestion) -> None:
    """Raise LakegateError MOVED_ON where somebody decided about it since it was seen."""
    if any(now.times.get(step) != seen.times.get(step) for step in ("approved", "discarded")):
        raise overtaken(now)


def must_run_again(report: AuditReport, *, null_unreadable: bool) -> bool:
    """Return whether the branch has unparseable rows otherwise than they are to be published."""
    if not report.rows_unreadable and not report.holds_nulls:
        return False
    return report.holds_nulls != null_unreadable


def discard(adapters: Adapters, ingestion: Ingestion, before: str = "", by: str = "") -> Outcome:
    """Delete the ingestion's branches; upkeep deletes the files that only they reached.

    `before` skips ingestions that failed later. The ledger records who asked. Raises LakegateError
    when the ingestion is not rejected or errored, or is already discarded completely.
    """
    marked = mark_discarded(adapters, ingestion, before, by)
    try:
        for branch in marked.decisions.branches_to_delete:
            adapters.catalog.delete_branch(branch)
        removed = save_decision(adapters, marked, lambda now: _removed(now, marked, adapters.now()))
    except LakegateError as error:
        return Outcome(_latest(adapters, marked), error.message)
    return Outcome(_notified(adapters, removed))


def mark_discarded(
    adapters: Adapters, ingestion: Ingestion, before: str = "", by: str = ""
) -> Ingestion:
    """Mark it as discarded; the next `discard` or the daily clean-up deletes its branches.

    Raises as `discard` does.
    """
    failed = withdrawn(adapters, ingestion)

    def decide(now: Ingestion) -> Ingestion:
        if not now.decisions.discarded:
            _require_undecided(failed, now)
        return _discarded(adapters, now, before or "~", by)

    return save_decision(adapters, failed, decide)


def branches(ingestion: Ingestion, references: Mapping[str, str]) -> dict[str, str]:
    """Return those references that are branches of the ingestion, of all its attempts.

    A branch that publishes several ingestions belongs to none of them; a re-audit's branch is its
    own.
    """
    if not ingestion.table:
        return {}
    first, named = _names(ingestion)
    return {n: head for n, head in references.items() if n.startswith(first) or n == named}


def own_branches(adapters: Adapters, ingestion: Ingestion) -> dict[str, str]:
    """Return the same of those that there are, without a list of all: there may be thousands."""
    heads = dict[str, str]()
    there = adapters.catalog.branches(*filter(None, _names(ingestion))) if ingestion.table else ()
    for name in there:
        with suppress(UnknownBranch):  # deleted a moment ago
            heads[name] = adapters.catalog.head(name)
    return branches(ingestion, heads)


def _names(ingestion: Ingestion) -> tuple[str, str]:
    """Return how its attempts' branches begin, and its intent's branch, "" without one."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    return first, "" if ingestion.group else ingestion.branch


def save_decision(
    adapters: Adapters, ingestion: Ingestion, decide: Callable[[Ingestion], Ingestion]
) -> Ingestion:
    """Save a decision; when another process changed the ingestion, decide again.

    `decide` raises LakegateError when the decision is no longer possible. A save that timed out but
    was applied counts as done.
    """
    for _ in range(_TRIES):
        wanted = decide(ingestion)
        if wanted == ingestion:
            return ingestion
        try:
            return adapters.ledger.save(wanted)
        except Transient:
            now = adapters.ledger.get(ingestion.id)
            if now == wanted.but(revision=now.revision):
                return now
            if now.revision == ingestion.revision:
                raise
            require_attempt(now, ingestion.attempt)
            ingestion = now
    message = f"other processes keep changing ingestion {ingestion.id}: try again"
    raise Transient("LEDGER_MOVED", message)


def require_attempt(now: Ingestion, seen: int) -> None:
    """Raise LakegateError MOVED_ON where it had another attempt since a person saw it."""
    if now.attempt != seen:
        raise overtaken(now)


def _replayed(now: Ingestion, by: str, at: str, *, original: bool) -> Ingestion:
    require_failed(now, "replayed")
    fresh = next_attempt(now.step("replayed", at))
    asked = now.decisions.acted("replay", by.strip(), at, now.attempt)
    return fresh.but(
        # Branches that a discard did not delete yet are evidence again.
        decisions=replace(
            asked, approval=None, null_unreadable=False, discarded=False, branches_to_delete={}
        ),
        contract_pinned=original,
        superseded_by="",
        alerted=False,
        cleaned=False,
    )


def _run_again(approved: Ingestion, *, null_unreadable: bool) -> Ingestion:
    """Return an approved ingestion with its job to run again, on a fresh branch.

    The reason stays: it says despite what it is approved.
    """
    decisions = replace(approved.decisions, null_unreadable=null_unreadable)
    return next_attempt(approved).but(decisions=decisions, reason=approved.reason)


def next_attempt(now: Ingestion) -> Ingestion:
    """Return the ingestion at the start of its next attempt; keep the branch of the last one."""
    return now.but(
        state=State.LANDED,
        is_shared=False,
        tries_from=now.attempt,
        attempt=now.attempt + 1,
        failures=0,
        leaves_group=False,
        branch="",  # base_hash stays: main's commits since then are read
        job_run="",
        report_key="",
        audited_hash="",
        group=(),
        replaced=(),
        audit=AuditOutcome(),
        reason=None,
        decisions=replace(now.decisions, null_unreadable=False),
    )


def _approved(now: Ingestion, approval: Approval) -> Ingestion:
    require_rows(now)
    # Main's audit results are to show that it was published in the end.
    recorded = min(now.recorded, now.attempt - 1)
    asked = now.decisions.acted("publish", approval.by, approval.at, now.attempt)
    return now.step(
        "approved",
        approval.at,
        state=State.AUDITED,
        decisions=replace(asked, approval=approval),
        recorded=recorded,
        alerted=False,
        cleaned=False,
        superseded_by="",
    )


def _discarded(adapters: Adapters, now: Ingestion, before: str, by: str) -> Ingestion:
    require_failed(now, "discarded")
    if now.decisions.branches_to_delete:
        return now
    if now.decisions.discarded:
        again = f"Nothing is left to do; `lakegate replay {now.id}` reads the file again."
        raise LakegateError("DISCARDED", f"{now.name}: {status_text(now)}\n{again}")
    if now.ended_at >= before:
        raise LakegateError("TOO_YOUNG", f"it failed again recently: {status_text(now)}")
    branches_to_delete = own_branches(adapters, now)
    at = adapters.now()
    asked = now.decisions.acted("discard", by.strip(), at, now.attempt)
    decisions = replace(asked, discarded=True, mending=False, branches_to_delete=branches_to_delete)
    # Without branches nothing is left to do but to notify it, which the sweep does after a crash.
    is_notified = now.alerted and bool(branches_to_delete)
    return now.step("discarded", at, decisions=decisions, alerted=is_notified)


def _removed(now: Ingestion, marked: Ingestion, at: str) -> Ingestion:
    if now.decisions.branches_to_delete != marked.decisions.branches_to_delete:
        return now
    # The discard has not been notified yet.
    decisions = replace(now.decisions, branches_to_delete={})
    return now.step("removed", at, decisions=decisions, alerted=False)


def _notified(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion after its final state was notified; the sweep retries a failure."""
    try:
        return finish(adapters, ingestion)
    except LakegateError:
        logger.exception("the sweep will notify", extra={"ingestion": ingestion.id})
        return _latest(adapters, ingestion)


def _latest(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    try:
        return adapters.ledger.get(ingestion.id)
    except Transient:
        return ingestion
