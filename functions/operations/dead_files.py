"""Find and delete data files that nobody can read any more.

A data file is alive if a branch, a tag or a commit that is kept reaches it: whichever table's, and
under whatever name, since two tables of Nessie may share a folder (projectnessie/nessie #12363).
Commits are kept for `keep_days`; what was written since then is left alone too, as a job may still
be about to commit it. A key digest is alive while its data file is.

Only data files in folders that Nessie made, and their digests, are ever deleted. Metadata stays:
`reconcile --full` reads that of main's whole log. If any state cannot be read, nothing is deleted.
S3 keeps each deleted object behind its delete marker for `keep_days` more.
docs/adr/0043-upkeep.md has the whole argument.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import StoredObject
from functions.operations.discard import UUID, WAREHOUSE
from functions.telemetry import metrics
from lakegate.audit_tables import TABLES
from lakegate.errors import Transient

_PARALLEL = 8
_FEWEST_DAYS = 1  # a job's files are younger until it has committed them
# The clocks of Nessie's servers and of S3 may differ by this much.
_SKEW = timedelta(hours=1)
_HISTORY = "|".join(re.escape(table.name.replace(".", "/")) for table in TABLES)
_IN_A_TABLE = re.compile(rf"{WAREHOUSE}((.+/)?[^/]+_{UUID}|{_HISTORY})/data/.+", re.DOTALL)
_DIGEST = re.compile(r"(.*/)_key_digests/(.+)\.[0-9a-f]{8}-[0-9]+", re.DOTALL)
_ADDRESS = re.compile(r"s3[an]?://[^/]+/(.*)", re.DOTALL)


@dataclass(frozen=True)
class DeadFiles:
    """Data files without a reader.

    Those in `due` can be deleted; so many `young` ones, of `young_bytes`, are too new for that.
    """

    due: tuple[StoredObject, ...] = ()
    young: int = 0
    young_bytes: int = 0

    @property
    def due_bytes(self) -> int:
        """Return the bytes of those that can be deleted."""
        return sum(each.bytes for each in self.due)


def judge(stored: Iterable[StoredObject], alive: Collection[str], before: datetime) -> DeadFiles:
    """Return the dead files among stored objects; those written before that time are due.

    `alive` are keys. An object that is no data file of a table is not judged.
    """
    dead = [each for each in stored if _is_data(each.key) and _data_file(each.key) not in alive]
    young = [each for each in dead if each.modified >= before]
    due = tuple(each for each in dead if each.modified < before)
    return DeadFiles(due, len(young), sum(each.bytes for each in young))


def _is_data(key: str) -> bool:
    return bool(_IN_A_TABLE.fullmatch(key))


def _data_file(key: str) -> str:
    """Return the key of the data file that a digest is of; any other key as it is."""
    found = _DIGEST.fullmatch(key)
    return f"{found[1]}{found[2]}" if found else key


def find(adapters: Adapters) -> DeadFiles:
    """Return the dead files in the lake.

    Raises Transient UNKNOWN_FILES if the files of some state are unknown.
    """
    return _find(adapters, Readers(adapters, _kept_since(adapters)))


def delete(adapters: Adapters) -> DeadFiles:
    """Delete the dead files that are due, and return all dead ones. Raises as `find`."""
    readers = Readers(adapters, _kept_since(adapters))
    found = _find(adapters, readers)
    readers.look()  # again: somebody may have made a branch or a tag meanwhile
    due = judge(found.due, readers.alive, readers.since).due
    adapters.lake.delete_objects([each.key for each in due])
    metrics.add_metric("DeadBytesDeleted", "Bytes", sum(each.bytes for each in due))
    return replace(found, due=due)


def _find(adapters: Adapters, readers: "Readers") -> DeadFiles:
    stored = list(adapters.lake.stored(WAREHOUSE))  # first: what is written later is not judged
    readers.look()
    return judge(stored, readers.alive, readers.since)


def _kept_since(adapters: Adapters) -> datetime:
    days = timedelta(days=max(adapters.settings.keep_days, _FEWEST_DAYS))
    return datetime.fromisoformat(adapters.now()) - days - _SKEW


class Readers:
    """All that branches, tags and kept commits reach; each state and each file is read once."""

    def __init__(self, adapters: Adapters, since: datetime) -> None:
        """Commits `since` that time are kept, and the state of each table at that time."""
        self._adapters = adapters
        self.since = since
        self.alive: set[str] = set()
        self._known: set[str] = set()
        self._read: set[str] = set()

    def look(self) -> None:
        """Add what references reach by now. Raises Transient UNKNOWN_FILES."""
        states = set(self._states()) - self._read
        tables = self._adapters.tables()
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for found in pool.map(tables.files, sorted(states)):
                if found.missing:
                    message = f"what it reaches is unknown: {min(found.missing)} is missing"
                    raise Transient("UNKNOWN_FILES", f"nothing was deleted; {message}")
                self.alive.update(map(_key, found.levels[0]))
        self._read |= states

    def _states(self) -> Iterator[str]:
        for head in sorted(set(self._adapters.catalog.references().values())):
            try:
                yield from self._adapters.catalog.states(head, self.since, self._known)
            except UnknownBranch as gone:
                raise Transient("CATALOG_MOVED", gone.message) from gone


def _key(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    return found[1] if found else address
