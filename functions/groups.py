"""What waits for one table and can be published together: intents that main refuses, and whose."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from functions import commits
from functions.ingestion import Ingestion, Intent, State
from functions.ledger import MOST_BYTES, MOST_TOGETHER, weight
from functions.world import World


@dataclass(frozen=True)
class Unit:
    """One intent, and the ingestions whose rows it holds."""

    intent: Intent
    members: Sequence[Ingestion]

    @property
    def complete(self) -> bool:
        """Whether these are all; the ledger may lack some, or an index be behind."""
        return len(self.members) == max(1, len(self.members[0].group))


def unit_of(world: World, ingestion: Ingestion) -> Unit:
    """The ingestion's intent with all its members, itself the first."""
    if not ingestion.group:
        return Unit(ingestion.intent, [ingestion])
    members = world.ledger.together(ingestion.group)
    same = [m for m in members if m.intent == ingestion.intent and m.state is State.AUDITED]
    return Unit(ingestion.intent, [ingestion, *(m for m in same if m.id != ingestion.id)])


def refused_too(world: World, refused: Unit, elsewhere: set[str]) -> Iterator[Unit]:
    """The other units that wait for the table and that main refuses, as many as fit in."""
    first = refused.members[0]
    if not _may_join(first):
        return
    room, bytes_left = MOST_TOGETHER - len(refused.members), MOST_BYTES - weight(refused.members)
    waiting: defaultdict[Intent, list[Ingestion]] = defaultdict(list)
    for each in world.ledger.waiting(first.table):
        if each.intent != refused.intent and _may_join(each):
            waiting[each.intent].append(each)
    found = [Unit(intent, members) for intent, members in waiting.items()]
    units = [
        unit
        for unit in found
        if unit.complete
        and not any(member.id in elsewhere for member in unit.members)
        and all(_asked_alike(member, first) for member in unit.members)
    ]
    for unit in _dead(world, units):
        if len(unit.members) <= room and (taken := weight(unit.members)) <= bytes_left:
            room, bytes_left = room - len(unit.members), bytes_left - taken
            yield unit


def _may_join(waiting: Ingestion) -> bool:
    """Whether its rows are of one file, with which nothing else has to be published or undone.

    And of one that no newer version can keep from main (see stale.py).
    """
    return not (waiting.replaces or waiting.change or waiting.parts or waiting.is_decided)


def _asked_alike(one: Ingestion, other: Ingestion) -> bool:
    return (one.demands, one.contract_pinned) == (other.demands, other.contract_pinned)


def _dead(world: World, units: Sequence[Unit]) -> Iterator[Unit]:
    """The units that main can never take: it changed the table since their branch was cut.

    What main took already is not among them: a commit since then names it.
    """
    cut_at: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        cut_at[unit.members[0].base_hash].append(unit)
    since = _Since()
    for commit in world.catalog.log() if cut_at else ():
        for unit in cut_at.pop(commit.hash, ()):
            if since.changed(unit) and not since.names(unit):
                yield unit
        if not cut_at:
            return
        since.tables |= commits.tables(commit)
        since.published.update(each.id for each in commits.published(commit))


@dataclass
class _Since:
    """What main's commits, from the newest back, published, and into which tables."""

    tables: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)

    def changed(self, unit: Unit) -> bool:
        return unit.members[0].table in self.tables

    def names(self, unit: Unit) -> bool:
        return any(member.id in self.published for member in unit.members)
