"""Create the branch of an attempt and start its job run."""

from dataclasses import replace

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.contracts import Hidden, with_terms
from functions.pipeline.finish import delete_replaced, end, end_published
from functions.telemetry import logger
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import branch_name, ignore_rule, report_key
from lakegate.report import Reason


def submit(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Create the attempt's branch and start its job run; record why if it cannot run."""
    rule = ignore_rule(ingestion.landed.key)
    if rule:
        return end(adapters, ingestion, State.IGNORED, Reason(rule.code, rule.sentence))
    try:
        _check_size(ingestion.landed.size, adapters.settings.limits.largest_object)
        branched = _create_branch(adapters, ingestion)
    except Hidden as error:
        return end(adapters, ingestion, State.IGNORED, Reason(error.code, error.message))
    except Permanent as error:
        return end(adapters, ingestion, State.ERRORED, Reason(error.code, error.message))
    return branched if branched.ended else _start_job(adapters, branched)


def _check_size(size: int, largest: int) -> None:
    if size == 0:
        raise Permanent("EMPTY_OBJECT", "the file has no bytes: was its upload cut short?")
    if size > largest:
        message = (
            f"the file has {size:,} bytes, and {largest:,} at most are taken: land it in parts, "
            "or raise the limit LargestObject"
        )
        raise Permanent("TOO_LARGE", message)


def _create_branch(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return the ingestion with its branch, or as published where main has an earlier attempt."""
    if ingestion.state is State.BRANCHED:
        if ingestion.is_reaudit:
            delete_replaced(adapters, ingestion)
        return ingestion
    known = with_terms(adapters, ingestion)
    branch = branch_name(known.table, known.landed.key, known.id, known.attempt)
    base = adapters.catalog.create_branch(branch)
    if ingestion.base_hash:  # an earlier attempt had a branch, which may have been merged
        try:
            require_unpublished(adapters.catalog.log(), [ingestion])
        except AlreadyPublished as found:
            return end_published(adapters, [known.but(branch=branch)], found.commits[known.id])
    branched = known.step(
        "branched",
        adapters.now(),
        state=State.BRANCHED,
        reaudit_base="",
        branch=branch,
        base_hash=base,
        report_key=report_key(known.table, known.id, known.attempt),
    )
    return adapters.ledger.save(branched)


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
