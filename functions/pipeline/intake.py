"""From the event that a file landed to its job run: take_in, submit.

Every step first looks at what is there, so each can be repeated: after a crash anywhere, or an
event that comes twice, doing it again ends where an undisturbed run ends.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, StoredContract
from functions.model.ingestion import NOT_STARTED, Ingestion, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline import batches
from functions.pipeline.finish import delete_replaced, end, end_published, finish
from functions.telemetry import logger, metrics
from lakegate.change import MOST_CHARACTERS, Change
from lakegate.contract.claims import claiming
from lakegate.errors import LakegateError, Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import (
    LandedObject,
    batch_name,
    branch_name,
    hidden_rule,
    ignore_rule,
    ingestion_id,
    report_key,
)
from lakegate.report import Reason


class Hidden(Permanent):
    """What landed is work in progress of some tool's, and not to be ingested."""


def take_in(adapters: Adapters, landed: LandedObject) -> Ingestion:
    """Begin the ingestion of a landed object, or carry on where an earlier try stopped."""
    timed = replace(landed, landed_at=landed.landed_at or adapters.now())
    first = Ingestion(id=ingestion_id(landed), landed=timed)
    with logger.append_context_keys(ingestion=first.id, key=landed.key):
        ingestion = adapters.ledger.begin(first.step("landed", timed.landed_at))
        if _needs_job(ingestion):
            return submit(adapters, ingestion)
        logger.info("known already", extra={"state": ingestion.state})
        return finish(adapters, ingestion)


def submit(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Cut the attempt's branch and start its job run; what cannot be run ends errored."""
    rule = ignore_rule(ingestion.landed.key)
    if rule:
        return end(adapters, ingestion, State.IGNORED, Reason(rule.code, rule.sentence))
    try:
        _check_size(ingestion.landed.size, adapters.settings.limits.largest_object)
        branched = _cut_branch(adapters, ingestion)
    except Hidden as error:
        return end(adapters, ingestion, State.IGNORED, Reason(error.code, error.message))
    except Permanent as error:
        return end(adapters, ingestion, State.ERRORED, Reason(error.code, error.message))
    return branched if branched.ended else _start_job(adapters, branched)


def may_try_again(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Whether it may have one more attempt."""
    return ingestion.attempt - ingestion.tries_from < adapters.settings.max_branches


def run_again(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """This branch will never be merged: start over on a fresh one.

    Raises Moved where another process took the ingestion further meanwhile: the branch is its now,
    and may be evidence. So it is deleted only once the ledger has given it up.
    """
    if not may_try_again(adapters, ingestion):
        return _give_up(adapters, ingestion)
    metrics.add_metric("RunsAgain", "Count", 1)
    fresh = ingestion.step(
        "run again", adapters.now(), state=State.LANDED, audited_hash="", group=()
    )
    # Without the branch that will be gone: the next one may never be cut.
    saved = adapters.ledger.save(fresh.but(attempt=ingestion.attempt + 1, branch=""))
    adapters.catalog.delete_branch(ingestion.branch)
    return submit(adapters, saved)


def _give_up(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """End it errored; it keeps its branch, unless that is a group's, which the others give up."""
    if ingestion.group:
        ingestion = adapters.ledger.save(ingestion)  # whoever took it further needs its branch
        adapters.catalog.delete_branch(ingestion.branch)
        ingestion = ingestion.but(branch="", audited_hash="", group=())
    tries = ingestion.attempt - ingestion.tries_from
    message = f"none of {tries} attempts could be published; replay it"
    reason = Reason("TOO_MANY_ATTEMPTS", f"{message} when fewer files are on their way")
    return end(adapters, ingestion, State.ERRORED, reason)


def current_requirements(adapters: Adapters, ingestion: Ingestion) -> str:
    """The digest of what its contract asks of the rows by now, "" where none can be told."""
    try:
        if ingestion.parts:
            return batches.current_requirements(adapters, ingestion)
        return _contract(adapters, ingestion, ingestion.change).contract.requirements_digest
    except Permanent:
        return ""


def contract_for(adapters: Adapters, ingestion: Ingestion) -> StoredContract:
    """The contract that a job run of it would go by now. Raises Permanent where there is none."""
    return _contract(adapters, ingestion, ingestion.change)


def _needs_job(ingestion: Ingestion) -> bool:
    """Return whether the first job run of the attempt is still to be started."""
    return ingestion.state in NOT_STARTED and not ingestion.is_reaudit


def _check_size(size: int, largest: int) -> None:
    if size == 0:
        raise Permanent("EMPTY_OBJECT", "the file has no bytes: was its upload cut short?")
    if size > largest:
        message = f"the file has {size:,} bytes, and {largest:,} at most are taken: land it in"
        raise Permanent("TOO_LARGE", f"{message} parts, or raise the limit LargestObject")


def _cut_branch(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion with its branch; published, where main has an earlier attempt of it."""
    if ingestion.state is State.BRANCHED:
        if ingestion.is_reaudit:
            delete_replaced(adapters, ingestion)
        return ingestion
    told = (batches.told if _is_batch(adapters, ingestion) else _told)(adapters, ingestion)
    table = told["table"]
    branch = branch_name(table, ingestion.landed.key, ingestion.id, ingestion.attempt)
    base = adapters.catalog.create_branch(branch)
    if ingestion.base_hash:  # an earlier attempt had a branch, which somebody may have merged
        try:
            require_unpublished(adapters.catalog.log(), [ingestion])
        except AlreadyPublished as found:
            merged = ingestion.but(branch=branch, **told)
            return end_published(adapters, [merged], found.commits[ingestion.id])
    branched = ingestion.step(
        "branched",
        adapters.now(),
        state=State.BRANCHED,
        reaudit_base="",
        branch=branch,
        base_hash=base,
        report_key=report_key(table, ingestion.id, ingestion.attempt),
        **told,
    )
    return adapters.ledger.save(branched)


def _is_batch(adapters: Adapters, ingestion: Ingestion) -> bool:
    landed = ingestion.landed
    return landed.bucket != adapters.lake.bucket and bool(batch_name(landed.key))


def _told(adapters: Adapters, ingestion: Ingestion) -> dict[str, Any]:
    """What the ingestion of one file, or of a change, is to know of its contract."""
    change = _asked(adapters, ingestion)
    stored = _contract(adapters, ingestion, change)
    contract = stored.contract
    rule = hidden_rule(ingestion.landed.key, contract.landing_prefix)
    if rule and not change:
        raise Hidden(rule.code, rule.sentence)
    return {
        "table": contract.table,
        "contract_key": stored.key,
        "contract_version": stored.version,
        "requirements_digest": contract.requirements_digest,
        "channel": contract.channel,
        "owner": contract.owner,
        "on_duplicate": "publish" if change else contract.on_duplicate,
        "on_new_version": "add" if change else contract.on_new_version,
        "change": change,
        "checks_whole_table": contract.checks_whole_table,
        "reads_others": change is not None or contract.reads_others,
    }


def _asked(adapters: Adapters, ingestion: Ingestion) -> Change | None:
    """The change that a person asked for, None where a file landed."""
    if ingestion.change or ingestion.landed.bucket != adapters.lake.bucket:
        return ingestion.change
    try:
        return adapters.lake.change(ingestion.landed.key)
    except Missing as error:
        message = f"what was asked for is gone: {error.message}; ask for it once more"
        raise Permanent("CHANGE_GONE", message) from error


def _contract(adapters: Adapters, ingestion: Ingestion, change: Change | None) -> StoredContract:
    if ingestion.contract_pinned:
        return _original(adapters, ingestion)
    key = "" if change else ingestion.landed.key
    stored = {s.contract.table: s for s in adapters.lake.contracts(key)}
    if change and change.table in stored:
        return stored[change.table]
    if change:
        message = f"no contract is in force for {change.table}, so nothing could audit a change"
        raise Permanent("NO_CONTRACT", message)
    contract = claiming([s.contract for s in stored.values()], key)
    return stored[contract.table]


def _original(adapters: Adapters, ingestion: Ingestion) -> StoredContract:
    try:
        return adapters.lake.contract_at(ingestion.contract_key, ingestion.contract_version)
    except Missing as error:
        message = f"the contract to replay it by is gone: {error.message}"
        raise Permanent("CONTRACT_GONE", message) from error


def _start_job(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    spec = JobSpec(
        ingestion=ingestion.id,
        attempt=ingestion.attempt,
        landed=ingestion.landed,
        table=ingestion.table,
        branch=ingestion.branch,
        base_hash=ingestion.base_hash,
        lake_bucket=adapters.settings.lake_bucket,
        contract_key=ingestion.contract_key,
        contract_version=ingestion.contract_version,
        report_key=ingestion.report_key,
        nessie_uri=adapters.settings.nessie_uri,
        token_secret=adapters.settings.job_token_secret,
        change=ingestion.change is not None,
        null_unreadable=ingestion.null_unreadable,
        timeout_minutes=adapters.settings.job_timeout_minutes,
        reads_others=ingestion.reads_others,
        limits=adapters.settings.limits,
        parts=tuple(replace(part, rows=0, hash="") for part in ingestion.parts),
    )
    if ingestion.is_reaudit:
        spec = replace(
            spec,
            reaudit_base=ingestion.reaudit_base,
            audited_hash=ingestion.audited_hash,
            earlier_report=report_key(ingestion.table, ingestion.id, ingestion.attempt - 1),
        )
    try:
        run = adapters.jobs.start(spec)
    except Permanent as error:
        return end(adapters, ingestion, State.ERRORED, Reason(error.code, error.message))
    logger.info("job run started", extra={"run": run, "branch": ingestion.branch})
    return adapters.ledger.save(
        ingestion.step("submitted", adapters.now(), state=State.SUBMITTED, job_run=run)
    )


# All that an ingestion can be of: files that landed, and changes that people asked for.


def arrivals(adapters: Adapters) -> Iterator[LandedObject]:
    """Every landed object, and every change's text."""
    yield from adapters.landing.landed()
    yield from adapters.lake.changes()


def ask(adapters: Adapters, change: Change) -> Ingestion:
    """Put a change's text and begin its ingestion; asked for before, it is found and carried on.

    The sweep finishes what a crash leaves once the text is put. Raises LakegateError where it can
    be told at once that it would come to nothing.
    """
    tables = sorted(stored.contract.table for stored in adapters.lake.contracts())
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
    return take_in(adapters, adapters.lake.put_change(change))
