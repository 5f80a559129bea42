"""The daily upkeep: delete what nobody can read, and note how each table is.

The page and commands show the note, so that they need not read every table's manifests. Consumers
whose copy of a table points to metadata that another writer replaced are told of the newest state,
as the old metadata is deleted one day.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.adapters.ledger.notes import Moved
from functions.model.merge_commit import UPKEEP, is_ours
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from functions.notifications.alert_text import upkeep_in_doubt
from functions.operations.compaction.compact import Need, needs, refresh_consumers
from functions.operations.upkeep import dead_files
from functions.operations.upkeep.dead_files import Accepted, DeadFiles
from functions.operations.upkeep.ledger_claims import SKEW
from functions.operations.upkeep.recognition import InDoubt
from functions.telemetry import logger
from lakegate import times


def upkeep(adapters: Adapters, accepted: Accepted = dead_files.NOTHING) -> DeadFiles:
    """Delete dead files, and note how each table is. Return the dead files as it found them.

    Raises as `dead_files.delete`, and LakegateError where a table cannot be read. In doubt it also
    tells the operators, and notes it for the page and for commands.
    """
    with _telling(adapters):
        dead = dead_files.delete(adapters, accepted)
    before = adapters.ledger.upkeep()
    at = before.look.at
    last_run = before.at if "" < before.at < at else before.kept_since
    compacted, changed = _news(adapters, times.earlier(last_run, SKEW) if last_run else "")
    for name in sorted(changed):
        refresh_consumers(adapters, name)
    young, metadata = dead.young_by_table(), dead.metadata_left()
    last = {name: each.compacted_at for name, each in before.tables.items()}
    last.update(compacted)
    tables = {
        need.table: _noted(need, metadata[need.table], young[need.table], last.get(need.table, ""))
        for need in needs(adapters)
    }
    _save(adapters, replace(before, at=at, tables=tables))
    return dead


def _save(adapters: Adapters, note: UpkeepNote) -> None:
    try:
        adapters.ledger.save_upkeep(note)
    except Moved:
        logger.info("another upkeep noted what it found meanwhile")


def require_recognised(adapters: Adapters) -> None:
    """Raise InDoubt, and tell it, if branches must not expire: main may be set forward to them."""
    with _telling(adapters):
        dead_files.require_recognised(adapters)


@contextmanager
def _telling(adapters: Adapters) -> Iterator[None]:
    try:
        yield
    except InDoubt as doubt:
        _save(adapters, replace(adapters.ledger.upkeep(), doubt=doubt.message))
        adapters.alerts.post("", upkeep_in_doubt(doubt.code, doubt.message))
        raise


def _noted(need: Need, metadata: int, young: int, compacted_at: str) -> TableUpkeep:
    size = need.size
    return TableUpkeep(size.files, size.small, size.manifest_bytes, metadata, young, compacted_at)


def _news(adapters: Adapters, since: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return when each table was compacted last, and the names of what other writers changed.

    Main's log is read back to a time by Nessie's clock.
    """
    compacted: dict[str, str] = {}
    changed = frozenset[str]()
    for commit, names in adapters.catalog.history():
        if commit.at < since:
            break
        if note := commit.properties.get(UPKEEP):
            compacted.setdefault(json.loads(note)["table"], commit.at)
        elif not is_ours(commit):
            changed |= names
    return compacted, changed
