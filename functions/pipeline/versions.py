"""The versions of one key: which is newer, which main has had, which a newer one is to replace."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from functions.adapters.all import Adapters
from functions.model.commits import (
    NotOnMain,
)
from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from functions.model.merge_commit import commit_of

SUPERSEDED = "SUPERSEDED"


@dataclass(frozen=True)
class Standing:
    """What main has had of a key's other versions, seen from one of them.

    `on_main` are the ids of all those that were published; `newer` says that one of them is newer;
    `live` are the earlier ones whose rows no other version has replaced since.
    """

    on_main: frozenset[str] = frozenset()
    newer: bool = False
    live: tuple[Ingestion, ...] = ()

    def is_settled_by(self, ingestion: Ingestion) -> bool:
        """Whether the ingestion's intent removes every earlier version's rows."""
        return {each.id for each in self.live} <= set(ingestion.replaced)


def is_newer(one: Ingestion, other: Ingestion) -> bool:
    """Whether `one` is the newer version of the two's key.

    S3's sequencers tell, as hexadecimal numbers, where both came by an event; else the times they
    landed; else, so that there is an order at all, the version ids.
    """
    a, b = one.landed, other.landed
    if a.sequencer and b.sequencer and a.sequencer != b.sequencer:
        width = max(len(a.sequencer), len(b.sequencer))
        return a.sequencer.upper().rjust(width, "0") > b.sequencer.upper().rjust(width, "0")
    return (a.landed_at, a.version) > (b.landed_at, b.version)


def standing(ingestion: Ingestion, published: Iterable[Ingestion]) -> Standing:
    """How `ingestion` stands to the other versions of its key, `published` all of them."""
    others = list(published)
    gone = {id_ for each in others for id_ in each.replaced}
    newer = {each.id for each in others if is_newer(each, ingestion)}
    return Standing(
        on_main=frozenset(each.id for each in others),
        newer=bool(newer),
        live=tuple(each for each in others if each.id not in gone | newer),
    )


def look(adapters: Adapters, ingestion: Ingestion) -> Standing:
    """How the ingestion stands to the other versions of its key in its table, as of now."""
    versions = adapters.ledger.versions(ingestion.landed)
    others = [v for v in versions if v.table == ingestion.table and v.id != ingestion.id]
    return standing(ingestion, [each for each in others if is_on_main(adapters, each)])


def newest_newer(
    adapters: Adapters,
    ingestion: Ingestion,
    states: Collection[State] = (*IN_FLIGHT, State.PUBLISHED),
) -> Ingestion | None:
    """Return the newest version of its key that is newer and is in one of the states.

    None where there is none. Without any states named these are those of a version that is on main,
    or may come there.
    """
    found: Ingestion | None = None
    for each in _others(adapters, ingestion):
        if each.state in states and is_newer(each, found or ingestion):
            found = each
    return found


def older_failures(adapters: Adapters, published: Ingestion) -> list[Ingestion]:
    """Return the failed older versions of its key that people are still to decide on."""
    others = _others(adapters, published)
    return [each for each in others if each.is_open and is_newer(published, each)]


def _others(adapters: Adapters, ingestion: Ingestion) -> Iterator[Ingestion]:
    """Yield the other versions of its key that are, or may be, for one of its tables."""
    tables = set(ingestion.tables)
    for each in adapters.ledger.versions(ingestion.landed):
        known = tables and each.tables
        if each.id != ingestion.id and not (known and tables.isdisjoint(each.tables)):
            yield each


def is_on_main(adapters: Adapters, version: Ingestion) -> bool:
    """Whether a version was published: merged, though the ledger may not know it yet."""
    if version.state is not State.AUDITED:
        return version.state is State.PUBLISHED
    try:
        commit_of(adapters.catalog.log(), version)
    except NotOnMain:
        return False
    return True
