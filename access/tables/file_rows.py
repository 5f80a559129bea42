"""The rows of an Iceberg table, or of its newest commit, read file by file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table

import access.tables.projection  # noqa: F401  for every scan
from functions.adapters.iceberg.files import added


@dataclass(frozen=True)
class FileRows:
    """Rows of a table in the order of their data files."""

    table: Table
    tasks: tuple[FileScanTask, ...]

    @classmethod
    def added(cls, table: Table) -> "FileRows":
        """Return the rows that the newest commit added and that are not deleted since.

        Reads the snapshot's manifests, and no data.
        """
        return cls(table, tuple(map(FileScanTask, added(table))))

    @classmethod
    def all(cls, table: Table) -> "FileRows":
        """Return all rows of the table."""
        return cls(table, tuple(table.scan().plan_files()))

    @property
    def data_files(self) -> list[DataFile]:
        """Return the data files, as the manifests list them."""
        return [task.file for task in self.tasks]

    @property
    def files(self) -> tuple[str, ...]:
        """Return the addresses of the data files."""
        return tuple(file.file_path for file in self.data_files)

    @property
    def stored(self) -> int:
        """Return the number of rows in the data files, deleted ones included."""
        return sum(file.record_count for file in self.data_files)

    @property
    def deletes(self) -> bool:
        """Return if delete files remove some of the rows."""
        return any(task.delete_files for task in self.tasks)

    @property
    def count(self) -> int:
        """Return the number of rows; reads data if some are deleted."""
        return self.table.scan().count() if self.deletes else self.stored

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of the named columns, in this order and spelling.

        Names match in any case.
        """
        there = {field.name.lower(): field for field in self._projection(columns).as_arrow()}
        return pa.schema([there[name.lower()].with_name(name) for name in columns])

    def batches(self, file: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the data file of that number, with the columns as in `schema`."""
        projected = self._projection(columns)
        there = [field.name.lower() for field in projected.fields]
        order = [there.index(name.lower()) for name in columns]
        scan = ArrowScan(self.table.metadata, self.table.io, projected, AlwaysTrue())
        for batch in scan.to_record_batches([self.tasks[file]]):
            yield batch.select(order).rename_columns(list(columns))

    def _projection(self, columns: Sequence[str]) -> Schema:
        return self.table.schema().select(*columns, case_sensitive=False)
