"""Read rows of a table for counting: all of them, or a fair sample if that would take long.

The sample is always the same: a few data files, evenly chosen in the table's order, and the first
rows of a few row groups of each.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import NestedField

from access.rows import FileRows
from functions.adapters.iceberg import added
from lakegate.errors import LakegateError

_FEWEST_ROWS, _FEWEST_FILES = 500, 8
_MOST_FILES = 32
_MOST_BYTES = 48 << 20
_GROUP_BYTES = 32 << 20  # what a row group has, as long as no footer was read
_AT_ONCE = 4
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Files:
    """A table, and its data files on one side of a comparison."""

    table: Table
    tasks: tuple[FileScanTask, ...]

    @classmethod
    def added(cls, table: Table) -> "Files":
        """Return the files that the table's newest commit added."""
        return cls(table, tuple(map(FileScanTask, added(table))))

    @classmethod
    def all(cls, table: Table) -> "Files":
        """Return all of the table."""
        return cls(table, tuple(table.scan().plan_files()))

    @property
    def files(self) -> list[DataFile]:
        """Return the data files, as the manifests list them."""
        return [task.file for task in self.tasks]

    @property
    def rows(self) -> int:
        """Return the number of rows in them, deleted ones included."""
        return sum(file.record_count for file in self.files)

    @property
    def deletes(self) -> bool:
        """Return if delete files remove some of the rows."""
        return any(task.delete_files for task in self.tasks)


@dataclass(frozen=True)
class Taken:
    """Rows that were read, one column at a time; `files` hold them.

    `whole` says that these are all rows.
    """

    rows: int
    files: int
    whole: bool
    read: FileRows | pa.Table

    def column(self, name: str) -> pa.RecordBatchReader:
        """Return one of their columns."""
        if isinstance(self.read, pa.Table):
            return self.read.select([name]).to_reader()
        return pa.RecordBatchReader.from_batches(self.read.schema([name]), _all(self.read, name))


def taken(found: Files, columns: Sequence[NestedField], cells: int | None) -> Taken:
    """Return rows of these files with the columns: all, or a sample of about so many `cells`.

    Raises LakegateError NO_SAMPLE for a sample of files in another format than Parquet.
    """
    most = found.rows if cells is None else max(_FEWEST_ROWS, cells // max(1, len(columns)))
    if found.rows <= most:
        read = FileRows(found.table, found.tasks, found.rows)
        return Taken(found.rows, len(found.tasks), whole=True, read=read)
    many = _how_many(found.files, most)
    chosen = [found.files[number] for number in evenly(len(found.tasks), many)]
    _require_parquet(chosen)
    sample = _Sample(found.table.io, arrow_schema(columns), columns, ceil(most / many), many)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = pa.concat_tables(pool.map(sample.of, chosen))
    return Taken(rows.num_rows, many, whole=False, read=rows)


def evenly(there: int, many: int) -> list[int]:
    """Return so many evenly spaced indexes."""
    return [(2 * number + 1) * there // (2 * many) for number in range(many)]


def arrow_schema(columns: Sequence[NestedField]) -> pa.Schema:
    """Return the columns as Arrow fields."""
    return Schema(*columns).as_arrow()


@dataclass(frozen=True)
class _Sample:
    """The sample of a data file: so many rows, as one of `of_files`."""

    io: FileIO
    schema: pa.Schema
    columns: Sequence[NestedField]
    rows: int
    of_files: int

    def of(self, file: DataFile) -> pa.Table:
        """Return the first rows of a few of its row groups."""
        with self.io.new_input(file.file_path).open() as source:
            parquet = pq.ParquetFile(source, pre_buffer=True)
            groups = evenly(parquet.num_row_groups, self._groups(parquet.metadata))
            each = ceil(self.rows / max(1, len(groups)))
            there = _names(parquet.schema_arrow, self.columns)
            batches = (
                next(parquet.iter_batches(each, [group], columns=list(there.values())), None)
                for group in groups
            )
            parts = [self._fitted(batch, there) for batch in batches if batch is not None]
            return pa.concat_tables([self.schema.empty_table(), *parts])

    def _groups(self, footer: pq.FileMetaData) -> int:
        there = footer.num_row_groups
        largest = max((footer.row_group(n).total_byte_size for n in range(there)), default=1)
        affordable = _MOST_BYTES // self.of_files // max(1, largest)
        return min(there, max(1, affordable))

    def _fitted(self, batch: pa.RecordBatch, there: Mapping[int, str]) -> pa.Table:
        """Return the columns as in the table: null if the file is older than the column."""
        arrays = [
            batch.column(there[column.field_id]).cast(field.type)
            if column.field_id in there
            else pa.nulls(batch.num_rows, field.type)
            for column, field in zip(self.columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _names(file: pa.Schema, columns: Sequence[NestedField]) -> dict[int, str]:
    """Return the file's names of the columns, by their ids; without ids the table's names."""
    ids = {
        int(field.metadata[_FIELD_ID]): field.name
        for field in file
        if field.metadata and _FIELD_ID in field.metadata
    }
    named = {column.field_id: column.name for column in columns if column.name in file.names}
    return {
        id_: name for id_, name in (ids or named).items() if id_ in {c.field_id for c in columns}
    }


def _how_many(files: Sequence[DataFile], most: int) -> int:
    """Return the number of files for that many rows, within the time limit."""
    rows = sum(file.record_count for file in files) / len(files)
    size = sum(file.file_size_in_bytes for file in files) / len(files)
    affordable = _MOST_BYTES // min(max(1, int(size)), _GROUP_BYTES)
    wanted = max(_FEWEST_FILES, ceil(most / max(1, rows)))
    return max(1, min(len(files), wanted, affordable, _MOST_FILES))


def _require_parquet(files: Sequence[DataFile]) -> None:
    for file in files:
        if file.file_format != FileFormat.PARQUET:
            message = f"of {file.file_format} files no sample is taken: read all rows instead"
            raise LakegateError("NO_SAMPLE", message)


def _all(rows: FileRows, name: str) -> Iterator[pa.RecordBatch]:
    schema = rows.schema([name])
    for file in range(len(rows.files)):
        for batch in rows.batches(file, [name]):
            yield pa.record_batch([batch.column(0).cast(schema.field(0).type)], schema)
