"""Compare each commit of main since the checkpoint with the ledger and the audit reports.

The log is read page by page, newest first; only sums and problems are kept. For each commit of
Lakegate it reads the changed manifests and the audit reports of what it published. Upkeep deletes
the manifests that only old commits reach: what these published is compared with the ledger alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import State
from functions.model.merge_commit import Published
from functions.model.notes.checkpoint import Checkpoint
from functions.operations.reconcile.file_sums import compared
from functions.operations.reconcile.foreign_compactions import foreign_commits
from functions.operations.reconcile.row_balance import Finding, Tally, wrong_files
from functions.pipeline.outcome.reports import readable_report
from lakegate.audit.audit_tables import TABLES
from lakegate.audit.report import AuditReport

if TYPE_CHECKING:  # it imports pyiceberg: a second that help does not need
    from functions.adapters.iceberg.files import TableChange

_PARALLEL = 8
_COMMITS = 20  # that are compared at a time
_HISTORY = {table.name for table in TABLES}

_Named = tuple[Commit, frozenset[str]]
_END: _Named = (Commit("", "", "", {}, "", ""), frozenset())  # behind the oldest commit
CommitsById = dict[str, list[tuple[Commit, Published]]]


@dataclass
class MainScan:
    """The result of reading main's log since the checkpoint.

    `head` is its newest commit, `settled` the newest outside the grace time. `tallies` sum the
    changes of each table up to there, `young` those since then. `base` is the checkpoint if main
    has it. `named` are hashes of the ids that commits name, `suspects` of those that several may
    name. `unlisted_commits` counts commits whose reports name no files.

    `cut` is the newest commit whose change cannot be compared, and `older` the rows that it and
    those before it claim, by table; `uncompared` counts them. `began` is the time of the oldest
    commit if Nessie's history was cut there, "" if main's log is whole.
    """

    head: str = ""
    settled: str = ""
    base: Checkpoint | None = None
    tallies: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    young: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    ours: set[str] = field(default_factory=set)
    named: set[int] = field(default_factory=set)
    suspects: set[int] = field(default_factory=set)
    unlisted_commits: int = 0
    cut: Commit | None = None
    older: Counter[str] = field(default_factory=Counter)
    uncompared: int = 0
    began: str = ""
    problems: list[Finding] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)


class _Entry(NamedTuple):
    """A commit of main's log, the names of what it changed, and if its change can be compared."""

    commit: Commit
    names: frozenset[str]
    is_kept: bool


def scan_main(adapters: Adapters, start: Checkpoint | None, since: datetime, only: str) -> MainScan:
    """Read main's commits back to the checkpoint; read all where main lacks it.

    Merges after `since` may still be in progress. `only` names the table to check, "" for all.
    """
    scan, foreign = MainScan(), list[tuple[Commit, str]]()
    log = pairwise(chain(adapters.catalog.history(), [_END]))
    kept_since = adapters.ledger.upkeep().kept_since
    with ThreadPoolExecutor(_PARALLEL) as pool:
        while some := _next(log, scan, start, since, kept_since):
            ours = [each for each in some if merge_commit.published(each.commit)]
            mine = [each for each in ours if not only or only in merge_commit.tables(each.commit)]
            _compare(adapters, mine, since, scan)
            kept = [each for each in mine if each.is_kept]
            changes = pool.map(lambda each: list(_changes(adapters, each, only)), kept)
            for each, made in zip(kept, changes, strict=True):
                _count(each.commit, made, scan, since)
            _count_older((each.commit for each in mine if not each.is_kept), scan, only)
            foreign += _other_writers_commits(some, only)
            named = (each.commit for each in some if not only or only in each.names)
            scan.problems += foreign_commits(adapters, named)
    _count_others(adapters, foreign, scan, since)
    return scan


def commits_naming(log: Iterable[Commit], missing: set[str], suspects: set[int]) -> CommitsById:
    """Return the commits that publish these ids; for `suspects` (hashes) all such commits.

    The log is read only as far back as needed.
    """
    commits: defaultdict[str, list[tuple[Commit, Published]]] = defaultdict(list)
    for commit in log if missing or suspects else ():
        for each in merge_commit.published(commit):
            if each.id in missing or hash(each.id) in suspects:
                commits[each.id].append((commit, each))
        if not suspects and missing <= commits.keys():
            break
    return commits


def _next(
    log: Iterator[tuple[_Named, _Named]],
    scan: MainScan,
    start: Checkpoint | None,
    since: datetime,
    kept_since: str,
) -> list[_Entry]:
    """Return the next commits of the log, none once the checkpoint is reached."""
    some: list[_Entry] = []
    for (commit, names), following in islice(log, 0 if scan.base else _COMMITS):
        scan.head = scan.head or commit.hash
        if not scan.settled and commit.moment < since:
            scan.settled = commit.hash
        if start and commit.hash == start.hash:
            scan.base = start
            break
        _note_cut(scan, commit, kept_since, is_last=following is _END)
        some.append(_Entry(commit, names, is_kept=not scan.cut))
    return some


def _note_cut(scan: MainScan, commit: Commit, kept_since: str, *, is_last: bool) -> None:
    """Note if this commit, or one before it, is the newest that cannot be compared.

    Lakegate commits only where there is a commit already. So its commit at the end of the log says
    that Nessie's history was cut there.
    """
    if is_last and merge_commit.is_ours(commit):
        scan.began = commit.at
    if scan.began or (kept_since and commit.at < kept_since):
        scan.cut = scan.cut or commit
    scan.uncompared += bool(scan.cut)


def _compare(adapters: Adapters, some: Iterable[_Entry], since: datetime, scan: MainScan) -> None:
    """Compare the ingestions that commits name with the ledger."""
    commits = (each.commit for each in some)
    named = [(commit, each) for commit in commits for each in merge_commit.published(commit)]
    ids = sorted({each.id for _, each in named})
    known = {each.id: each for each in adapters.ledger.together(ids)}
    for commit, each in named:
        ingestion = known.get(each.id)
        for finding, is_problem in compared(commit, each, ingestion, since):
            (scan.problems if is_problem else scan.remarks).append(finding)
        is_published = ingestion is not None and ingestion.state is State.PUBLISHED
        elsewhere = is_published and ingestion and ingestion.merge_hash != commit.hash
        if hash(each.id) in scan.named or elsewhere:
            scan.suspects.add(hash(each.id))
        scan.named.add(hash(each.id))


@dataclass(frozen=True)
class _Made:
    """A commit's change of one table, and what its message and reports say about it.

    `reported` are the data files that the reports name, None where unknown; then `lacks` says
    whether a report is gone or names no files.
    """

    table: str
    claimed: int
    change: "TableChange"
    reported: Mapping[str, int] | None
    lacks: bool


def _changes(adapters: Adapters, entry: _Entry, only: str) -> Iterator[_Made]:
    commit, claimed = entry.commit, merge_commit.gains(entry.commit)
    for table in sorted(set(claimed) | set(_tables(entry.names))):
        if table == (only or table):
            change, reported = _change(adapters, table, commit), _reported(adapters, commit, table)
            lacks = reported is None and not any(
                each.kind or each.mode for each in merge_commit.published(commit)
            )
            yield _Made(table, claimed[table], change, reported, lacks)


def _change(adapters: Adapters, table: str, commit: Commit) -> "TableChange":
    return adapters.tables().change(table, f"{MAIN}@{commit.parent}", f"{MAIN}@{commit.hash}")


def _reported(adapters: Adapters, commit: Commit, table: str) -> Mapping[str, int] | None:
    """Return the data files of a table that a commit's reports name; None for a change."""
    files: Counter[str] = Counter()
    for each in merge_commit.published(commit):
        report = readable_report(adapters.lake, each.report)
        if report is None:
            return None
        singles = [single for single in report.singles if single.table == table]
        if each.kind or any(_names_no_files(single) for single in singles):
            return None
        files.update(file.path for single in singles for file in single.files)
    return files


def _names_no_files(report: AuditReport) -> bool:
    """Return whether its rows are not in files of their own, or in files that it does not name."""
    return not report.files and bool(report.rows_written or report.effect)


def _count(commit: Commit, made: Iterable[_Made], scan: MainScan, since: datetime) -> None:
    tallies, light = _tallies(scan, commit, since), replace(commit, properties={})
    for each in made:
        scan.ours.add(each.table)
        tallies[each.table].add(light, each.claimed, each.change)
        scan.unlisted_commits += each.lacks
        if each.reported is not None:
            scan.problems += wrong_files(each.table, light, each.change, each.reported)


def _count_older(commits: Iterable[Commit], scan: MainScan, only: str) -> None:
    for commit in commits:
        for table, rows in merge_commit.gains(commit).items():
            if table == (only or table):
                scan.ours.add(table)
                scan.older[table] += rows


def _other_writers_commits(some: Iterable[_Entry], only: str) -> Iterator[tuple[Commit, str]]:
    """Yield the commits of other writers with each table that they changed."""
    for commit, names, is_kept in some:
        if is_kept and merge_commit.INGESTIONS not in commit.properties:
            kept = {k: v for k, v in commit.properties.items() if k == merge_commit.UPKEEP}
            for table in _tables(names):
                if table == (only or table):
                    yield replace(commit, properties=kept), table


def _count_others(
    adapters: Adapters, foreign: Iterable[tuple[Commit, str]], scan: MainScan, since: datetime
) -> None:
    """Count other writers' changes of tables with published data; ignore all other tables.

    A commit of upkeep must leave the rows as they are.
    """
    scan.ours |= set(scan.base.tables if scan.base else ())
    for commit, table in foreign:
        if table in scan.ours:
            change = _change(adapters, table, commit)
            tally = _tallies(scan, commit, since)[table]
            if merge_commit.UPKEEP in commit.properties:
                tally.add(commit, 0, change)
            else:
                tally.add_others(commit, change)


def _tallies(scan: MainScan, commit: Commit, since: datetime) -> defaultdict[str, Tally]:
    return scan.young if commit.moment >= since else scan.tallies


def _tables(names: frozenset[str]) -> Iterator[str]:
    """Yield the names of data tables; a name without a dot is a namespace."""
    return (name for name in sorted(names) if "." in name and name not in _HISTORY)
