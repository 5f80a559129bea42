"""Reconcile: gather what landing bucket, ledger and main say, and hold it against each other.

A few requests a thousand objects, and none for a single one: listings, scans and main's log are
read by the page, a table's rows from its metadata.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from functions import commits
from functions.arrivals import arrivals
from functions.balance import Balance, Change, balance
from functions.catalog import MAIN
from functions.history import Commit
from functions.reconciliation import Reconciliation, reconcile
from functions.world import World
from lakegate.landing import ingestion_id


def reconciled(world: World, table: str = "", *, thorough: bool = False) -> Reconciliation:
    """Every landed object and its end, every table and its rows, and what does not fit.

    With `table` only what concerns it, and objects that the ledger does not know: they may be its.
    `thorough` reads the tables at every commit, not only where a total is wrong. Events have the
    grace time to do their work, and the sweep, whose turn comes later, as long again.
    """
    wait = timedelta(seconds=2 * world.settings.grace_seconds)
    since = datetime.fromisoformat(world.now()) - wait
    # In this order: what moves on meanwhile is then known to the record that is read later.
    landed = {ingestion_id(each): each for each in arrivals(world)}
    ingestions = {each.id: replace(each, checks=()) for each in world.ledger.all()}
    log = list(world.catalog.log())
    balances = _balances(world, log, table, thorough)
    if table:
        others = {each.id for each in ingestions.values() if table not in each.tables}
        landed = {id_: each for id_, each in landed.items() if id_ not in others}
        ingestions = {id_: each for id_, each in ingestions.items() if id_ not in others}
        log = [commit for commit in log if table in commits.tables(commit)]
    return reconcile(landed, ingestions, log, balances, since)


def _balances(world: World, log: Sequence[Commit], only: str, thorough: bool) -> list[Balance]:
    """Of every table to which Lakegate published, as main is at the head of the log."""
    changed = world.catalog.changed_without(commits.INGESTIONS)
    changes = _changes(log, changed)
    return [
        _balance(world, table, log[0].hash, changes[table], thorough)
        for table in sorted(changes)
        if table == (only or table) and any(each.claimed is not None for each in changes[table])
    ]


def _changes(
    log: Sequence[Commit], changed: Mapping[str, frozenset[str]]
) -> dict[str, list[Change]]:
    """The commits that changed each table, the oldest first."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    for commit in reversed(log):
        for name, claimed in commits.gains(commit).items():
            found[name].append(Change(commit, claimed))
        for name in changed.get(commit.hash, ()):
            found[name].append(Change(commit))
    return found


def _balance(
    world: World, table: str, head: str, changes: Sequence[Change], thorough: bool
) -> Balance:
    tables = world.tables()
    rows_at = cache(lambda at: tables.rows(table, f"{MAIN}@{at}"))
    found = balance(table, head, changes, rows_at, thorough=thorough)
    if thorough or any(change.claimed is None for change in changes):
        # Only who goes past Lakegate can enter a file again that is there already.
        return replace(found, doubled=tuple(tables.doubled(table, f"{MAIN}@{head}")))
    return found
