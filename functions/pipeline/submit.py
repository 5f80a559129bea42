"""Create the branch of an attempt and start its job run."""

from dataclasses import replace

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline import batches
from functions.pipeline.contract_terms import Hidden, terms_of
from functions.pipeline.finish import delete_replaced, end, end_published
from functions.telemetry import logger
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import batch_name, branch_name, ignore_rule, report_key
from lakegate.report import Reason


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
    told = (batches.told if _is_batch(adapters, ingestion) else terms_of)(adapters, ingestion)
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
