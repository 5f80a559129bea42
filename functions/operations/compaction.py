"""Compact tables: few large data files in the place of many small ones, with the same rows.

    create a branch off main, whose name says when; start a job run that rewrites there and compares
      → it left no report within the time of a run: delete the branch
      → the rows differ, or the branch has another commit: delete the branch, and say so
    merge the branch
      → main's table changed since: register the new data files on a fresh branch off main in the
        place of those that they replace, by metadata alone, if all of these are still there
      → main cannot take them: delete the branch, and compact again another day

Nothing here is in the ledger: the branches are the list of what is under way. Every step can be
repeated, by two processes at once too. docs/adr/0043-upkeep.md has the whole argument.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from functions.adapters.all import Adapters
from functions.adapters.iceberg_files import TableSize
from functions.adapters.nessie import (
    MAIN,
    CannotRebase,
    FilesGone,
    MergeConflict,
    SetBack,
    UnknownBranch,
)
from functions.adapters.s3 import Missing
from functions.model import merge_commit
from functions.model.announcement import Refresh
from functions.model.ingestion import Ingestion, Intent
from functions.pipeline.fresh_branch import merge_fresh_branch
from functions.telemetry import logger, metrics
from lakegate.audit_tables import TABLES
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject, fresh_branch
from lakegate.upkeep import FEWEST, UPKEEP, Begun, Compaction, begin, parse_branch

_MOST_AT_ONCE = 4  # job runs of all tables together
_LONGEST = timedelta(hours=20)  # until the report expires
_SMALL_RUN = 8  # times a small file's bytes are still rewritten by small workers
_HISTORY = {table.name for table in TABLES}  # which no consumer follows
_NO_FILE = LandedObject("", "", "", "", 0)


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
    size: TableSize
    why_not: str = ""


class _Unsound(LakegateError):
    """The branch must never be merged."""


def needs(adapters: Adapters, only: str = "") -> Iterator[Need]:
    """Yield every table of a contract on main, and the ops tables; or `only` that one."""
    head = adapters.catalog.head(MAIN)
    contracts = {each.contract.table: each.contract for each in adapters.lake.contracts(None)}
    under_way = {each.table for each in _under_way(adapters)}
    for table in sorted({*contracts, *_HISTORY}):
        if table == (only or table) and adapters.catalog.metadata(head, table):
            size = adapters.tables().size(table, f"{MAIN}@{head}")
            why_not = _why_not(contracts.get(table), size)
            if table in under_way:
                why_not = "it is being compacted"
            yield Need(table, size, why_not)


def _why_not(contract: Contract | None, size: TableSize) -> str:
    if contract and contract.compaction == "never":
        return "its contract says `compaction: never`"
    if contract and contract.on_new_version == "replace":
        return "a newer version of a file replaces its data files, so each file keeps its own"
    if not size.scattered:
        return f"no partition has {FEWEST} small files"
    return ""


def start_due(adapters: Adapters) -> Iterator[Progress]:
    """Start the compaction of every table that needs it, most small files first.

    One that cannot be started does not stop the others; then raises its LakegateError at the end.
    """
    due = [need for need in needs(adapters) if not need.why_not]
    failed: LakegateError | None = None
    for need in sorted(due, key=lambda each: -each.size.scattered):
        try:
            yield start(adapters, need)
        except LakegateError as error:
            logger.exception("a compaction could not be started", extra={"table": need.table})
            failed = error
    if failed:
        raise failed


def start(adapters: Adapters, need: Need) -> Progress:
    """Start the job run that compacts a table, unless many run at a time.

    Raises LakegateError if EMR Serverless does not take it.
    """
    if len(_under_way(adapters)) >= _MOST_AT_ONCE:
        return Progress(need.table, "", Step.WAITS, f"{_MOST_AT_ONCE} others are under way")
    begun = begin(need.table, datetime.fromisoformat(adapters.now()), adapters.token())
    base = adapters.catalog.create_branch(begun.branch)
    try:
        run = adapters.jobs.start(_spec(adapters, begun, base, need.size))
    except Permanent:
        adapters.catalog.delete_branch(begun.branch)
        raise
    logger.info("compaction started", extra={"branch": begun.branch, "run": run})
    return Progress(need.table, begun.branch, Step.STARTED)


def _spec(adapters: Adapters, begun: Begun, base: str, size: TableSize) -> JobSpec:
    """Return the job's input. Its id is no ingestion's, so that nothing else follows its run."""
    settings = adapters.settings
    return JobSpec(
        ingestion=begun.id,
        attempt=1,
        landed=_NO_FILE,
        table=begun.table,
        branch=begun.branch,
        base_hash=base,
        lake_bucket=settings.lake_bucket,
        contract_key="",
        contract_version="",
        report_key=begun.report_key,
        nessie_uri=settings.nessie_uri,
        token_secret=settings.job_token_secret,
        timeout_minutes=settings.job_timeout_minutes,
        small=size.bytes <= _SMALL_RUN * settings.small_file_bytes,
        compact=True,
    )


def under_way(adapters: Adapters) -> Iterator[str]:
    """Yield the branches of compactions that are neither published nor dropped."""
    for each in _under_way(adapters):
        yield each.branch


def _under_way(adapters: Adapters) -> list[Begun]:
    found = []
    for name in adapters.catalog.branches(UPKEEP):
        try:
            found.append(parse_branch(name))
        except ValueError:
            logger.warning("not a branch of ours", extra={"branch": name})
    return found


def settle(adapters: Adapters, branch: str) -> Progress:
    """Publish a compaction whose job has ended, or drop it; a file of its table comes first."""
    begun = parse_branch(branch)
    try:
        done = _settled(adapters, begun)
    except (_Unsound, CannotRebase, SetBack, UnknownBranch) as why:
        done = Progress(begun.table, branch, Step.DROPPED, why.message)
    if done.step is not Step.WAITS:
        refresh_consumers(adapters, begun.table)  # first: a crash between may have left it out
        adapters.catalog.delete_branch(branch)
        logger.info("compaction settled", extra={"branch": branch, "how": done.step, "y": done.why})
        metrics.add_metric(f"Compactions{done.step.title()}", "Count", 1)
    return done


def refresh_consumers(adapters: Adapters, table: str) -> None:
    """Have consumers read the table's newest state: the data files of older ones are deleted."""
    tip = adapters.catalog.tip()
    metadata = adapters.catalog.metadata(tip.hash, table)
    if metadata and table not in _HISTORY:
        adapters.announcements.send(Refresh(table, tip.position, metadata))


def _settled(adapters: Adapters, begun: Begun) -> Progress:
    now = datetime.fromisoformat(adapters.now())
    wait = partial(Progress, begun.table, begun.branch, Step.WAITS)
    try:
        report = adapters.lake.compaction(begun.report_key)
    except Missing:
        if now < begun.at + _patience(adapters):
            return wait("its job has not ended")
        raise _Unsound("NO_REPORT", "its job left no report: its log says why") from None
    _require_sound(adapters, begun, report)
    if now < begun.at + _LONGEST and (name := _held_up(adapters, begun.table)):
        return wait(f"{name} would have to run again")
    if now >= begun.at + _LONGEST:
        raise _Unsound("TOO_OLD", "files were in flight for all of the time that it waited")
    _publish(adapters, begun, report)
    return Progress(begun.table, begun.branch, Step.PUBLISHED)


def _patience(adapters: Adapters) -> timedelta:
    settings = adapters.settings
    return timedelta(minutes=2 * settings.job_timeout_minutes, seconds=settings.grace_seconds)


def _require_sound(adapters: Adapters, begun: Begun, report: Compaction) -> None:
    """Raise _Unsound unless the branch has one commit that changes no row of its table alone.

    The job counts and hashes the rows; the count is repeated here, as others with the job's token
    can write there.
    """
    table, base, at = begun.table, report.base_hash, report.audited_hash
    if (report.table, report.branch) != (table, begun.branch):
        raise _Unsound("FOREIGN_REPORT", f"{begun.report_key} is the report of something else")
    if not report.has_effect:
        raise _Unsound("NO_EFFECT", "there was nothing to rewrite")
    if not report.same_rows:
        logger.error("a compaction changed rows", extra={"branch": begun.branch, "table": table})
        metrics.add_metric("CompactionsUnsound", "Count", 1)
        message = f"the rows differ: {report.before} before, {report.after} after"
        raise _Unsound("ROWS_DIFFER", message)
    if adapters.catalog.head(begun.branch) != at:
        raise _Unsound("FOREIGN_COMMIT", "another writer committed on its branch")
    if strange := adapters.catalog.changed_tables(base, at) - {table}:
        raise _Unsound("FOREIGN_COMMIT", f"it also changes {', '.join(sorted(strange))}")
    _require_rows(adapters, table, base, at)


def _require_rows(adapters: Adapters, table: str, before: str, after: str) -> None:
    """Raise _Unsound unless both states of the table have as many rows."""
    old, new = (adapters.tables().rows(table, f"{MAIN}@{at}").live for at in (before, after))
    if old != new:
        raise _Unsound("ROWS_DIFFER", f"{table} has {old:,} rows before and {new:,} after")


def _held_up(adapters: Adapters, table: str) -> str:
    """Return the name of an ingestion that would need another job run after a merge; "" if none.

    Other files are registered again by metadata, within a second.
    """
    found = adapters.ledger.unfinished("9999")
    return next((each.name for each in found if table in each.tables and _is_delayed(each)), "")


def _is_delayed(ingestion: Ingestion) -> bool:
    return bool(ingestion.change or ingestion.checks_whole_table or ingestion.is_ordered)


def _publish(adapters: Adapters, begun: Begun, report: Compaction) -> None:
    """Merge what was compared. Raises CannotRebase or _Unsound where main cannot take it."""
    table, base, at = begun.table, report.base_hash, report.audited_hash
    change = adapters.tables().change(table, f"{MAIN}@{base}", f"{MAIN}@{at}")
    removed, new = tuple(change.removed), len(change.added)
    message = f"Compact {len(removed):,} data files of {table} to {new:,}"
    properties = {merge_commit.UPKEEP: json.dumps({"table": table, "branch": begun.branch})}
    try:
        adapters.catalog.merge(begun.branch, at, base, message, properties)
    except MergeConflict:
        if _has_deletes(adapters, table, base):
            why = "rows were deleted, which the new data files have no longer"
            raise _Unsound("ROWS_DELETED", why) from None
        again = partial(_again, adapters, begun, at, removed, message, properties)
        prefix, busy = fresh_branch(table, begun.id[-12:], ""), f"{table} changed on main each time"
        try:
            merge_fresh_branch(adapters, prefix, again, busy)
        except FilesGone as gone:
            raise _Unsound(gone.code, "main has replaced some of its data files") from gone


def _again(
    adapters: Adapters,
    begun: Begun,
    at: str,
    removed: tuple[str, ...],
    message: str,
    properties: dict[str, str],
    name: str,
    base: str,
) -> None:
    """Register the new data files in the place of the old ones on a fresh branch, and merge it.

    All old files have to be there, without deletes: then the rows in them are what they were.
    """
    if _has_deletes(adapters, begun.table, base):
        raise _Unsound("ROWS_DELETED", "rows of its data files were deleted meanwhile")
    adapters.tables().replace(begun.table, Intent(begun.branch, at), removed, name)
    head = adapters.catalog.head(name)
    _require_rows(adapters, begun.table, base, head)
    adapters.catalog.merge(name, head, base, message, properties)


def _has_deletes(adapters: Adapters, table: str, at: str) -> bool:
    rows = adapters.tables().rows(table, f"{MAIN}@{at}")
    return bool(rows.position_deletes or rows.equality_deletes)
