"""What entering a branch's files into main's newer table does, in memory and in Iceberg."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import quote

import boto3
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from functions.catalog import CannotRebase, Catalog, FilesGone, MergeConflict
from functions.file_io import CLIENT
from functions.ingestion import Intent
from functions.storage import Lake as Storage
from functions.table_files import TableFiles
from functions.table_rows import TableRows
from functions.tables import Tables
from lakegate.errors import LakegateError, Transient
from lakegate.history import RESULTS, TABLES, Entry, HistoryTable
from lakegate.report import DataFile as DataFile_
from tests.contract.conftest import Servers
from tests.contract.test_ledger import ACCOUNT
from tests.fakes import wire
from tests.fakes.catalog import ROWS_A_FILE, FakeCatalog, FakeTable, FakeTables
from tests.fakes.clock import FakeClock
from tests.fakes.storage import FakeLake

_MERGED = 4
_PROPERTIES = {
    "format-version": "2",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": str(_MERGED),
}


class Writer(Protocol):
    """Somebody who writes the test's table on any branch."""

    def append(self, branch: str, file: str) -> str:
        """Enter a new data file, into a new table where there is none; returns the new head."""

    def add_column(self, branch: str, *, required: bool = False) -> None:
        """Give the table one more column."""

    def drop(self, branch: str) -> None:
        """Drop the table."""

    def files(self, reference: str) -> list[str]:
        """The names of the data files that a reader sees."""

    def address(self, file: str) -> str:
        """Where the data file of that name lies."""


@dataclass(frozen=True)
class Lake:
    """The adapters, and somebody who writes."""

    process: Callable[[], Tables | FakeTables]
    catalog: Catalog | FakeCatalog
    writer: Writer
    table: str
    delete: Callable[[str], object]

    @property
    def tables(self) -> Tables | FakeTables:
        """The adapter of a process that has read nothing yet."""
        return self.process()

    def branch(self, name: str) -> str:
        """A branch off main as it is now, used by no other test."""
        branch = f"ingest/{self.table}/{name}"
        self.catalog.create_branch(branch)
        return branch

    def written(self, file: str) -> tuple[str, str]:
        """A branch off main to which a file was appended, and its head."""
        branch = self.branch(f"{file}-branch")
        return branch, self.writer.append(branch, file)

    def publish(self, branch: str, at: str) -> None:
        """Merge into main."""
        assert self.catalog.merge(branch, at, "Publish", {"k": "v"})

    def enter(self, target: str, *sources: tuple[str, str]) -> None:
        """Enter the files of branches, each as it was at a hash, into the table on `target`."""
        intents = [Intent(*source) for source in sources]
        assert self.tables.append_again(self.table, intents, target) == {}

    def replace(self, target: str, source: tuple[str, str], *removed: str) -> None:
        """Enter a branch's files into the table on `target` in place of others."""
        addresses = [self.writer.address(file) for file in removed]
        self.tables.replace(self.table, Intent(*source), addresses, target)

    def on_main(self) -> list[str]:
        """The files that a reader of main sees."""
        return self.writer.files("main")


class FakeWriter:
    """Writes into a FakeCatalog."""

    def __init__(self, catalog: FakeCatalog, table: str) -> None:
        self._catalog, self._table = catalog, table

    def append(self, branch: str, file: str) -> str:
        """See Writer."""
        table = self._catalog.table(branch, self._table) or FakeTable(uuid.uuid4().hex)
        return self._catalog.commit(branch, self._table, table.append(file))

    def add_column(self, branch: str, *, required: bool = False) -> None:
        """See Writer."""
        table = self._there(branch)
        added = ("new!" if required else "new",)
        self._catalog.commit(branch, self._table, replace(table, columns=table.columns + added))

    def drop(self, branch: str) -> None:
        """See Writer."""
        self._catalog.commit(branch, self._table, None)

    def files(self, reference: str) -> list[str]:
        """See Writer."""
        return sorted(self._there(reference).files)

    def address(self, file: str) -> str:
        """See Writer."""
        return file

    def _there(self, reference: str) -> FakeTable:
        table = self._catalog.table(reference, self._table)
        assert table
        return table


class IcebergWriter:
    """Writes by pyiceberg, but for new columns: its own way Nessie 0.99 does not take."""

    def __init__(self, uri: str, token: str, s3: Any, table: str) -> None:
        self._uri, self._token, self._s3, self._name = uri, token, s3, table

    def append(self, branch: str, file: str) -> str:
        """See Writer."""
        catalog = self._catalog(branch)
        try:
            table = catalog.load_table(self._name)
        except NoSuchTableError:
            catalog.create_namespace_if_not_exists(self._name.split(".")[0])
            table = catalog.create_table(
                self._name,
                Schema(NestedField(1, "id", LongType())),
                partition_spec=UNPARTITIONED_PARTITION_SPEC,
                properties=_PROPERTIES,
            )
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            append.append_data_file(_data_file(f"{table.location()}/data/{file}"))
        return Catalog(self._uri, self._token).head(branch)

    def add_column(self, branch: str, *, required: bool = False) -> None:
        """See Writer."""
        columns = [
            {"id": 1, "name": "id", "type": "long", "required": False},
            {"id": 2, "name": "new", "type": "long", "required": required},
        ]
        schema = {"type": "struct", "fields": columns, "schema-id": 1}
        namespace, _, name = self._name.partition(".")
        prefix = quote(f"{branch}|lake", safe="")
        updates: list[dict[str, Any]] = [
            {"action": "add-schema", "schema": schema, "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
        ]
        answer = requests.post(
            f"{self._uri}/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{name}",
            headers={"Authorization": f"Bearer {self._token}"},
            json={"requirements": [], "updates": updates},
            timeout=600,
        )
        assert answer.ok, answer.text

    def drop(self, branch: str) -> None:
        """See Writer."""
        self._catalog(branch).drop_table(self._name)

    def manifests(self, reference: str) -> int:
        """How many manifests a reader has to open."""
        return len(self._manifests(self._catalog(reference).load_table(self._name)))

    def files(self, reference: str) -> list[str]:
        """See Writer."""
        return sorted(
            entry.data_file.file_path.rpartition("/")[2]
            for manifest in self._manifests(self._catalog(reference).load_table(self._name))
            for entry in manifest
        )

    def address(self, file: str) -> str:
        """See Writer."""
        return f"{self._catalog('main').load_table(self._name).location()}/data/{file}"

    def _manifests(self, table: Table) -> list[list[Any]]:
        snapshot = table.current_snapshot()
        found = snapshot.manifests(table.io) if snapshot else []
        return [manifest.fetch_manifest_entry(table.io) for manifest in found]

    def _catalog(self, reference: str) -> RestCatalog:
        return RestCatalog(
            "lake",
            uri=f"{self._uri}/iceberg/{quote(reference, safe='')}",
            token=self._token,
            **{"py-io-impl": "functions.file_io.S3FileIO", CLIENT: self._s3},
        )


def _data_file(path: str) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS_A_FILE,
        file_size_in_bytes=100,
    )
    file.spec_id = 0
    return file


def deleting(storage: Storage | FakeLake) -> Callable[[str], object]:
    """How an object of the lake's bucket is deleted, by its address."""
    return lambda address: storage.delete_objects([address.removeprefix("s3://lake/")])


@pytest.fixture(params=["in memory", pytest.param("Iceberg", marks=pytest.mark.stack)])
def lake(request: pytest.FixtureRequest) -> Lake:
    """A lake whose main has the test's table with one file, `old`."""
    table = f"t{uuid.uuid4().hex[:12]}.orders"
    if request.param == "in memory":
        fake = FakeCatalog(FakeClock())
        gone = FakeLake()
        made = Lake(
            lambda: FakeTables(fake, gone.deleted),
            fake,
            FakeWriter(fake, table),
            table,
            deleting(gone),
        )
    else:
        servers: Servers = request.getfixturevalue("servers")
        known = (servers.nessie, servers.tokens["publisher"])
        s3 = boto3.client("s3", endpoint_url=servers.s3, **ACCOUNT)
        writer = IcebergWriter(*known, s3, table)
        store = Storage(s3, "lake")
        made = Lake(lambda: Tables(*known, s3), Catalog(*known), writer, table, deleting(store))
    made.publish(*made.written("old"))
    return made


def test_a_refused_branch_is_published_after_all(lake: Lake) -> None:
    """Its files, entered on a fresh branch, come to main beside those that came before it."""
    first, second = lake.written("first"), lake.written("second")
    lake.publish(*first)
    fresh = lake.branch("fresh")
    lake.enter(fresh, second)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["first", "old", "second"]


def test_only_the_targets_branch_changes(lake: Lake) -> None:
    """Neither main nor the branch that the files come from is touched."""
    source, at = lake.written("file")
    main, fresh = lake.catalog.head("main"), lake.branch("fresh")
    lake.enter(fresh, (source, at))
    assert lake.catalog.head("main") == main
    assert lake.catalog.head(source) == at
    assert lake.writer.files(fresh) == lake.writer.files(source) == ["file", "old"]


def test_only_what_was_named_is_entered(lake: Lake) -> None:
    """What was appended on the branch after the named hash does not come along."""
    source, at = lake.written("file")
    lake.writer.append(source, "later")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    assert lake.writer.files(fresh) == ["file", "old"]


def test_it_can_be_done_again_and_again(lake: Lake) -> None:
    """Files that were entered anew once, and refused once more, are entered anew from there."""
    source, at = lake.written("file")
    for number in range(3):
        lake.publish(*lake.written(f"other-{number}"))
        fresh = lake.branch(f"fresh-{number}")
        lake.enter(fresh, (source, at))
        source, at = fresh, lake.catalog.head(fresh)
    lake.publish(source, at)
    assert lake.on_main() == ["file", "old", "other-0", "other-1", "other-2"]


def test_a_column_that_main_gained_is_no_obstacle(lake: Lake) -> None:
    """The new column is empty in the files' rows, which are published all the same."""
    source, at = lake.written("file")
    lake.writer.add_column("main")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file", "old"]


def cannot(lake: Lake, source: str, at: str, target: str) -> str:
    """Why the files cannot be entered; the target stays as it was."""
    before = lake.catalog.branches(target) and lake.catalog.head(target)
    refusals = lake.tables.append_again(lake.table, [Intent(source, at)], target)
    assert (lake.catalog.branches(target) and lake.catalog.head(target)) == before
    (refusal,) = refusals.values()
    assert isinstance(refusal, CannotRebase)
    return refusal.code


def test_a_column_that_the_files_must_have_is_one(lake: Lake) -> None:
    """Where main requires a column that the files lack, the job must run again."""
    source, at = lake.written("file")
    lake.writer.add_column("main", required=True)
    assert cannot(lake, source, at, lake.branch("fresh")) == "COLUMNS_CHANGED"


def test_a_column_that_main_lacks_is_one(lake: Lake) -> None:
    """Where the files have a column that main's table has not, the job must run again."""
    source = lake.branch("source")
    lake.writer.add_column(source)
    at = lake.writer.append(source, "file")
    assert cannot(lake, source, at, lake.branch("fresh")) == "COLUMNS_CHANGED"


def test_another_table_of_the_same_name_is_one(lake: Lake) -> None:
    """Where main's table was dropped and made again, the job must run again."""
    source, at = lake.written("file")
    lake.writer.drop("main")
    lake.writer.append("main", "another")
    assert cannot(lake, source, at, lake.branch("fresh")) == "TABLE_REPLACED"


def test_a_table_that_is_gone_is_one(lake: Lake) -> None:
    """Where main's table was dropped, the job must run again."""
    source = Intent(*lake.written("file"))
    lake.writer.drop("main")
    with pytest.raises(CannotRebase, match="TABLE_GONE"):
        lake.tables.append_again(lake.table, [source], lake.branch("fresh"))


def test_a_target_that_is_gone_is_told(lake: Lake) -> None:
    """Where somebody deleted the branch to write on meanwhile, it is tried again."""
    source = Intent(*lake.written("file"))
    fresh = lake.branch("fresh")
    lake.catalog.delete_branch(fresh)
    with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
        lake.tables.append_again(lake.table, [source], fresh)


def test_several_are_entered_at_once(lake: Lake) -> None:
    """The files of many branches come to main by one fresh branch and one merge."""
    written = [lake.written(f"file-{number:02}") for number in range(12)]
    fresh = lake.branch("fresh")
    lake.enter(fresh, *written)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [*(f"file-{number:02}" for number in range(12)), "old"]


def test_several_commits_of_one_branch_are_entered(lake: Lake) -> None:
    """Each commit's files are told by its hash, so that all that one branch wrote comes to main."""
    source = lake.branch("source")
    commits = [(source, lake.writer.append(source, f"file-{number}")) for number in range(3)]
    lake.writer.append("main", "other")
    fresh = lake.branch("fresh")
    lake.enter(fresh, *commits)
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file-0", "file-1", "file-2", "old", "other"]


def test_a_table_does_not_become_slow_to_read(lake: Lake) -> None:
    """However many times files are entered anew, manifests are merged as the table asks for."""
    for number in range(2 * _MERGED):
        written = lake.written(f"file-{number}")
        fresh = lake.branch(f"fresh-{number}")
        lake.enter(fresh, written)
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [*(f"file-{number}" for number in range(2 * _MERGED)), "old"]
    if isinstance(lake.writer, IcebergWriter):
        assert lake.writer.manifests("main") <= _MERGED


def test_one_that_cannot_be_entered_holds_up_no_other(lake: Lake) -> None:
    """A branch with other columns, or one that is gone, is named; the others' files are in."""
    good, gone = Intent(*lake.written("good")), Intent(*lake.written("gone"))
    lake.writer.add_column(source := lake.branch("source"))
    strange = Intent(source, lake.writer.append(source, "strange"))
    lake.catalog.delete_branch(gone.branch)
    fresh = lake.branch("fresh")
    refusals = lake.tables.append_again(lake.table, [gone, good, strange], fresh)
    assert {each: error.code for each, error in refusals.items()} == {
        gone: "CATALOG_UNAVAILABLE",
        strange: "COLUMNS_CHANGED",
    }
    assert lake.writer.files(fresh) == ["good", "old"]


def files(lake: Lake, at: str) -> TableFiles:
    """All files of the table as it is at a hash."""
    return lake.tables.files(lake.catalog.metadata(at, lake.table))


def names(paths: Iterable[str]) -> list[str]:
    """The names of files, without where they lie."""
    return sorted(path.rpartition("/")[2] for path in paths)


def test_a_state_consists_of_its_files(lake: Lake) -> None:
    """Data files, manifests, lists and the metadata file, all under the table's location."""
    _, at = lake.written("file")
    found = files(lake, at)
    data, manifests, _, root = found.levels
    assert names(data) == ["file", "old"]
    assert len(manifests) == 2
    assert root == {lake.catalog.metadata(at, lake.table)}
    assert found.location.startswith("s3://lake/warehouse/")
    assert all(path.startswith(f"{found.location}/") for path in found.paths)
    assert found.missing == frozenset()


def test_what_a_branch_wrote_is_told_from_what_was_there(lake: Lake) -> None:
    """Beside main's state the branch's has one data file, and what names it; main lacks these."""
    before = files(lake, lake.catalog.head("main"))
    source, at = lake.written("file")
    own = files(lake, at).paths - before.paths
    assert "file" in names(own)
    assert "old" not in names(own)
    lake.publish(source, at)
    assert own <= files(lake, lake.catalog.head("main")).paths


def test_files_that_were_entered_anew_are_shared(lake: Lake) -> None:
    """Of a rebased branch and its source the data files are the same, and nothing else is."""
    before = files(lake, lake.catalog.head("main")).paths
    source, at = lake.written("file")
    fresh = lake.branch("fresh")
    lake.enter(fresh, (source, at))
    shared = files(lake, at).paths & files(lake, lake.catalog.head(fresh)).paths - before
    assert names(shared) == ["file"]


def test_a_file_that_is_gone_is_told(lake: Lake) -> None:
    """Where a manifest or the metadata file was deleted, the state says so, and what it had."""
    before = files(lake, lake.catalog.head("main"))
    _, at = lake.written("file")
    metadata = lake.catalog.metadata(at, lake.table)
    (manifest,) = files(lake, at).levels[1] - before.levels[1]
    lake.delete(manifest)
    found = lake.tables.files(metadata)
    assert manifest in found.missing
    assert manifest in found.paths
    assert "file" not in names(found.paths)
    lake.delete(metadata)
    assert lake.tables.files(metadata).missing == {metadata}


def test_a_table_says_how_many_rows_it_has(lake: Lake) -> None:
    """At a branch or at any commit of main, by metadata alone; the table's identity comes along."""
    before = lake.catalog.head("main")
    branch, at = lake.written("file")
    lake.publish(branch, at)
    then, now = lake.tables.rows(lake.table, f"main@{before}"), lake.tables.rows(lake.table, "main")
    assert (then.records, now.records, now.live) == (ROWS_A_FILE, 2 * ROWS_A_FILE, 2 * ROWS_A_FILE)
    assert (now.position_deletes, now.equality_deletes) == (0, 0)
    assert then.uuid == now.uuid != ""
    assert lake.tables.rows(lake.table, branch) == now


def test_a_table_that_is_not_there_has_no_rows(lake: Lake) -> None:
    """Before its first commit, and after it was dropped, a table has neither rows nor identity."""
    lake.writer.drop("main")
    assert lake.tables.rows(lake.table, "main") == TableRows()
    assert lake.tables.rows("nowhere.nothing", "main") == TableRows()
    assert lake.tables.doubled(lake.table, "main") == []


def test_rows_at_a_commit_that_is_not_there_are_tried_again(lake: Lake) -> None:
    """No commit is not no table: a hash that main's log cannot have given is an error."""
    with pytest.raises(LakegateError):
        lake.tables.rows(lake.table, "main@" + "0123456789abcdef" * 4)


def test_a_file_that_is_there_twice_is_found(lake: Lake) -> None:
    """A data file that somebody entered again is named, with its rows; others are not."""
    lake.publish(*lake.written("file"))
    assert lake.tables.doubled(lake.table, "main") == []
    before = lake.catalog.head("main")
    lake.writer.append("main", "file")
    [doubled] = lake.tables.doubled(lake.table, "main")
    assert doubled.path.endswith("file")
    assert (doubled.rows, doubled.times) == (ROWS_A_FILE, 2)
    assert lake.tables.doubled(lake.table, f"main@{before}") == []


def test_files_take_the_place_of_others(lake: Lake) -> None:
    """Entered in place of others, files come to main by the one merge that takes those out."""
    lake.publish(*lake.written("first"))
    written, fresh = lake.written("second"), lake.branch("fresh")
    lake.replace(fresh, written, "first")
    lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["old", "second"]


def test_many_files_at_once_and_none_at_all_are_replaced(lake: Lake) -> None:
    """Files leave that came by different commits, also all there are, or none."""
    lake.publish(*lake.written("first"))
    for number, removed in enumerate([[], ["first", "old"], ["file-0", "file-1"]]):
        written, fresh = lake.written(f"file-{number}"), lake.branch(f"fresh-{number}")
        lake.replace(fresh, written, *removed)
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == ["file-2"]


def test_what_replaced_others_can_be_entered_again(lake: Lake) -> None:
    """A branch that replaced files and was refused brings only its own files to the next one."""
    lake.publish(*lake.written("first"))
    written, fresh, again = lake.written("second"), lake.branch("fresh"), "again"
    lake.replace(fresh, written, "first")
    at = lake.catalog.head(fresh)
    lake.publish(*lake.written("other"))
    lake.replace(lake.branch(again), (fresh, at), "first", "other")
    again = f"ingest/{lake.table}/{again}"
    lake.publish(again, lake.catalog.head(again))
    assert lake.on_main() == ["old", "second"]


def test_a_table_whose_files_are_replaced_does_not_become_slow_to_read(lake: Lake) -> None:
    """However often a file takes the place of the one before, no manifests are left over."""
    lake.publish(*lake.written("file-0"))
    for number in range(1, 2 * _MERGED):
        written, fresh = lake.written(f"file-{number}"), lake.branch(f"fresh-{number}")
        lake.replace(fresh, written, f"file-{number - 1}")
        lake.publish(fresh, lake.catalog.head(fresh))
    assert lake.on_main() == [f"file-{2 * _MERGED - 1}", "old"]
    if isinstance(lake.writer, IcebergWriter):
        assert lake.writer.manifests("main") <= _MERGED


def test_what_is_not_there_cannot_be_replaced(lake: Lake) -> None:
    """The files that the table has not are named, and nothing is changed."""
    written, fresh = lake.written("file"), lake.branch("fresh")
    before = lake.catalog.head(fresh)
    with pytest.raises(FilesGone) as gone:
        lake.replace(fresh, written, "old", "compacted")
    assert gone.value.paths == {lake.writer.address("compacted")}
    assert lake.catalog.head(fresh) == before


def test_only_what_can_be_read_replaces(lake: Lake) -> None:
    """Where the table could not read the files, nothing is replaced and the job must run again."""
    source = lake.branch("source")
    lake.writer.add_column(source)
    at, fresh = lake.writer.append(source, "file"), lake.branch("fresh")
    before = lake.catalog.head(fresh)
    with pytest.raises(CannotRebase, match="COLUMNS_CHANGED"):
        lake.replace(fresh, (source, at), "old")
    assert lake.catalog.head(fresh) == before


@pytest.mark.parametrize("gone", ["source", "target"])
def test_a_branch_to_replace_by_that_is_gone_is_told(lake: Lake, gone: str) -> None:
    """Where another publisher deleted one of the branches meanwhile, it is tried again."""
    written, fresh = lake.written("file"), lake.branch("fresh")
    lake.catalog.delete_branch({"source": written[0], "target": fresh}[gone])
    with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
        lake.replace(fresh, written, "old")


def append_again(url: str) -> None:
    """Call the adapter with Nessie at this address."""
    Tables(url, "token", None).append_again("a.b", [Intent("ingest/x", "0" * 64)], "publish/y")


@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS)
def test_nonsense_is_tried_again(answer: str) -> None:
    """Whatever a proxy or a dying server answers in Nessie's place is transient."""
    with (
        wire.answering(wire.BROKEN_ANSWERS[answer]) as url,
        pytest.raises(Transient, match="CATALOG_UNAVAILABLE"),
    ):
        append_again(url)


def test_a_nessie_that_is_away_is_tried_again() -> None:
    """Where nothing answers, the call says so as a transient error."""
    with pytest.raises(Transient, match="CATALOG_UNAVAILABLE"):
        append_again(wire.nobody())


def entry(file: str, table: HistoryTable, **how: bool) -> Entry:
    """What a run left for one of the tables of history."""
    same = {"table_name": "shop.orders", "run_ts": "2026-03-01T12:00:00.000+00:00"}
    path = f"{table.files('lake')}{file}"
    return Entry(table, DataFile_(path, 3, 300), same, how["published"], how.get("again", False))


def entered(lake: Lake, *entries: Entry) -> tuple[str, str]:
    """A branch off main, with these entered, and its head."""
    branch = f"publish/ops.audit_results/{uuid.uuid4().hex[:12]}-a"
    lake.catalog.create_branch(branch)
    lake.tables.enter(entries, "lake", branch)
    return branch, lake.catalog.head(branch)


def histories(lake: Lake) -> dict[str, int]:
    """The rows of main's tables of history."""
    return {t.name: lake.tables.rows(t.name, "main").records for t in TABLES}


def test_what_runs_left_is_entered(lake: Lake) -> None:
    """Into tables that are made where there are none, beside what is there."""
    before = histories(lake)
    name = uuid.uuid4().hex
    made = [entry(f"{name}-{n}", table, published=True) for n in (1, 2) for table in TABLES]
    lake.publish(*entered(lake, *made))
    assert histories(lake) == {table: rows + 6 for table, rows in before.items()}
    lake.publish(*entered(lake, entry(f"{name}-3", RESULTS, published=False)))
    assert histories(lake)[RESULTS.name] == before[RESULTS.name] + 9


def test_of_two_who_enter_at_once_one_is_refused(lake: Lake) -> None:
    """Main takes no branch that was cut before its table of results changed."""
    name = uuid.uuid4().hex
    first = entered(lake, entry(f"{name}-1", RESULTS, published=True))
    second = entered(lake, entry(f"{name}-1", RESULTS, published=True))
    lake.publish(*first)
    with pytest.raises(MergeConflict):
        lake.publish(*second)


def test_what_is_there_already_moves(lake: Lake) -> None:
    """Entered again, with another answer, a file is there once; one that is gone stays away."""
    name = uuid.uuid4().hex
    lake.publish(*entered(lake, entry(f"{name}-1", RESULTS, published=False)))
    before = histories(lake)
    gone = entry(f"{name}-2", RESULTS, published=True, again=True)
    moved = entry(f"{name}-1", RESULTS, published=True, again=True)
    lake.publish(*entered(lake, moved, gone))
    assert histories(lake) == before
    assert not lake.tables.doubled(RESULTS.name, "main")


def test_nothing_is_entered_on_a_branch_that_is_gone(lake: Lake) -> None:
    """Somebody else deleted it: that passes."""
    with pytest.raises(Transient):
        lake.tables.enter([entry("x", RESULTS, published=True)], "lake", "publish/x/gone")


def test_tables_of_history_are_made_once(lake: Lake) -> None:
    """What a branch lacks it gets, empty; what is there keeps its rows and is not changed."""
    name = lake.table.partition(".")[0]
    lake.publish(*entered(lake, entry(f"{name}-1", RESULTS, published=True)))
    before, fresh = histories(lake), lake.branch("fresh")
    lake.tables.make(TABLES, "lake", fresh)
    at = lake.catalog.head(fresh)
    lake.tables.make(TABLES, "lake", fresh)
    assert lake.catalog.head(fresh) == at
    assert all(lake.catalog.metadata(at, table.name) for table in TABLES)
    assert {t.name: lake.tables.rows(t.name, fresh).records for t in TABLES} == before
