"""Find and delete files of tables that nobody can read any more.

A file is alive if a branch, a tag or a commit that is kept reaches it: whichever table's, and under
whatever name, since two tables of Nessie may share a folder (projectnessie/nessie #12363). Commits
are kept for `keep_days`; what was written since then is left alone too, as a job may still be about
to commit it. States that a decision on an ingestion compares are alive as well. A key digest is
alive while its data file is.

Only data files, metadata and digests in folders that Nessie made are ever deleted. If any state
cannot be read, nothing is. S3 keeps each deleted object behind its delete marker for `keep_days`
more. docs/adr/0043-upkeep.md has the whole argument.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import StoredObject
from functions.operations.discard import UUID, WAREHOUSE
from functions.telemetry import metrics
from lakegate import times
from lakegate.audit_tables import TABLES
from lakegate.errors import Transient

_PARALLEL = 8
_FEWEST_DAYS = 1  # a job's files are younger until it has committed them
# The clocks of Nessie's servers and of S3 may differ by this much.
_SKEW = timedelta(hours=1)
_HISTORY = "|".join(re.escape(table.name.replace(".", "/")) for table in TABLES)
_OF_A_TABLE = re.compile(
    rf"{WAREHOUSE}(?:(?P<name>.+)_{UUID}|(?P<ops>{_HISTORY}))/(?P<kind>data|metadata)/.+", re.DOTALL
)
_DIGEST = re.compile(r"(.*/)_key_digests/(.+)\.[0-9a-f]{8}-[0-9]+", re.DOTALL)
_ADDRESS = re.compile(r"s3[an]?://[^/]+/(.*)", re.DOTALL)


@dataclass(frozen=True)
class DeadFiles:
    """Files of tables without a reader: those `due` can be deleted, `young` ones are too new.

    `metadata` are the bytes of all metadata that is stored, by table, with a reader or without.
    """

    due: tuple[StoredObject, ...] = ()
    young: tuple[StoredObject, ...] = ()
    metadata: Mapping[str, int] = field(default_factory=dict)

    @property
    def due_bytes(self) -> int:
        """Return the bytes of those that can be deleted."""
        return sum(each.bytes for each in self.due)

    @property
    def young_bytes(self) -> int:
        """Return the bytes of those that are too new."""
        return sum(each.bytes for each in self.young)

    def young_by_table(self) -> Counter[str]:
        """Return the bytes of those that are too new, by table."""
        return _by_table(self.young)

    def metadata_left(self) -> Counter[str]:
        """Return the bytes of metadata, by table, once those that are due are deleted."""
        return Counter(self.metadata) - _by_table(filter(_is_metadata, self.due))


def judge(stored: Iterable[StoredObject], alive: Collection[str], before: datetime) -> DeadFiles:
    """Return the dead files among stored objects; those written before that time are due.

    `alive` are keys. An object that is no file of a table is not judged.
    """
    files = [each for each in stored if _OF_A_TABLE.fullmatch(each.key)]
    dead = [each for each in files if _data_file(each.key) not in alive]
    return DeadFiles(
        due=tuple(each for each in dead if each.modified < before),
        young=tuple(each for each in dead if each.modified >= before),
        metadata=_by_table(filter(_is_metadata, files)),
    )


def _data_file(key: str) -> str:
    """Return the key of the data file that a digest is of; any other key as it is."""
    found = _DIGEST.fullmatch(key)
    return f"{found[1]}{found[2]}" if found else key


def _is_metadata(stored: StoredObject) -> bool:
    found = _OF_A_TABLE.fullmatch(stored.key)
    return bool(found and found["kind"] == "metadata")


def _by_table(files: Iterable[StoredObject]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in files:
        if of := _OF_A_TABLE.fullmatch(each.key):
            found[(of["name"] or of["ops"]).replace("/", ".")] += each.bytes
    return found


def find(adapters: Adapters) -> DeadFiles:
    """Return the dead files in the lake.

    Raises Transient UNKNOWN_FILES if the files of some state are unknown.
    """
    return _find(adapters, Readers(adapters, _kept_since(adapters)))


def delete(adapters: Adapters) -> DeadFiles:
    """Delete the dead files that are due, and return all dead ones. Raises as `find`.

    It notes first since when states are whole: reconcile compares no older ones, and a longer
    `keep_days` does not ask for them.
    """
    readers = Readers(adapters, _kept_since(adapters))
    found = _find(adapters, readers)
    readers.look()  # again: somebody may have made a branch or a tag meanwhile
    due = judge(found.due, readers.alive, readers.since).due
    note = adapters.ledger.upkeep()
    adapters.ledger.save_upkeep(replace(note, kept_since=times.text(readers.since)))
    adapters.lake.delete_objects([each.key for each in due])
    metrics.add_metric("DeadBytesDeleted", "Bytes", sum(each.bytes for each in due))
    return replace(found, due=due)


def _find(adapters: Adapters, readers: "Readers") -> DeadFiles:
    stored = list(adapters.lake.stored(WAREHOUSE))  # first: what is written later is not judged
    readers.look()
    return judge(stored, readers.alive, readers.since)


def _kept_since(adapters: Adapters) -> datetime:
    days = timedelta(days=max(adapters.settings.keep_days, _FEWEST_DAYS))
    wanted = datetime.fromisoformat(adapters.now()) - days - _SKEW
    noted = adapters.ledger.upkeep().kept_since
    return max(wanted, datetime.fromisoformat(noted)) if noted else wanted


class Readers:
    """All that branches, tags and kept commits reach; each state and each file is read once."""

    def __init__(self, adapters: Adapters, since: datetime) -> None:
        """Commits `since` that time are kept, and the state of each table at that time."""
        self._adapters = adapters
        self.since = since
        self.alive: set[str] = set()
        self._known: set[str] = set()
        self._read: set[str] = set()
        self._manifests: set[str] = set()
        self._decided_on = frozenset(_decided_on(adapters))  # once: later ones are main's heads

    def look(self) -> None:
        """Add what references reach by now. Raises Transient UNKNOWN_FILES."""
        states: dict[str, str] = {}
        for name, metadata in self._states():
            if metadata not in self._read:
                states.setdefault(metadata, name)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            files = partial(self._adapters.tables().files, known=self._manifests)
            # By their random names: neighbours in the log would read the same manifests at once.
            order = sorted(states)
            for metadata, found in zip(order, pool.map(files, order), strict=True):
                if found.missing and states[metadata]:
                    raise _unknown(states[metadata], min(found.missing))
                self.alive.update(map(_key, found.paths))
                self._manifests |= found.levels[1] - found.missing  # not looked into again
        self._read |= states.keys()

    def _states(self) -> Iterator[tuple[str, str]]:
        """Yield the metadata file of each state, with the reference that reaches it.

        The name is "" for what only decisions compare: that may be gone.
        """
        catalog = self._adapters.catalog
        for name, head in sorted(catalog.references().items()):
            try:
                for metadata in catalog.states(head, self.since, self._known):
                    yield name, metadata
            except UnknownBranch as gone:
                raise Transient("CATALOG_MOVED", gone.message) from gone
        for at in sorted(self._decided_on):
            with suppress(UnknownBranch):  # of a catalog that was restored from a backup
                yield from (("", each) for each in catalog.states(at, self.since, self._known))


def _decided_on(adapters: Adapters) -> Iterator[str]:
    """Yield the commits that are compared if an ingestion is published: its base, and its own."""
    for each in adapters.ledger.all():
        if not each.ended or each.is_open:
            yield from filter(None, (each.base_hash, each.audited_hash))


def _unknown(name: str, missing: str) -> Transient:
    message = (
        f"nothing was deleted, as what {name} reaches is unknown: {missing} does not exist. "
        "Restore it from its S3 version; or delete that branch or tag if nobody needs it"
    )
    return Transient("UNKNOWN_FILES", message)


def _key(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    return found[1] if found else address
