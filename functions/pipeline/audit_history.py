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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from functions.adapters.all import Adapters
from functions.adapters.nessie import MergeConflict, SetBack
from functions.adapters.s3 import Missing, Overwritten
from functions.model.ingestion import Ingestion, State
from functions.pipeline.complete import WITHOUT_REPORT
from functions.pipeline.finish import report_of, save_unmoved
from functions.pipeline.seed import SEEDING, is_seeded
from functions.telemetry import logger, metrics
from lakegate import times
from lakegate.audit_tables import RESULTS, Entry, entries, run_id
from lakegate.drift import Acceptance, Baselines
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.landing import fresh_branch, report_key
from lakegate.report import AuditReport

# Keeps the baselines for checks of drift: published runs, and what people accept as normal.

_TRIES = 5


def add_published(adapters: Adapters, reports: Iterable[AuditReport]) -> None:
    """Add what published runs measured; one that is there already changes nothing."""
    by_table: defaultdict[str, list[AuditReport]] = defaultdict(list)
    for single in (single for report in reports for single in report.singles):
        if any(check.baseline for check in single.checks):
            by_table[single.table].append(single)
    for table, found in by_table.items():
        _change(adapters, table, lambda known, found=found: _adding(known, found))  # type: ignore[misc]


def accept(adapters: Adapters, ingestion: Ingestion, by: str, reason: str) -> Acceptance:
    """Make what was unusual in an ingestion's last run the new normal: its baselines restart there.

    Done again it changes nothing. Returns who accepted it first. Raises LakegateError where nothing
    was unusual, there is no report, or a later run was accepted since.
    """
    if not by.strip() or not reason.strip():
        message = "say who accepts it and why: both are written down beside the baselines"
        raise LakegateError("NAME_NEEDED", message)
    report = report_of(adapters, ingestion) if ingestion.report_key else None
    if report is None:
        raise LakegateError("NO_REPORT", f"ingestion {ingestion.id} has no audit report")
    if report.parts:
        message = "what was unusual in a batch cannot be accepted: land the file that is by itself"
        raise LakegateError("IS_BATCH", message)
    at = adapters.now()
    changed = _change(
        adapters,
        report.table,
        lambda known: known.accepting(report, by.strip(), reason.strip(), at),
    )
    return changed.accepted(ingestion.id) or Acceptance(ingestion.id, "", by, reason, at)


def _adding(known: Baselines, reports: Iterable[AuditReport]) -> Baselines:
    for report in reports:
        known = known.adding(report)
    return known


def _change(adapters: Adapters, table: str, change: Callable[[Baselines], Baselines]) -> Baselines:
    """Put the changed baselines in the place of those that they were made from."""
    for _ in range(_TRIES):
        known, etag = adapters.lake.baselines(table)
        changed = change(known)
        if changed == known:
            return known
        try:
            adapters.lake.put_baselines(changed, etag)
        except Overwritten:
            continue
        return changed
    raise Transient("BASELINES_BUSY", f"the baselines of {table} are being changed all the time")


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


def record_recent(adapters: Adapters) -> None:
    """Record what ended lately; what cannot be recorded now is left to the sweep."""
    try:
        for ended in islice(batches(adapters), 1):
            record(adapters, ended)
    except LakegateError as error:
        logger.warning("recording is left to the sweep", extra={"why": error.message})


def batches(adapters: Adapters) -> Iterator[list[Ingestion]]:
    """The ended ingestions that are to be recorded, as many at a time as one commit takes."""
    listed = adapters.ledger.needs_recording()
    while ids := [ingestion.id for ingestion in islice(listed, BATCH)]:
        now = adapters.ledger.together(ids)  # the index that listed them lags behind
        if due := [ingestion for ingestion in now if ingestion.needs_recording]:
            yield due


def late_reports(adapters: Adapters) -> Iterator[Ingestion]:
    """Yield what landed in the last day and ended without a report that is there by now.

    A driver may go on after EMR Serverless said that its run has failed.
    """
    since = times.text(datetime.fromisoformat(adapters.now()) - _LATEST)
    errored = adapters.ledger.in_state(State.ERRORED)  # the newest landing first
    for each in takewhile(lambda each: each.landed.landed_at > since, errored):
        is_silent = each.reason is not None and each.reason.code in WITHOUT_REPORT
        is_seen = each.times.get(_LATE, "") >= each.ended_at or each.recorded < each.attempt
        if is_silent and not is_seen and any(_runs(adapters, _unrecorded(each))):
            yield each


def take_late(adapters: Adapters, ended: Ingestion) -> None:
    """Have a report that came late recorded: its verdict is no longer the ingestion's."""
    adapters.ledger.save(_unrecorded(ended).step(_LATE, adapters.now()))


def _unrecorded(ended: Ingestion) -> Ingestion:
    return ended.but(recorded=ended.attempt - 1)


def record(adapters: Adapters, ended: Sequence[Ingestion]) -> None:
    """Enter what the runs of at most 100 ended ingestions left, by one commit on main.

    Raises Transient when others were quicker each time that it was tried.
    """
    runs = [run for ingestion in ended for run in _runs(adapters, ingestion)]
    if any(single.records for run in runs for single in run.report.singles):
        _enter(adapters, ended[0], runs)
    add_published(adapters, [run.report for run in runs if run.published])
    at = adapters.now()
    saved = save_unmoved(adapters, [i.step("recorded", at, recorded=i.attempt) for i in ended])
    metrics.add_metric("Recorded", "Count", len(saved))


def strays(adapters: Adapters) -> Iterator[str]:
    """The branches of those who hung on the way, while others recorded the same and got to the end.

    Nobody needs them: main has moved on since they were cut, and takes none of them. Of those that
    main is seeded by one may be on its way there.
    """
    there = adapters.catalog.branches(
        f"publish/{RESULTS.name}/"
    )  # what is cut from now on is in use
    due = tuple(
        fresh_branch(RESULTS.name, each.id, "") for each in adapters.ledger.needs_recording()
    )
    for name in there:
        is_done = is_seeded(adapters) if name.startswith(SEEDING) else not name.startswith(due)
        if is_done:
            yield name


def _runs(adapters: Adapters, ingestion: Ingestion) -> Iterator[Run]:
    """The ingestion's runs that are not recorded; those that left no report leave nothing."""
    for attempt in range(ingestion.recorded + 1, ingestion.attempt + 1):
        try:
            report = adapters.lake.report(report_key(ingestion.table, ingestion.id, attempt))
        except (Missing, Permanent):
            continue
        if (report.ingestion, report.attempt) == (ingestion.id, attempt):
            is_last = attempt == ingestion.attempt
            yield Run(report, published=is_last and ingestion.state is State.PUBLISHED)


def _enter(adapters: Adapters, first: Ingestion, runs: Sequence[Run]) -> None:
    for _ in range(_MOST_TRIES):
        branch = fresh_branch(RESULTS.name, first.id, adapters.token())
        base = adapters.catalog.create_branch(branch)
        try:
            _enter_on(adapters, branch, base, runs)
        except (MergeConflict, SetBack):
            adapters.catalog.delete_branch(branch)
        except Exception:
            adapters.catalog.delete_branch(branch)
            raise
        else:
            adapters.catalog.delete_branch(branch)
            return
    message = f"{RESULTS.name} moved on main {_MOST_TRIES} times while {first.id} was recorded"
    raise Transient("TABLE_BUSY", f"{message}; it will be tried again")


def _enter_on(adapters: Adapters, branch: str, base: str, runs: Sequence[Run]) -> None:
    """Enter on the branch, cut at `base`, what main lacks, and merge it.

    Raises MergeConflict or SetBack.
    """
    named = _named(adapters, runs)
    new = {run.id: run.published for run in runs if named.get(run.id) != run.published}
    found = [
        entry
        for run in runs
        if run.id in new
        for entry in _entries(adapters, run, again=run.id in named)
    ]
    if found:
        adapters.tables().enter(found, adapters.settings.lake_bucket, branch)
        head = adapters.catalog.head(branch)
        message = f"Record {len(new):,} {'run' if len(new) == 1 else 'runs'}"
        adapters.catalog.merge(branch, head, base, message, {RUNS: json.dumps(new)})


def _named(adapters: Adapters, runs: Sequence[Run]) -> dict[str, bool]:
    """The runs that main's log names, back to where their branches were cut, as they stand there.

    None was entered before that, as none had begun.
    """
    named: dict[str, bool] = {}
    cut_at = {run.report.base_hash for run in runs}
    for commit in adapters.catalog.log():
        named = json.loads(commit.properties.get(RUNS, "{}")) | named
        cut_at.discard(commit.hash)
        if not cut_at:
            break
    return named


def _entries(adapters: Adapters, run: Run, *, again: bool) -> list[Entry]:
    """What a run left; nothing of one that names files which are not its own."""
    try:
        bucket = adapters.settings.lake_bucket
        return list(entries(run.report, bucket, published=run.published, again=again))
    except Permanent as error:
        logger.error("a run's results are left out", extra={"run": run.id, "why": error.message})
        return []
