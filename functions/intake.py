"""From the event that a file landed to its job run: take_in, submit.

Every step first looks at what is there, so each can be repeated: after a crash anywhere, or an
event that comes twice, doing it again ends where an undisturbed run ends.
"""

from dataclasses import replace
from typing import Any

from functions import batches
from functions.commits import AlreadyPublished, require_unpublished
from functions.ending import delete_replaced, end, end_published, finish
from functions.ingestion import NOT_STARTED, Ingestion, State
from functions.lake import StoredContract
from functions.storage import Missing
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate.change import Change
from lakegate.contract_claims import claiming
from lakegate.errors import Permanent
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


def take_in(world: World, landed: LandedObject) -> Ingestion:
    """Begin the ingestion of a landed object, or carry on where an earlier try stopped."""
    timed = replace(landed, landed_at=landed.landed_at or world.now())
    first = Ingestion(id=ingestion_id(landed), landed=timed)
    with logger.append_context_keys(ingestion=first.id, key=landed.key):
        ingestion = world.ledger.begin(first.step("landed", timed.landed_at))
        if _needs_job(ingestion):
            return submit(world, ingestion)
        logger.info("known already", extra={"state": ingestion.state})
        return finish(world, ingestion)


def submit(world: World, ingestion: Ingestion) -> Ingestion:
    """Cut the attempt's branch and start its job run; what cannot be run ends errored."""
    rule = ignore_rule(ingestion.landed.key)
    if rule:
        return end(world, ingestion, State.IGNORED, Reason(rule.code, rule.sentence))
    try:
        _check_size(ingestion.landed.size, world.settings.limits.largest_object)
        branched = _cut_branch(world, ingestion)
    except Hidden as error:
        return end(world, ingestion, State.IGNORED, Reason(error.code, error.message))
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    return branched if branched.ended else _start_job(world, branched)


def may_try_again(world: World, ingestion: Ingestion) -> bool:
    """Whether it may have one more attempt."""
    return ingestion.attempt - ingestion.tries_from < world.settings.max_attempts


def run_again(world: World, ingestion: Ingestion) -> Ingestion:
    """This branch will never be merged: start over on a fresh one.

    Raises Moved where another process took the ingestion further meanwhile: the branch is its now,
    and may be evidence. So it is deleted only once the ledger has given it up.
    """
    if not may_try_again(world, ingestion):
        return _give_up(world, ingestion)
    metrics.add_metric("RunsAgain", "Count", 1)
    fresh = ingestion.step("run again", world.now(), state=State.LANDED, audited_hash="", group=())
    # Without the branch that will be gone: the next one may never be cut.
    saved = world.ledger.save(fresh.but(attempt=ingestion.attempt + 1, branch=""))
    world.catalog.delete_branch(ingestion.branch)
    return submit(world, saved)


def _give_up(world: World, ingestion: Ingestion) -> Ingestion:
    """End it errored; it keeps its branch, unless that is a group's, which the others give up."""
    if ingestion.group:
        ingestion = world.ledger.save(ingestion)  # whoever took it further needs its branch
        world.catalog.delete_branch(ingestion.branch)
        ingestion = ingestion.but(branch="", audited_hash="", group=())
    tries = ingestion.attempt - ingestion.tries_from
    message = f"none of {tries} attempts could be published; replay it"
    reason = Reason("TOO_MANY_ATTEMPTS", f"{message} when fewer files are on their way")
    return end(world, ingestion, State.ERRORED, reason)


def demands_now(world: World, ingestion: Ingestion) -> str:
    """The digest of what its contract asks of the rows by now, "" where none can be told."""
    try:
        if ingestion.parts:
            return batches.demands_now(world, ingestion)
        return _contract(world, ingestion, ingestion.change).contract.demands
    except Permanent:
        return ""


def contract_for(world: World, ingestion: Ingestion) -> StoredContract:
    """The contract that a job run of it would go by now. Raises Permanent where there is none."""
    return _contract(world, ingestion, ingestion.change)


def _needs_job(ingestion: Ingestion) -> bool:
    """Return whether the first job run of the attempt is still to be started."""
    return ingestion.state in NOT_STARTED and not ingestion.is_again


def _check_size(size: int, largest: int) -> None:
    if size == 0:
        raise Permanent("EMPTY_OBJECT", "the file has no bytes: was its upload cut short?")
    if size > largest:
        message = f"the file has {size:,} bytes, and {largest:,} at most are taken: land it in"
        raise Permanent("TOO_LARGE", f"{message} parts, or raise the limit LargestObject")


def _cut_branch(world: World, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion with its branch; published, where main has an earlier attempt of it."""
    if ingestion.state is State.BRANCHED:
        if ingestion.is_again:
            delete_replaced(world, ingestion)
        return ingestion
    told = (batches.told if _is_batch(world, ingestion) else _told)(world, ingestion)
    table = told["table"]
    branch = branch_name(table, ingestion.landed.key, ingestion.id, ingestion.attempt)
    base = world.catalog.create_branch(branch)
    if ingestion.base_hash:  # an earlier attempt had a branch, which somebody may have merged
        try:
            require_unpublished(world.catalog.log(), [ingestion])
        except AlreadyPublished as found:
            merged = ingestion.but(branch=branch, **told)
            return end_published(world, [merged], found.commits[ingestion.id])
    branched = ingestion.step(
        "branched",
        world.now(),
        state=State.BRANCHED,
        audited_from="",
        branch=branch,
        base_hash=base,
        report_key=report_key(table, ingestion.id, ingestion.attempt),
        **told,
    )
    return world.ledger.save(branched)


def _is_batch(world: World, ingestion: Ingestion) -> bool:
    landed = ingestion.landed
    return landed.bucket != world.lake.bucket and bool(batch_name(landed.key))


def _told(world: World, ingestion: Ingestion) -> dict[str, Any]:
    """What the ingestion of one file, or of a change, is to know of its contract."""
    change = _asked(world, ingestion)
    stored = _contract(world, ingestion, change)
    contract = stored.contract
    rule = hidden_rule(ingestion.landed.key, contract.landing_prefix)
    if rule and not change:
        raise Hidden(rule.code, rule.sentence)
    return {
        "table": contract.table,
        "contract_key": stored.key,
        "contract_version": stored.version,
        "demands": contract.demands,
        "channel": contract.channel,
        "owner": contract.owner,
        "on_duplicate": "publish" if change else contract.on_duplicate,
        "on_new_version": "add" if change else contract.on_new_version,
        "change": change,
        "looks_beyond": contract.looks_beyond,
        "reads_others": change is not None or contract.reads_others,
    }


def _asked(world: World, ingestion: Ingestion) -> Change | None:
    """The change that a person asked for, None where a file landed."""
    if ingestion.change or ingestion.landed.bucket != world.lake.bucket:
        return ingestion.change
    try:
        return world.lake.change(ingestion.landed.key)
    except Missing as error:
        message = f"what was asked for is gone: {error.message}; ask for it once more"
        raise Permanent("CHANGE_GONE", message) from error


def _contract(world: World, ingestion: Ingestion, change: Change | None) -> StoredContract:
    if ingestion.contract_pinned:
        return _original(world, ingestion)
    key = "" if change else ingestion.landed.key
    stored = {s.contract.table: s for s in world.lake.contracts(key)}
    if change and change.table in stored:
        return stored[change.table]
    if change:
        message = f"no contract is in force for {change.table}, so nothing could audit a change"
        raise Permanent("NO_CONTRACT", message)
    contract = claiming([s.contract for s in stored.values()], key)
    return stored[contract.table]


def _original(world: World, ingestion: Ingestion) -> StoredContract:
    try:
        return world.lake.contract_at(ingestion.contract_key, ingestion.contract_version)
    except Missing as error:
        message = f"the contract to replay it by is gone: {error.message}"
        raise Permanent("CONTRACT_GONE", message) from error


def _start_job(world: World, ingestion: Ingestion) -> Ingestion:
    spec = JobSpec(
        ingestion=ingestion.id,
        attempt=ingestion.attempt,
        landed=ingestion.landed,
        table=ingestion.table,
        branch=ingestion.branch,
        base_hash=ingestion.base_hash,
        lake_bucket=world.settings.lake_bucket,
        contract_key=ingestion.contract_key,
        contract_version=ingestion.contract_version,
        report_key=ingestion.report_key,
        nessie_uri=world.settings.nessie_uri,
        token_secret=world.settings.job_token_secret,
        change=ingestion.change is not None,
        null_unreadable=ingestion.null_unreadable,
        timeout_minutes=world.settings.job_timeout_minutes,
        reads_others=ingestion.reads_others,
        limits=world.settings.limits,
        parts=tuple(replace(part, rows=0, hash="") for part in ingestion.parts),
    )
    if ingestion.is_again:
        spec = replace(
            spec,
            audited_from=ingestion.audited_from,
            audited_hash=ingestion.audited_hash,
            earlier_report=report_key(ingestion.table, ingestion.id, ingestion.attempt - 1),
        )
    try:
        run = world.jobs.start(spec)
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    logger.info("job run started", extra={"run": run, "branch": ingestion.branch})
    return world.ledger.save(
        ingestion.step("submitted", world.now(), state=State.SUBMITTED, job_run=run)
    )
