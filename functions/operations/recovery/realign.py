"""Bring ledger, main and branches to one state after the catalog was restored to a backup.

read main's log, then the ledger, then the commits that main got meanwhile
decide (realignment.py)
for each decision: one conditional write, in the order in which main had published

The pipeline does the rest: it publishes again what main lost. Nothing has to be stopped. What other
processes change meanwhile is left alone, and found by the next run. So is the rest after a crash.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from functions.adapters.all import Adapters
from functions.adapters.ledger.notes import Moved
from functions.adapters.s3 import Missing
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import Published, published
from functions.operations.compaction.begun import delete_strangers, strangers
from functions.operations.decisions.withdrawal import unclear
from functions.operations.recovery.realign_plan import (
    Branches,
    Decision,
    Facts,
    Kind,
    MainLog,
    decide,
    files_needed,
    is_lost,
    may_differ,
)
from functions.operations.recovery.realigned import carried_out
from functions.pipeline.outcome.audit_history import Run, left_by
from functions.pipeline.outcome.reports import readable_report
from functions.pipeline.start.intake import arrivals
from lakegate.audit.audit_tables import run_id
from lakegate.errors import Permanent
from lakegate.job.landing import ingestion_id, parse_report_key, report_key


@dataclass(frozen=True)
class Done:
    """A decision, and whether another process changed the ingestion before it was carried out."""

    decision: Decision
    overtaken: bool = False


@dataclass(frozen=True)
class Realigned:
    """What was done, or would be; `compactions` are deleted branches of those that had ended."""

    done: Sequence[Done] = ()
    compactions: Sequence[str] = ()


def realign(adapters: Adapters, *, dry_run: bool = False) -> Realigned:
    """Find all differences and settle them. With `dry_run` nothing changes."""
    done = list(_settled(adapters, dry_run=dry_run))
    return Realigned(done, strangers(adapters) if dry_run else delete_strangers(adapters))


def _settled(adapters: Adapters, *, dry_run: bool) -> Iterator[Done]:
    facts, ingestions = _read(adapters)
    is_there = cache(partial(_has_contracts, adapters))
    for decision in decide(ingestions, facts):
        if dry_run:
            yield Done(decision)
            continue
        is_published = Kind.PUBLISH_AGAIN in decision.kinds
        pinned = is_published and is_there(decision.ingestion.contracts)
        yield _carry_out(adapters, decision, facts.main.head, pinned=pinned)


def _carry_out(adapters: Adapters, decision: Decision, head: str, *, pinned: bool) -> Done:
    before = decision.ingestion
    after = carried_out(decision, adapters.now(), head, pinned=pinned)
    try:
        if after != before:
            _save(adapters, before, after)
    except Moved:
        return Done(decision, overtaken=True)
    if decision.branches:
        now = adapters.ledger.get(before.id)
        if (now.state, now.attempt) != (after.state, after.attempt):
            return Done(decision, overtaken=True)
        for branch in decision.branches:
            adapters.catalog.delete_branch(branch)
    return Done(decision)


def _save(adapters: Adapters, before: Ingestion, after: Ingestion) -> None:
    """Save it, also if others of its group were saved since. Raise Moved if it changed itself."""
    now = adapters.ledger.get(before.id) if before.shared_intent.is_open else before
    if now != before.but(revision=now.revision):
        raise Moved([before.id])
    adapters.ledger.save(after.but(revision=now.revision, shared_intent=now.shared_intent))


def _has_contracts(adapters: Adapters, contracts: tuple[tuple[str, str], ...]) -> bool:
    """Return whether these versions of contracts still exist."""
    try:
        for key, version in contracts:
            adapters.lake.contract_at(key, version)
    except (Missing, Permanent):
        return False
    return all(version for _, version in contracts)


def _read(adapters: Adapters) -> tuple[Facts, list[Ingestion]]:
    """Return the facts, and the ingestions on which there may be a decision.

    Main's newest commits and the branches are read after the ledger: so what the ledger called
    published, or on a branch, meanwhile is not taken for lost.
    """
    main = MainLog()
    main.read(adapters.catalog.log())
    silent = _silent_runs(adapters, main)
    before = Branches(adapters.catalog.references())
    ingestions, needed = list[Ingestion](), set[str]()
    for each in adapters.ledger.all():
        if each.is_open or not each.ended:
            needed.add(each.branch)
        if each.id in silent or _is_stale(each, main) or may_differ(each, main, before):
            ingestions.append(each)
    branches = Branches(adapters.catalog.references())
    main.read(adapters.catalog.log())
    lost = [each for each in ingestions if is_lost(each, main)]
    facts = Facts(
        main=main,
        branches=branches,
        needed=needed,
        landed=_landed(adapters, lost),
        unclear=dict(unclear(adapters, lost)),
        unrecorded={each.id for each in ingestions if _lacks_results(adapters, main, each, silent)},
        commits=_commits(adapters, {each.id for each in ingestions if not main.agrees(each)}),
    )
    return facts, ingestions


def _landed(adapters: Adapters, lost: Iterable[Ingestion]) -> set[str]:
    """Return the ids of the landed objects that still exist, of those that are needed again."""
    needed = {id_ for each in lost for id_ in files_needed(each)}
    return needed.intersection(map(ingestion_id, arrivals(adapters))) if needed else set()


def _commits(adapters: Adapters, ids: Collection[str]) -> Mapping[str, tuple[Commit, Published]]:
    """Return the newest commits on main that published these ingestions."""
    commits: dict[str, tuple[Commit, Published]] = {}
    for commit in adapters.catalog.log() if ids else ():
        for each in published(commit):
            if each.id in ids:
                commits.setdefault(each.id, (commit, each))
    return commits


def _silent_runs(adapters: Adapters, main: MainLog) -> Mapping[str, Sequence[int]]:
    """Return the attempts with a report that main's audit tables lack, by ingestion."""
    attempts: defaultdict[str, list[int]] = defaultdict(list)
    for key in adapters.lake.reports():
        try:
            _, id_, attempt = parse_report_key(key)
        except ValueError:
            continue
        if not main.has_recorded(run_id(id_, attempt)):
            attempts[id_].append(attempt)
    return attempts


def _lacks_results(
    adapters: Adapters, main: MainLog, one: Ingestion, silent: Mapping[str, Sequence[int]]
) -> bool:
    """Return whether the ledger calls results recorded that main's audit tables lack.

    They lack, too, that the last run's are published.
    """
    lacking = {a for a in silent.get(one.id, ()) if not main.has_recorded(run_id(one.id, a))}
    if _is_stale(one, main):
        lacking.add(one.attempt)
    due = (attempt for attempt in lacking if attempt <= one.recorded)
    return any(_has_results(adapters, one, attempt) for attempt in due)


def _is_stale(one: Ingestion, main: MainLog) -> bool:
    """Return whether main's audit tables lack that its last run's results are published."""
    is_published = one.state is State.PUBLISHED
    return is_published and not main.has_recorded(run_id(one.id, one.attempt), published=True)


def _has_results(adapters: Adapters, one: Ingestion, attempt: int) -> bool:
    """Return whether a run left results."""
    report = readable_report(adapters.lake, report_key(one.table, one.id, attempt))
    if report is None or (report.ingestion, report.attempt) != (one.id, attempt):
        return False
    return bool(left_by(adapters, Run(report, published=False)))
