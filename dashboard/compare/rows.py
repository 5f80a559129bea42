"""Read rows of a table for counting: all of them, or a fair sample if that would take long.

The sample is always the same: a few data files, evenly chosen in the table's order, and the first
rows of a few row groups of each. Beside it, manifests state figures of all rows (Iceberg's table
specification, "Data File Fields").
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField

from access.tables.file_rows import FileRows
from dashboard.compare.figures import Side
from lakegate.errors import LakegateError

_FEWEST_ROWS, _FEWEST_FILES = 500, 8
_MOST_FILES = 32
_MOST_BYTES = 48 << 20
_GROUP_BYTES = 32 << 20  # what a row group has, as long as no footer was read
_AT_ONCE = 4


@dataclass(frozen=True)
class Taken:
    """Rows that were read, one column at a time, and what share of their side they are."""

    side: Side
    read: FileRows | pa.Table

    def column(self, name: str) -> pa.RecordBatchReader:
        """Return one of their columns."""
        if isinstance(self.read, pa.Table):
            return self.read.select([name]).to_reader()
        rows, schema = self.read, self.read.schema([name])
        batches = (b for file in range(self.side.files) for b in rows.batches(file, [name]))
        return pa.RecordBatchReader.from_batches(schema, (b.cast(schema) for b in batches))


def taken(file_rows: FileRows, columns: Sequence[NestedField], cells: int | None) -> Taken:
    """Return rows of these files with the columns: all, or a sample of about so many `cells`.

    Raises LakegateError NO_SAMPLE for a sample of files in another format than Parquet.
    """
    most = file_rows.stored if cells is None else max(_FEWEST_ROWS, cells // max(1, len(columns)))
    files = file_rows.data_files
    if file_rows.stored <= most:
        return Taken(
            Side(file_rows.stored, file_rows.stored, len(files), len(files), whole=True), file_rows
        )
    many = _how_many(files, most)
    sample = partial(_sample, file_rows.table, columns, ceil(most / many), _MOST_BYTES // many)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        chosen = [files[number] for number in evenly(len(files), many)]
        rows = pa.concat_tables(pool.map(sample, chosen))
    return Taken(Side(file_rows.stored, rows.num_rows, len(files), many, whole=False), rows)


def evenly(there: int, many: int) -> list[int]:
    """Return so many evenly spaced indexes."""
    return [(2 * number + 1) * there // (2 * many) for number in range(many)]


def _how_many(files: Sequence[DataFile], most: int) -> int:
    """Return the number of files for that many rows, within the time limit."""
    rows = sum(file.record_count for file in files) / len(files)
    size = sum(file.file_size_in_bytes for file in files) / len(files)
    affordable = _MOST_BYTES // min(max(1, int(size)), _GROUP_BYTES)
    wanted = max(_FEWEST_FILES, ceil(most / max(1, rows)))
    return max(1, min(len(files), wanted, affordable, _MOST_FILES))


def _sample(
    table: Table, columns: Sequence[NestedField], most: int, most_bytes: int, file: DataFile
) -> pa.Table:
    """Return the first rows of a few row groups of a data file."""
    if file.file_format != FileFormat.PARQUET:
        message = f"of {file.file_format} files no sample is taken: read all rows instead"
        raise LakegateError("NO_SAMPLE", message)
    with table.io.new_input(file.file_path).open() as source:
        parquet = pq.ParquetFile(source, pre_buffer=True)
        footer, there = parquet.metadata, parquet.num_row_groups
        largest = max((footer.row_group(n).total_byte_size for n in range(there)), default=1)
        groups = evenly(there, min(there, max(1, most_bytes // max(1, largest))))
        held = pyarrow_to_schema(parquet.schema_arrow, table.name_mapping())
        names = {field.field_id: field.name for field in held.fields}
        wanted = {names[c.field_id]: c.name for c in columns if c.field_id in names}
        each = ceil(most / max(1, len(groups)))
        read = (next(parquet.iter_batches(each, [group], [*wanted]), None) for group in groups)
        tables = [pa.Table.from_batches([batch]).rename_columns(wanted) for batch in read if batch]
    # Columns that the file is too old to have are null, and widened ones get their present type.
    whole = [Schema(*columns).as_arrow().empty_table(), *tables]
    return pa.concat_tables(whole, promote_options="permissive")
