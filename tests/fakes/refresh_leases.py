"""Refresh leases in memory."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.downstream.refresh_lease import Lease
from functions.model.messages.refresh import taken
from lakegate.errors import Transient


@dataclass
class _Mark:
    of: str
    begun: int = 0
    done: int = 0
    lease: Lease | None = None
    until: datetime | None = None


class FakeRefreshLeases:
    """See RefreshLeases: the started and finished refreshes of each table, and its lease."""

    def __init__(self) -> None:
        self._marks: dict[str, _Mark] = {}

    def lease(self, table: str, position: int, now: datetime, seconds: int) -> Lease | None:
        mark = self._marks.setdefault(table.lower(), _Mark(table))
        if mark.of != table:
            raise taken(table, mark.of, "delete its mark")
        if mark.done >= position or mark.begun > position:
            return None
        if mark.until and now < mark.until:
            raise _leased(table)
        mark.begun, mark.until = position, now + timedelta(seconds=seconds)
        mark.lease = Lease(table, position, uuid.uuid4().hex)
        return mark.lease

    def done(self, lease: Lease) -> None:
        mark = self._marks[lease.table.lower()]
        if mark.lease != lease:
            raise _leased(lease.table)
        mark.done, mark.lease, mark.until = lease.position, None, None

    def free(self, lease: Lease) -> None:
        mark = self._marks[lease.table.lower()]
        if mark.lease == lease:
            mark.lease, mark.until = None, None


def _leased(table: str) -> Transient:
    return Transient("LEASED", f"another process is refreshing {table}")
