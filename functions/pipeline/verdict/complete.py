"""Complete an ended job run: record its verdict, then publish, run again or alert."""

from dataclasses import asdict, replace
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, UnknownRun
from functions.model.ingestion import NOT_STARTED, Ingestion, State
from functions.model.notes.slot import is_shared_name
from functions.pipeline.outcome.finish import end, finish
from functions.pipeline.outcome.reports import report_of
from functions.pipeline.outcome.versions import SUPERSEDED, where_separate
from functions.pipeline.publication.duplicates import LIKELY_DUPLICATE, earlier, hold, is_held
from functions.pipeline.publication.publish import publish, publish_next
from functions.pipeline.publication.replace import CANNOT_REPLACE
from functions.pipeline.publication.retry import run_again
from functions.pipeline.start.contracts import current_requirements, outdated
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from functions.pipeline.start.shared_runs import run_ended
from functions.pipeline.start.spending import look
from functions.pipeline.start.submit import submit
from functions.pipeline.verdict.decision import (
    AwaitRight,
    Publish,
    Refuse,
    RunAgain,
    belongs,
    decide,
    with_findings,
)
from functions.telemetry import logger
from lakegate.audit.report import AuditReport, Reason
from lakegate.errors import Permanent, Transient
from lakegate.job.landing import parse_run_name
from lakegate.refusals import RightMissing


def conclude(adapters: Adapters, run_id: str) -> None:
    """Complete an ended job run: publish its ingestion, reject it, or record an error."""
    run = look(adapters, run_id)
    if is_shared_name(run.name):
        run_ended(adapters, run)
    elif ingestion := _judged(adapters, run):
        with logger.append_context_keys(ingestion=ingestion.id):
            if is_judged(ingestion):
                resume(adapters, ingestion)
            else:
                publish_next(adapters, ingestion)


def judge(adapters: Adapters, run_id: str) -> None:
    """Record the verdict of an ended job run; an ingestion that passed then waits to be published.

    Of a shared run nothing is recorded at its end.
    """
    run = look(adapters, run_id)
    if not is_shared_name(run.name):
        _judged(adapters, run)


def _judged(adapters: Adapters, run: JobRun) -> Ingestion | None:
    """Return the ingestion of a job run as it is then, None if the run is not one of ours."""
    try:
        ingestion_id, attempt = parse_run_name(run.name)
    except ValueError:
        logger.info("not a job run of ours", extra={"run": run.id, "run_name": run.name})
        return None
    with logger.append_context_keys(ingestion=ingestion_id):
        ingestion = adapters.ledger.get(ingestion_id)
        if is_judged(ingestion):
            return ingestion
        if _is_current(run, attempt, ingestion):
            _check_own(adapters, ingestion, run)
            return record_verdict(adapters, ingestion.but(job_run=run.id), run)
        logger.info("nothing to do yet", extra={"run": run.id, "run_state": run.state})
        return ingestion


def resume(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Continue where an earlier try stopped, finish it, and publish those that waited for it."""
    current = _continued(adapters, ingestion)
    if current.state is State.AUDITED:
        return publish(adapters, current)
    current = finish(adapters, current)
    if current.state is not State.PUBLISHED:  # `publish` published those already
        publish_next(adapters, current)
    return current


def _continued(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Start the job run of an ingestion, or record the verdict of one that has ended."""
    if ingestion.awaits_shared_run:
        return ingestion  # whose message comes, or is replaced by the sweep (judged.py)
    if ingestion.state in NOT_STARTED:
        return submit(adapters, ingestion)
    if ingestion.state is not State.SUBMITTED:
        return ingestion
    try:
        run = look(adapters, ingestion.job_run)
    except UnknownRun as error:
        return end(adapters, ingestion, State.ERRORED, Reason("JOB_LOST", error.message))
    return record_verdict(adapters, ingestion, run) if run.has_ended else ingestion


def is_judged(ingestion: Ingestion) -> bool:
    """Return whether the current attempt has its verdict."""
    return ingestion.ended or ingestion.state is State.AUDITED


def _is_current(run: JobRun, attempt: int, ingestion: Ingestion) -> bool:
    """Return whether a run of an attempt has ended, and the attempt is the current one."""
    return attempt == ingestion.attempt and run.has_ended


def _check_own(adapters: Adapters, ingestion: Ingestion, run: JobRun) -> None:
    """Raise Transient for a run from before the ledger lost the ingestion.

    A repeated event has begun the ingestion again meanwhile. The run does not belong to that
    attempt; the sweep restores the lost one.
    """
    if ingestion.state not in NOT_STARTED:
        return
    spec = adapters.jobs.spec(run.id)
    if (spec.base_hash, spec.branch) != (ingestion.base_hash, ingestion.branch):
        message = f"the ledger had lost {ingestion.id}; the sweep restores it"
        raise Transient("LOST_INGESTION", message)


def record_verdict(adapters: Adapters, ingestion: Ingestion, run: JobRun) -> Ingestion:
    """Record what the ended run and its report mean for the ingestion, whose attempt it was."""
    try:
        report = report_of(adapters, ingestion)
    except Permanent as error:
        return end(adapters, ingestion, State.ERRORED, Reason(error.code, error.message))
    return record_report(adapters, ingestion, run, report)


def record_report(
    adapters: Adapters, ingestion: Ingestion, run: JobRun, report: AuditReport | None
) -> Ingestion:
    """Record the same for a report that was read before.

    What the report of another run found is not kept: upkeep would keep files, and people would
    see checks, by the word of a stranger.
    """
    if report and belongs(report, ingestion):
        ingestion = with_findings(ingestion, report)
    match decide(ingestion, run, report, adapters.settings.max_crashes):
        case Publish(report=passed):
            return _accept(adapters, ingestion, passed)
        case AwaitRight(reason):
            return _with_right(adapters, ingestion, reason)
        case RunAgain(reason):
            logger.warning("the job failed", extra={"reason": asdict(reason)})
            return run_again(adapters, ingestion.but(failures=ingestion.failures + 1))
        case Refuse() as refusal:
            return _refuse(adapters, ingestion, refusal)


def _refuse(adapters: Adapters, ingestion: Ingestion, refusal: Refuse) -> Ingestion:
    """End the ingestion, or run it again if its table has moved on from its contract.

    Without a contract in force that can be read, the refusal and its branch stay.
    """
    changed = "" if ingestion.contract_pinned else outdated(adapters, [ingestion])
    if changed and current_requirements(adapters, ingestion):
        logger.warning("refused by an older contract", extra={"changed": changed})
        return run_again(adapters, ingestion)
    reason = _located(adapters, ingestion, refusal.reason)
    return end(adapters, ingestion.without_approval(), refusal.state, reason)


def _with_right(adapters: Adapters, ingestion: Ingestion, reason: Reason) -> Ingestion:
    """Run the job again, some minutes after its start. Raise RightMissing before that.

    Each time people are told of the right, and once they have given it the file goes on.
    """
    pause = timedelta(seconds=adapters.settings.grace_seconds)
    if datetime.fromisoformat(ingestion.saved_at) + pause > datetime.fromisoformat(adapters.now()):
        raise RightMissing(reason.message.partition("\n")[0])
    return run_again(adapters, ingestion, ever=True)


def _located(adapters: Adapters, ingestion: Ingestion, reason: Reason) -> Reason:
    """Return the reason, with where main has the rows apart that a retraction could not find."""
    if reason.code != "ROWS_SCATTERED" or not ingestion.change:
        return reason
    known = adapters.ledger.together([ingestion.change.retracts])
    where = "".join(where_separate(adapters, each) for each in known)
    return replace(reason, message=reason.message + where)


def _accept(adapters: Adapters, ingestion: Ingestion, report: AuditReport) -> Ingestion:
    first = earlier(adapters, ingestion)
    passed = audited(ingestion, report, first)
    if first and is_held(ingestion, first):
        return hold(adapters, passed, first)
    return adapters.ledger.save(passed)


def audited(ingestion: Ingestion, report: AuditReport, first: Ingestion | None) -> Ingestion:
    """Return the ingestion after it passed the audit; `first` brought the same bytes before."""
    held_back = (LIKELY_DUPLICATE, CANNOT_REPLACE, SUPERSEDED, OUT_OF_ORDER)
    needed = report.failed or ingestion.reason_code in held_back
    approved = ingestion if needed else ingestion.without_approval()
    outcome = replace(ingestion.audit, duplicate_of=first.id if first else "")
    return approved.step("audited", report.finished_at, state=State.AUDITED, audit=outcome)
