"""Find landed objects that the ledger lacks, by a search that continues from sweep to sweep.

Each sweep lists a part of the landing bucket, or all of a small one, and looks up in the ledger
only what landed since the last round. The search is kept in the ledger:
if the ledger is lost or set back, the search is too. docs/adr/0031-search.md has the argument.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from functions.adapters.all import Adapters
from functions.adapters.landing import LostPosition
from functions.adapters.ledger.notes import Moved
from functions.model.ingestion import Ingestion
from functions.model.notes.search import Search
from functions.operations.recovery.rebuild_ledger import restore
from functions.telemetry import logger, metrics
from lakegate.job.landing import LandedObject, ingestion_id

PAGES = 50  # of a thousand versions each, listed by one sweep
_MOST_UNKNOWN = 500  # after these no further page is listed: they take more than a minute


def forgotten(
    adapters: Adapters, before: str, pages: int = PAGES, *, everything: bool = False
) -> Iterator[LandedObject]:
    """Yield landed objects, older than `before`, that the ledger lacks and that left no trace.

    Others are restored. Of the landing bucket so many pages are listed, from where the last call
    stopped; the next call continues there once the ledger has all that was found. `everything`
    begins again, looks up every version, and lists all pages.
    """
    kept = None if everything else adapters.ledger.search()
    search = kept or adapters.ledger.begin_search(before)
    pages = sys.maxsize if everything else pages
    gaps, position = _unknown(adapters, search, before, pages)
    lost = counted(restore(adapters, list(gaps.values())))
    yield from (landed for id_, landed in gaps.items() if id_ not in lost)
    is_complete = not gaps or gaps.keys() <= adapters.ledger.known(list(gaps), consistent=True)
    if lost and search.since:  # a ledger that lost one ingestion may have lost more
        adapters.ledger.begin_search(before)
        return
    with suppress(Moved):  # another sweep's is as good, and one that begins again is better
        adapters.ledger.save_search(search.after(position, before, is_complete=is_complete))


def counted(restored: Iterator[Ingestion]) -> set[str]:
    """Return the ids of restored ingestions, which are resumed later and not ingested again."""
    ids = {ingestion.id for ingestion in restored}
    if ids:
        logger.error("restored ingestions that the ledger lost", extra={"restored": len(ids)})
        metrics.add_metric("Restored", "Count", len(ids))
    return ids


def _unknown(
    adapters: Adapters, search: Search, before: str, pages: int
) -> tuple[dict[str, LandedObject], str]:
    """Return what the ledger lacks of the next pages, by id, and the position after them.

    Changes are few, so all of them are listed.
    """
    gaps = dict(_lacking(adapters, search, before, adapters.lake.changes()))
    position = search.position
    for _ in range(pages):
        page, position = _page(adapters, position)
        gaps.update(_lacking(adapters, search, before, page))
        if not position or len(gaps) >= _MOST_UNKNOWN:
            break
    return gaps, position


def _page(adapters: Adapters, position: str) -> tuple[list[LandedObject], str]:
    """Return the versions after a position, and the next one; begin again if S3 does not know it.

    A version that a position names may be deleted meanwhile.
    """
    try:
        return adapters.landing.page(position)
    except LostPosition as error:
        logger.warning("the search begins again", extra={"why": error.message})
        return adapters.landing.page("")


def _lacking(
    adapters: Adapters, search: Search, before: str, listed: Iterable[LandedObject]
) -> Iterator[tuple[str, LandedObject]]:
    """Yield those that the search looks up and the ledger lacks, with their ids.

    What landed since `before` is left.
    """
    of_round = (landed for landed in listed if search.since <= landed.landed_at < before)
    due = {ingestion_id(landed): landed for landed in of_round}
    known = adapters.ledger.known(list(due)) if due else ()
    yield from ((id_, landed) for id_, landed in due.items() if id_ not in known)
