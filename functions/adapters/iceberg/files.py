"""Read from metadata which files a table consists of, and its row counts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType, StringType, TimestamptzType

from functions.adapters.iceberg.manifests import entries, live
from lakegate.audit.audit_tables import PUBLISHED, TABLES, Entry, HistoryTable
from lakegate.errors import Permanent
from lakegate.job.upkeep import FEWEST, SMALL_SHARE, TARGET_SIZE, USUAL_TARGET

_PARALLEL = 8
_LISTS, _MANIFESTS = 1_000, 100  # that are remembered
_T = TypeVar("_T")
_Of = TypeVar("_Of")


@dataclass(frozen=True)
class TableFiles:
    """The addresses of all files that one state of a table reaches, `manifests` among them.

    `missing` are files that had to be read and are gone.
    """

    paths: frozenset[str]
    manifests: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()


class TableFilesReader:
    """Reads the files of table states, which share many; it remembers the last of those only.

    A state of a wide table has megabytes in memory, and a look may read thousands of states.
    """

    def __init__(self, io: FileIO) -> None:
        """Read files through `io`."""
        self._io = io
        self._manifests = lru_cache(_LISTS)(self._read_list)
        self._data = lru_cache(_MANIFESTS)(self._read_manifest)

    def read(self, metadata: str, known: Collection[str] = ()) -> TableFiles:
        """Return the files of the table state that the file at `metadata` describes.

        Data files that only the manifests in `known` name are left out.
        """
        try:
            table = FromInputFile.table_metadata(self._io.new_input(metadata))
        except FileNotFoundError:
            root = frozenset({metadata})
            return TableFiles(root, missing=root)
        gone: set[str] = set()
        lists = frozenset(each.manifest_list for each in table.snapshots if each.manifest_list)
        manifests = [m for at in sorted(lists) for m in _unless_gone(self._manifests, at, at, gone)]
        new = (each for each in manifests if each.manifest_path not in known)
        data = [f for m in new for f in _unless_gone(self._data, m, m.manifest_path, gone)]
        own = frozenset(manifest.manifest_path for manifest in manifests)
        paths = frozenset([*data, *_statistics(table), *own, *lists, metadata])
        return TableFiles(paths, own, frozenset(gone))

    def _read_list(self, address: str) -> tuple[ManifestFile, ...]:
        return tuple(read_manifest_list(self._io.new_input(address)))

    def _read_manifest(self, manifest: ManifestFile) -> frozenset[str]:
        """Return the files that a manifest names, including those it deletes."""
        return frozenset(entry.data_file.file_path for entry in entries(manifest, self._io))


def _unless_gone(
    read: Callable[[_T], Iterable[_Of]], what: _T, address: str, gone: set[str]
) -> Iterable[_Of]:
    """Return what is read; nothing if it is not there, which is noted."""
    try:
        return read(what)
    except FileNotFoundError:
        gone.add(address)
        return ()


def _statistics(table: TableMetadata) -> Iterator[str]:
    yield from (each.statistics_path for each in table.statistics)
    yield from (each.statistics_path for each in table.partition_statistics)


def data_files(table: Table) -> Iterator[DataFile]:
    """Yield every data file that a query of the table reads, without statistics."""
    read = [each for each in manifests_of(table) if each.content == ManifestContent.DATA]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for found in pool.map(lambda manifest: list(live(manifest, table.io)), read):
            yield from (entry.data_file for entry in found)


def added(table: Table) -> Iterator[DataFile]:
    """Yield the data files that the table's newest commit added, with their statistics."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.status == ManifestEntryStatus.ADDED:
                    yield entry.data_file


_PARTITION = 1000  # where Iceberg's partition fields begin
_TYPES: dict[str, PrimitiveType] = {"table_name": StringType(), "run_ts": TimestamptzType()}


def opened(catalog: RestCatalog, table: HistoryTable, lake_bucket: str) -> Table:
    """Return a history table; create a missing one.

    Raises Permanent where another table has its name.
    """
    wanted = Schema.model_validate_json(table.schema)
    try:
        history = catalog.load_table(table.name)
    except NoSuchTableError:
        catalog.create_namespace_if_not_exists(table.name.partition(".")[0])
        history = catalog.create_table(
            table.name,
            wanted,
            location=table.location(lake_bucket),
            partition_spec=_by_published(wanted),
            properties=_properties(wanted),
        )
    ids = {field.name: field.field_id for field in history.schema().fields}
    own = history.spec() == _by_published(wanted)
    if not own or any(ids.get(f.name, f.field_id) != f.field_id for f in wanted.fields):
        message = f"the table {table.name} on main was not made by Lakegate: drop or rename it"
        raise Permanent("TABLE_MISMATCH", message)
    return history


def data_file(table: Table, entry: Entry) -> DataFile:
    """Return the manifest entry of a data file.

    Its bounds cover the columns whose value all rows share, so that queries can skip the file.
    """
    schema = table.schema()
    bounds = {}
    for name, value in entry.same.items():
        exact = datetime.fromisoformat(value) if name == "run_ts" else value
        bounds[schema.find_field(name).field_id] = to_bytes(_TYPES[name], exact)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=entry.file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(entry.published),
        record_count=entry.file.rows,
        file_size_in_bytes=entry.file.bytes,
        lower_bounds=bounds,
        upper_bounds=bounds,
    )
    file.spec_id = table.spec().spec_id
    return file


def _by_published(schema: Schema) -> PartitionSpec:
    source = schema.find_field(PUBLISHED).field_id
    return PartitionSpec(PartitionField(source, _PARTITION, IdentityTransform(), PUBLISHED))


def _properties(schema: Schema) -> dict[str, str]:
    return {
        "format-version": "2",
        "commit.manifest-merge.enabled": "true",
        # Files that Spark wrote have no field ids: their columns are matched by name.
        "schema.name-mapping.default": create_mapping_from_schema(schema).model_dump_json(),
    }


@dataclass(frozen=True)
class TableRows:
    """A table's row counts at one commit, from its manifests; no `uuid` for a missing table.

    `records` counts the rows in its data files, `position_deletes` those that delete files name.
    How many rows `equality_deletes` hide is unknown without reading the data.
    """

    uuid: str = ""
    records: int = 0
    position_deletes: int = 0
    equality_deletes: int = 0

    @property
    def live(self) -> int:
        """Return the visible rows, provided there are no equality deletes."""
        return self.records - self.position_deletes

    @property
    def hidden(self) -> int:
        """Return by how many rows the next change of `live` may be off.

        Whoever rewrites a data file leaves out the rows that delete files hide. These may stay
        although they hide nothing any more, and any later commit may drop them.
        """
        return self.position_deletes + (self.records if self.equality_deletes else 0)


@dataclass(frozen=True)
class TableChange:
    """The change of a table from one commit to a later one, from its manifests.

    `rows` is the change in live rows, which may be off by as many as were `hidden` before
    (`TableRows.hidden`). `added` and `removed` map the addresses of data files to how many more, or
    fewer, times the table lists them.
    """

    rows: int = 0
    added: Mapping[str, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    hidden: int = 0


@dataclass(frozen=True)
class DoubledFile:
    """A data file that a table lists more than once: queries see its `rows` that many `times`."""

    path: str
    rows: int
    times: int


@dataclass(frozen=True)
class TableSize:
    """The data files of a table, their bytes, and those of its manifests.

    Of the `small` ones, `scattered` lie in partitions with enough of them to compact. In history
    tables what is not published does not count, as it may still move to another partition.
    """

    files: int = 0
    bytes: int = 0
    small: int = 0
    scattered: int = 0
    manifests: int = 0
    manifest_bytes: int = 0
    has_deletes: bool = False


def size_of(table: Table) -> TableSize:
    """Return how many data files a table has, and of what size."""
    target = int(table.properties.get(TARGET_SIZE, USUAL_TARGET))
    is_history = ".".join(table.name()) in {each.name for each in TABLES}
    files = bytes_ = 0
    small: Counter[tuple[int, str]] = Counter()
    moving = 0
    for file in data_files(table):
        files, bytes_ = files + 1, bytes_ + file.file_size_in_bytes
        if file.file_size_in_bytes < SMALL_SHARE * target:
            if is_history and not file.partition[0]:
                moving += 1
            else:
                small[file.spec_id, str(file.partition)] += 1
    manifests = manifests_of(table)
    return TableSize(
        files=files,
        bytes=bytes_,
        small=small.total() + moving,
        scattered=sum(count for count in small.values() if count >= FEWEST),
        manifests=len(manifests),
        manifest_bytes=sum(each.manifest_length for each in manifests),
        has_deletes=any(each.content == ManifestContent.DELETES for each in manifests),
    )


def manifests_of(table: Table) -> list[ManifestFile]:
    """Return the manifests of the table's current state."""
    snapshot = table.current_snapshot()
    return snapshot.manifests(table.io) if snapshot else []


def totals(manifests: Iterable[ManifestFile], io: FileIO) -> tuple[int, int, int]:
    """Return the rows in data files, in position deletes and in equality deletes.

    The snapshot's summary is not used: some writers get it wrong.
    """
    rows: Counter[DataFileContent] = Counter()
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            counts = manifest.added_rows_count, manifest.existing_rows_count
            rows[DataFileContent.DATA] += sum(filter(None, counts))
        else:
            for entry in live(manifest, io):
                rows[entry.data_file.content] += entry.data_file.record_count
    positions = rows[DataFileContent.POSITION_DELETES]
    return rows[DataFileContent.DATA], positions, rows[DataFileContent.EQUALITY_DELETES]


def change_of(
    before: Mapping[str, ManifestFile], after: Mapping[str, ManifestFile], io: FileIO
) -> TableChange:
    """Return the change of a table, by its manifests before and after it, by address."""
    rows, files = 0, Counter[str]()
    old = [manifest for path, manifest in before.items() if path not in after]
    new = [manifest for path, manifest in after.items() if path not in before]
    for sign, manifests in ((-1, old), (1, new)):
        for file in (entry.data_file for each in manifests for entry in live(each, io)):
            if file.content == DataFileContent.DATA:
                rows += sign * file.record_count
                files[file.file_path] += sign
            elif file.content == DataFileContent.POSITION_DELETES:
                rows -= sign * file.record_count
    hidden = TableRows("", *totals(before.values(), io)).hidden
    return TableChange(rows, dict(+files), dict(-files), hidden)


def doubled_files(table: Table) -> list[DoubledFile]:
    """Return the data files that a table lists more than once."""
    rows: dict[str, int] = {}
    times: Counter[str] = Counter()
    for file in data_files(table):
        rows[file.file_path] = file.record_count
        times[file.file_path] += 1
    return [DoubledFile(path, rows[path], many) for path, many in sorted(times.items()) if many > 1]
