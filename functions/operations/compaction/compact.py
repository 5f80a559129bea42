"""Compact tables: few large data files in the place of many small ones, with the same rows.

    note it in the ledger; create a branch off main; start a job run that rewrites there
      → EMR Serverless does not call that run a success: drop it
    start a second run, which may only read, to compare the branch's head with its base
      → that run is no success, or the rows differ: drop it, and say so
    publish the data files that were compared (publish.py)
      → main cannot take them: drop it, and compact again another day

The ledger's list says what is under way: only what it has is ever published. A branch's name, its
commits and a report are never a reason, because job runs can make them. Every step can be repeated,
by two processes at once too. docs/adr/0052-begun-compactions.md has the whole argument.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from functions.adapters.all import Adapters
from functions.adapters.emr import RunState, UnknownRun
from functions.adapters.iceberg.errors import CannotRebase
from functions.adapters.ledger.notes import Moved
from functions.adapters.nessie import MAIN, SetBack, UnknownBranch
from functions.model.ingestion import Ingestion
from functions.model.messages.refresh import Refresh
from functions.model.notes.compactions import Compaction, begin
from functions.operations.compaction.begun import advance
from functions.operations.compaction.publish import Unsound, publish, why_forbidden
from functions.pipeline.start.spending import look, start_within_budget, why_wait
from functions.telemetry import logger, metrics
from lakegate.audit.audit_tables import TABLES
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, run_name
from lakegate.job.upkeep import FEWEST

if TYPE_CHECKING:  # it imports pyiceberg: a second that help does not need
    from functions.adapters.iceberg.files import TableSize

_MOST_AT_ONCE = 4  # job runs of all tables together
_PARALLEL = 8  # tables that are looked at
_LONGEST = timedelta(hours=20)  # until the report expires
_SMALL_RUN = 8  # times a small file's bytes are still rewritten by small workers
_HISTORY = {table.name for table in TABLES}  # which no consumer follows
_NO_FILE = LandedObject("", "", "", "", 0)
_REWRITING, _COMPARING = 1, 2  # the job runs of a compaction, as attempts


class Step(StrEnum):
    """What became of a compaction."""

    STARTED = "started"
    WAITS = "waits"
    PUBLISHED = "published"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Progress:
    """A compaction's step, and the reason why it waits or was dropped; "" without one."""

    table: str
    branch: str
    step: Step
    why: str = ""


@dataclass(frozen=True)
class Need:
    """A table on main, and whether to compact it; `why_not` is "" if that is to be done."""

    table: str
    size: "TableSize"
    why_not: str = ""


def needs(adapters: Adapters, only: str = "") -> Iterator[Need]:
    """Yield every table of a contract on main, and the ops tables; or `only` that one."""
    head = adapters.catalog.head(MAIN)
    contracts = {each.contract.table: each.contract for each in adapters.lake.contracts(None)}
    busy = {each.table for each in under_way(adapters)}
    names = [each for each in sorted({*contracts, *_HISTORY}) if each == (only or each)]
    there = [each for each in names if adapters.catalog.metadata(head, each)]
    size_of = partial(adapters.tables().size, reference=f"{MAIN}@{head}")
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for table, size in zip(there, pool.map(size_of, there), strict=True):
            why_not = _why_not(contracts.get(table), size)
            yield Need(table, size, "it is being compacted" if table in busy else why_not)


def _why_not(contract: Contract | None, size: "TableSize") -> str:
    if contract and (why := why_forbidden(contract)):
        return why
    if size.has_deletes:
        return "another writer's delete files hide rows of it: have that writer rewrite them"
    if not size.scattered:
        return f"no partition has {FEWEST} small files"
    return ""


def start_due(adapters: Adapters, measured: Iterable[Need] | None = None) -> Iterator[Progress]:
    """Start the compaction of every table, or of these, that needs it.

    Those whose last one began longest ago come first, so that none waits for ever behind others;
    of those without any the one with the most small files. One that cannot be started does not stop
    the others; then raises its LakegateError at the end.
    """
    found = needs(adapters) if measured is None else measured
    due, last = [need for need in found if not need.why_not], adapters.ledger.compactions().last
    failed: LakegateError | None = None
    for need in sorted(due, key=lambda each: (last.get(each.table, ""), -each.size.scattered)):
        try:
            yield start(adapters, need)
        except LakegateError as error:
            logger.exception("a compaction could not be started", extra={"table": need.table})
            failed = error
    if failed:
        raise failed


def start(adapters: Adapters, need: Need) -> Progress:
    """Start the job run that compacts a table, unless many run at a time.

    Raises LakegateError if EMR Serverless does not take it, or another process began one just now.
    """
    known = adapters.ledger.compactions()
    if len(known.under_way) >= _MOST_AT_ONCE:
        return Progress(need.table, "", Step.WAITS, f"{_MOST_AT_ONCE} others are under way")
    if need.table in {each.table for each in known.under_way}:
        return Progress(need.table, "", Step.WAITS, "another process has begun it")
    if why := why_wait(adapters):
        return Progress(need.table, "", Step.WAITS, why)
    small = need.size.bytes <= _SMALL_RUN * adapters.settings.small_file_bytes
    begun = begin(need.table, adapters.now(), adapters.token(), small=small)
    adapters.ledger.save_compactions(known.with_one(begun))  # before there is a branch of its name
    try:
        base = adapters.catalog.create_branch(begun.branch)
        run = start_within_budget(adapters, _spec(adapters, replace(begun, base=base), _REWRITING))
        if not run:
            _drop(adapters, begun)
            return Progress(need.table, "", Step.WAITS, why_wait(adapters))
        advance(adapters, begun, replace(begun, base=base, rewriting=run))
    except (Permanent, Moved):  # refused, or dropped meanwhile as it took so long
        _drop(adapters, begun)
        raise
    logger.info("compaction started", extra={"branch": begun.branch, "run": run})
    metrics.add_metric("CompactionsStarted", "Count", 1)
    return Progress(need.table, begun.branch, Step.STARTED)


def _drop(adapters: Adapters, begun: Compaction) -> None:
    """Delete its branch and forget it; what another process has made of it stays."""
    adapters.catalog.delete_branch(begun.branch)
    with suppress(Moved):
        advance(adapters, begun, None)


def _spec(adapters: Adapters, begun: Compaction, attempt: int) -> JobSpec:
    """Return a job run's input. Its id is no ingestion's, so that nothing else follows its run."""
    settings = adapters.settings
    return JobSpec(
        ingestion=begun.id,
        attempt=attempt,
        landed=_NO_FILE,
        table=begun.table,
        branch=begun.branch,
        base_hash=begun.base,
        audited_hash=begun.rewritten,
        lake_bucket=settings.lake_bucket,
        contract_key="",
        contract_version="",
        report_key=begun.report_key,
        nessie_uri=settings.nessie_uri,
        token_secret=settings.job_token_secret,
        timeout_minutes=settings.job_timeout_minutes,
        small=begun.small,
        compact=True,
    )


def under_way(adapters: Adapters) -> Iterator[Compaction]:
    """Yield the compactions that are neither published nor dropped."""
    yield from adapters.ledger.compactions().under_way


def settle(adapters: Adapters, begun: Compaction) -> Progress:
    """Take a compaction's next step, if it is due; a file of its table comes first."""
    progress = partial(Progress, begun.table, begun.branch)
    try:
        why = _next_step(adapters, begun)
        done = progress(Step.WAITS, why) if why else progress(Step.PUBLISHED)
    except Moved:
        done = progress(Step.WAITS, "another process takes its next step")
    except (Unsound, CannotRebase, SetBack, UnknownBranch) as error:
        done = progress(Step.DROPPED, error.message)
    if done.step is not Step.WAITS:
        refresh_consumers(adapters, begun.table)  # first: a crash between may have left it out
        _drop(adapters, begun)
        how = {"branch": begun.branch, "how": done.step, "why": done.why}
        logger.info("compaction settled", extra=how)
        metrics.add_metric(f"Compactions{done.step.title()}", "Count", 1)
    return done


def refresh_consumers(adapters: Adapters, table: str) -> None:
    """Have consumers read the table's newest state: the data files of older ones are deleted."""
    tip = adapters.catalog.tip()
    metadata = adapters.catalog.metadata(tip.hash, table)
    if metadata and table not in _HISTORY:
        adapters.announcements.send([Refresh(table, tip.position, metadata)])


def _next_step(adapters: Adapters, begun: Compaction) -> str:
    """Take the next step; return what the compaction waits for then, "" once it is published.

    Raises Unsound where it must be dropped.
    """
    now, at = (datetime.fromisoformat(each) for each in (adapters.now(), begun.at))
    if now >= at + _LONGEST:
        raise Unsound("TOO_OLD", "its job runs, or files in flight, took all of its time")
    if not begun.rewriting:
        if now < at + timedelta(seconds=adapters.settings.grace_seconds):
            return "it is being started"
        raise Unsound("NOT_STARTED", "the process that began it has died")
    if not _has_succeeded(adapters, begun, _REWRITING):
        return "its job has not ended"
    if not begun.comparing:
        return _compare(adapters, begun)
    if not _has_succeeded(adapters, begun, _COMPARING):
        return "its rows are being compared"
    if name := _held_up(adapters, begun.table):
        return f"{name} would have to run again"
    publish(adapters, begun)
    return ""


def _has_succeeded(adapters: Adapters, begun: Compaction, attempt: int) -> bool:
    """Return whether one of its job runs has ended well, by EMR Serverless's own word.

    Raises Unsound if it ended otherwise, or the recorded run is not the one that was asked for.
    """
    id_ = begun.rewriting if attempt == _REWRITING else begun.comparing
    try:
        run = look(adapters, id_)
    except UnknownRun as gone:
        raise Unsound("JOB_LOST", gone.message) from gone
    if run.name != run_name(begun.id, attempt):
        raise Unsound("FOREIGN_RUN", f"{id_} is the job run of something else: {run.name}")
    if run.has_ended and run.state is not RunState.SUCCESS:
        raise Unsound("JOB_FAILED", f"its job run {id_} ended {run.state}: {run.details}")
    return run.has_ended


def _compare(adapters: Adapters, begun: Compaction) -> str:
    """Start the run that compares the branch's head, whoever made it, with the base.

    Return what the compaction waits for then.
    """
    if not begun.rewritten:
        head = adapters.catalog.head(begun.branch)
        if head == begun.base:
            raise Unsound("NO_EFFECT", "there was nothing to rewrite")
        noted = replace(begun, rewritten=head)
        advance(adapters, begun, noted)
        begun = noted
    run = start_within_budget(adapters, _spec(adapters, begun, _COMPARING))
    if not run:
        return why_wait(adapters) or "there was no room for a job run a moment ago"
    advance(adapters, begun, replace(begun, comparing=run))
    return "its rows are being compared"


def _held_up(adapters: Adapters, table: str) -> str:
    """Return the name of an ingestion that would need another job run after a merge; "" if none.

    Other files are registered again by metadata, within a second.
    """
    pending = adapters.ledger.unfinished("9999")
    return next((each.name for each in pending if table in each.tables and _is_delayed(each)), "")


def _is_delayed(ingestion: Ingestion) -> bool:
    return bool(
        ingestion.change or ingestion.terms.checks_whole_table or ingestion.terms.is_ordered
    )
