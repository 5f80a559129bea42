"""The rows that the newest commit of an Iceberg table added, file by file."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table

from functions.tables import added


class AddedRows:
    """Rows in the order in which they lie in their data files; nobody has deleted any since."""

    def __init__(self, table: Table) -> None:
        """Reads the snapshot's own manifests, and no data."""
        self._table = table
        self._files = tuple(added(table))

    @property
    def files(self) -> tuple[str, ...]:
        """The addresses of the data files."""
        return tuple(file.file_path for file in self._files)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(file.record_count for file in self._files)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """The columns of that name, in this order, as Arrow has them."""
        there = self._projection(columns).as_arrow()
        return pa.schema([there.field(name) for name in columns])

    def batches(self, file: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the data file of that number, these columns alone."""
        projected = self._projection(columns)
        scan = ArrowScan(self._table.metadata, self._table.io, projected, AlwaysTrue())
        return scan.to_record_batches([FileScanTask(self._files[file])])

    def _projection(self, columns: Sequence[str]) -> Schema:
        return self._table.schema().select(*columns)
