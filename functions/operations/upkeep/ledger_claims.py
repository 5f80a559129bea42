"""What the ledger says that upkeep must keep, and that main must have."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.model.ingestion import State
from functions.model.notes.upkeep_note import Look
from lakegate import times

# The clocks of Nessie's servers, of S3 and of Lambdas may differ by this much.
SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Claims:
    """What the ledger says that is needed, whether a reference reaches it or not.

    `decided_on` are the commits that are compared if an ingestion is published: its base, and its
    own. `recorded` maps an ingestion's id to its last attempt whose results are recorded.
    `published` maps commits that main must have to the key of a landed object.
    """

    decided_on: frozenset[str]
    recorded: Mapping[str, int]
    published: Mapping[str, str]


def read_claims(adapters: Adapters, look: Look, first: datetime) -> Claims:
    """Read the ledger once; of published ingestions those that ended since the last look.

    Before any look, those since `first`. What ended before a person accepted main may be what it
    lacked then.
    """
    last = datetime.fromisoformat(look.at) if look.at else first
    earliest = times.text(last if look.is_accepted else last - SKEW)
    decided_on, recorded, published = set[str](), dict[str, int](), dict[str, str]()
    for each in adapters.ledger.all():
        if not each.ended or each.is_open:
            decided_on.update(filter(None, (each.base_hash, each.audited_hash)))
        recorded[each.id] = each.recorded
        if each.state is State.PUBLISHED and each.merge_hash and each.ended_at >= earliest:
            published[each.merge_hash] = each.landed.key
    return Claims(frozenset(decided_on), recorded, published)
