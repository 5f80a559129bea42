"""Expire old failed ingestions and unneeded branches."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from functions.model import steps
from functions.model.ingestion import ALERTED, Ingestion
from functions.operations.decisions.failed import branches, discard
from functions.operations.recovery.forgotten import counted
from functions.operations.recovery.rebuild_ledger import restore
from functions.operations.upkeep.branch_age import MainLog
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import (
    BATCH,
    ID_PART,
    OWN_BRANCHES,
    LandedObject,
    group_reports_key,
    id_part,
    parse_report_key,
)
from lakegate.job.upkeep import UPKEEP

_YOUNGEST = 1
_OURS = (*OWN_BRANCHES, UPKEEP)  # a compaction is dropped before its branch is a day old


@dataclass(frozen=True)
class Expired:
    """Expired branches of one table.

    `ingestion` is the id of the failed ingestion that owns the branches, "" for an unneeded branch.
    `since` is when it failed, or when the branch was last written. `left` says what could not be
    done, "" where all is done.
    """

    table: str
    branches: tuple[str, ...]
    since: str
    ingestion: str = ""
    left: str = ""


def expire(adapters: Adapters, days: int, *, dry_run: bool = False) -> Iterator[Expired]:
    """Discard ingestions that failed more than `days` ago, and unneeded branches as old.

    A branch without an intent is kept for at least one day. If the ledger lost what it was for,
    that is restored, and the branch is kept until a later run. With `dry_run` nothing changes. One
    failure does not stop the others.
    """
    now = datetime.fromisoformat(adapters.now())
    references = adapters.catalog.references()
    parts = set(map(id_part, references))
    before = times.text(now - timedelta(days=days))
    kept: set[str] = set()
    owners: dict[str, Ingestion] = {}
    for ingestion in adapters.ledger.read(_concerned(adapters, parts)):
        if ingestion.id[:ID_PART] in parts:
            owners[ingestion.id[:ID_PART]] = ingestion
        if _needs(ingestion, before):
            kept.add(ingestion.branch)
        if branches_to_delete := _due(ingestion, before, references):
            kept |= set(branches_to_delete)
            yield _expire_ingestion(adapters, ingestion, branches_to_delete, dry_run=dry_run)
    ours = {n: h for n, h in references.items() if n.startswith(_OURS) and n not in kept}
    oldest = now - timedelta(days=max(days, _YOUNGEST))
    for name, written in _unneeded(adapters, owners, ours):
        if written < oldest:
            tables = ", ".join(_tables(name, owners))
            expired = Expired(tables, (name,), times.text(written))
            yield _expire_unneeded(adapters, expired, references[name], dry_run=dry_run)


def _concerned(adapters: Adapters, parts: Collection[str]) -> Iterator[str]:
    """Yield the ids of what failed, is unfinished, or may own a branch by these parts of ids."""
    for each in adapters.ledger.outlines():
        if each.is_unfinished or each.state in ALERTED or each.id[:ID_PART] in parts:
            yield each.id


def _due(ingestion: Ingestion, before: str, references: Mapping[str, str]) -> Mapping[str, str]:
    """Return the branches to delete once the failure was notified and is old enough."""
    if ingestion.state not in ALERTED or steps.unfinished(ingestion):
        return {}
    if ingestion.decisions.discarded:
        return ingestion.decisions.branches_to_delete
    is_old = ingestion.ended_at < before
    return branches(ingestion, references) if is_old else {}


def _needs(ingestion: Ingestion, before: str) -> bool:
    """Return whether its branch may still be merged, or failed too recently."""
    if steps.unfinished(ingestion):
        return True
    is_kept = ingestion.state in ALERTED and not ingestion.decisions.discarded
    return is_kept and ingestion.ended_at >= before


def _expire_ingestion(
    adapters: Adapters,
    ingestion: Ingestion,
    branches_to_delete: Mapping[str, str],
    *,
    dry_run: bool,
) -> Expired:
    since, tables = ingestion.ended_at, ", ".join(ingestion.tables)
    expired = Expired(tables, tuple(sorted(branches_to_delete)), since, ingestion.id)
    if dry_run:
        return expired
    try:
        return replace(expired, left=discard(adapters, ingestion, before=since + "~").left)
    except LakegateError as error:
        return replace(expired, left=error.message)


def _expire_unneeded(adapters: Adapters, expired: Expired, head: str, *, dry_run: bool) -> Expired:
    """Delete a branch that still has this head; return what became of it."""
    (name,) = expired.branches
    try:
        if lost := _lost(adapters, name):
            if not dry_run:
                counted(restore(adapters, lost))
            return replace(expired, left="the ledger lacks what it is for, which is restored first")
        if not dry_run:
            if adapters.catalog.head(name) != head:
                return replace(expired, left="the branch changed meanwhile, so it is kept")
            adapters.catalog.delete_branch(name)
    except LakegateError as error:
        return replace(expired, left=error.message)
    return expired


def _lost(adapters: Adapters, name: str) -> list[LandedObject]:
    """Return what landed of the branch's reports whose ingestions the ledger lacks.

    Raise LakegateError if a report cannot be read: in doubt the branch is kept.
    """
    owners: dict[str, str] = {}
    for key in _reports(adapters, name):
        with suppress(ValueError):  # what else lies beside reports
            owners[key] = parse_report_key(key)[1]
    known = adapters.ledger.known(list(owners.values()), consistent=True)
    lost = (adapters.lake.report(key) for key, id_ in owners.items() if id_ not in known)
    return list(dict.fromkeys(report.source for report in lost))


def _reports(adapters: Adapters, name: str) -> list[str]:
    """Return the keys of the reports that may be about a branch."""
    table = _table(name)
    if key := group_reports_key(table, name):
        try:
            return list(adapters.lake.group_reports(key))
        except Missing:
            return []
    owner = id_part(name)
    return list(adapters.lake.reports_of(table, owner)) if owner else []


def _unneeded(
    adapters: Adapters, owners: Mapping[str, Ingestion], references: Mapping[str, str]
) -> Iterator[tuple[str, datetime]]:
    """Yield the branches that no ingestion needs, with the time of their last write."""
    main = MainLog(adapters)
    for name, head in references.items():
        if _is_owned(adapters, name, owners):
            continue
        try:
            newest = next(adapters.catalog.log_of(head), None)
        except UnknownBranch:
            continue
        if newest and (written := main.last_written(newest)):
            yield name, written


def _is_owned(adapters: Adapters, name: str, owners: Mapping[str, Ingestion]) -> bool:
    """Return whether an ingestion in flight, or a kept failed one, owns the branch."""
    if (listed := owners.get(id_part(name))) is None:
        return False
    owner = adapters.ledger.get(listed.id)  # a replay may have changed it
    return steps.unfinished(owner) or (owner.state in ALERTED and not owner.decisions.discarded)


def _tables(name: str, owners: Mapping[str, Ingestion]) -> tuple[str, ...]:
    """Return the tables that a branch was created for; none for an unknown batch."""
    if _table(name) != BATCH:
        return (_table(name),)
    owner = owners.get(id_part(name))
    return owner.tables if owner else ()


def _table(name: str) -> str:
    return name.split("/")[1]
