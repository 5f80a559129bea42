"""Query rows on a branch with duckdb for those that break a check."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from access.tables.check_sql import COUNTED, FILE, POSITION, addresses, quoted
from access.tables.streaming import reading, watched
from lakegate.contract.checks import Check
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError

HIDDEN = "(hidden)"


class Rows(Protocol):
    """Rows in data files, such as `FileRows`."""

    @property
    def files(self) -> tuple[str, ...]: ...

    @property
    def count(self) -> int: ...

    def schema(self, columns: Sequence[str]) -> pa.Schema: ...

    def batches(self, file: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class Broken:
    """The number of rows that a check counts, and the first of those that break it.

    A row has its data file's address (`_file`), its number in that file from 0 (`_pos`), and its
    values as text, the check's columns first.
    """

    count: int
    rows: tuple[Mapping[str, Any], ...]


class Evidence:
    """Rows, and a duckdb connection to query them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: Rows) -> None:
        """Take over `connection`, which must serve nothing else."""
        self._connection = connection
        self._rows = rows
        self._failures: list[Exception] = []
        self._run("SET TimeZone = 'UTC'")

    @property
    def files(self) -> tuple[str, ...]:
        """Return the addresses of the data files."""
        return self._rows.files

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self._rows.count

    def broken(
        self,
        check: Check,
        contract: Contract,
        limit: int,
        hides: Callable[[str], bool],
        first: Collection[tuple[str, int]] = (),
    ) -> Broken:
        """Return the rows that break a check of the contract, at most `limit` of them.

        Of the rows of a key that is there several times, all break it, and all but the first count.
        Those at the addresses in `first` come first.
        The search reads the check's columns only. Other columns are read only from files with one
        of those `limit` rows. Columns that `hides` selects have no values. Raises LakegateError
        UNREADABLE_ROWS if the rows cannot be read.
        """
        types = {column.name: column.type for column in contract.columns}
        every_file = range(len(self.files))
        columns = tuple(dict.fromkeys((*check.columns, *types)))
        try:
            with reading(self._failures):
                self._enter(check.columns, every_file)
                self._run(f"CREATE OR REPLACE TEMP TABLE broken AS {addresses(check, types)}")
                ((count,),) = self._run(f"SELECT count_if({COUNTED}) FROM broken")
                return Broken(count, tuple(self._first(limit, columns, hides, first)))
        except duckdb.Error as error:
            message = f"cannot read the rows on the branch: {error}"
            raise LakegateError("UNREADABLE_ROWS", message) from error

    def _first(
        self,
        limit: int,
        columns: Sequence[str],
        hides: Callable[[str], bool],
        first: Collection[tuple[str, int]],
    ) -> Iterator[dict[str, Any]]:
        numbers = {file: number for number, file in enumerate(self.files)}
        at = ", ".join(f"({numbers[f]}, {place})" for f, place in first if f in numbers)
        known = f"({FILE}, {POSITION}) NOT IN ({at}), " if at else ""
        order = f"ORDER BY {known}{FILE}, {POSITION}"
        self._run(
            f"CREATE OR REPLACE TEMP TABLE first AS SELECT {FILE}, {POSITION} FROM broken "
            f"{order} LIMIT {limit}"
        )
        files = [file for (file,) in self._run(f"SELECT DISTINCT {FILE} FROM first ORDER BY 1")]
        self._enter(columns, files)
        values = ", ".join(as_text(name, hidden=hides(name)) for name in columns)
        selected = f"SELECT {FILE}, {POSITION}, {values} FROM rows"
        for file, position, *texts in self._run(
            f"{selected} JOIN first USING ({FILE}, {POSITION}) {order}"
        ):
            address = {FILE: self.files[file], POSITION: position}
            yield {**address, **dict(zip(columns, texts, strict=True))}

    def _enter(self, columns: Sequence[str], files: Sequence[int]) -> None:
        self._connection.register("rows", Stream(self._rows, columns, files, self._failures))

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


@dataclass(frozen=True)
class Stream:
    """Columns of some files with each row's address, as an Arrow stream.

    `FILE` is the file's number. What fails while it is read is among the `failures`.
    """

    rows: Rows
    columns: Sequence[str]
    files: Sequence[int]
    failures: list[Exception] = field(default_factory=list)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = watched(self._batches(), self.failures)
        made = pa.RecordBatchReader.from_batches(self._schema(), batches)
        return made.__arrow_c_stream__(requested_schema)

    def _schema(self) -> pa.Schema:
        address = [pa.field(FILE, pa.int32()), pa.field(POSITION, pa.int64())]
        return pa.schema([*address, *self.rows.schema(self.columns)])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = self._schema()
        for file in self.files:
            position = 0
            for batch in self.rows.batches(file, self.columns):
                arrays = zip(self._arrays(batch, file, position), schema, strict=True)
                yield pa.record_batch([a.cast(field.type) for a, field in arrays], schema)
                position += batch.num_rows

    def _arrays(self, batch: pa.RecordBatch, file: int, position: int) -> list[pa.Array]:
        many = batch.num_rows
        address = [pa.repeat(file, many), pa.arange(position, position + many)]
        return [*address, *(batch.column(name) for name in self.columns)]


def as_text(name: str, *, hidden: bool) -> str:
    """Return the SQL of a column's value as text, or of a word in place of what is `hidden`."""
    return f"'{HIDDEN}'" if hidden else f"CAST({quoted(name)} AS VARCHAR)"
