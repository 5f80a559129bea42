"""Random histories of tables: files come and go, and what nobody can read is deleted meanwhile.

Compaction, expiry and deletion are those of Lakegate. `alive` says by brute force what a reader can
still reach, and `model` what rows main has; both share no code with these. Main is set back and
forward, the catalog is emptied or restored from a backup for a while, and clocks are wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import cast
from uuid import NAMESPACE_OID, uuid5

import pytest

from functions.adapters.all import Adapters
from functions.adapters.iceberg.files import TableSize
from functions.adapters.nessie import MAIN, MergeConflict, SetBack
from functions.adapters.s3 import StoredObject
from functions.model.ingestion import State
from functions.model.intent import Intent
from functions.operations.compaction import compact as compaction
from functions.operations.compaction.compact import Need, Step
from functions.operations.upkeep import dead_files
from functions.operations.upkeep.dead_files import Accepted, DeadFiles
from functions.operations.upkeep.expire import expire
from functions.operations.upkeep.recognition import InDoubt
from lakegate import times
from lakegate.errors import Transient
from tests.fakes.announcements import FakeAnnouncements
from tests.fakes.catalog import VIEW, CatalogBackup, FakeCatalog, FakeTable, FakeTables
from tests.fakes.clock import FakeClock
from tests.fakes.compaction import run_compaction
from tests.fakes.examples import INGESTION
from tests.fakes.faults import ProcessDied
from tests.fakes.jobs import FakeJobs
from tests.fakes.ledger import FakeLedger
from tests.fakes.rows import ROWS_A_FILE, rewritten, rows_in
from tests.fakes.storage import FakeLake

KEEP_DAYS = 30
DAY = 24 * 60 * 60.0
NAMES = ("shop.orders", "shop.returns")
_BUCKET = "s3://lake/"
_DECIDED = ("MAIN_SET_BACK", "MAIN_LACKS_COMMITS", "LONG_UNSEEN")  # by a person

Rows = frozenset[int]
Model = dict[str, Rows]  # the rows of each table


class Lake(FakeLake):
    """The bucket of a history, which refuses to lose a file that somebody can read."""

    def __init__(self, years: "Years") -> None:
        super().__init__(years.clock)
        self._years = years
        self.most = -1  # objects that the next deletion deletes before its process dies
        self.meanwhile: Callable[[], object] = lambda: None
        self.removed: dict[str, StoredObject] = {}  # behind their delete markers

    def delete_objects(self, keys: Sequence[str]) -> None:
        wrong = {_data_file(key) for key in keys} & self._years.alive() if keys else set()
        assert not wrong, f"somebody can still read {sorted(wrong)}"
        done = keys if self.most < 0 else keys[: self.most]
        self.removed.update((key, self.data[key]) for key in done if key in self.data)
        super().delete_objects(done)
        if len(done) < len(keys):
            raise ProcessDied

    def stored(self, prefix: str) -> Iterator[StoredObject]:
        """See Lake.stored; once all are listed, something happens."""
        yield from list(super().stored(prefix))
        self.meanwhile()

    def restore(self, keys: set[str]) -> None:
        """Remove the delete markers of objects."""
        for key in keys & self.removed.keys():
            self.data[key] = self.removed.pop(key)
            del self.deleted[key]


class _Catalog(FakeCatalog):
    """A catalog whose tables' metadata lies in a lake."""

    def __init__(self, years: "Years") -> None:
        self._years = years
        super().__init__(years.clock)

    def _written(self, name: str, table: FakeTable, *, registers: bool) -> FakeTable:
        made = super()._written(name, table, registers=registers)
        for key in _metadata_of(made) - self._years.lake.data.keys():
            self._years.store(key)
        return made


class Years:
    """The tables of a lake over a long time; `choose` makes every decision.

    `rows` are those in each data file, `model` those that main must have, by commit. `bases` and
    `brought` are the base of each branch and the rows that it brings, by table. `lost` are commits
    that upkeep or the ledger knows, from which main was set back: it may be set forward to them.
    `doubts` counts by code why upkeep deleted nothing.
    """

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.clock = FakeClock()
        self.lake = Lake(self)
        self.catalog = _Catalog(self)
        self.tables = FakeTables(self.catalog, self.lake.deleted)
        self.jobs = FakeJobs(self.clock)
        self.bases: dict[str, str] = {}
        self.rows: dict[str, Rows] = {}
        self.brought: dict[str, tuple[str, Rows]] = {}
        self.model: dict[str, Model] = {self.catalog.head(MAIN): {}}
        self.hashes: list[str] = [self.catalog.head(MAIN)]
        self.dropped: list[tuple[str, FakeTable, Rows]] = []
        self.made = 0
        self.lost: set[str] = set()
        self.backups: list[CatalogBackup] = []
        self.steps: Counter[Step] = Counter()
        self.doubts: Counter[str] = Counter()
        self.later: Callable[[], object] = lambda: None
        self.adapters = self._adapters()
        dead_files.delete(self.adapters)  # the first look

    def _adapters(self) -> Adapters:
        settings = SimpleNamespace(
            keep_days=KEEP_DAYS,
            daily_budget_usd=0,
            lake_bucket="lake",
            nessie_uri="",
            job_token_secret="job",
            job_timeout_minutes=60,
            small_file_bytes=1,
            grace_seconds=60,
        )
        return cast(
            Adapters,
            SimpleNamespace(
                settings=settings,
                lake=self.lake,
                catalog=self.catalog,
                tables=self._read_tables,
                ledger=FakeLedger(self.clock.now),
                jobs=self.jobs,
                announcements=FakeAnnouncements(),
                now=self.clock.now,
                token=self._token,
            ),
        )

    def live(self, steps: int) -> None:
        """Let so many things happen."""
        deeds = (
            *(self.land, self.land, self.publish, self.publish, self.replay, self.crash),
            *(*3 * (self.replace,), self.drop),
            *3 * (self.compact, self.settle),
            *(self.recreate, self.put_back, self.tag, self.untag, self.revive, self.set_back),
            *(self.view, self.back_up, self.mislead, *3 * (self.wait, self.clean)),
        )
        for _ in range(steps):
            self.choose.choice(deeds)()
            self.hashes.append(self.catalog.head(MAIN))

    def land(self) -> None:
        """Write a file of a table on a branch of its own, as a job does."""
        self._land(self.choose.choice(NAMES), self._new_rows())

    def replay(self) -> None:
        """Delete a branch that was not published, and write its rows again on another."""
        if branch := self._any_branch():
            name, rows = self.brought.pop(branch)
            self.catalog.delete_branch(branch)
            self._land(name, rows)

    def _land(self, name: str, rows: Rows) -> None:
        branch = self._branch(name)
        table = self._table(name, branch)
        file = self.file(name, table.uuid, rows)
        self.brought[branch] = name, rows
        self.hashes.append(self.catalog.commit(branch, name, table.append(file)))

    def crash(self) -> None:
        """Write a data file and metadata that no commit ever names."""
        name = self.choose.choice(NAMES)
        uuid = self._table(name, MAIN).uuid
        key = key_of(name, uuid, self.file(name, uuid, frozenset()))
        self.store(f"{key.replace('/data/', '/metadata/')}-m0.avro")

    def publish(self) -> None:
        """Merge a branch, or register its files again; drop one that main cannot take."""
        branch = self._any_branch()
        if not branch:
            return
        name, rows = self.brought.pop(branch)
        at = self.catalog.head(branch)
        was: Rows | None = self._on_main(name)
        try:
            self._merge(branch, at)
        except MergeConflict:
            with suppress(SetBack):
                was = self._again(name, branch, at)
        except SetBack:
            was = None
        if was is not None:
            self._now_on_main(name, was | rows)
            self._note_published()
        self.catalog.delete_branch(branch)

    def _again(self, name: str, branch: str, at: str) -> Rows | None:
        """Publish by metadata: only a table that is another one now can refuse it."""
        fresh = self._branch(name)
        there = self.catalog.table(MAIN, name)
        was: Rows | None = self._on_main(name)
        failed = self.tables.append_again(name, [Intent(branch, at)], fresh) if there else {}
        mine = self.catalog.table(at, name)
        assert mine
        if not there or failed:
            assert not there or there.uuid != mine.uuid, f"a file had to wait: {failed}"
            was = None
        else:
            self._merge(fresh, self.catalog.head(fresh))
        self.catalog.delete_branch(fresh)
        return was

    def replace(self) -> None:
        """Write the oldest data file of a table again with a new row in the place of an old one."""
        name = self.choose.choice(NAMES)
        table, branch = self.catalog.table(MAIN, name), self._branch(name)
        if table and table.files:
            first, *left = table.files
            old = self.rows[first]
            rows = old - set(sorted(old)[:1]) | self._new_rows(1)
            file = self.file(name, table.uuid, rows)
            head = self.catalog.commit(branch, name, replace(table, files=tuple(left)).append(file))
            was = self._on_main(name)
            self._merge(branch, head)
            self._now_on_main(name, (was - old) | rows)
            self._note_published()
        self.catalog.delete_branch(branch)

    def compact(self) -> None:
        """Start the compaction of a table, and run both of its jobs."""
        name = self.choose.choice(NAMES)
        table = self.catalog.table(MAIN, name)
        small = [file for file in table.files if rows_in(file) == ROWS_A_FILE] if table else []
        if not table or not small:
            return
        if compaction.start(self.adapters, Need(name, TableSize())).step is Step.STARTED:
            (run,) = (each for each in self.jobs.runs() if not each.has_ended)
            spec = self.jobs.spec(run.id)
            run_compaction(run.id, self.catalog, self.lake, self.jobs)
            new = rewritten(small, spec.ingestion)
            self.rows[new] = frozenset[int]().union(*(self.rows[file] for file in small))
            self.store(key_of(name, table.uuid, new))
            compaction.settle(self.adapters, list(compaction.under_way(self.adapters))[-1])
            (run,) = (each for each in self.jobs.runs() if not each.has_ended)
            run_compaction(run.id, self.catalog, self.lake, self.jobs)

    def settle(self) -> None:
        """Publish a compaction, or drop it."""
        if begun := list(compaction.under_way(self.adapters)):
            before = dict(self.model[self.catalog.head(MAIN)])
            one = self.choose.choice(begun)
            try:
                done = compaction.settle(self.adapters, one)
            except Transient as error:
                self._give_up(one.branch, error)
                return
            self.steps[done.step] += 1
            self.model[self.catalog.head(MAIN)] = before

    def _give_up(self, branch: str, error: Transient) -> None:
        """Drop a compaction whose base is gone: it was left alone for longer than states are kept.

        Or restore what it misses, if main was set back to that.
        """
        since = datetime.fromisoformat(self.clock.now()) - timedelta(days=KEEP_DAYS)
        is_old = next(self.catalog.changes(self.catalog.head(branch), "")).moment < since
        if error.code == "METADATA_GONE" and is_old:
            self.catalog.delete_branch(branch)
        else:
            self._put_there("METADATA_GONE", error)

    def drop(self) -> None:
        """Drop a table of main."""
        name = self.choose.choice(NAMES)
        if table := self.catalog.table(MAIN, name):
            self.dropped.append((name, table, self._on_main(name)))
            was = dict(self.model[self.catalog.head(MAIN)])
            self.model[self.catalog.commit(MAIN, name, None)] = {**was, name: frozenset()}

    def recreate(self) -> None:
        """Create a dropped table again in the same folder, with its files or without."""
        if self.dropped:
            name, table, rows = self.choose.choice(self.dropped)
            there = self.catalog.table(MAIN, name)
            readable = all(key in self.lake.data for key in keys_of(name, table))
            if there is None:
                keeps = readable and self.choose.random() < 0.5
                was = dict(self.model[self.catalog.head(MAIN)])
                made = table if keeps else FakeTable(table.uuid)
                head = self.catalog.commit(MAIN, name, made)
                self.model[head] = {**was, name: rows if keeps else frozenset()}

    def put_back(self) -> None:
        """Set a table of main back to what it was at an earlier commit."""
        name, at = self.choose.choice(NAMES), self.choose.choice(list(self.model))
        was = dict(self.model[self.catalog.head(MAIN)])
        self.catalog.put_back(name, at)
        then = self.model[at].get(name, frozenset())
        self.model[self.catalog.head(MAIN)] = {**was, name: then}

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
        """Set main back, as an administrator may, or forward again."""
        if self.lost and self.choose.random() < 0.5:
            self.catalog.reset(MAIN, self.choose.choice(sorted(self.lost)))
        elif self.choose.random() < 0.5:
            known = {self.adapters.ledger.upkeep().look.head, *self._published()}
            had = known & self._on_log()
            self.catalog.reset(MAIN, self.choose.choice(list(self.model)))
            self.lost |= had
        self.lost -= self._on_log()

    def _on_log(self) -> set[str]:
        return {commit.hash for commit in self.catalog.log()}

    def view(self) -> None:
        """Create a view, or replace or drop it."""
        self.made += 1
        there = self.catalog.table(MAIN, "shop.view")
        made = FakeTable(f"uuid {self.made}", kind=VIEW)
        was = self.model[self.catalog.head(MAIN)]
        view = None if there and self.choose.random() < 0.3 else made
        self.model[self.catalog.commit(MAIN, "shop.view", view)] = was

    def back_up(self) -> None:
        """Make a backup of the catalog."""
        self.backups.append(self.catalog.backup())

    def mislead(self) -> None:
        """Let upkeep run while Nessie is another one, empty or older: nothing may be deleted."""
        there, now = set(self.lake.data), self.catalog.backup()
        if not self.backups or self.choose.random() < 0.5:
            virgin = self.choose.random() < 0.5
            self.adapters.catalog = FakeCatalog(self.clock, virgin=virgin)  # type: ignore[misc,assignment]
        else:
            self.catalog.restore(self.choose.choice(self.backups))
            if self.adapters.ledger.upkeep().look.head in self._on_log():
                self.catalog.restore(now)  # it lacks branches and tags at most
                return
        with pytest.raises(InDoubt):
            dead_files.delete(self.adapters)
        self.adapters.catalog = self.catalog  # type: ignore[misc,assignment]
        self.catalog.restore(now)
        assert set(self.lake.data) == there

    def wait(self) -> None:
        """Let up to three weeks pass."""
        self.clock.pass_(self.choose.random() * 21 * DAY)

    def clean(self) -> DeadFiles | None:
        """Expire and delete; something may happen meanwhile, and the process may die.

        In doubt a person sometimes accepts main as it is.
        """
        deeds = (self.land, self.publish, self.tag, self.revive, self.settle, self.put_back)
        deed = self.choose.choice(deeds)
        if self.choose.random() < 0.5:
            self.lake.meanwhile = deed
        else:
            self.later = deed
        self.lake.most = self.choose.choice((-1, -1, 0, 1, 3))
        try:
            return self.daily()
        except ProcessDied:
            return None
        finally:
            self.lake.most = -1
            self.lake.meanwhile = self.later = lambda: None

    def daily(self) -> DeadFiles | None:
        """Do as the daily function; restore what it misses, of states that were dead meanwhile."""
        there = set(self.lake.data)
        try:
            dead_files.require_recognised(self.adapters)
            list(expire(self.adapters, KEEP_DAYS))
            for branch in self.brought.keys() - set(self.catalog.references()):
                del self.brought[branch]
            there = set(self.lake.data)
            return dead_files.delete(self._deleter())
        except Transient as error:
            self.doubts[error.code] += 1
            assert there <= self.lake.data.keys()
            if error.code == "CATALOG_MOVED":
                return None
            if error.code not in _DECIDED:
                self._put_there("UNKNOWN_FILES", error)
            elif self.choose.random() < 0.3:
                self.accept()
            return None

    def accept(self) -> None:
        """Accept main as it is; upkeep deletes nothing before it looks again."""
        there = set(self.lake.data)
        try:
            dead_files.delete(self.adapters, Accepted(head=self.catalog.head(MAIN)))
            self.lost.clear()
        except InDoubt as error:
            self._put_there("UNKNOWN_FILES", error)
        assert there <= self.lake.data.keys()

    def come_to_rest(self) -> None:
        """Let upkeep run, and persons restore and accept, until it has deleted what it can."""
        for _ in range(9):
            if self.daily():
                return
            self.accept()
        raise AssertionError(f"always in doubt: {self.doubts}")

    def _deleter(self) -> Adapters:
        """Return the adapters of a process whose clock may be wrong."""
        wrong = timedelta(days=self.choose.choice((0, 0, -40, 40, 400)))
        now = times.text(datetime.fromisoformat(self.clock.now()) + wrong)
        return cast(Adapters, SimpleNamespace(**(vars(self.adapters) | {"now": lambda: now})))

    def _put_there(self, code: str, error: Transient) -> None:
        """Restore what it misses of states that were dead meanwhile; another error is one."""
        missing = self.alive() & self.lake.removed.keys()
        if error.code != code or not missing:
            raise error
        self.lake.restore(missing)

    def alive(self) -> set[str]:
        """Return the keys of all files that a branch, a tag or a kept commit reaches.

        So do the commits from which main was set back.
        """
        since = datetime.fromisoformat(self.clock.now()) - timedelta(days=KEEP_DAYS)
        states = {
            (name, table.metadata): table
            for head in (*self.catalog.references().values(), *self.lost)
            for at in self._kept(head, since)
            for name, table in self.catalog.tables_at(at).items()
        }
        return {
            key
            for (name, _), table in states.items()
            for key in (*keys_of(name, table), *_metadata_of(table))
        }

    def check_rows(self) -> None:
        """Require that main's kept commits have the rows of the model, each once."""
        since = datetime.fromisoformat(self.clock.now()) - timedelta(days=KEEP_DAYS)
        for at in self._kept(self.catalog.head(MAIN), since) & self.model.keys():
            tables = self.catalog.tables_at(at)
            for name in NAMES:
                files = tables[name].files if name in tables else ()
                found = Counter(row for file in files for row in self.rows[file])
                assert found == Counter(self.model[at].get(name, ())), f"{name} at {at}"

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

    def _merge(self, branch: str, at: str) -> None:
        """Merge; afterwards main has the rows that it had, until others are told."""
        was = self.model[self.catalog.head(MAIN)]
        self.catalog.merge(branch, at, self.bases[branch], "Publish", {})
        self.model[self.catalog.head(MAIN)] = was

    def _published(self) -> set[str]:
        return {each.merge_hash for each in self.adapters.ledger.all()}

    def _note_published(self) -> None:
        """Note in the ledger what main's head has published."""
        self.made += 1
        at, landed = self.clock.now(), replace(INGESTION.landed, key=f"{self.made}")
        made = replace(INGESTION, id=f"{self.made:032x}", landed=replace(landed, landed_at=at))
        head = self.catalog.head(MAIN)
        done = made.step("published", at, state=State.PUBLISHED, merge_hash=head, branch="")
        self.adapters.ledger.begin(done.but(announced=True, recorded=1))

    def _on_main(self, name: str) -> Rows:
        return self.model[self.catalog.head(MAIN)].get(name, frozenset())

    def _now_on_main(self, name: str, rows: Rows) -> None:
        head = self.catalog.head(MAIN)
        self.model[head] = {**self.model[head], name: rows}

    def _branch(self, table: str) -> str:
        self.made += 1
        name = f"ingest/{table}/{self.made}"
        self.bases[name] = self.catalog.create_branch(name)
        return name

    def _any_branch(self) -> str:
        found = [name for name in self.catalog.branches("ingest/") if name in self.brought]
        return self.choose.choice(found) if found else ""

    def _table(self, name: str, at: str) -> FakeTable:
        self.made += 1
        return self.catalog.table(at, name) or FakeTable(f"uuid {self.made}")

    def _token(self) -> str:
        self.made += 1
        return f"{self.made:08x}"

    def _new_rows(self, many: int = ROWS_A_FILE) -> Rows:
        self.made += many
        return frozenset(range(self.made - many, self.made))

    def file(self, name: str, uuid: str, rows: Rows) -> str:
        """Store a data file, perhaps with a digest beside it; return its name."""
        self.made += 1
        times = f"*{len(rows) // ROWS_A_FILE}" if len(rows) > ROWS_A_FILE else ""
        file = f"{self.made}.parquet{times}"
        self.rows[file] = rows
        key = key_of(name, uuid, file)
        self.store(key)
        if self.choose.random() < 0.3:
            folder, _, last = key.rpartition("/")
            self.store(f"{folder}/_key_digests/{last}.0123abcd-1")
        return file

    def store(self, key: str) -> None:
        """Write an object into the lake."""
        at = datetime.fromisoformat(self.clock.now())
        self.lake.data[key] = StoredObject(key, self.choose.randrange(1, 10_000), at)


def keys_of(name: str, table: FakeTable) -> set[str]:
    """Return the keys of a table's data files."""
    return {key_of(name, table.folder(file), file) for file in table.files}


def _metadata_of(table: FakeTable) -> set[str]:
    """Return the keys of a state's metadata file and manifests."""
    root = table.metadata.removeprefix(_BUCKET)
    folder = root.rpartition("/")[0]
    return {root, *(f"{folder}/{manifest}" for manifest in table.manifests)}


def key_of(name: str, uuid: str, file: str) -> str:
    """Return the key of a data file in the folder of the table with this UUID."""
    folder = uuid5(NAMESPACE_OID, uuid)
    return f"warehouse/{name.replace('.', '/')}_{folder}/data/{file}"


def _data_file(key: str) -> str:
    folder, marked, file = key.partition("_key_digests/")
    return folder + file.rpartition(".")[0] if marked else key
