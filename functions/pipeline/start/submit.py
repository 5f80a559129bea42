"""Start an attempt: queue it for a shared run, or create its branch and start a run of its own."""

from dataclasses import replace
from functools import partial

from functions.adapters.all import Adapters
from functions.model import queueing
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.outcome.finish import delete_replaced, end, end_if_merged, end_taken
from functions.pipeline.outcome.reports import report_of
from functions.pipeline.outcome.restorations import require_unmoved
from functions.pipeline.outcome.takeovers import require_takeable
from functions.pipeline.start.contracts import Hidden, with_terms
from functions.pipeline.start.landing_order import must_be_held
from functions.pipeline.start.shared_runs import is_small, may_share, queue, reaches
from functions.pipeline.start.spending import has_room, start_within_budget
from functions.pipeline.start.turns import turn_of
from functions.telemetry import logger
from lakegate.audit.report import Reason
from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import branch_name, ignore_rule, report_key
from lakegate.job.shared_run import Turn


def submit(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Have a run ingest the attempt, or hold it until its turn; record why if none can.

    The ledger need not have the ingestion yet: whatever is saved first begins it.
    """
    rule = ignore_rule(ingestion.landed.key)
    if rule:
        return end(adapters, ingestion, State.IGNORED, Reason(rule.code, rule.sentence))
    if must_be_held(adapters, ingestion) or _waits_for_its_file(adapters, ingestion):
        return ingestion
    try:
        _check_size(ingestion.landed.size, adapters.settings.limits.largest_object)
        known = _with_terms(adapters, ingestion)
    except Hidden as error:
        return _end(adapters, ingestion, State.IGNORED, error)
    except Permanent as error:
        return _end(adapters, ingestion, State.ERRORED, error)
    if queueing.is_held(known):
        known = adapters.ledger.save(known)  # first, so that one of two files finds the other
    return known if must_be_held(adapters, known) else _started(adapters, known)


def _end(adapters: Adapters, ingestion: Ingestion, state: State, why: Permanent) -> Ingestion:
    """End it before it has a branch, unless main has taken the branch of an earlier attempt."""
    merged = end_if_merged(adapters, ingestion) if ingestion.base_hash else None
    return merged or end(adapters, ingestion, state, Reason(why.code, why.message))


def _started(adapters: Adapters, known: Ingestion) -> Ingestion:
    try:
        if may_share(known, adapters.settings) and reaches(adapters, known):
            return _queued(adapters, known)
        if not known.revision:
            known = adapters.ledger.save(known)  # first, so that no branch has no ingestion
        if not has_room(adapters):
            return known  # the sweep starts it: no branch gets old meanwhile
        branched = _create_branch(adapters, _left_alone(known))
    except Permanent as error:
        return _end(adapters, known, State.ERRORED, error)
    return branched if branched.ended else _start_job(adapters, branched)


def _queued(adapters: Adapters, known: Ingestion) -> Ingestion:
    """Queue it for a shared run; with those that follow in its turn, if it has one."""
    if not known.takes_turns:
        (saved,) = queue(adapters, [known], _job_spec(adapters, known))
        return saved
    members = turn_of(adapters, known, partial(_with_terms, adapters))
    turn = Turn.of([_job_spec(adapters, each) for each in members])
    return queue(adapters, members[: len(turn.specs)], turn)[0]


def _waits_for_its_file(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether it retracts a file that main lost, and that is published again first."""
    retracted = ingestion.change.retracts if ingestion.change else ""
    return bool(retracted) and not all(i.ended for i in adapters.ledger.together([retracted]))


def _check_size(size: int, largest: int) -> None:
    if size == 0:
        raise Permanent("EMPTY_OBJECT", "the file has no bytes: was its upload cut short?")
    if size > largest:
        message = (
            f"the file has {size:,} bytes, and {largest:,} at most are taken: land it in parts, "
            "or raise the limit LargestObject"
        )
        raise Permanent("TOO_LARGE", message)


def _with_terms(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion with its contract's terms, and the key of the attempt's report.

    Once a run has the attempt, or is to take it, its terms stay, whatever the contract says now.
    """
    if ingestion.state is State.BRANCHED or ingestion.awaits_shared_run:
        return ingestion
    agreed = with_terms(adapters, ingestion)
    is_compared = agreed.terms.checks_whole_table or ingestion.is_compared  # which waited for that
    known = agreed.but(
        report_key=report_key(agreed.table, agreed.id, agreed.attempt),
        is_compared=is_compared and may_share(agreed, adapters.settings),
    )
    _require_new(adapters, known)
    return known


def _require_new(adapters: Adapters, known: Ingestion) -> None:
    """Raise Transient if the attempt has a report: the ledger lost the ingestion since."""
    try:
        report = report_of(adapters, known)
    except Permanent:
        return  # nobody can read it, and the attempt ends with that error
    if report:
        message = f"the ledger had lost {known.id}; the sweep restores it"
        raise Transient("LOST_INGESTION", message)


def _left_alone(known: Ingestion) -> Ingestion:
    """Return it for a run of its own, with no place in a turn.

    It is in another attempt if a shared run may still report about this one.
    """
    if not known.awaits_shared_run:
        return known.but(is_compared=False)
    attempt = known.attempt + 1
    key = report_key(known.table, known.id, attempt)
    return known.but(attempt=attempt, report_key=key, is_shared=False, is_compared=False)


def _create_branch(adapters: Adapters, known: Ingestion) -> Ingestion:
    """Return the ingestion with its branch, or as published where main has an earlier attempt."""
    if known.state is State.BRANCHED:
        if known.is_reaudit:
            delete_replaced(adapters, known)
        return known
    branch = branch_name(known.table, known.landed.key, known.id, known.attempt)
    base = adapters.catalog.create_branch(branch)
    if known.base_hash:  # an earlier attempt had a branch, which may have been merged
        try:
            require_unpublished(adapters.catalog.log(), [known])
        except AlreadyPublished as merged:
            return end_taken(adapters, known.but(branch=branch), merged.commits[known.id])
    branched = known.step(
        "branched",
        adapters.now(),
        state=State.BRANCHED,
        reaudit_base="",
        branch=branch,
        base_hash=base,
        is_shared=False,
    )
    return adapters.ledger.save(branched)


def _start_job(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    try:
        if ingestion.change:
            require_unmoved(adapters, ingestion.change, ingestion.base_hash)
            require_takeable(adapters, ingestion.change, ingestion.id)
        run = start_within_budget(adapters, _job_spec(adapters, ingestion))
    except Permanent as error:
        return end(adapters, ingestion, State.ERRORED, Reason(error.code, error.message))
    if not run:
        return ingestion
    logger.info("job run started", extra={"run": run, "branch": ingestion.branch})
    return adapters.ledger.save(
        ingestion.step("submitted", adapters.now(), state=State.SUBMITTED, job_run=run)
    )


def _job_spec(adapters: Adapters, ingestion: Ingestion) -> JobSpec:
    """Return the input of the attempt's job; a shared run gets it without branch and base."""
    is_shared = ingestion.state is State.LANDED
    spec = JobSpec(
        ingestion=ingestion.id,
        attempt=ingestion.attempt,
        landed=ingestion.landed,
        table=ingestion.table,
        branch="" if is_shared else ingestion.branch,
        base_hash="" if is_shared else ingestion.base_hash,
        lake_bucket=adapters.settings.lake_bucket,
        contract_key=ingestion.terms.contract_key,
        contract_version=ingestion.terms.contract_version,
        report_key=ingestion.report_key,
        nessie_uri=adapters.settings.nessie_uri,
        token_secret=adapters.settings.job_token_secret,
        change=ingestion.change is not None,
        null_unreadable=ingestion.decisions.null_unreadable,
        timeout_minutes=adapters.settings.job_timeout_minutes,
        reads_others=ingestion.terms.reads_others,
        small=is_small(ingestion, adapters.settings.small_file_bytes),
        limits=adapters.settings.limits,
        parts=tuple(replace(part, rows=0, hash="") for part in ingestion.parts),
    )
    if ingestion.change and (retracted := ingestion.change.retracts):
        known = adapters.ledger.together([retracted])
        return replace(spec, earlier_report="".join(each.report_key for each in known))
    if not ingestion.is_reaudit:
        return spec
    return replace(
        spec,
        reaudit_base=ingestion.reaudit_base,
        audited_hash=ingestion.audited_hash,
        earlier_report=report_key(ingestion.table, ingestion.id, ingestion.attempt - 1),
    )
