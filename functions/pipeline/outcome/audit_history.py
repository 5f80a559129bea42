"""Add the results of ended ingestions' runs to main's tables of results, once.

create a fresh branch off main
    read in main's log which of the runs it has already
    register the data files of the others on the branch, by metadata alone
    merge it, with a commit that names these runs
           → refused, since another process added some after the branch was created: repeat

Main refuses every branch that was created before its table changed, so nothing can be added between
the read of the log and the merge. docs/adr/0015-audit-history.md has the whole argument.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice

from functions.adapters.all import Adapters
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from functions.pipeline.outcome.baselines import add_published
from functions.pipeline.outcome.own_commit import merge_fresh_branch
from functions.pipeline.outcome.reports import reports_at
from functions.pipeline.outcome.seed import SEEDING, is_seeded
from functions.telemetry import logger, metrics
from lakegate import times
from lakegate.audit.audit_tables import RESULTS, Entry, entries, run_id
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError, Permanent
from lakegate.job.landing import fresh_branch, parse_report_key, report_key
from lakegate.text import count

RUNS = "lakegate.runs"
BATCH = 100  # what the ledger reads and saves at once
_YOUNG = timedelta(hours=12)  # upkeep deletes no file before it was unread for a day
_LATE, _LATEST = "reported late", timedelta(days=1)


@dataclass(frozen=True)
class Run:
    """A run that left a report, and whether the rows that it audited are on main."""

    report: AuditReport
    published: bool

    @property
    def id(self) -> str:
        """Return the name that it has in main's log."""
        return run_id(self.report.ingestion, self.report.attempt)


def record_recent(adapters: Adapters) -> None:
    """Record what ended lately; what fails is left to the sweep."""
    try:
        for ended in islice(batches(adapters), 1):
            record(adapters, ended)
    except LakegateError as error:
        logger.warning("recording is left to the sweep", extra={"why": error.message})


def batches(adapters: Adapters) -> Iterator[list[Ingestion]]:
    """Yield the ended ingestions that are to be recorded, as many at a time as one commit takes."""
    listed = adapters.ledger.needs_recording()
    while ids := [ingestion.id for ingestion in islice(listed, BATCH)]:
        now = adapters.ledger.together(ids)  # the index that listed them lags behind
        if due := [ingestion for ingestion in now if steps.needs_recording(ingestion)]:
            yield due


def late_reports(adapters: Adapters) -> Iterator[Ingestion]:
    """Yield ingestions that ended, in the last day, without a report which has come since.

    A driver may go on after EMR Serverless said that its run has failed.
    """
    for each in adapters.ledger.silent(times.earlier(adapters.now(), _LATEST)):
        is_seen = each.times.get(_LATE, "") >= each.ended_at or each.recorded < each.attempt
        if not is_seen and _runs(adapters, [each.but(recorded=each.attempt - 1)]):
            yield each


def take_late(adapters: Adapters, ended: Ingestion, attempt: int) -> Ingestion:
    """Have an attempt's late report recorded; the ingestion's verdict stays as it is."""
    at = adapters.now()
    return adapters.ledger.save(ended.step(_LATE, at, recorded=attempt - 1))


def record(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    """Record the runs of ended ingestions by one commit on main; save them with a note of that.

    Raise Transient if other processes were faster at each try: then nothing is saved.
    """
    runs = _runs(adapters, ended)
    if any(single.records for run in runs for single in run.report.singles):
        prefix = fresh_branch(RESULTS.name, ended[0].id, "")
        busy = f"{RESULTS.name} moved on each time that {ended[0].id} was recorded"
        merge_fresh_branch(adapters, prefix, partial(_register, adapters, runs), busy)
    add_published(adapters, [run.report for run in runs if run.published])
    at = adapters.now()
    saved = adapters.ledger.save_each([i.step("recorded", at, recorded=i.attempt) for i in ended])
    metrics.add_metric("Recorded", "Count", len(saved))


def strays(adapters: Adapters) -> Iterator[str]:
    """Yield the branches of processes that hung while others recorded the same runs.

    Main has changed since they were created, and refuses them. A branch that main is seeded by may
    still be in use.
    """
    there = adapters.catalog.branches(f"publish/{RESULTS.name}/")  # later ones are in use
    waiting = adapters.ledger.needs_recording() if there else ()
    due = tuple(fresh_branch(RESULTS.name, each.id, "") for each in waiting)
    for name in there:
        is_done = is_seeded(adapters) if name.startswith(SEEDING) else not name.startswith(due)
        if is_done:
            yield name


def _runs(adapters: Adapters, ended: Sequence[Ingestion]) -> list[Run]:
    """Return the ingestions' runs that are not recorded and left a report."""
    due = {
        (key := report_key(each.table, each.id, attempt)): key == each.report_key
        and each.state is State.PUBLISHED
        for each in ended
        for attempt in range(each.recorded + 1, each.attempt + 1)
    }
    reports = reports_at(adapters, due.keys())
    return [
        Run(report, published)
        for key, published in due.items()
        if (report := reports.get(key))
        and (report.ingestion, report.attempt) == parse_report_key(key)[1:]
    ]


def _register(adapters: Adapters, runs: Sequence[Run], branch: str, base: str) -> None:
    """Register the data files that main lacks on the branch, created at `base`, and merge it.

    Raise MergeConflict or SetBack.
    """
    named = _named(adapters, runs)
    new = {run.id: run.published for run in runs if named.get(run.id) != run.published}
    files = [
        entry
        for run in runs
        if run.id in new
        for entry in left_by(adapters, run, again=run.id in named)
    ]
    if files:
        adapters.tables().enter(files, adapters.settings.lake_bucket, branch)
        head = adapters.catalog.head(branch)
        message = f"Record {count(len(new), 'run')}"
        adapters.catalog.merge(branch, head, base, message, {RUNS: json.dumps(new)})


def _named(adapters: Adapters, runs: Sequence[Run]) -> dict[str, bool]:
    """Return those that main's log names since their branches were created, and if published.

    Commits before that cannot name them.
    """
    named, ids = dict[str, bool](), {run.id for run in runs}
    bases = {run.report.base_hash for run in runs}
    for commit in adapters.catalog.log():
        recorded = json.loads(commit.properties.get(RUNS, "{}"))
        named = {id_: recorded[id_] for id_ in ids & recorded.keys()} | named
        bases.discard(commit.hash)
        if not bases:
            break
    return named


def left_by(adapters: Adapters, run: Run, *, again: bool = False) -> list[Entry]:
    """Return what a run left; nothing if it names files that are not its own, or that are gone."""
    try:
        bucket = adapters.settings.lake_bucket
        left = list(entries(run.report, bucket, published=run.published, again=again))
        _require_files(adapters, run, left)
    except Permanent as error:
        logger.error("a run's results are left out", extra={"run": run.id, "why": error.message})
        return []
    return left


def _require_files(adapters: Adapters, run: Run, left: Sequence[Entry]) -> None:
    """Raise Permanent RESULTS_GONE if upkeep deleted files of an old run that main had lost.

    Main could not be read with them. A younger run's files are all there: upkeep keeps them. They
    are listed, as the publisher may not read data files.
    """
    if run.report.finished_at > times.earlier(adapters.now(), _YOUNG):
        return
    for entry in left:
        key = entry.file.path.removeprefix(f"s3://{adapters.settings.lake_bucket}/")
        if not any(each.key == key for each in adapters.lake.stored(key)):
            raise Permanent("RESULTS_GONE", f"{entry.file.path} is gone; the report has them, too")
