"""Find and delete files of tables that nobody can read any more.

A file is alive if a branch, a tag or a commit that is kept reaches it: whichever table's, and under
whatever name, since two tables of Nessie may share a folder (projectnessie/nessie #12363). Commits
are kept for `keep_days`; what was written since then is left alone too, as a job may still be about
to commit it. States that a decision on an ingestion compares are alive as well, and so are a run's
results until they are recorded. A key digest is alive while its data file is.

Only data files, metadata and digests in folders that Nessie made are ever deleted. Nothing is if
any state cannot be read, if the catalog is not the one of the last look, if that look was too long
ago (recognition.py), or if much would go at once. S3's clock says how old files are, and S3 keeps
each deleted object behind its delete marker for `keep_days` more.
docs/adr/0053-deletion-needs-proof.md has the whole argument.
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
from functions.adapters.ledger.notes import Moved
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import StoredObject
from functions.model.commits import Content, UnknownContent
from functions.model.notes.upkeep_note import Look, UpkeepNote
from functions.operations.upkeep.ledger_claims import SKEW, Claims
from functions.operations.upkeep.recognition import InDoubt, recognise
from functions.telemetry import metrics
from lakegate import times
from lakegate.audit.audit_tables import TABLES
from lakegate.errors import Transient

WAREHOUSE = "warehouse/"
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PARALLEL = 8
_DAY = timedelta(days=1)  # a job's files are younger until it has committed them
# More than this share of all bytes, and more than so many, is deleted only if a person accepts it:
# a day's replaced files are less, also where a table is overwritten daily and kept for a week.
_MOST, _FEW = 0.2, 100_000_000
_HISTORY = "|".join(re.escape(table.name.replace(".", "/")) for table in TABLES)
_OF_A_TABLE = re.compile(
    rf"{WAREHOUSE}(?:(?P<name>.+)_{_UUID}|(?P<ops>{_HISTORY}))/(?P<kind>data|metadata)/.+",
    re.DOTALL,
)
_RESULT = re.compile(
    rf"{WAREHOUSE}(?:{_HISTORY})/data/(?P<ingestion>[0-9a-f]+)-(?P<attempt>[0-9]+)-.*", re.DOTALL
)
_DIGEST = re.compile(r"(.*/)_key_digests/(.+)\.[0-9a-f]{8}-[0-9]+", re.DOTALL)
NO_RUNS: Mapping[str, int] = {}
_ADDRESS = re.compile(r"s3[an]?://[^/]+/(.*)", re.DOTALL)


@dataclass(frozen=True)
class DeadFiles:
    """Files of tables without a reader: those `due` can be deleted, `young` ones are too new.

    `waiting` are due, too, but the catalog was seen for the first time. `bytes` are those of all
    files of tables, and `metadata` those of all metadata, by table, with a reader or without.
    """

    due: tuple[StoredObject, ...] = ()
    young: tuple[StoredObject, ...] = ()
    waiting: tuple[StoredObject, ...] = ()
    bytes: int = 0
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


@dataclass(frozen=True)
class Accepted:
    """What a person accepts: main with the commit `head`, and that so many `bytes` go at once."""

    head: str = ""
    bytes: int = 0


NOTHING = Accepted()


def judge(
    stored: Iterable[StoredObject],
    alive: Collection[str],
    before: datetime,
    recorded: Mapping[str, int] = NO_RUNS,
) -> DeadFiles:
    """Return the dead files among stored objects; those written before that time are due.

    `alive` are keys, and `recorded` maps an ingestion to its last attempt whose results are
    recorded: those of other runs stay. An object that is no file of a table is not judged.
    """
    files = [each for each in stored if _OF_A_TABLE.fullmatch(each.key)]
    unread = [each for each in files if _data_file(each.key) not in alive]
    dead = [each for each in unread if not _is_awaited(each.key, recorded)]
    return DeadFiles(
        due=tuple(each for each in dead if each.modified < before),
        young=tuple(each for each in dead if each.modified >= before),
        bytes=sum(each.bytes for each in files),
        metadata=_by_table(filter(_is_metadata, files)),
    )


def _data_file(key: str) -> str:
    """Return the key of the data file that a digest is of; any other key as it is."""
    matched = _DIGEST.fullmatch(key)
    return f"{matched[1]}{matched[2]}" if matched else key


def _is_awaited(key: str, recorded: Mapping[str, int]) -> bool:
    """Return whether a run left it for the history tables, and may still be recorded.

    So may the run of an ingestion that the ledger lacks: it may have lost it, and be restored.
    """
    matched = _RESULT.fullmatch(key)
    return bool(matched and int(matched["attempt"]) > recorded.get(matched["ingestion"], 0))


def _is_metadata(stored: StoredObject) -> bool:
    matched = _OF_A_TABLE.fullmatch(stored.key)
    return bool(matched and matched["kind"] == "metadata")


def _by_table(files: Iterable[StoredObject]) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for each in files:
        if of := _OF_A_TABLE.fullmatch(each.key):
            sizes[(of["name"] or of["ops"]).replace("/", ".")] += each.bytes
    return sizes


def find(adapters: Adapters) -> DeadFiles:
    """Return the dead files in the lake. Raises InDoubt if it cannot tell."""
    _, _, dead = _search(adapters, adapters.ledger.upkeep())
    return dead


def require_recognised(adapters: Adapters) -> None:
    """Raise InDoubt if the catalog lacks what it had when upkeep looked last."""
    now = adapters.lake.clock()
    recognise(adapters, adapters.ledger.upkeep().look, now, now - _days(adapters))


def delete(adapters: Adapters, accepted: Accepted = NOTHING) -> DeadFiles:
    """Delete the dead files that are due, and return all dead ones.

    It notes first what it saw, and since when states are whole: reconcile compares no older ones,
    and a longer `keep_days` does not ask for them. The first look at a catalog is only noted.
    Raises InDoubt, and Transient if another process notes something at the same time. That much is
    due is no doubt about the catalog, so what was seen is noted.
    """
    note = adapters.ledger.upkeep()
    look, readers, dead = _search(adapters, note, accepted)
    seen = replace(note, look=look, doubt="")
    if accepted.head or not note.look.head:
        _save(adapters, seen)
        return replace(dead, due=(), waiting=dead.due)
    if dead.due_bytes > max(_FEW, accepted.bytes, _MOST * dead.bytes):  # it may be a mistake
        _save(adapters, seen)
        raise _much(dead)
    _save(adapters, replace(seen, kept_since=times.text(readers.since)))
    adapters.lake.delete_objects([each.key for each in dead.due])
    metrics.add_metric("DeadBytesDeleted", "Bytes", dead.due_bytes)
    return dead


def _search(
    adapters: Adapters, note: UpkeepNote, accepted: Accepted = NOTHING
) -> "tuple[Look, Readers, DeadFiles]":
    now = adapters.lake.clock()
    look, claims = recognise(adapters, note.look, now, now - _days(adapters), accepted.head)
    readers = Readers(adapters, _kept_since(adapters, note, now), claims)
    stored = list(adapters.lake.stored(WAREHOUSE))
    readers.look()
    recorded = _recorded(adapters, (each.key for each in stored if each.key not in readers.alive))
    readers.look()  # again: a branch or a tag may be new, and results may be recorded meanwhile
    readers.require(look.head)
    return look, readers, judge(stored, readers.alive, readers.since, recorded)


def _recorded(adapters: Adapters, unread: Iterable[str]) -> dict[str, int]:
    """Return the last attempt whose results are recorded, of each ingestion with unread ones."""
    results = filter(None, map(_RESULT.fullmatch, unread))
    ids = sorted({matched["ingestion"] for matched in results})
    return {each.id: each.recorded for each in adapters.ledger.read(ids)}


def _save(adapters: Adapters, note: UpkeepNote) -> None:
    try:
        adapters.ledger.save_upkeep(note)
    except Moved as moved:
        message = "another upkeep ran at the same time, so this one deleted nothing: try again"
        raise Transient("UPKEEP_BUSY", message) from moved


def _days(adapters: Adapters) -> timedelta:
    """Return how long states are kept."""
    return max(adapters.settings.keep_days, 1) * _DAY + SKEW


def _kept_since(adapters: Adapters, note: UpkeepNote, now: datetime) -> datetime:
    """Return since when states are kept; a note that would make young files due is wrong.

    What is older was a day old at the last look, so it was committed before, or never: main, which
    has that look's head, lost no commit that needs it.
    """
    wanted = now - _days(adapters)
    if note.look.at:
        wanted = min(wanted, datetime.fromisoformat(note.look.at) - _DAY)
    noted = datetime.fromisoformat(note.kept_since) if note.kept_since else wanted
    return max(wanted, noted) if noted <= now - _DAY - SKEW else wanted


def _much(dead: DeadFiles) -> InDoubt:
    due = dead.due_bytes
    largest = ", ".join(f"{table} {n:,}" for table, n in _by_table(dead.due).most_common(3))
    message = (
        f"nothing was deleted, as {len(dead.due):,} files with {due:,} of {dead.bytes:,} bytes "
        f"would go at once, more than {_MOST:.0%}; most of them are of {largest}. If nobody needs "
        f"them: `lakegate upkeep --accept-bytes {due}`"
    )
    return InDoubt("MUCH_IS_DUE", message)


class Readers:
    """All that branches, tags and kept commits reach; each state and each file is read once."""

    def __init__(self, adapters: Adapters, since: datetime, claims: Claims) -> None:
        """Commits `since` that time are kept, and the state of each table at that time.

        The claims are read before: what is begun later begins at main's head.
        """
        self._adapters = adapters
        self.since = since
        self.alive: set[str] = set()
        self._known: set[str] = set()
        self._heads: set[str] = set()
        self._read: set[str] = set()
        self._manifests: set[str] = set()
        self._claims = claims

    def require(self, commit: str) -> None:
        """Raise Transient CATALOG_MOVED unless a look found the commit."""
        if commit not in self._known:
            message = f"nothing was deleted, as main lost commit {commit} a moment ago: try again"
            raise Transient("CATALOG_MOVED", message)

    def look(self) -> None:
        """Add what references reach by now. Raises InDoubt, or Transient CATALOG_MOVED."""
        states: dict[str, str] = {}
        for name, each in self._states():
            if not each.is_table:
                self.alive.add(_key(each.metadata))
            elif each.metadata not in self._read:
                states.setdefault(each.metadata, name)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            files = partial(self._adapters.tables().files, known=self._manifests)
            # By their random names: neighbours in the log would read the same manifests at once.
            order = sorted(states)
            for metadata, reached in zip(order, pool.map(files, order), strict=True):
                if reached.missing and states[metadata]:
                    raise _unreadable(states[metadata], min(reached.missing))
                self.alive.update(map(_key, reached.paths))
                if not reached.missing:  # else a reference may need what only decisions did before
                    self._read.add(metadata)
                    self._manifests |= reached.manifests

    def _states(self) -> Iterator[tuple[str, Content]]:
        """Yield the metadata file of each state, with the reference that reaches it.

        The name is "" for what only decisions compare: that may be gone.
        """
        catalog = self._adapters.catalog
        for name, head in sorted(catalog.references().items()):
            if head in self._heads:  # what a hash reaches never changes
                continue
            try:
                for each in catalog.states(head, self.since, self._known):
                    yield name, each
            except UnknownBranch as gone:
                raise Transient("CATALOG_MOVED", gone.message) from gone
            except UnknownContent as strange:
                raise _strange(name, strange) from strange
            self._heads.add(head)
        for at in sorted(self._claims.decided_on - self._heads):
            with suppress(UnknownBranch):  # of a catalog that was restored from a backup
                yield from (("", each) for each in catalog.states(at, self.since, self._known))


def _unreadable(name: str, missing: str) -> InDoubt:
    message = (
        f"nothing was deleted, as what {name} reaches is unknown: {missing} does not exist. "
        "Restore it from its S3 version; or delete that branch or tag if nobody needs it"
    )
    return InDoubt("UNKNOWN_FILES", message)


def _strange(name: str, why: UnknownContent) -> InDoubt:
    message = (
        f"nothing was deleted, as what {name} reaches is unknown: {why.message}. Move it to a "
        "catalog of its own; or delete that branch or tag if nobody needs it"
    )
    return InDoubt(why.code, message)


def _key(address: str) -> str:
    matched = _ADDRESS.fullmatch(address)
    return matched[1] if matched else address
