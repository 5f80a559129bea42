"""What the runs of ended ingestions left is entered into main's tables of results, once.

    cut a fresh branch off main
    read in main's log which of the runs are entered already
    enter the data files of the others on the branch, by metadata alone
    merge it, with a commit that names these runs
           → refused, for somebody else entered some since the branch was cut: again

Main refuses every branch that was cut before its table changed, so between the look at the log and
the merge nothing can have been entered. docs/adr/0015-audit-history.md has the whole argument.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from functions.baselining import add_published
from functions.catalog import MergeConflict, SetBack
from functions.decisions import WITHOUT_REPORT
from functions.ending import save_unmoved
from functions.ingestion import Ingestion, State
from functions.seeding import SEEDING, is_seeded
from functions.storage import Missing
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate import times
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.history import RESULTS, Entry, entries, run_id
from lakegate.landing import fresh_branch, report_key
from lakegate.report import AuditReport

RUNS = "lakegate.runs"
BATCH = 100  # what the ledger reads and saves at once
_MOST_TRIES = 5
_LATE, _LATEST = "reported late", timedelta(days=1)


@dataclass(frozen=True)
class Run:
    """A run that left a report, and whether the rows that it audited are on main."""

    report: AuditReport
    published: bool

    @property
    def id(self) -> str:
        """What main's log names it by."""
        return run_id(self.report.ingestion, self.report.attempt)


def record_recent(world: World) -> None:
    """Record what ended lately; what cannot be recorded now is left to the sweep."""
    try:
        for ended in islice(batches(world), 1):
            record(world, ended)
    except LakegateError as error:
        logger.warning("recording is left to the sweep", extra={"why": error.message})


def batches(world: World) -> Iterator[list[Ingestion]]:
    """The ended ingestions that are to be recorded, as many at a time as one commit takes."""
    listed = world.ledger.unrecorded()
    while ids := [ingestion.id for ingestion in islice(listed, BATCH)]:
        now = world.ledger.together(ids)  # the index that listed them lags behind
        if due := [ingestion for ingestion in now if ingestion.unrecorded]:
            yield due


def late_reports(world: World) -> Iterator[Ingestion]:
    """Yield what landed in the last day and ended without a report that is there by now.

    A driver may go on after EMR Serverless said that its run has failed.
    """
    since = times.text(datetime.fromisoformat(world.now()) - _LATEST)
    errored = world.ledger.in_state(State.ERRORED)  # the newest landing first
    for each in takewhile(lambda each: each.landed.landed_at > since, errored):
        is_silent = each.reason is not None and each.reason.code in WITHOUT_REPORT
        is_seen = each.times.get(_LATE, "") >= each.ended_at or each.recorded < each.attempt
        if is_silent and not is_seen and any(_runs(world, _unrecorded(each))):
            yield each


def take_late(world: World, ended: Ingestion) -> None:
    """Have a report that came late recorded: its verdict is no longer the ingestion's."""
    world.ledger.save(_unrecorded(ended).step(_LATE, world.now()))


def _unrecorded(ended: Ingestion) -> Ingestion:
    return ended.but(recorded=ended.attempt - 1)


def record(world: World, ended: Sequence[Ingestion]) -> None:
    """Enter what the runs of at most 100 ended ingestions left, by one commit on main.

    Raises Transient when others were quicker each time that it was tried.
    """
    runs = [run for ingestion in ended for run in _runs(world, ingestion)]
    if any(single.records for run in runs for single in run.report.singles):
        _enter(world, ended[0], runs)
    add_published(world, [run.report for run in runs if run.published])
    at = world.now()
    saved = save_unmoved(world, [i.step("recorded", at, recorded=i.attempt) for i in ended])
    metrics.add_metric("Recorded", "Count", len(saved))


def strays(world: World) -> Iterator[str]:
    """The branches of those who hung on the way, while others recorded the same and got to the end.

    Nobody needs them: main has moved on since they were cut, and takes none of them. Of those that
    main is seeded by one may be on its way there.
    """
    there = world.catalog.branches(f"publish/{RESULTS.name}/")  # what is cut from now on is in use
    due = tuple(fresh_branch(RESULTS.name, each.id, "") for each in world.ledger.unrecorded())
    for name in there:
        is_done = is_seeded(world) if name.startswith(SEEDING) else not name.startswith(due)
        if is_done:
            yield name


def _runs(world: World, ingestion: Ingestion) -> Iterator[Run]:
    """The ingestion's runs that are not recorded; those that left no report leave nothing."""
    for attempt in range(ingestion.recorded + 1, ingestion.attempt + 1):
        try:
            report = world.lake.report(report_key(ingestion.table, ingestion.id, attempt))
        except (Missing, Permanent):
            continue
        if (report.ingestion, report.attempt) == (ingestion.id, attempt):
            is_last = attempt == ingestion.attempt
            yield Run(report, published=is_last and ingestion.state is State.PUBLISHED)


def _enter(world: World, first: Ingestion, runs: Sequence[Run]) -> None:
    for _ in range(_MOST_TRIES):
        branch = fresh_branch(RESULTS.name, first.id, world.token())
        base = world.catalog.create_branch(branch)
        try:
            _enter_on(world, branch, base, runs)
        except (MergeConflict, SetBack):
            world.catalog.delete_branch(branch)
        except Exception:
            world.catalog.delete_branch(branch)
            raise
        else:
            world.catalog.delete_branch(branch)
            return
    message = f"{RESULTS.name} moved on main {_MOST_TRIES} times while {first.id} was recorded"
    raise Transient("TABLE_BUSY", f"{message}; it will be tried again")


def _enter_on(world: World, branch: str, base: str, runs: Sequence[Run]) -> None:
    """Enter on the branch, cut at `base`, what main lacks, and merge it.

    Raises MergeConflict or SetBack.
    """
    named = _named(world, runs)
    new = {run.id: run.published for run in runs if named.get(run.id) != run.published}
    found = [
        entry
        for run in runs
        if run.id in new
        for entry in _entries(world, run, again=run.id in named)
    ]
    if found:
        world.tables().enter(found, world.settings.lake_bucket, branch)
        head = world.catalog.head(branch)
        message = f"Record {len(new):,} {'run' if len(new) == 1 else 'runs'}"
        world.catalog.merge(branch, head, base, message, {RUNS: json.dumps(new)})


def _named(world: World, runs: Sequence[Run]) -> dict[str, bool]:
    """The runs that main's log names, back to where their branches were cut, as they stand there.

    None was entered before that, as none had begun.
    """
    named: dict[str, bool] = {}
    cut_at = {run.report.base_hash for run in runs}
    for commit in world.catalog.log():
        named = json.loads(commit.properties.get(RUNS, "{}")) | named
        cut_at.discard(commit.hash)
        if not cut_at:
            break
    return named


def _entries(world: World, run: Run, *, again: bool) -> list[Entry]:
    """What a run left; nothing of one that names files which are not its own."""
    try:
        bucket = world.settings.lake_bucket
        return list(entries(run.report, bucket, published=run.published, again=again))
    except Permanent as error:
        logger.error("a run's results are left out", extra={"run": run.id, "why": error.message})
        return []
