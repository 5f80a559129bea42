"""The rows of an Iceberg table, or those that its newest commit added, file by file."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table

from functions.tables import added


class FileRows:
    """Rows in the order in which they lie in their data files."""

    def __init__(self, table: Table, tasks: Sequence[FileScanTask], count: int) -> None:
        """`count` is how many rows there are in the files of `tasks`."""
        self._table = table
        self._tasks = tasks
        self.count = count

    @classmethod
    def added(cls, table: Table) -> "FileRows":
        """Those that the newest commit added, and nobody has deleted since.

        Reads the snapshot's own manifests, and no data.
        """
        files = tuple(added(table))
        return cls(
            table, [FileScanTask(file) for file in files], sum(f.record_count for f in files)
        )

    @classmethod
    def all(cls, table: Table) -> "FileRows":
        """All rows of the table."""
        scan = table.scan()
        return cls(table, list(scan.plan_files()), scan.count())

    @property
    def files(self) -> tuple[str, ...]:
        """The addresses of the data files."""
        return tuple(task.file.file_path for task in self._tasks)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """The columns of that name, in this order, as Arrow has them.

        They are spelt as asked for, in whatever case the table spells them.
        """
        there = {field.name.lower(): field for field in self._projection(columns).as_arrow()}
        return pa.schema([there[name.lower()].with_name(name) for name in columns])

    def batches(self, file: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the data file of that number, these columns alone, as `schema` has them."""
        projected = self._projection(columns)
        there = [field.name.lower() for field in projected.fields]
        order = [there.index(name.lower()) for name in columns]
        scan = ArrowScan(self._table.metadata, self._table.io, projected, AlwaysTrue())
        for batch in scan.to_record_batches([self._tasks[file]]):
            yield batch.select(order).rename_columns(list(columns))

    def _projection(self, columns: Sequence[str]) -> Schema:
        return self._table.schema().select(*columns, case_sensitive=False)
