"""Nessie as far as Lakegate uses it: branches, contents, merges by content key, main's log.

A merge is judged as Nessie judges it. A table that both sides changed since their last common
commit is a conflict, unless main restored the exact value of that commit. A merge moves the common
commit forward, so merging the same hash again finds nothing. Like Nessie, the fake accepts every
known hash, even one that the named branch does not contain.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from uuid import NAMESPACE_OID, uuid5

from functions.adapters.iceberg.errors import CannotRebase, FilesGone, MetadataGone
from functions.adapters.iceberg.files import (
    DoubledFile,
    TableChange,
    TableFiles,
    TableRows,
    TableSize,
)
from functions.adapters.nessie import MAIN, MergeConflict, SetBack, UnknownBranch, branch_taken
from functions.model.commits import Commit, Content, Tip, unknown_content
from functions.model.intent import Intent
from lakegate.audit.audit_tables import Entry, HistoryTable
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import is_fresh
from lakegate.job.upkeep import FEWEST
from spark_jobs.lake.nessie_branch import BranchExists
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ROWS_A_FILE, rows_in

_MOST_MANIFESTS = 8
TABLE, VIEW = "ICEBERG_TABLE", "ICEBERG_VIEW"
WAREHOUSE = "s3://lake/warehouse/"


@dataclass(frozen=True)
class FakeTable:
    """An Iceberg table at one commit; `added` are the files that this commit added.

    A column is its name and its id, followed by `!` if it is required; `last_id` is the highest id
    that a column ever had. `specs` are its partition specs by id, the last one for new files, and
    `spec` is the id of that with which `added` were written. `folders` tells in which table's
    folder a file lies that another table wrote. `metadata` is the address of the metadata file and
    `manifests` are the names of the manifests; each commit sets them.
    Delete files hide as many rows as `hidden` says. A view, of another `kind`, has neither files
    nor manifests.
    """

    uuid: str
    files: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("id@1",)
    last_id: int = 1
    specs: tuple[str, ...] = ("",)
    spec: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)
    metadata: str = ""
    manifests: tuple[str, ...] = ()
    hidden: int = 0
    kind: str = TABLE

    def append(self, *files: str) -> "FakeTable":
        """Return the table after an append."""
        return replace(self, files=self.files + files, added=files, spec=len(self.specs) - 1)

    def partitioned(self, by: str) -> "FakeTable":
        """Return the table with another partition spec for new files."""
        return replace(self, specs=(*self.specs, by), added=())

    def register(self, *written: "FakeTable") -> "FakeTable":
        """Return the table after the files that these states of tables added are registered.

        All were written with one partition spec.
        """
        new = [(file, each.folder(file)) for each in written for file in each.added]
        folders = {file: folder for file, folder in new if folder != self.uuid}
        registered = replace(self, folders={**self.folders, **folders})
        grown = registered.append(*(file for file, _ in new))
        return replace(grown, spec=next((each.spec for each in written if each.added), grown.spec))

    def folder(self, file: str) -> str:
        """Return the UUID of the table in whose folder a file lies."""
        return self.folders.get(file, self.uuid)

    def with_columns(self, *columns: str) -> "FakeTable":
        """Return the table with these columns and no others."""
        last = max(self.last_id, *map(_id, columns))
        return replace(self, columns=columns, last_id=last, added=())


@dataclass(frozen=True)
class _Stored:
    commit: Commit
    parents: tuple[str, ...]
    changes: Mapping[str, FakeTable | None] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogBackup:
    """All commits and heads of a catalog at one time."""

    commits: dict[str, _Stored]
    heads: dict[str, str]


class FakeCatalog:
    """The catalog in memory; main has its first commit unless it is virgin.

    `store` is called with the addresses of the files that a commit has written. `named` are those
    of the data files that any commit ever named.
    """

    def __init__(self, clock: FakeClock, *, virgin: bool = False) -> None:
        self._clock = clock
        self._commits: dict[str, _Stored] = {}
        self._heads: dict[str, str] = {}
        self._states: dict[str, FakeTable] = {}
        self._older: dict[str, frozenset[str]] = {}
        self._cut: dict[str, dict[str, FakeTable]] = {}  # the tables at commits without parents
        self._made = 0
        self.named: set[str] = set()
        self._born = clock.now()
        self.store: Callable[[Iterable[str]], None] = lambda addresses: None
        if not virgin:
            self.begin("ops")

    def begin(self, namespace: str) -> bool:
        if self.begun():
            return False
        self._add(MAIN, f"first commit, with {namespace}", "set-up", {}, {})
        return True

    def begun(self) -> bool:
        return MAIN in self._heads

    def identity(self) -> str:
        return self._born

    def create_branch(self, name: str) -> str:
        if is_fresh(name) and name in self._heads:
            raise branch_taken(name)
        return self._heads.setdefault(name, self._heads[MAIN])

    def make_branch(self, name: str) -> str:
        """See spark_jobs.lake.nessie_branch.Branch.create."""
        if name in self._heads:
            raise BranchExists(name)
        return self.create_branch(name)

    def head(self, branch: str) -> str:
        if branch not in self._heads:
            raise UnknownBranch("UNKNOWN_BRANCH", f"there is no branch {branch}")
        return self._heads[branch]

    def tip(self) -> Tip:
        return Tip(self.head(MAIN), sum(1 for _ in self.log()))

    def branches(self, *prefixes: str) -> list[str]:
        return sorted(name for name in self._heads if name.startswith(prefixes))

    def delete_branch(self, branch: str) -> None:
        assert branch, "Nessie would take no name for all references"
        self._heads.pop(branch, None)

    def merge(
        self, branch: str, at: str, base: str, message: str, properties: Mapping[str, str]
    ) -> str:
        self.head(branch)
        if at not in self._commits:
            raise UnknownBranch("UNKNOWN_BRANCH", f"there is no commit {at}")
        known = self._ancestors(self._heads[MAIN])
        theirs = _changes(c for c in self._log(at) if c.commit.hash not in known)
        if not theirs:
            return ""
        if self.common_ancestor(at) != base:
            raise SetBack("MAIN_SET_BACK", f"main lost the commit {base}")
        changed = (name for name in theirs if self.table(MAIN, name) != self.table(base, name))
        if both := sorted(changed):
            raise MergeConflict("MERGE_CONFLICT", f"changed in conflict: {', '.join(both)}")
        return self._add(MAIN, message, "lakegate", properties, theirs, merged=at)

    def log(self) -> Iterator[Commit]:
        for stored in self._log(self._heads[MAIN]):
            yield stored.commit

    def history(self) -> Iterator[tuple[Commit, frozenset[str]]]:
        for stored in self._log(self._heads[MAIN]):
            yield stored.commit, frozenset(stored.changes)

    def common_ancestor(self, at: str) -> str:
        """Return the nearest commit that main and a hash have in common."""
        known = self._ancestors(self._heads[MAIN])
        return next(c.commit.hash for c in self._log(at) if c.commit.hash in known)

    def changed_tables(self, base: str, at: str) -> frozenset[str]:
        names = self.names(base) | self.names(at)
        return frozenset(name for name in names if self.table(base, name) != self.table(at, name))

    def commit(
        self, branch: str, name: str, table: FakeTable | None, *, registers: bool = False
    ) -> str:
        """Change or drop a table on a branch, as a writer does; return the new head.

        The data files that are new to the table are written, unless it `registers` them.
        """
        self.head(branch)
        written = self._written(name, table, registers=registers) if table else None
        return self._add(branch, f"change {name}", "writer", {}, {name: written})

    def put_back(self, name: str, at: str) -> None:
        """Restore an earlier state of main's table, as an administrator may."""
        self._add(MAIN, f"put back {name}", "writer", {}, {name: self.table(at, name)})

    def append(self, branch: str, name: str, *files: str, registers: bool = False) -> None:
        """Add to the current table as Iceberg's append does, even after another writer's change."""
        current = self.table(branch, name) or FakeTable(f"uuid of {branch}")
        self.commit(branch, name, current.append(*files), registers=registers)

    def own_commit(self, branch: str, before: str) -> str:
        head = self.head(branch)
        if before not in (head, *self._commits[head].parents[:1]):
            raise Transient("BRANCH_SHARED", f"another writer committed on the branch {branch}")
        return head

    def made_commit(self, branch: str, before: str) -> str:
        made = self.own_commit(branch, before)
        if made == before:
            raise Transient("BRANCH_SET_BACK", f"the branch {branch} has lost the commit")
        return made

    def references(self) -> dict[str, str]:
        return dict(self._heads)

    def log_of(self, at: str) -> Iterator[Commit]:
        if at not in self._commits:
            raise UnknownBranch("UNKNOWN_BRANCH", f"there is no commit {at}")
        for stored in self._log(at):
            yield stored.commit

    def states(self, at: str, since: datetime, known: set[str]) -> Iterator[Content]:
        yield from self._contents(at)
        hash_ = at
        for stored in self._log(at):
            hash_ = stored.commit.hash
            if hash_ in known:
                return
            known.add(hash_)
            if datetime.fromisoformat(stored.commit.time) < since:
                break
            yield from _contents(stored.changes)
        yield from self._contents(hash_)

    def _contents(self, at: str) -> Iterator[Content]:
        return _contents({name: self.table(at, name) for name in sorted(self.names(at))})

    def metadata(self, at: str, table: str) -> str:
        if at not in self._commits:
            raise UnknownBranch("UNKNOWN_BRANCH", f"there is no commit {at}")
        found = self.table(at, table)
        return found.metadata if found else ""

    def state(self, metadata: str) -> FakeTable:
        """Return the table that a metadata file describes."""
        return self._states[metadata]

    def fork(self, name: str, source: str) -> None:
        """Create a branch from another one, as every role may."""
        self._heads[name] = self.head(source)

    def merge_into(self, branch: str, source: str) -> None:
        """Merge a branch without changes of its own into another one, as its owner may."""
        self._add(branch, f"merge {source}", "writer", {}, {}, merged=self.head(source))

    def reset(self, branch: str, to: str) -> None:
        """Set the branch back to an earlier hash, as the job does before it writes."""
        self.head(branch)
        self._heads[branch] = to

    def cut(self, at: str) -> None:
        """Detach a commit from those before it, as Nessie's administration tool can."""
        self._cut[at] = self.tables_at(at)
        self._commits[at] = replace(self._commits[at], parents=())
        self._older.clear()

    def backup(self) -> CatalogBackup:
        """Return a backup of all branches and commits."""
        return CatalogBackup(dict(self._commits), dict(self._heads))

    def restore(self, backup: CatalogBackup) -> None:
        """Set everything back to a backup; no commit gets a hash again that was lost by it."""
        self._commits, self._heads = dict(backup.commits), dict(backup.heads)

    def lose(self) -> None:
        """Lose all branches and commits, and be set up anew."""
        self._commits, self._heads = {}, {}
        self.begin("ops")

    def table(self, at: str, name: str) -> FakeTable | None:
        """Return the table at a branch or a hash, or None if it does not exist there."""
        for stored in self._log(self._at(at)):
            if name in stored.changes:
                return stored.changes[name]
        return self._cut.get(stored.commit.hash, {}).get(name)

    def tables_at(self, at: str) -> dict[str, FakeTable]:
        """Return all tables at a branch or a hash by name."""
        log = list(self._log(self._at(at)))
        found = self._cut.get(log[-1].commit.hash, {}) | _changes(iter(log))
        return {name: table for name, table in found.items() if table}

    def names(self, at: str) -> set[str]:
        """Return the names of all tables that a branch or a hash has ever had."""
        log = list(self._log(self._at(at)))
        return {*self._cut.get(log[-1].commit.hash, {})}.union(*(each.changes for each in log))

    def _at(self, at: str) -> str:
        """Return the hash of a branch, or the hash itself. Raise UnknownBranch."""
        if (found := self._heads.get(at, at)) not in self._commits:
            raise UnknownBranch("UNKNOWN_BRANCH", f"there is no branch or commit {at}")
        return found

    def knows(self, at: str) -> bool:
        """Return whether there is a commit with this hash, which no restoration lost."""
        return at in self._commits

    def is_on_main(self, at: str) -> bool:
        """Return whether main contains every change of a branch or a hash."""
        return self._heads.get(at, at) in self._ancestors(self._heads[MAIN])

    def _written(self, name: str, table: FakeTable, *, registers: bool) -> FakeTable:
        """Return a table as a commit leaves it, with a metadata file and a manifest of its own.

        Many manifests are merged, as Iceberg's appends do. Those that name a removed file are
        written again.
        """
        number = self._made
        metadata = f"{_location(name, table.uuid)}/metadata/{number}.json"
        before = self._states.get(table.metadata, FakeTable(table.uuid))
        is_longer = set(before.files) <= set(table.files)
        is_short = len(table.manifests) < _MOST_MANIFESTS
        kept = table.manifests if is_longer and is_short else ()
        manifests = (*kept, f"{number}-m0.avro") if table.kind == TABLE else ()
        written = replace(table, metadata=metadata, manifests=manifests)
        self._states[metadata] = written
        added = (file for file in table.files if file not in before.files)
        addresses = [data_address(name, written, file) for file in added]
        self.named.update(addresses)
        folder = metadata.rpartition("/")[0]
        new = () if registers else addresses
        self.store([metadata, *(f"{folder}/{each}" for each in manifests[-1:]), *new])
        return written

    def _add(
        self,
        branch: str,
        message: str,
        author: str,
        properties: Mapping[str, str],
        changes: Mapping[str, FakeTable | None],
        merged: str = "",
    ) -> str:
        hash_, parent = f"{self._made:064x}", self._heads.get(branch, "")
        self._made += 1
        parents, at = tuple(filter(None, (parent, merged))), self._clock.now()
        is_merge = len(parents) > 1
        commit = Commit(hash_, parent, message, dict(properties), author, at, is_merge)
        self._commits[hash_] = _Stored(commit, parents, changes)
        self._heads[branch] = hash_
        return hash_

    def _log(self, start: str) -> Iterator[_Stored]:
        """Yield a commit and its predecessors on the branch where they were made, newest first."""
        stored = self._commits[start]
        yield stored
        while stored.parents:
            stored = self._commits[stored.parents[0]]
            yield stored

    def _ancestors(self, start: str) -> frozenset[str]:
        """Return a commit and all its ancestors; the parents of a commit never change."""
        if start and start not in self._older:
            parents = self._commits[start].parents
            self._older[start] = frozenset({start}.union(*map(self._ancestors, parents)))
        return self._older.get(start, frozenset())


class FakeTables:
    """The tables of a FakeCatalog, as pyiceberg changes them."""

    def __init__(self, catalog: FakeCatalog, deleted: Collection[str] = ()) -> None:
        """Use this catalog; `deleted` are the keys of the lake's deleted objects.

        `fewest` are the small data files that are worth a compaction.
        """
        self._catalog = catalog
        self._deleted = deleted
        self.fewest = FEWEST

    def append_again(
        self, table: str, sources: Sequence[Intent], target: str
    ) -> Mapping[Intent, LakegateError]:
        current = self._load(table, target, target)
        failed: dict[Intent, LakegateError] = {}
        read: dict[Intent, FakeTable] = {}
        for source in sources:
            try:
                read[source] = self._load(table, source.branch, source.hash)
                self._readable(table, source.hash)
            except MetadataGone as error:
                failed[source] = CannotRebase(error.code, error.message)
            except LakegateError as error:
                failed[source] = error
        together = {file for each in read.values() for file in each.added}
        fit: list[FakeTable] = []
        for source, written in read.items():
            try:
                _require_fit(written, current, together)
                _require_one_spec([*fit, written])
                fit.append(written)
            except CannotRebase as why:
                failed[source] = why
        if any(written.added for written in fit):
            self._catalog.commit(target, table, current.register(*fit), registers=True)
        return failed

    def replace(self, table: str, source: Intent, removed: Collection[str], target: str) -> None:
        current = self._load(table, target, target)
        written = self._load(table, source.branch, source.hash)
        _require_fit(written, current, written.added)
        if gone := set(removed) - set(current.files):
            raise FilesGone(gone)
        kept = tuple(file for file in current.files if file not in removed)
        changed = replace(current, files=kept).register(written)
        self._catalog.commit(target, table, changed, registers=True)

    def enter(self, entries: Sequence[Entry], lake_bucket: str, target: str) -> None:
        """See Tables.enter; a file says whether it is published."""
        self._require(target)
        for table in dict.fromkeys(entry.table for entry in entries):
            mine = [entry for entry in entries if entry.table == table]
            current = self._catalog.table(target, table.name) or FakeTable(f"uuid of {target}")
            again = [entry.file.path for entry in mine if entry.again]
            old = {f"{path}|{is_}" for path in again for is_ in (True, False)} & {*current.files}
            there = {file.partition("|")[0] for file in old}
            kept = replace(current, files=tuple(f for f in current.files if f not in old))
            new = (e for e in mine if not e.again or e.file.path in there)
            files = [f"{entry.file.path}|{entry.published}" for entry in new]
            self._catalog.commit(target, table.name, kept.append(*files), registers=True)

    def make(self, tables: Iterable[HistoryTable], lake_bucket: str, target: str) -> None:
        self._require(target)
        for table in tables:
            if not self._catalog.table(target, table.name):
                self._catalog.commit(target, table.name, FakeTable(f"uuid of {target}"))

    def files(self, metadata: str, known: Collection[str] = ()) -> TableFiles:
        """See Tables.files; here the newest manifest names all data files."""
        location, _, _ = metadata.partition("/metadata/")
        table = self._catalog.state(metadata)
        if self._is_gone(metadata):
            root = frozenset({metadata})
            return TableFiles(root, missing=root)
        manifests = frozenset(f"{location}/metadata/{name}" for name in table.manifests)
        missing = frozenset(filter(self._is_gone, manifests.difference(known)))
        places = (
            (f"{location.rpartition('_')[0]}_{_folder(table.folder(f))}", f) for f in table.files
        )
        is_known = f"{location}/metadata/{table.manifests[-1]}" in known
        is_read = not missing and not is_known
        data = frozenset(_address(place, file) for place, file in places if is_read)
        return TableFiles(frozenset({metadata}) | data | manifests, manifests, missing)

    def _is_gone(self, address: str) -> bool:
        return address.removeprefix("s3://lake/") in self._deleted

    def rows(self, table: str, reference: str) -> TableRows:
        found = self._readable(table, reference)
        if not found:
            return TableRows()
        return TableRows(found.uuid, sum(map(rows_in, found.files)), found.hidden)

    def size(self, table: str, reference: str) -> TableSize:
        """See Tables.size; all data files are small but those that a compaction wrote."""
        found = self._load(table, reference, reference.rpartition("@")[2])
        files = found.files
        small = [file for file in files if rows_in(file) == ROWS_A_FILE]
        final = [file for file in small if not file.endswith("|False")]
        scattered = len(final) if len(final) >= self.fewest else 0
        deletes = bool(found.hidden)
        return TableSize(len(files), len(files), len(small), scattered, has_deletes=deletes)

    def change(self, table: str, before: str, after: str) -> TableChange:
        files = Counter(self.listed(table, after))
        files.subtract(Counter(self.listed(table, before)))
        rows = sum(many * rows_in(file) for file, many in files.items())
        return TableChange(rows, dict(+files), dict(-files), self.rows(table, before).hidden)

    def listed(self, table: str, reference: str, most: int = 0) -> Iterator[str]:
        found = self._readable(table, reference)
        yield from found.files[: most or None] if found else ()

    def doubled(self, table: str, reference: str) -> list[DoubledFile]:
        found = self._catalog.table(_at(reference), table)
        times = Counter(found.files if found else ())
        return [
            DoubledFile(file, rows_in(file), many)
            for file, many in sorted(times.items())
            if many > 1
        ]

    def _readable(self, table: str, reference: str) -> FakeTable | None:
        found = self._catalog.table(_at(reference), table)
        if found and self._is_gone(found.metadata):
            raise MetadataGone("METADATA_GONE", f"{found.metadata} is gone")
        return found

    def _load(self, table: str, branch: str, at: str) -> FakeTable:
        self._require(branch.partition("@")[0])
        found = self._catalog.table(at, table)
        if found is None:
            raise CannotRebase("TABLE_GONE", f"main's table is gone: {table}")
        return found

    def _require(self, branch: str) -> None:
        if branch not in self._catalog.branches(branch):
            raise Transient("CATALOG_UNAVAILABLE", f"the catalog did not answer for {branch}")


def _require_fit(written: FakeTable, current: FakeTable, together: Collection[str]) -> None:
    """See table_fit.require_fit."""
    if _has_other_rows(written, current, together):
        raise CannotRebase("TABLE_REPLACED", "main's table is another one of the same name")
    if written.added and dict(enumerate(current.specs)).get(written.spec) != _spec(written):
        raise CannotRebase("PARTITIONING_CHANGED", "main's table lacks the files' partition spec")
    if _has_other_columns(written, current):
        raise CannotRebase("COLUMNS_CHANGED", "main's table has other columns now")


def _require_one_spec(written: Sequence[FakeTable]) -> None:
    if len({each.spec for each in written if each.added}) > 1:
        raise CannotRebase("PARTITIONING_CHANGED", "the files have several partition specs")


def _spec(written: FakeTable) -> str:
    return written.specs[written.spec]


def _has_other_rows(written: FakeTable, current: FakeTable, together: Collection[str]) -> bool:
    """Return whether another table than main's has files that are not registered together."""
    return written.uuid != current.uuid and not set(written.files) <= set(together)


def _has_other_columns(written: FakeTable, current: FakeTable) -> bool:
    """Return whether main lacks a column of the files, requires another one, or reuses an id."""
    new = set(current.columns) - set(written.columns)
    missing = not set(written.columns) <= set(current.columns)
    reused = written.uuid != current.uuid and any(_id(each) <= written.last_id for each in new)
    return missing or reused or any(column.endswith("!") for column in new)


def _id(column: str) -> int:
    return int(column.rpartition("@")[2].rstrip("!"))


def data_address(name: str, table: FakeTable, file: str) -> str:
    """Return the address of a data file of a table."""
    return _address(_location(name, table.folder(file)), file)


def _address(location: str, file: str) -> str:
    """Return the address of a data file below a location; one that a run recorded has its own."""
    path, is_recorded, _ = file.rpartition("|")
    is_own = is_recorded and path.startswith(WAREHOUSE) and "#" not in path
    return path if is_own else f"{location}/data/{file}"


def _location(name: str, table_uuid: str) -> str:
    return f"{WAREHOUSE}{name.replace('.', '/')}_{_folder(table_uuid)}"


@cache
def _folder(table_uuid: str) -> str:
    """Return a UUID as Nessie's, for one that a test made up."""
    return str(uuid5(NAMESPACE_OID, table_uuid))


def _at(reference: str) -> str:
    """Return the hash of `branch@hash`, or else the branch."""
    return reference.rpartition("@")[2]


def _contents(found: Mapping[str, FakeTable | None]) -> Iterator[Content]:
    for name, table in found.items():
        if table and table.kind not in (TABLE, VIEW):
            raise unknown_content(name, table.kind)
        if table:
            yield Content(table.metadata, table.kind == TABLE)


def _changes(commits: Iterator[_Stored]) -> dict[str, FakeTable | None]:
    """Return the last change of each key by these commits, newest first."""
    changes: dict[str, FakeTable | None] = {}
    for stored in commits:
        changes = {**stored.changes, **changes}
    return changes
