"""From the end of a job run to its meaning: publish, run again, or tell people."""

from dataclasses import asdict

from functions.decisions import Publish, Refuse, RunAgain, decide, with_findings
from functions.duplicates import LIKELY_DUPLICATE, brought_before, original
from functions.ending import end, finish, report_of
from functions.ingestion import NOT_STARTED, Ingestion, State
from functions.intake import run_again, submit
from functions.job_run import JobRun
from functions.jobs import UnknownRun
from functions.publishing import publish, publish_next
from functions.replacing import CANNOT_REPLACE
from functions.telemetry import logger
from functions.versions import SUPERSEDED
from functions.world import World
from lakegate.errors import Permanent, Transient
from lakegate.landing import parse_run_name
from lakegate.report import AuditReport, Reason


def conclude(world: World, run_id: str) -> None:
    """Bring an ended job run to its end: published, rejected or errored."""
    ingestion = judge(world, run_id)
    if ingestion:
        with logger.append_context_keys(ingestion=ingestion.id):
            if _is_judged(ingestion):
                resume(world, ingestion)
            else:
                publish_next(world, ingestion)


def judge(world: World, run_id: str) -> Ingestion | None:
    """See what an ended job run means: what passed is AUDITED then, and waits to be published.

    Returns the ingestion, or None where the job run is not one of ours.
    """
    run = world.jobs.get(run_id)
    try:
        ingestion_id, attempt = parse_run_name(run.name)
    except ValueError:
        logger.info("not a job run of ours", extra={"run": run_id, "run_name": run.name})
        return None
    with logger.append_context_keys(ingestion=ingestion_id):
        ingestion = world.ledger.get(ingestion_id)
        if _is_judged(ingestion):
            return ingestion
        if _is_current(run, attempt, ingestion):
            _check_own(world, ingestion, run)
            return _judge(world, ingestion.but(job_run=run.id), run)
        logger.info("nothing to do yet", extra={"run": run.id, "run_state": run.state})
        return ingestion


def resume(world: World, ingestion: Ingestion) -> Ingestion:
    """Carry on with an ingestion where an earlier try stopped, and with who waits for it."""
    resumed = _resumed(world, ingestion)
    if resumed.state is not State.PUBLISHED:  # which saw to the next itself
        publish_next(world, resumed)
    return resumed


def _resumed(world: World, ingestion: Ingestion) -> Ingestion:
    if ingestion.ended:
        return finish(world, ingestion)
    if ingestion.state is State.AUDITED:
        return publish(world, ingestion)
    if ingestion.state is not State.SUBMITTED:
        return submit(world, ingestion)
    try:
        run = world.jobs.get(ingestion.job_run)
    except UnknownRun as error:
        return end(world, ingestion, State.ERRORED, Reason("JOB_LOST", error.message))
    if not run.has_ended:
        return ingestion
    judged = _judge(world, ingestion, run)
    return publish(world, judged) if judged.state is State.AUDITED else judged


def _is_judged(ingestion: Ingestion) -> bool:
    """Return whether the current attempt has its verdict."""
    return ingestion.ended or ingestion.state is State.AUDITED


def _is_current(run: JobRun, attempt: int, ingestion: Ingestion) -> bool:
    """Return whether a run of an attempt has ended, and the attempt is the current one."""
    return attempt == ingestion.attempt and run.has_ended


def _check_own(world: World, ingestion: Ingestion, run: JobRun) -> None:
    """Raise Transient where the run is one of before the ledger lost the ingestion.

    An event that came again then began it anew: until it is restored, it is not the run's.
    """
    if ingestion.state not in NOT_STARTED:
        return
    told = world.jobs.spec(run.id)
    if (told.base_hash, told.branch) != (ingestion.base_hash, ingestion.branch):
        message = f"the ledger had lost {ingestion.id}; the sweep restores it"
        raise Transient("LOST_INGESTION", message)


def _judge(world: World, ingestion: Ingestion, run: JobRun) -> Ingestion:
    try:
        report = report_of(world, ingestion)
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    ingestion = with_findings(ingestion, report) if report else ingestion
    match decide(ingestion, run, report, world.settings.job_tries):
        case Publish(report=passed):
            return _accept(world, ingestion, passed)
        case RunAgain(reason):
            logger.warning("the job failed", extra={"reason": asdict(reason)})
            return run_again(world, ingestion.but(failures=ingestion.failures + 1))
        case Refuse(state, reason):
            return end(world, ingestion.but(approval=None), state, reason)


def _accept(world: World, ingestion: Ingestion, report: AuditReport) -> Ingestion:
    first = _before(world, ingestion)
    code = ingestion.reason.code if ingestion.reason else ""
    needed = report.failed or code in (LIKELY_DUPLICATE, CANNOT_REPLACE, SUPERSEDED)
    audited = ingestion.step(
        "audited",
        report.finished_at,
        state=State.AUDITED,
        approval=ingestion.approval if needed else None,
        duplicate_of=first.id if first else "",
    )
    held = ingestion.parts or ingestion.on_duplicate == "hold"
    if first and held and not audited.approval:
        what = "some of its files" if ingestion.parts else "the same bytes"
        message = f"{first.landed.uri} brought {what} before; a person must decide"
        return end(world, audited, State.REJECTED, Reason(LIKELY_DUPLICATE, message))
    return world.ledger.save(audited)


def _before(world: World, ingestion: Ingestion) -> Ingestion | None:
    """Who brought the same before: the bytes of a file, or the very files of a batch."""
    if ingestion.parts:  # whose manifest may be alike from day to day
        return brought_before(ingestion, world.ledger.versions(ingestion.landed))
    return original(ingestion, world.ledger.same_content(ingestion))
