"""Tell owners of tables whose next file is overdue, and again when it came.

How often a table gets files is in its contract (`slaProperties`). When it got the last one is in
main's log, so nothing is written for each file; what was told to owners is kept in the ledger.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from functions.adapters.all import Adapters
from functions.adapters.ledger.notes import Moved
from functions.model.merge_commit import published, tables
from functions.model.notes.freshness import Freshness
from functions.notifications.alert_text import arrived, missing
from functions.telemetry import count_files, logger
from lakegate import times
from lakegate.contract.model import Contract

_OVERLAP = timedelta(hours=1)  # between looks, as clocks differ and a merge takes time


def missing_files(adapters: Adapters) -> Iterator[str]:
    """Alert the owners of tables that became overdue, or got their file; yield these tables.

    What was told is saved at the end, so after a crash it may be told twice.
    """
    waiting, before = _expecting(adapters), adapters.ledger.freshness()
    if not (waiting or before.arrived):
        return
    longest = {name: c.expected.longest for name, c in waiting.items() if c.expected}
    after = before.after(_published(adapters, before), longest, adapters.now())
    count_files("Late", [(table,) for table in after.overdue])
    for table in after.changed(before):
        text = missing if table in after.overdue else arrived
        adapters.alerts.post(waiting[table].channel, text(waiting[table], after.arrived[table]))
        yield table
    try:
        adapters.ledger.save_freshness(after)
    except Moved:
        logger.info("another sweep looks for missing files")


def due(adapters: Adapters, overdue: Mapping[str, str]) -> dict[str, str]:
    """Return when the next file of each table was due that got none since these times."""
    waiting = _expecting(adapters).values() if overdue else ()
    late = ((each.table, each.expected) for each in waiting if each.table in overdue)
    return {table: expected.due(overdue[table]) for table, expected in late if expected}


def _expecting(adapters: Adapters) -> dict[str, Contract]:
    contracts = (stored.contract for stored in adapters.lake.contracts(None))
    return {contract.table: contract for contract in contracts if contract.expected}


def _published(adapters: Adapters, before: Freshness) -> dict[str, str]:
    """Return the time of each table's newest file on main since the last look."""
    newest: dict[str, str] = {}
    if not before.checked_at:
        return newest
    since = times.earlier(before.checked_at, _OVERLAP)
    for commit in adapters.catalog.log():
        if commit.at < since:
            break
        brings_files = any(not each.kind for each in published(commit))
        for table in tables(commit) if brings_files else ():
            newest.setdefault(table, commit.at)
    return newest
