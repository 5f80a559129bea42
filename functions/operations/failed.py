"""What people do with a rejected or errored ingestion: replay, publish anyway, discard.

Each begins with one conditional write to the ledger, which only one of several people, commands
and sweeps can win; the others are told what has become of the ingestion. What is left to do after
that write can be done again: by the sweep, or by running the command once more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from functions.adapters.all import Adapters
from functions.model.ingestion import Approval, Ingestion, State, standing
from functions.model.unreadable import must_run_again
from functions.operations.discard import Removal, remove
from functions.operations.preconditions import (
    require_contract,
    require_failed,
    require_newest,
    require_publishable,
    require_rows,
)
from functions.operations.withdrawal import withdrawn
from functions.pipeline.finish import finish, report_of
from functions.pipeline.intake import submit
from functions.pipeline.publish import publish
from functions.telemetry import logger
from lakegate.errors import LakegateError, Transient
from lakegate.landing import branch_name

_TRIES = 5
_SWEEP = "the sweep goes on with it"


@dataclass(frozen=True)
class Outcome:
    """What became of an ingestion; `left` says what could not be done yet, "" where all is done."""

    ingestion: Ingestion
    left: str = ""
    removal: Removal = field(default_factory=Removal)


def replay(
    adapters: Adapters,
    ingestion: Ingestion,
    *,
    by: str = "",
    original: bool = False,
    despite: str = "",
) -> Outcome:
    """Run the job once more, on a fresh branch, by the contract in force now or the original one.

    The ledger keeps who wanted it. `despite` names the newer version of its key beside which it is
    to be published if it passes. Raises LakegateError when the ingestion is not rejected or
    errored, nor lost by main, has no such contract, or has another newer version.
    """
    ingestion = withdrawn(adapters, ingestion)
    require_failed(ingestion, "replayed")
    require_newest(adapters, ingestion, despite, f"replay {ingestion.id}")
    if original:
        require_contract(adapters, ingestion)

    def decide(now: Ingestion) -> Ingestion:
        replayed = _replayed(now, by, adapters.now(), original=original)
        return replayed.but(despite=despite)

    replayed = _decided(adapters, ingestion, decide)
    try:
        return Outcome(submit(adapters, replayed))
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
    """Publish rejected rows all the same; the merge commit says who wanted it, and why.

    Rows with cells that could not be read are left out; with `null_unreadable` they are published,
    with null for each such cell. Where the branch has them otherwise the job runs once more.
    `despite` names the newer version of its key beside which it is to be published. Raises
    LakegateError when that is not a rejected ingestion whose rows wait on their branch, or when it
    has another newer version.
    """
    if not by.strip() or not reason.strip():
        message = "say who publishes it and why: both are written down in main's log"
        raise LakegateError("NAME_NEEDED", message)
    require_publishable(adapters, ingestion, despite)
    report = report_of(adapters, ingestion)
    checks = tuple(check.id for check in report.failed) if report else ()
    as_wanted = report is None or not must_run_again(report, null_unreadable=null_unreadable)

    def decide(now: Ingestion) -> Ingestion:
        approved = _approved(now, by, reason, adapters.now(), checks).but(despite=despite)
        return approved if as_wanted else _read_again(approved, null_unreadable=null_unreadable)

    approved = _decided(adapters, ingestion, decide)
    try:
        return Outcome((publish if as_wanted else submit)(adapters, approved))
    except LakegateError as error:
        return Outcome(_latest(adapters, approved), f"{error.message}; {_SWEEP}")


def discard(adapters: Adapters, ingestion: Ingestion, before: str = "", by: str = "") -> Outcome:
    """Delete the ingestion's branches and the files that only they reach.

    `before` leaves alone what failed later. The ledger keeps who wanted it. Raises LakegateError
    when the ingestion is not rejected or errored, or was discarded before and nothing of that is
    left to do.
    """
    marked = give_up(adapters, ingestion, before, by)
    try:
        removal = remove(adapters, marked.tables, marked.branches_to_delete, (marked.base_hash,))
        removed = _decided(adapters, marked, lambda now: _removed(now, marked, adapters.now()))
    except LakegateError as error:
        return Outcome(_latest(adapters, marked), error.message)
    return Outcome(_told(adapters, removed), removal=removal)


def give_up(adapters: Adapters, ingestion: Ingestion, before: str = "", by: str = "") -> Ingestion:
    """Only write down that it is discarded: the next `discard` or clean-up deletes what it has.

    Raises as `discard` does.
    """
    failed = withdrawn(adapters, ingestion)
    return _decided(adapters, failed, lambda now: _discarded(adapters, now, before or "~", by))


def branches(ingestion: Ingestion, references: Mapping[str, str]) -> dict[str, str]:
    """Which of the references are the ingestion's branches, of all its attempts.

    A branch on which several ingestions are published together belongs to none of them; one on
    which it was audited again is its own.
    """
    if not ingestion.table:
        return {}
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    own = (first, ingestion.branch) if ingestion.branch and not ingestion.group else (first,)
    return {name: head for name, head in references.items() if name.startswith(own)}


def _decided(
    adapters: Adapters, ingestion: Ingestion, decide: Callable[[Ingestion], Ingestion]
) -> Ingestion:
    """Save what is decided; when another process moved the ingestion on, decide anew.

    `decide` raises LakegateError when there is nothing to decide any more. A save that timed out
    although it was done is done.
    """
    for _ in range(_TRIES):
        wanted = decide(ingestion)
        if wanted == ingestion:
            return ingestion
        try:
            return adapters.ledger.save(wanted)
        except Transient:
            found = adapters.ledger.get(ingestion.id)
            if found == replace(wanted, revision=found.revision):
                return found
            if found.revision == ingestion.revision:
                raise
            if found.attempt != ingestion.attempt:
                message = f"somebody was faster: {standing(found)}"
                raise LakegateError("MOVED_ON", message) from None
            ingestion = found
    raise Transient("LEDGER_MOVED", f"ingestion {ingestion.id} is being changed all the time")


def _replayed(now: Ingestion, by: str, at: str, *, original: bool) -> Ingestion:
    require_failed(now, "replayed")
    if now.branches_to_delete:
        message = f"its discard is not finished: run `lakegate discard {now.id}`, then replay it"
        raise LakegateError("DISCARD_UNFINISHED", message)
    asked = now.acted("replay", by.strip(), at)
    fresh = _afresh(asked.step("replayed", at))
    return fresh.but(
        contract_pinned=original,
        approval=None,
        discarded=False,
        superseded_by="",
        alerted=False,
        cleaned=False,
    )


def _read_again(approved: Ingestion, *, null_unreadable: bool) -> Ingestion:
    """Return what a person approved, with its job to run again, on a fresh branch."""
    return _afresh(approved).but(null_unreadable=null_unreadable)


def _afresh(now: Ingestion) -> Ingestion:
    """Return the ingestion at the begin of its next attempt; the branch of the last one stays."""
    return replace(
        now,
        state=State.LANDED,
        tries_from=now.attempt,
        attempt=now.attempt + 1,
        failures=0,
        branch="",  # the base stays: what main took since then is looked at
        job_run="",
        report_key="",
        audited_hash="",
        group=(),
        duplicate_of="",
        replaced=(),
        replaced_rows=0,
        rows=0,
        check_counts={},
        checks=(),
        reason=None,
        null_unreadable=False,
    )


def _approved(now: Ingestion, by: str, reason: str, at: str, checks: tuple[str, ...]) -> Ingestion:
    require_rows(now)
    approval = Approval(by.strip(), reason.strip(), at, checks)
    # Main's tables of results are to say that it is published after all.
    recorded = min(now.recorded, now.attempt - 1)
    asked = now.acted("publish", approval.by, at)
    return asked.step(
        "approved",
        at,
        state=State.AUDITED,
        approval=approval,
        recorded=recorded,
        alerted=False,
        cleaned=False,
        superseded_by="",
    )


def _discarded(adapters: Adapters, now: Ingestion, before: str, by: str) -> Ingestion:
    require_failed(now, "discarded")
    if now.branches_to_delete:
        return now
    if now.discarded:
        raise LakegateError("DISCARDED", f"there is nothing left to discard: {standing(now)}")
    if now.ended_at >= before:
        raise LakegateError("TOO_YOUNG", f"it failed again meanwhile: {standing(now)}")
    branches_to_delete = branches(now, adapters.catalog.references())
    at = adapters.now()
    asked = now.acted("discard", by.strip(), at)
    return asked.step("discarded", at, discarded=True, branches_to_delete=branches_to_delete)


def _removed(now: Ingestion, marked: Ingestion, at: str) -> Ingestion:
    if now.branches_to_delete != marked.branches_to_delete:
        return now
    return now.step(
        "removed", at, branches_to_delete={}, alerted=False
    )  # of that end people do not know


def _told(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """As it stands once people were told of its end, which the sweep does where it fails here."""
    try:
        return finish(adapters, ingestion)
    except LakegateError:
        logger.exception("the sweep tells people", extra={"ingestion": ingestion.id})
        return _latest(adapters, ingestion)


def _latest(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    try:
        return adapters.ledger.get(ingestion.id)
    except Transient:
        return ingestion
