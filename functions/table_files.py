"""Which files one state of an Iceberg table consists of, read from its metadata alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile, read_manifest_list
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True)
class TableFiles:
    """The addresses of all files that one state of a table reaches.

    `levels` go from the leaves to the root: data files (with deletes and statistics), manifests,
    manifest lists, the metadata file. Whoever deletes in this order can begin again after a
    crash: a file that is there still names all that is left under it. `missing` are those that
    had to be read and are gone. `location` is the table's place, "" where that could not be read.
    """

    location: str
    levels: tuple[frozenset[str], ...]
    missing: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        """The files of all levels."""
        return frozenset().union(*self.levels)


class TableFilesReader:
    """Reads each file once, however many states share it: none is ever written twice."""

    def __init__(self, io: FileIO) -> None:
        """`io` reads the files."""
        self._io = io
        self._tables: dict[str, TableMetadata] = {}
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        self._entries: dict[str, frozenset[str]] = {}

    def read(self, metadata: str) -> TableFiles:
        """The files of the table state that the file at `metadata` describes."""
        gone: set[str] = set()
        try:
            table = self._table(metadata)
        except FileNotFoundError:
            root = frozenset({metadata})
            return TableFiles("", (frozenset(), frozenset(), frozenset(), root), missing=root)
        lists = frozenset(each.manifest_list for each in table.snapshots if each.manifest_list)
        manifests = [m for each in sorted(lists) for m in self._manifests(each, gone)]
        data = [path for manifest in manifests for path in self._data(manifest, gone)]
        return TableFiles(
            location=table.location,
            levels=(
                frozenset([*data, *_statistics(table)]),
                frozenset(manifest.manifest_path for manifest in manifests),
                lists,
                frozenset({metadata}),
            ),
            missing=frozenset(gone),
        )

    def _table(self, metadata: str) -> TableMetadata:
        if metadata not in self._tables:
            read = FromInputFile.table_metadata(self._io.new_input(metadata))
            self._tables[metadata] = read
        return self._tables[metadata]

    def _manifests(self, address: str, gone: set[str]) -> tuple[ManifestFile, ...]:
        if address not in self._lists:
            try:
                found = tuple(read_manifest_list(self._io.new_input(address)))
            except FileNotFoundError:
                gone.add(address)
                return ()
            self._lists[address] = found
        return self._lists[address]

    def _data(self, manifest: ManifestFile, gone: set[str]) -> frozenset[str]:
        """The files that a manifest names, those it deletes included: an older state has them."""
        path = manifest.manifest_path
        if path not in self._entries:
            try:
                entries = manifest.fetch_manifest_entry(self._io, discard_deleted=False)
            except FileNotFoundError:
                gone.add(path)
                return frozenset()
            self._entries[path] = frozenset(entry.data_file.file_path for entry in entries)
        return self._entries[path]


def _statistics(table: TableMetadata) -> Iterator[str]:
    yield from (each.statistics_path for each in table.statistics)
    yield from (each.statistics_path for each in table.partition_statistics)
