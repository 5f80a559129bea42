"""Reconcile: compare the landing bucket, the ledger and main.

Listings, scans and main's log are read page by page, and only a number is kept per ingestion: a
million need some tens of megabytes. Main's commits are read back to the checkpoint of the last run
that found no problem.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Overwritten
from functions.model.ingestion import Ingestion, State
from functions.model.notes.checkpoint import Checkpoint, TableCount
from functions.operations.reconcile.file_sums import (
    End,
    Reconciliation,
    end_of,
    is_new,
    no_longer_listed,
    not_on_main,
    not_taken_in,
    published_twice,
)
from functions.operations.reconcile.foreign_compactions import foreign_branches
from functions.operations.reconcile.main_scan import MainScan, commits_naming, scan_main
from functions.operations.reconcile.row_balance import (
    Balance,
    Finding,
    balance,
    changed_by_others,
    wrong_rows,
)
from functions.pipeline.start.intake import arrivals
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id

_PARALLEL = 8
_SAMPLE = 20  # data files of a table that are looked for


def reconciled(
    adapters: Adapters, table: str = "", *, thorough: bool = False, full: bool = False
) -> Reconciliation:
    """Return all final states, all tables with their row balance, and every mismatch.

    With `table` it covers that table, and objects that the ledger lacks, which may belong to it.
    `thorough` looks for every data file of the tables. `full` reads every commit, whatever an
    earlier run found. Events get the grace time to do their work, and the sweep, which runs later,
    as much again. Raises LakegateError UNKNOWN_TABLE where nothing ever landed for the table.
    """
    wait = timedelta(seconds=2 * adapters.settings.grace_seconds)
    since = datetime.fromisoformat(adapters.now()) - wait
    start, etag = adapters.lake.checkpoint()
    main = scan_main(adapters, None if full else start, since, table)
    # Read after main's log and before the listing; what is missing there is looked up again.
    known = _known(adapters, main, table)
    landed, strangers = _listed(adapters, known, since)
    balances = tuple(_balances(adapters, main, table, thorough=thorough))
    problems = (
        *(not_taken_in(id_, each) for id_, each in strangers.items()),
        *_log_findings(adapters, known, main),
        *main.problems,
        *foreign_branches(adapters, table),
        *(finding for each in balances for finding in wrong_rows(each)),
    )
    if table and not (known.ids or balances or problems):
        message = f"nothing has landed for {table}, so that nothing is to be compared"
        raise LakegateError("UNKNOWN_TABLE", f"{message}\nList the tables with `lakegate tables`.")
    remarks = (
        *([_set_back(start)] if start and not full and not main.base else []),
        *main.remarks,
        *([_unlisted(main.unlisted_commits)] if main.unlisted_commits else []),
        *_uncompared(main),
        *no_longer_listed(len(known.ids) - known.listed),
        *(finding for each in balances for finding in changed_by_others(each)),
    )
    known.count(End.NOT_TAKEN_IN, len(strangers))
    base = main.base.hash if main.base else ""
    reconciliation = Reconciliation(known.ends(), landed, balances, problems, remarks, base)
    return (
        reconciliation if table or problems else _kept(adapters, main, since, etag, reconciliation)
    )


@dataclass
class _Known:
    """The ledger's content: hashes of ids, counts by final state, and what main's log lacks.

    `others` are ids of other tables; `listed` counts those of `ids` that the landing bucket has.
    """

    ids: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    listed: int = 0
    objects: Counter[End] = field(default_factory=Counter)
    rows: Counter[End] = field(default_factory=Counter)
    missing: dict[str, Ingestion] = field(default_factory=dict)

    def count(self, end: End, objects: int = 1, rows: int = 0) -> None:
        self.objects[end] += objects
        self.rows[end] += rows

    def ends(self) -> dict[End, tuple[int, int]]:
        return {end: (self.objects[end], self.rows[end]) for end in End}


def _known(adapters: Adapters, main: MainScan, table: str) -> _Known:
    known = _Known()
    for each in adapters.ledger.all():
        if table and table not in each.tables:
            known.others.add(hash(each.id))
            continue
        known.ids.add(hash(each.id))
        known.count(end_of(each), rows=each.audit.rows)
        # An earlier run found everything published before the checkpoint on main.
        due = each.ended_at >= max(main.base.since if main.base else "", main.began)
        if due and each.state is State.PUBLISHED and hash(each.id) not in main.named:
            known.missing[each.id] = replace(each, audit=replace(each.audit, checks=()))
    return known


def _listed(
    adapters: Adapters, known: _Known, since: datetime
) -> tuple[int, dict[str, LandedObject]]:
    """Return the number of landed objects, and those that the ledger should have but lacks."""
    many, unknown = 0, dict[str, LandedObject]()
    for landed in arrivals(adapters):
        id_ = ingestion_id(landed)
        if hash(id_) in known.others:
            continue
        many += 1
        if hash(id_) in known.ids:
            known.listed += 1
        elif is_new(landed, since):
            known.count(End.IN_FLIGHT)
        else:
            unknown[id_] = landed
    late = adapters.ledger.known(list(unknown))  # taken in while the bucket was listed
    known.count(End.IN_FLIGHT, len(late))
    return many, {id_: each for id_, each in unknown.items() if id_ not in late}


def _log_findings(adapters: Adapters, known: _Known, main: MainScan) -> Iterator[Finding]:
    """Find ingestions that main's log lacks or has twice; read it again only if needed."""
    commits = commits_naming(adapters.catalog.log(), set(known.missing), main.suspects)
    for id_, named in commits.items():
        yield from published_twice(id_, named)
    for id_, each in known.missing.items():
        if id_ not in commits:
            yield not_on_main(each)


def _balances(
    adapters: Adapters, main: MainScan, only: str, *, thorough: bool
) -> Iterator[Balance]:
    """Yield the balance of every table with published data, at the head of the log."""
    for table in sorted(main.ours):
        if table == (only or table):
            at, tables = f"{MAIN}@{main.head}", adapters.tables()
            tallies = [main.tallies[table], main.young[table]]
            base = _base(adapters, main, table)
            account = balance(table, tables.rows(table, at), base, tallies)
            if thorough or account.others:
                # Only a writer other than Lakegate can register a file twice.
                account = replace(account, doubled=tuple(tables.doubled(table, at)))
            paths = tables.listed(table, at, 0 if thorough else _SAMPLE)
            yield replace(account, gone=tuple(_gone(adapters, paths)))


def _base(adapters: Adapters, main: MainScan, table: str) -> TableCount:
    """Return a table's counts where the commits begin that were compared.

    A table new since the checkpoint had only others' rows. Rows that cannot be compared any more
    are taken as right: those that the log does not claim count as others'.
    """
    known = main.base.tables if main.base else {}
    if main.cut:
        rows = adapters.tables().rows(table, f"{MAIN}@{main.cut.hash}").live
        published = (known[table].published if table in known else 0) + main.older[table]
        return TableCount(rows, published, rows - published)
    if not main.base or table in known:
        return known.get(table, TableCount(0, 0, 0))
    rows = adapters.tables().rows(table, f"{MAIN}@{main.base.hash}").live
    return TableCount(rows, 0, rows)


def _gone(adapters: Adapters, paths: Iterable[str]) -> Iterator[str]:
    """Yield the data files that do not exist."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for some in _batched(paths):
            checked = zip(some, pool.map(adapters.lake.is_gone, some), strict=True)
            yield from (path for path, is_gone in checked if is_gone)


def _batched(paths: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(paths)
    while some := list(islice(rest, 1000)):
        yield some


def _set_back(start: Checkpoint) -> Finding:
    message = (
        f"main no longer has the checkpoint's commit {start.hash}: main was set back, so this run "
        "read every commit"
    )
    return Finding("MAIN_PUT_BACK", message, commit=start.hash)


def _unlisted(many: int) -> Finding:
    message = (
        f"the data files of {many:,} commits could not be compared: their audit reports are gone; "
        "their rows were counted"
    )
    return Finding("FILES_NOT_COMPARED", message)


def _uncompared(main: MainScan) -> Iterator[Finding]:
    if main.cut:
        message = (
            f"the rows of {main.uncompared:,} commits up to {main.cut.time} were not compared, as "
            "the metadata that only these reach is deleted after KeepDays: main's rows at commit "
            f"{main.cut.hash} are taken as right. What they published was compared with the ledger"
        )
        yield Finding("ROWS_NOT_COMPARED", message, commit=main.cut.hash)
    if main.began:
        message = (
            f"main's log begins at {main.began}, where Nessie's history was cut: what was "
            "published before was not compared"
        )
        yield Finding("HISTORY_CUT", message)


def _kept(
    adapters: Adapters, main: MainScan, since: datetime, etag: str, reconciliation: Reconciliation
) -> Reconciliation:
    """Write the checkpoint for the next run; a checkpoint of a faster run is valid as well."""
    if not main.settled:
        return reconciliation
    tables = {table: _count(adapters, main, table) for table in sorted(main.ours)}
    before = times.text(since - timedelta(seconds=2 * adapters.settings.grace_seconds))
    checkpoint = Checkpoint(main.settled, before, tables)
    try:
        adapters.lake.put_checkpoint(checkpoint, etag)
    except Overwritten:
        return reconciliation
    except LakegateError as error:
        message = (
            f"no checkpoint was saved, so the next run reads these commits again: {error.message}"
        )
        return replace(
            reconciliation, remarks=(*reconciliation.remarks, Finding("NO_CHECKPOINT", message))
        )
    return reconciliation


def _count(adapters: Adapters, main: MainScan, table: str) -> TableCount:
    """Return a table's counts at the newest settled commit."""
    rows = adapters.tables().rows(table, f"{MAIN}@{main.settled}").live
    base, since = _base(adapters, main, table), main.tallies[table]
    return TableCount(rows, base.published + since.published, base.by_others + since.by_others)
