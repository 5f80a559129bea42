"""Random histories of tables: files come and go, and what nobody can read is deleted meanwhile.

`alive` says by brute force what a reader can still reach; it shares no code with the deletion.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import cast
from uuid import NAMESPACE_OID, uuid5

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN, CannotRebase, FilesGone, MergeConflict, SetBack
from functions.adapters.s3 import StoredObject
from functions.model.ingestion import Intent
from functions.operations import dead_files
from functions.operations.dead_files import DeadFiles
from tests.fakes.catalog import FakeCatalog, FakeTable, FakeTables
from tests.fakes.clock import FakeClock
from tests.fakes.faults import ProcessDied
from tests.fakes.storage import FakeLake

KEEP_DAYS = 30
DAY = 24 * 60 * 60.0
NAMES = ("shop.orders", "shop.returns")


class Lake(FakeLake):
    """The bucket of a history, which refuses to lose a file that somebody can read."""

    def __init__(self, years: "Years") -> None:
        super().__init__(years.clock)
        self._years = years
        self.most = -1  # objects that the next deletion deletes before its process dies
        self.meanwhile: Callable[[], object] = lambda: None

    def delete_objects(self, keys: Sequence[str]) -> None:
        """See Lake.delete_objects."""
        wrong = {_data_file(key) for key in keys} & self._years.alive()
        assert not wrong, f"somebody can still read {sorted(wrong)}"
        done = keys if self.most < 0 else keys[: self.most]
        super().delete_objects(done)
        if len(done) < len(keys):
            raise ProcessDied

    def stored(self, prefix: str) -> Iterator[StoredObject]:
        """See Lake.stored; once all are listed, something happens."""
        yield from list(super().stored(prefix))
        self.meanwhile()


class Years:
    """The tables of a lake over a long time; `choose` makes every decision."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.clock = FakeClock()
        self.catalog = FakeCatalog(self.clock)
        self.lake = Lake(self)
        self.tables = FakeTables(self.catalog, self.lake.deleted)
        self.bases: dict[str, str] = {}
        self.hashes: list[str] = [self.catalog.head(MAIN)]
        self.dropped: list[tuple[str, FakeTable]] = []
        self.made = 0
        self.later: Callable[[], object] = lambda: None
        settings = SimpleNamespace(keep_days=KEEP_DAYS, lake_bucket="lake")
        self.adapters = cast(
            Adapters,
            SimpleNamespace(
                settings=settings,
                lake=self.lake,
                catalog=self.catalog,
                tables=self._read_tables,
                now=self.clock.now,
            ),
        )

    def live(self, steps: int) -> None:
        """Let so many things happen."""
        deeds = (
            *(self.land, self.land, self.publish, self.publish, self.discard, self.crash),
            *(self.replace, self.compact, self.drop, self.recreate, self.put_back),
            *(self.tag, self.untag, self.revive, self.set_back, self.wait, self.clean),
        )
        for _ in range(steps):
            self.choose.choice(deeds)()
            self.hashes.append(self.catalog.head(MAIN))

    def land(self) -> None:
        """Write a file of a table on a branch of its own, as a job does."""
        name, branch = self.choose.choice(NAMES), self._branch()
        table = self._table(name, branch)
        file = self._file(name, table.uuid)
        self.hashes.append(self.catalog.commit(branch, name, table.append(file)))

    def crash(self) -> None:
        """Write a file that no commit ever names."""
        name = self.choose.choice(NAMES)
        self._file(name, self._table(name, MAIN).uuid)

    def publish(self) -> None:
        """Merge a branch, or register its files again; drop one that main cannot take."""
        branch = self._any_branch()
        if not branch:
            return
        at = self.catalog.head(branch)
        try:
            self.catalog.merge(branch, at, self.bases[branch], "Publish", {})
        except MergeConflict:
            names = self.catalog.changed_tables(self.bases[branch], at)
            with suppress(CannotRebase, MergeConflict, SetBack):
                self._again(branch, at, sorted(names))
        except SetBack:
            pass
        self.catalog.delete_branch(branch)

    def _again(self, branch: str, at: str, names: Sequence[str]) -> None:
        fresh = self._branch()
        for name in names:
            self.tables.append_again(name, [Intent(branch, at)], fresh)
        head = self.catalog.head(fresh)
        self.catalog.merge(fresh, head, self.bases[fresh], "Publish", {})
        self.catalog.delete_branch(fresh)

    def discard(self) -> None:
        """Delete a branch."""
        if branch := self._any_branch():
            self.catalog.delete_branch(branch)

    def replace(self) -> None:
        """Replace a file of main by another one, with a branch of a writer."""
        self._rewrite(lambda files: files[:1])

    def compact(self) -> None:
        """Write all files of a table on main as one."""
        self._rewrite(lambda files: files)

    def _rewrite(self, removed: Callable[[tuple[str, ...]], Sequence[str]]) -> None:
        name, branch = self.choose.choice(NAMES), self._branch()
        table = self.catalog.table(branch, name)
        if table and table.files:
            gone = removed(table.files)
            kept = tuple(file for file in table.files if file not in gone)
            new = self._file(name, table.uuid)
            self.catalog.commit(branch, name, replace(table, files=kept).append(new))
            with suppress(MergeConflict, SetBack, FilesGone):
                head = self.catalog.head(branch)
                self.catalog.merge(branch, head, self.bases[branch], "Rewrite", {})

    def drop(self) -> None:
        """Drop a table of main."""
        name = self.choose.choice(NAMES)
        if table := self.catalog.table(MAIN, name):
            self.dropped.append((name, table))
            self.catalog.commit(MAIN, name, None)

    def recreate(self) -> None:
        """Create a dropped table again in the same folder, with its files or without."""
        if self.dropped:
            name, table = self.choose.choice(self.dropped)
            there = self.catalog.table(MAIN, name)
            readable = all(key in self.lake.data for key in keys_of(name, table))
            if there is None:
                keeps = readable and self.choose.random() < 0.5
                self.catalog.commit(MAIN, name, table if keeps else FakeTable(table.uuid))

    def put_back(self) -> None:
        """Set a table of main back to what it was at an earlier commit."""
        self.catalog.put_back(self.choose.choice(NAMES), self.choose.choice(self.hashes))

    def tag(self) -> None:
        """Name the present state of main, or of a branch."""
        self.made += 1
        source = self._any_branch() or MAIN
        self.catalog.fork(f"tag-{self.made}", self.choose.choice((MAIN, source)))

    def untag(self) -> None:
        """Delete a name of a state."""
        if tags := self.catalog.branches("tag-"):
            self.catalog.delete_branch(self.choose.choice(tags))

    def revive(self) -> None:
        """Give a commit a name again that perhaps nobody could reach any more."""
        self.made += 1
        self.catalog.fork(f"tag-{self.made}", MAIN)
        self.catalog.reset(f"tag-{self.made}", self.choose.choice(self.hashes))

    def set_back(self) -> None:
        """Set main back, as an administrator may."""
        if self.choose.random() < 0.2:
            self.catalog.reset(MAIN, self.choose.choice(self.hashes))

    def wait(self) -> None:
        """Let up to three weeks pass."""
        self.clock.pass_(self.choose.random() * 21 * DAY)

    def clean(self) -> DeadFiles | None:
        """Delete what nobody can read; something may happen meanwhile, and the process may die."""
        deeds = (self.land, self.publish, self.tag, self.revive, self.compact, self.put_back)
        deed = self.choose.choice(deeds)
        if self.choose.random() < 0.5:
            self.lake.meanwhile = deed
        else:
            self.later = deed
        self.lake.most = self.choose.choice((-1, -1, 0, 1, 3))
        try:
            return dead_files.delete(self.adapters)
        except ProcessDied:
            return None
        finally:
            self.lake.most = -1
            self.lake.meanwhile = self.later = lambda: None

    def alive(self) -> set[str]:
        """Return the keys of all data files that a branch, a tag or a kept commit reaches."""
        since = datetime.fromisoformat(self.clock.now()) - timedelta(days=KEEP_DAYS)
        return {
            key
            for head in self.catalog.references().values()
            for at in self._kept(head, since)
            for name in self.catalog.names(at)
            if (table := self.catalog.table(at, name))
            for key in keys_of(name, table)
        }

    def _read_tables(self) -> FakeTables:
        """Return the tables; once the first branches are listed, something happens."""
        due, self.later = self.later, lambda: None
        due()
        return self.tables

    def _kept(self, head: str, since: datetime) -> set[str]:
        """Return the hash, its commits since that time, and the one before them."""
        kept = {head}
        for change in self.catalog.changes(head, NAMES[0]):
            kept.add(change.hash)
            if change.moment < since:
                break
        return kept

    def _branch(self) -> str:
        self.made += 1
        name = f"ingest/shop.orders/{self.made}"
        self.bases[name] = self.catalog.create_branch(name)
        return name

    def _any_branch(self) -> str:
        found = self.catalog.branches("ingest/")
        return self.choose.choice(found) if found else ""

    def _table(self, name: str, at: str) -> FakeTable:
        self.made += 1
        return self.catalog.table(at, name) or FakeTable(f"uuid {self.made}")

    def _file(self, name: str, uuid: str) -> str:
        """Store a data file, perhaps with a digest beside it; return its name."""
        self.made += 1
        file = f"{self.made}.parquet"
        key = key_of(name, uuid, file)
        self._store(key)
        if self.choose.random() < 0.3:
            folder, _, last = key.rpartition("/")
            self._store(f"{folder}/_key_digests/{last}.0123abcd-1")
        return file

    def _store(self, key: str) -> None:
        at = datetime.fromisoformat(self.clock.now())
        self.lake.data[key] = StoredObject(key, self.choose.randrange(1, 10_000), at)


def keys_of(name: str, table: FakeTable) -> set[str]:
    """Return the keys of a table's data files."""
    return {key_of(name, table.folder(file), file) for file in table.files}


def key_of(name: str, uuid: str, file: str) -> str:
    """Return the key of a data file in the folder of the table with this UUID."""
    folder = uuid5(NAMESPACE_OID, uuid)
    return f"warehouse/{name.replace('.', '/')}_{folder}/data/{file}"


def _data_file(key: str) -> str:
    folder, marked, file = key.partition("_key_digests/")
    return folder + file.rpartition(".")[0] if marked else key
