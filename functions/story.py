"""One file's way, from the event that it landed to main, or to the people who must know.

Read from top to bottom: take_in, submit, conclude, publish, finish. Every step first looks at what
is there, so each can be repeated: after a crash anywhere, or an event that comes twice, running
the story again ends where an undisturbed run ends.
"""

from dataclasses import asdict, replace

from functions import commits
from functions.catalog import CannotRebase, MergeConflict, NotOnMain, UnknownBranch
from functions.decisions import Publish, Refuse, RunAgain, decide
from functions.ingestion import ALERTED, Ingestion, State
from functions.job_run import JobRun
from functions.messages import alert
from functions.storage import Missing, StoredContract
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate.contract import claiming
from lakegate.errors import LakegateError, Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import (
    LandedObject,
    branch_name,
    ignore_rule,
    ingestion_id,
    parse_run_name,
    report_key,
)
from lakegate.report import AuditReport, Reason


def take_in(world: World, landed: LandedObject) -> Ingestion:
    """Begin the ingestion of a landed object, or carry on where an earlier try stopped."""
    timed = replace(landed, landed_at=landed.landed_at or world.now())
    first = Ingestion(id=ingestion_id(landed), landed=timed)
    with logger.append_context_keys(ingestion=first.id, key=landed.key):
        ingestion = world.ledger.begin(first.step("landed", timed.landed_at))
        if ingestion.state in (State.LANDED, State.BRANCHED):
            return submit(world, ingestion)
        logger.info("known already", extra={"state": ingestion.state})
        return finish(world, ingestion)


def submit(world: World, ingestion: Ingestion) -> Ingestion:
    """Cut the attempt's branch and start its job run; what cannot be run ends errored."""
    rule = ignore_rule(ingestion.landed.key)
    if rule:
        return end(world, ingestion, State.IGNORED, Reason("IGNORED_KEY", rule))
    try:
        if ingestion.landed.size == 0:
            raise Permanent("EMPTY_OBJECT", "the file has no bytes: was its upload cut short?")
        branched = _cut_branch(world, ingestion)
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    return _start_job(world, branched)


def conclude(world: World, run_id: str) -> None:
    """Bring an ended job run to its end: published, rejected or errored."""
    run = world.jobs.get(run_id)
    try:
        ingestion, attempt = parse_run_name(run.name)
    except ValueError:
        logger.info("not a job run of ours", extra={"run": run_id, "run_name": run.name})
        return
    with logger.append_context_keys(ingestion=ingestion):
        proceed(world, world.ledger.get(ingestion), attempt, run)


def proceed(world: World, ingestion: Ingestion, attempt: int, run: JobRun) -> Ingestion:
    """Do the next thing for an ingestion, now that its job run stands where it stands."""
    if ingestion.ended:
        return finish(world, ingestion)
    if ingestion.state is State.AUDITED:
        return publish(world, ingestion)
    if attempt != ingestion.attempt or not run.state.terminal:
        logger.info("nothing to do yet", extra={"run": run.id, "run_state": run.state})
        return ingestion
    return _judge(world, replace(ingestion, job_run=run.id), run)


def publish(world: World, ingestion: Ingestion) -> Ingestion:
    """Merge the intent into main: exactly what was audited, and nothing else."""
    try:
        world.catalog.merge(
            ingestion.branch,
            ingestion.audited_hash,
            commits.message(ingestion),
            commits.properties(ingestion),
        )
    except MergeConflict:
        return _rebase(world, ingestion)
    except UnknownBranch:
        logger.info("the branch is gone: main's log tells whether it was merged")
    try:
        commit = world.catalog.find_commit(commits.INGESTION, ingestion.id)
    except NotOnMain:
        return _run_again(world, ingestion)
    return end(world, ingestion, State.PUBLISHED, merge_hash=commit.hash)


def end(
    world: World,
    ingestion: Ingestion,
    state: State,
    reason: Reason | None = None,
    merge_hash: str = "",
) -> Ingestion:
    """Record how an ingestion ended, then do what its end asks for."""
    ended = ingestion.step(
        state.value, world.now(), state=state, reason=reason, merge_hash=merge_hash
    )
    metrics.add_metric(state.capitalize(), "Count", 1)
    logger.info(f"ended {state}", extra={"reason": asdict(reason) if reason else None})
    return finish(world, world.ledger.save(ended))


def finish(world: World, ingestion: Ingestion) -> Ingestion:
    """Do what is still due after the end: tell the people, delete what was published."""
    if ingestion.state in ALERTED and not ingestion.alerted:
        return _tell(world, ingestion)
    if ingestion.state is State.PUBLISHED and not ingestion.cleaned:
        return _clean_up(world, ingestion)
    return ingestion


def _cut_branch(world: World, ingestion: Ingestion) -> Ingestion:
    if ingestion.state is State.BRANCHED:
        return ingestion
    stored = _claiming(world, ingestion)
    table = stored.contract.table
    branch = branch_name(table, ingestion.landed.key, ingestion.id, ingestion.attempt)
    branched = ingestion.step(
        "branched",
        world.now(),
        state=State.BRANCHED,
        table=table,
        contract_key=stored.key,
        contract_version=stored.version,
        channel=stored.contract.channel,
        branch=branch,
        base_hash=world.catalog.create_branch(branch),
        report_key=report_key(table, ingestion.id, ingestion.attempt),
    )
    return world.ledger.save(branched)


def _claiming(world: World, ingestion: Ingestion) -> StoredContract:
    stored = {s.contract.table: s for s in world.lake.contracts()}
    contract = claiming([s.contract for s in stored.values()], ingestion.landed.key)
    return stored[contract.table]


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
    )
    try:
        run = world.jobs.start(spec)
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    logger.info("job run started", extra={"run": run, "branch": ingestion.branch})
    return world.ledger.save(
        ingestion.step("submitted", world.now(), state=State.SUBMITTED, job_run=run)
    )


def _judge(world: World, ingestion: Ingestion, run: JobRun) -> Ingestion:
    try:
        report = _report(world, ingestion)
    except Permanent as error:
        return end(world, ingestion, State.ERRORED, Reason(error.code, error.message))
    ingestion = _with_findings(ingestion, report) if report else ingestion
    match decide(ingestion, run, report, world.settings.job_tries):
        case Publish(report=passed):
            audited = ingestion.step("audited", passed.finished_at, state=State.AUDITED)
            return publish(world, world.ledger.save(audited))
        case RunAgain(reason):
            logger.warning("the job failed", extra={"reason": asdict(reason)})
            return _run_again(world, replace(ingestion, failures=ingestion.failures + 1))
        case Refuse(state, reason):
            return end(world, ingestion, state, reason)


def _report(world: World, ingestion: Ingestion) -> AuditReport | None:
    try:
        return world.lake.report(ingestion.report_key)
    except Missing:
        return None


def _with_findings(ingestion: Ingestion, report: AuditReport) -> Ingestion:
    checks = [asdict(check) for check in report.checks]
    return replace(
        ingestion,
        audited_hash=report.audited_hash,
        rows=report.rows_written,
        checks=tuple({k: v for k, v in check.items() if k != "samples"} for check in checks),
    )


def _rebase(world: World, ingestion: Ingestion) -> Ingestion:
    """Main's table moved: enter the audited files into its newer state, on a fresh branch.

    The refused branch can never be merged, so when the intent has moved on to the fresh one, by a
    write that only one publisher can win, exactly one branch can still publish these rows.
    """
    fresh = f"{ingestion.branch.partition('-r.')[0]}-r.{world.token()}"
    world.catalog.create_branch(fresh)
    try:
        world.tables().append_again(
            ingestion.table, ingestion.branch, ingestion.audited_hash, fresh
        )
        audited = world.catalog.head(fresh)
        rebased = ingestion.step("rebased", world.now(), branch=fresh, audited_hash=audited)
        moved = world.ledger.save(rebased)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        world.catalog.delete_branch(fresh)
        return _run_again(world, ingestion)
    except LakegateError:
        # A save that timed out may have been done: then the fresh branch is the intent.
        if world.ledger.get(ingestion.id).branch != fresh:
            world.catalog.delete_branch(fresh)
        raise
    world.catalog.delete_branch(ingestion.branch)
    metrics.add_metric("Rebases", "Count", 1)
    return publish(world, moved)


def _run_again(world: World, ingestion: Ingestion) -> Ingestion:
    """This branch will never be merged: start over on a fresh one."""
    if ingestion.attempt >= world.settings.max_attempts:
        message = f"none of {ingestion.attempt} attempts could be published; drop the file again"
        reason = Reason("TOO_MANY_ATTEMPTS", f"{message} when fewer files are on their way")
        return end(world, ingestion, State.ERRORED, reason)
    world.catalog.delete_branch(ingestion.branch)
    metrics.add_metric("RunsAgain", "Count", 1)
    fresh = ingestion.step("run again", world.now(), state=State.LANDED, audited_hash="")
    return submit(world, world.ledger.save(replace(fresh, attempt=ingestion.attempt + 1)))


def _clean_up(world: World, ingestion: Ingestion) -> Ingestion:
    """Delete the published branch, and those that a crash in a rebase left behind."""
    first = branch_name(ingestion.table, ingestion.landed.key, ingestion.id, attempt=1)
    for branch in world.catalog.branches(first):
        world.catalog.delete_branch(branch)
    return world.ledger.save(ingestion.step("cleaned", world.now(), cleaned=True))


def _tell(world: World, ingestion: Ingestion) -> Ingestion:
    try:
        report = _report(world, ingestion) if ingestion.report_key else None
    except Permanent:
        report = None  # an unreadable report is the reason of this alert
    message = alert(ingestion, report)
    try:
        world.alerts.post(ingestion.channel, message)
    except Permanent as refused:
        logger.error("alert refused, trying the default channel", extra={"refusal": str(refused)})
        world.alerts.post("", message)
    return world.ledger.save(ingestion.step("alerted", world.now(), alerted=True))
