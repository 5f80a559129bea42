"""Write rows as data files of a table: the only place where a landed row becomes a stored one.

Nothing is committed here. A file that no commit names is deleted by upkeep.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import Any, BinaryIO, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from lakegate.audit.report import DataFile
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.job.jobspec import JobSpec
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.places import places
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.files.arrow.values import FLOATING, ColumnStatistics, is_plain, statistics
from spark_jobs.write.description import Written, column_sizes, split_offsets
from spark_jobs.write.layout import CODECS, Layout
from spark_jobs.write.origins import with_origins
from spark_jobs.write.partitions import arranged
from spark_jobs.write.provenance import values_of
from spark_jobs.write.quarantine import Quarantine

_MOST_HELD = 64 << 20  # bytes of the rows that become a row group
_ARRANGED = 256 << 20  # bytes of rows that are divided by partitions and sorted at once


@dataclass(frozen=True)
class Rows:
    """Decoded rows of the contract's columns, and what is known of their statistics by column.

    The rows' numbers are in the column `origins.ROW`, if the contract asks for them.
    """

    table: pa.Table
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    def __add__(self, other: "Rows") -> "Rows":
        both = self.columns.keys() & other.columns.keys()
        columns = {name: self.columns[name] + other.columns[name] for name in both}
        return Rows(pa.concat_tables([self.table, other.table]), columns)


class Lake(Protocol):
    """The place of new objects, as `storage.Storage`."""

    def new_object(self, address: str) -> AbstractContextManager[BinaryIO]:
        """Provide a stream to an object, which exists once the block ends without an error."""


@dataclass(frozen=True)
class DataFiles:
    """The data files that a run writes of a contract's rows, in the layout of their table.

    The rows are those of the `spec`'s landed object. Unparseable ones are in files for
    `quarantine`; without it nobody keeps them. Raises MustRewrite where Spark must write the files.
    """

    lake: Lake
    layout: Layout
    contract: Contract
    spec: JobSpec
    quarantine: Quarantine | None = None

    def __post_init__(self) -> None:
        if self.layout.obstacle:
            raise MustRewrite(self.layout.obstacle)

    def keep(self, rows: Unparseable) -> tuple[DataFile, ...]:
        """Write unparseable rows, each as it stands in its file; return the files.

        Raises LakegateError where they cannot be put.
        """
        return (self.quarantine.write_unparseable(rows),) if self.quarantine else ()

    def write(self, rows: Iterable[Rows]) -> list[Written]:
        """Write rows in their order; return the data files, none for none.

        Raises LakegateError where the files cannot be put.
        """
        return self.write_whole(map(self.with_origins, rows))

    def write_whole(self, tables: Iterable[Rows]) -> list[Written]:
        """Write rows that have all columns of the table; return the files as `write` does."""
        if not (self.layout.spec.fields or self.layout.order.keys):
            return list(self._files(_collected(tables, self._held)))
        return [
            file
            for held in _collected(tables, _ARRANGED)
            for partition, rows in arranged(held.table, self.layout, self._columns)
            for file in self._files(_slices(rows, self._held), partition)
        ]

    @property
    def _held(self) -> int:
        return min(_MOST_HELD, self.layout.row_group)

    def _files(
        self, groups: Iterator[Rows], partition: Mapping[int, Any] | None = None
    ) -> Iterator[Written]:
        for first in groups:
            yield self._file(chain([first], groups), partition or {})

    def with_origins(self, rows: Rows) -> Rows:
        """Return rows with all columns of the table."""
        table = with_origins(rows.table, self.contract.provenance, values_of(self.spec))
        return replace(rows, table=table)

    def _file(self, groups: Iterable[Rows], partition: Mapping[int, Any]) -> Written:
        """Write row groups into a file until it is large enough."""
        location = f"{self.layout.folder}{uuid4()}.parquet"
        by_group: list[dict[str, ColumnStatistics]] = []
        made: list[pq.FileMetaData] = []
        with self.lake.new_object(location) as sink:
            with pq.ParquetWriter(
                sink, self._schema, metadata_collector=made, **self._options
            ) as to:
                for rows in groups:
                    table = rows.table.cast(self._schema)
                    to.write_table(table, row_group_size=table.num_rows)
                    by_group.append(self._statistics(rows))
                    if sink.tell() >= self.layout.target:
                        break
            size = sink.tell()
        (metadata,) = made
        columns = {name: reduce(add, (each[name] for each in by_group)) for name in by_group[0]}
        sizes, offsets = column_sizes(metadata), split_offsets(metadata)
        rows = metadata.num_rows
        return Written(location, size, rows, columns, sizes, offsets, partition)

    @cached_property
    def _schema(self) -> pa.Schema:
        return schema_of(self.contract.table_columns, self.layout.ids)

    @cached_property
    def _options(self) -> dict[str, Any]:
        """Return how Arrow writes what each of Iceberg's readers reads alike.

        Without dictionaries of floats, in which Iceberg's filters tell 0.0 from -0.0.
        """
        leaves = (place for place in places(self.contract.table_columns) if place.is_leaf)
        return {
            "compression": CODECS[self.layout.codec],
            "compression_level": self.layout.level,
            "use_dictionary": [p.path for p in leaves if p.type not in FLOATING],
            "store_schema": False,
            "store_decimal_as_integer": True,
            "write_page_checksum": True,
        }

    def _statistics(self, rows: Rows) -> dict[str, ColumnStatistics]:
        return {
            name: rows.columns.get(name) or statistics(each, rows.table[each.top])
            for name, each in self._columns.items()
        }

    @cached_property
    def _columns(self) -> dict[str, Column]:
        every = (*self.contract.table_columns, *self.contract.nested)
        return {each.name: each for each in every if is_plain(each)}


def _collected(rows: Iterable[Rows], least: int) -> Iterator[Rows]:
    """Yield all rows in tables of at least so many bytes, but for the last."""
    held: list[Rows] = []
    size = 0
    for each in rows:
        held.append(each)
        size += each.table.nbytes
        if size >= least:
            yield reduce(add, held)
            held, size = [], 0
    if any(each.table.num_rows for each in held):
        yield reduce(add, held)


def _slices(rows: pa.Table, most: int) -> Iterator[Rows]:
    """Yield rows in tables of about so many bytes."""
    step = -(-rows.num_rows // max(-(-rows.nbytes // most), 1))
    for start in range(0, rows.num_rows, step):
        yield Rows(rows.slice(start, step))
