"""Register the files of refused intents on one fresh branch, so that one merge publishes them all.

An intent is replaced only once main is known to refuse its branch for ever, so of a branch and its
successor only one can be published. docs/adr/0008-publishing-together.md has the whole argument.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from functions.adapters.all import Adapters
from functions.adapters.iceberg.errors import CannotRebase
from functions.adapters.ledger.ledger import Room
from functions.adapters.ledger.notes import Moved
from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.intent import Intent
from functions.pipeline.publication.fresh_branch import FreshBranch, on_fresh_branch
from functions.pipeline.start.batches import register_again
from functions.telemetry import metrics
from lakegate.job.landing import fresh_branch


@dataclass(frozen=True)
class Unit:
    """One intent, and the ingestions whose rows it holds.

    Its branch `is_evidence` where one of them ended alone, as it holds other rows than reported.
    """

    intent: Intent
    members: Sequence[Ingestion]
    is_evidence: bool = False

    @property
    def complete(self) -> bool:
        """Return whether these are all: the ledger may lack some, or an index may lag behind."""
        return len(self.members) == max(1, len(self.members[0].group))

    @property
    def leaving(self) -> Sequence[Ingestion]:
        """Return the members as they run again: each deletes the branch that it names."""
        if not self.is_evidence:
            return self.members
        return [member.but(group=(), branch="") for member in self.members]


def unit_of(adapters: Adapters, ingestion: Ingestion) -> Unit:
    """Return the ingestion's intent with all its members, itself the first."""
    if not ingestion.group:
        return Unit(ingestion.intent, [ingestion])
    alike = [m for m in adapters.ledger.together(ingestion.group) if m.intent == ingestion.intent]
    others = [m for m in alike if m.state is State.AUDITED and m.id != ingestion.id]
    is_evidence = any(m.state in ALERTED and not m.group for m in alike)
    return Unit(ingestion.intent, [ingestion, *others], is_evidence)


def rebase(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """Register the refused files, and those that wait with them, on a fresh branch off main.

    Return the unit's first ingestion as it is then. `elsewhere` are the ids of ingestions that
    other processes changed meanwhile: they are left out, and more of them are added.
    """
    first = refused.members[0]
    fresh = fresh_branch(first.table, first.id, adapters.token())
    if first.parts:
        return on_fresh_branch(adapters, fresh, [first], partial(_register_batch, adapters, first))
    # Read before main's log, which then reaches back to where each of their branches was created.
    waiting = _waiting_units(adapters, refused, elsewhere)
    register = partial(_register, adapters, refused, waiting, elsewhere)
    return on_fresh_branch(adapters, fresh, refused.members, register)


def _register(
    adapters: Adapters,
    refused: Unit,
    waiting: Sequence[Unit],
    elsewhere: set[str],
    fresh: FreshBranch,
) -> list[str]:
    """Make the fresh branch the intent of all units whose files it can hold.

    Return the branches that it replaces. Raise CannotRebase where the table, or one write to the
    ledger, cannot take the refused files, Moved where another process changed some of the
    ingestions.
    """
    units = [refused, *_refused_too(refused, waiting, fresh.log)]
    table, intents = refused.members[0].table, [unit.intent for unit in units]
    failed = adapters.tables().append_again(table, intents, fresh.name)
    if refused.intent in failed:
        raise failed[refused.intent]
    registered = [unit for unit in units if unit.intent not in failed]
    members = [member for unit in registered for member in unit.members]
    try:
        _set_intent(adapters, members, fresh)
    except Moved as moved:
        elsewhere.update(moved.ids)
        raise
    return [unit.intent.branch for unit in registered]


def _set_intent(adapters: Adapters, members: Sequence[Ingestion], fresh: FreshBranch) -> None:
    """Make the fresh branch the intent of all members, in one conditional write."""
    intent = Intent(fresh.name, adapters.catalog.head(fresh.name))
    adapters.ledger.rebase(members, intent, fresh.base)
    metrics.add_metric("Rebases", "Count", 1)


def _register_batch(adapters: Adapters, batch: Ingestion, fresh: FreshBranch) -> list[str]:
    """Make the fresh branch the intent of a batch, which is published alone."""
    parts = register_again(adapters, batch, fresh.name)
    intent = Intent(fresh.name, adapters.catalog.head(fresh.name))
    adapters.ledger.save(batch.rebased(adapters.now(), intent, fresh.base, ()).but(parts=parts))
    metrics.add_metric("Rebases", "Count", 1)
    return [batch.branch]


def _waiting_units(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> list[Unit]:
    """Return the other units that wait for the table and could be registered with the refused."""
    first = refused.members[0]
    if not _may_join(first):
        return []
    firsts = {
        each.intent: each
        for each in adapters.ledger.waiting(first.table)
        if each.intent != refused.intent and each.state is State.AUDITED
    }
    units = (unit_of(adapters, each) for each in firsts.values() if _may_join(each))
    return [
        unit
        for unit in units
        if unit.complete
        and not any(member.id in elsewhere for member in unit.members)
        and all(_may_join(each) and _has_same_requirements(each, first) for each in unit.members)
    ]


def _may_join(waiting: Ingestion) -> bool:
    """Return whether its rows can be published together with those of other files.

    They cannot where something else has to be published or undone with them, nor where a newer
    version may still keep them from main (see replace.py).
    """
    # A write mode is a requirement.
    alone = waiting.terms.replaces or waiting.change or waiting.parts
    return not (alone or waiting.is_decided)


def _has_same_requirements(one: Ingestion, other: Ingestion) -> bool:
    return (one.terms.requirements_digest, one.contract_pinned) == (
        other.terms.requirements_digest,
        other.contract_pinned,
    )


def _refused_too(refused: Unit, waiting: Sequence[Unit], log: Iterable[Commit]) -> Iterator[Unit]:
    """Yield the waiting units that main refuses too, as many as one write to the ledger takes.

    Raise CannotRebase if it does not even take the refused one: once a member of a large group was
    saved alone, the others can only be changed one by one.
    """
    room = Room()
    if not room.takes(refused.members):
        message = f"{len(refused.members)} files of a group are too many for one write"
        raise CannotRebase("TOO_MANY_FILES", message)
    yield from (unit for unit in _refused_for_ever(waiting, log) if room.takes(unit.members))


def _refused_for_ever(units: Sequence[Unit], log: Iterable[Commit]) -> Iterator[Unit]:
    """Yield the units whose table main changed since their branch was created.

    Units that main has published already are left out: a commit since then names them.
    """
    by_base: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        by_base[unit.members[0].base_hash].append(unit)
    since = _Since()
    for commit in log if by_base else ():
        for unit in by_base.pop(commit.hash, ()):
            if since.changed(unit) and not since.names(unit):
                yield unit
        if not by_base:
            return
        since.tables |= merge_commit.tables(commit)
        since.published.update(each.id for each in merge_commit.published(commit))


@dataclass
class _Since:
    """The ingestions that main's newest commits published, and their tables."""

    tables: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)

    def changed(self, unit: Unit) -> bool:
        """Return whether main's table changed."""
        return unit.members[0].table in self.tables

    def names(self, unit: Unit) -> bool:
        """Return whether main has published some of the unit."""
        return any(member.id in self.published for member in unit.members)
