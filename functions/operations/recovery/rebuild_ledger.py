"""Restore lost ledger items from main's log, job runs, audit reports and open branches.

Only missing items are added, by conditional writes, so this can run at any time and repeatedly. The
order protects running work and prevents double publishing. Traces are read before the ledger, so
that the ledger knows of everything in flight. Main's log tells what was published. Only branches of
added ingestions are deleted. An older process may still merge a lost intent; therefore the next
branch is created after reading main's log since `base_hash`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import islice, takewhile
from typing import NamedTuple

from functions.adapters.all import Adapters
from functions.adapters.emr import UnknownRun
from functions.adapters.ledger.notes import Moved
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import StoredContract
from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import NOT_STARTED, Ingestion, State
from functions.operations.compaction.begun import delete_strangers
from functions.operations.recovery import recovered
from functions.operations.recovery.recovered import Trace, in_force, traces, with_terms
from functions.pipeline.outcome.reports import readable_report
from functions.pipeline.start.intake import arrivals
from lakegate import times
from lakegate.contract.claims import claims
from lakegate.errors import Permanent
from lakegate.job.change import parse_change_key
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import BATCH, LandedObject, batch_name, fresh_branch, ingestion_id

_CHUNK = 500
_SKEW = timedelta(hours=1)  # more than the clocks of S3, EMR Serverless and Nessie differ by
# Each sweep may list job runs, and EMR Serverless lists fifty a second: more than a day's may take
# longer than a sweep has. A run waits in EMR's queue no longer than this (infra/platform.yml).
_LONGEST_QUEUED = timedelta(hours=12)


@dataclass(frozen=True)
class _Search:
    """The scope: all lost ingestions, or the `wanted` ones, which landed after `since`.

    Each of these has the tables that it is likely for. Job runs are listed from `runs_since` on.
    `begun` are the ids that the ledger had without a started job: an event may have begun them
    again after the ledger lost them.
    """

    begun: Sequence[str]
    since: str = ""
    runs_since: str = ""
    wanted: Mapping[str, Collection[str]] | None = None

    def covers(self, id_: str) -> bool:
        return self.wanted is None or id_ in self.wanted

    def may_restore(self, one: Ingestion) -> bool:
        """Return whether what is begun may be restored.

        A sweep leaves what waits for a shared run, whose report is no trace of an earlier life. The
        index that listed it may not know yet that it waits.
        """
        return one.state in NOT_STARTED and (self.wanted is None or not one.awaits_shared_run)

    def reaches(self, commit: Commit) -> bool:
        return not self.since or commit.at >= self.since


def rebuild(adapters: Adapters, *, dry_run: bool = False) -> Iterator[Ingestion]:
    """Restore every ingestion that the ledger lost; yield each as it was added.

    A landed object without a trace is left to the sweep, which ingests it: its search begins again.
    Compactions that were under way are dropped: their branches prove nothing. With `dry_run`
    nothing changes.
    """
    listed = adapters.ledger.unfinished("9999")
    search = _Search(begun=[each.id for each in listed if each.state in NOT_STARTED])
    yield from _restored(adapters, search, arrivals(adapters), dry_run=dry_run)
    if not dry_run:
        adapters.ledger.begin_search(adapters.now())
        delete_strangers(adapters)


def restore(
    adapters: Adapters, landed: Collection[LandedObject], begun: Iterable[str] = ()
) -> Iterator[Ingestion]:
    """Restore the lost ingestions of some landed objects.

    `begun` are the ids of those that the ledger has without a started job. However long ago they
    landed, only job runs that may be in flight are listed: what ended left a report, or its work
    is done again.
    """
    if not landed:
        return
    first = min(datetime.fromisoformat(each.landed_at) for each in landed)
    since = times.text(first - _SKEW)
    longest = _LONGEST_QUEUED + timedelta(minutes=adapters.settings.job_timeout_minutes)
    search = _Search(
        begun=list(begun),
        since=since,
        runs_since=max(since, times.earlier(adapters.now(), longest + _SKEW)),
        wanted=_likely_tables(adapters, landed),
    )
    yield from _restored(adapters, search, landed)


def _likely_tables(
    adapters: Adapters, landed: Iterable[LandedObject]
) -> dict[str, Collection[str]]:
    """Return the tables that landed objects are likely for, by their ingestions' ids.

    A contract may have been another once. What was published, or is under way, leaves other traces
    than reports; a file that only failed is then judged once more.
    """
    contracts = [stored.contract for stored in adapters.lake.contracts(None)]
    tables: dict[str, Collection[str]] = {}
    for each in landed:
        claimed = [c.table for c in contracts if claims(c, each.key)]
        if each.bucket == adapters.lake.bucket:
            claimed = [parse_change_key(each.key)[0]]
        tables[ingestion_id(each)] = [BATCH] if batch_name(each.key) else claimed
    return tables


class _Begun(NamedTuple):
    """What is compared of an ingestion without a started job, of which there may be many."""

    landed: LandedObject
    attempt: int
    base_hash: str
    branch: str
    revision: int
    tries_from: int

    @property
    def is_kept(self) -> bool:
        """Return whether a person, `realign` or the sweep had it run again: the ledger knows why.

        No trace tells that, so what the entry has is kept.
        """
        return self.tries_from > 0


def _begun(adapters: Adapters, search: _Search) -> dict[str, _Begun]:
    """Return those whose job has not started: the index that listed them lags behind."""
    return {
        i.id: _Begun(i.landed, i.attempt, i.base_hash, i.branch, i.revision, i.tries_from)
        for i in adapters.ledger.read(search.begun)
        if search.may_restore(i)
    }


def _restored(
    adapters: Adapters, search: _Search, landed: Iterable[LandedObject], *, dry_run: bool = False
) -> Iterator[Ingestion]:
    """Yield the lost ingestions as they are added; with `dry_run` as they would be.

    Raises Permanent HISTORY_CUT if main may have published some before its log begins.
    """
    all_found = traces(adapters, landed, search.runs_since, search.wanted)
    traced = {id_: trace for id_, trace in all_found.items() if search.covers(id_)}
    begun = _begun(adapters, search)  # after the traces: what is under way has moved on
    known = adapters.ledger.known(list(traced), consistent=True)
    lost = {
        id_: trace
        for id_, trace in traced.items()
        if id_ not in known or (id_ in begun and _was_begun_again(adapters, begun[id_], trace))
    }
    add = _same if dry_run else partial(_added, adapters, cache(partial(in_force, adapters)), begun)
    head = adapters.catalog.head(MAIN)
    for ingestion in _published(adapters, search, begun, lost):
        lost.pop(ingestion.id, None)
        yield from add(ingestion)
    if lost:
        _require_reach(adapters, search)
    kept = {id_ for id_, each in begun.items() if each.is_kept}
    others = {
        id_: _again(id_, trace, head) if id_ in kept else _unpublished(adapters, id_, trace, head)
        for id_, trace in lost.items()
    }
    for ingestion in _published(adapters, search, begun, lost, until=head):
        others.pop(ingestion.id, None)
        yield from add(ingestion)
    added = [each for other in filter(None, others.values()) for each in add(other)]
    if not dry_run:
        _delete_stale_branches(adapters, lost, added)
    yield from added


def _same(ingestion: Ingestion) -> Iterator[Ingestion]:
    yield ingestion


def _added(
    adapters: Adapters,
    contracts: Callable[[], Mapping[str, StoredContract]],
    begun: Mapping[str, _Begun],
    ingestion: Ingestion,
) -> Iterator[Ingestion]:
    """Add it, or yield nothing if another process added or changed it meanwhile."""
    restored = with_terms(adapters, contracts(), ingestion).step("restored", adapters.now())
    if known := begun.get(restored.id):
        with suppress(Moved):
            is_kept = known.is_kept and restored.state is not State.PUBLISHED
            now = _kept(adapters, known, restored) if is_kept else restored
            yield adapters.ledger.save(now.but(revision=known.revision))
        return
    # Older revisions are small numbers: a process that still holds one cannot overwrite this.
    revision = int(datetime.fromisoformat(adapters.now()).timestamp() * 1000)
    added = adapters.ledger.begin(restored.but(revision=revision))
    if added.revision == revision + 1:
        yield added


def _kept(adapters: Adapters, known: _Begun, restored: Ingestion) -> Ingestion:
    """Return the entry as it is, with another attempt after all that left a trace."""
    return adapters.ledger.get(restored.id).step(
        "restored",
        adapters.now(),
        state=State.LANDED,
        attempt=restored.attempt,
        tries_from=known.tries_from + restored.attempt - known.attempt,
        base_hash=restored.base_hash,
        branch="",
        is_shared=False,
    )


def _was_begun_again(adapters: Adapters, begun: _Begun, trace: Trace) -> bool:
    """Return whether it was begun again: its attempt has work that it did not start."""
    if max({*trace.runs, *trace.reports}, default=0) < begun.attempt:
        return False
    run = trace.runs.get(begun.attempt)
    spec = _spec(adapters, run.id) if run else None
    asked = (begun.landed, begun.base_hash, begun.branch)
    return spec is None or (spec.landed, spec.base_hash, spec.branch) != asked


def _published(
    adapters: Adapters,
    search: _Search,
    begun: Mapping[str, _Begun],
    lost: Mapping[str, Trace],
    until: str = "",
) -> Iterator[Ingestion]:
    """Yield the ingestions that main's log names as published and the ledger lacks."""
    log = takewhile(
        lambda each: each.hash != until and search.reaches(each), adapters.catalog.log()
    )
    named = (
        (commit, one)
        for commit in log
        for one in merge_commit.published(commit)
        if search.covers(one.id)
    )
    while chunk := {one.id: (commit, one) for commit, one in islice(named, _CHUNK)}:
        known = adapters.ledger.known(list(chunk), consistent=True) - begun.keys()
        for commit, one in (chunk[id_] for id_ in chunk if id_ not in known):
            report = readable_report(adapters.lake, one.report)
            yield recovered.published(one, commit, report, lost.get(one.id, Trace()))


def _require_reach(adapters: Adapters, search: _Search) -> None:
    """Raise Permanent HISTORY_CUT if main's log does not reach back as far as the search."""
    for commit in merge_commit.whole(adapters.catalog.log()):
        if not search.reaches(commit):
            return


def _unpublished(adapters: Adapters, id_: str, trace: Trace, head: str) -> Ingestion | None:
    """Restore it from its other traces; None without a final state and a landed object.

    `head` is main's head before its log was read: no earlier commit published it.
    """
    run = trace.runs.get(trace.attempt)
    spec = _spec(adapters, run.id) if run else None
    if run and spec and spec.ingestion == id_:
        return recovered.submitted(spec, run, trace)
    key = trace.reports.get(trace.attempt, "")
    report = readable_report(adapters.lake, key)
    if report and recovered.is_end(report):
        return recovered.ended(report, key)
    return _again(id_, trace, head)


def _again(id_: str, trace: Trace, head: str) -> Ingestion | None:
    return recovered.landed_again(id_, trace.landed, trace, head) if trace.landed else None


def _delete_stale_branches(
    adapters: Adapters, traces: Mapping[str, Trace], added: Collection[Ingestion]
) -> None:
    """Delete the branches that an older process could still merge.

    This includes a branch that publishes several ingestions, of which the ledger has some: it holds
    rows of the lost one. Their jobs run again.
    """
    branches_to_delete = {
        branch
        for ingestion in added
        if ingestion.state is State.LANDED
        for branch in traces[ingestion.id].branches.values()
    }
    ids = {ingestion.id for ingestion in added}
    for table in {table for id_ in ids for table in traces[id_].tables}:
        own = tuple(fresh_branch(table, id_, "") for id_ in ids)
        fresh = adapters.catalog.branches(f"publish/{table}/")
        branches_to_delete |= {branch for branch in fresh if branch.startswith(own)}
        branches_to_delete |= {
            i.branch for i in adapters.ledger.waiting(table) if ids & set(i.group)
        }
    needed = {i.branch for i in added if i.state in (State.REJECTED, State.SUBMITTED)}
    for branch in sorted(branches_to_delete - needed):
        adapters.catalog.delete_branch(branch)


def _spec(adapters: Adapters, run: str) -> JobSpec | None:
    try:
        return adapters.jobs.spec(run)
    except (UnknownRun, Permanent):
        return None
