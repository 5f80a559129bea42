"""What the ledger says that upkeep must keep, and that main must have."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.ledger.reads import Outline
from functions.model.ingestion import ALERTED, IN_FLIGHT, State
from functions.model.notes.upkeep_note import Look
from lakegate import times

# The clocks of Nessie's servers, of S3 and of Lambdas may differ by this much.
SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Claims:
    """What the ledger says that is needed, whether a reference reaches it or not.

    `decided_on` are the commits that are compared if an ingestion is published: its base, and its
    own. `published` maps commits that main must have to the key of a landed object.
    """

    decided_on: frozenset[str]
    published: Mapping[str, str]


def read_claims(adapters: Adapters, look: Look, first: datetime) -> Claims:
    """Read what the ledger says; of published ingestions those that ended since the last look.

    Before any look, those since `first`. What ended before a person accepted main may be what it
    lacked then.
    """
    last = datetime.fromisoformat(look.at) if look.at else first
    earliest = times.text(last if look.is_accepted else last - SKEW)
    decided_on, published = set[str](), dict[str, str]()
    outlines = adapters.ledger.outlines()
    for each in adapters.ledger.read(i.id for i in outlines if _may_claim(i, earliest)):
        if not each.ended or each.is_open:
            decided_on.update(filter(None, (each.base_hash, each.audited_hash)))
        if each.state is State.PUBLISHED and each.merge_hash and each.ended_at >= earliest:
            published[each.merge_hash] = each.landed.key
    return Claims(frozenset(decided_on), published)


def _may_claim(outline: Outline, earliest: str) -> bool:
    """Return whether it may be undecided, or have been published since then."""
    if outline.state is State.PUBLISHED:
        return outline.saved_at >= earliest
    return outline.state in (*IN_FLIGHT, *ALERTED)
