"""Values that every format's reader returns or needs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.audit.diagnosis import WrongColumns
from lakegate.contract.columns import Column
from lakegate.errors import Permanent
from spark_jobs.schema.compare import Comparison
from spark_jobs.schema.diagnosis import Finding

BAD_ROW = "_lakegate_bad_row"
# A row's place in its file, in Spark's order: its partition, and its number in it (33 bits).
PLACE = "_lakegate_place"
FILE = "_lakegate_file"  # the address of a row's file, where files are read together
# Returns the lines in which rows begin, by their numbers in Spark's order; all count from 1, and 0
# is an unknown one.
Lines: TypeAlias = Callable[[Sequence[int]], list[int]]


@dataclass(frozen=True)
class Placed:
    """The rows of a file with their `PLACE`; nothing is read before `read` or `every` is called.

    `read` returns all rows, with the columns of `Source.rows`, and then, if it `names_cells`, the
    unparseable ones: each with its beginning as it stands in the file (`row`), and its broken
    `cells`, the beginning of each one's `text` and its `column`; none if the whole row is broken.
    `every` returns the places of all units, by which rows are numbered as a `unit`: line, row or
    item; where rows have line ends within, `lines` finds their lines. `names` are those of a CSV
    file's columns, in order.
    """

    read: Callable[[], tuple[DataFrame, DataFrame]]
    every: Callable[[], DataFrame]
    unit: str
    names: tuple[str, ...] = ()
    lines: Lines | None = None
    names_cells: bool = True

    @classmethod
    def by_rows(cls, rows: DataFrame) -> "Placed":
        """Return rows of which each is a unit."""
        placed = rows.withColumn(PLACE, F.monotonically_increasing_id())
        read = lambda: (placed, placed)  # noqa: E731
        return cls(read, lambda: placed.select(PLACE), "row", names_cells=False)


@dataclass(frozen=True)
class Source:
    """An opened file.

    `findings` are faults in its columns, and `wrong` says them as a whole, if they are about more
    than a transform; only without any can `rows` be read. They have the
    `columns` in order, and `BAD_ROW`. `declared_rows` is an independent count of the file's rows,
    None where there is none. `changes` are sentences about columns that differ but are allowed.
    `source_rows` is the number of rows that went into the contract's transform. `placed` reads the
    rows with their places; it is None if these are no rows of the landed file.
    """

    rows: DataFrame
    findings: tuple[Finding, ...]
    declared_rows: int | None
    columns: tuple[Column, ...] = ()
    changes: tuple[str, ...] = ()
    source_rows: int = 0
    wrong: WrongColumns | None = None
    placed: Placed | None = None

    def require_declared(self, rows: int) -> None:
        """Raise Permanent CORRUPT_FILE if so many could be read, and others are declared."""
        if self.declared_rows not in (None, rows):
            message = f"the file declares {self.declared_rows:,} rows, but {rows:,} can be read"
            raise Permanent("CORRUPT_FILE", message)


class Bytes(Protocol):
    """Access to a file's bytes."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""

    def range(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start`, fewer where the file ends."""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open a stream of all bytes."""


@dataclass(frozen=True)
class LocalFile:
    """The bytes of a local file."""

    path: Path

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return self.path.stat().st_size

    def range(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start`, fewer where the file ends."""
        with self.open() as file:
            file.seek(start)
            return file.read(length)

    def open(self) -> BinaryIO:
        """Open a stream of all bytes."""
        return self.path.open("rb")


def readable_source(
    rows: DataFrame,
    comparison: Comparison,
    declared_rows: int,
    placed: Placed | None = None,
) -> Source:
    """Return the source of a file whose columns fit; `rows` has them, and `BAD_ROW`.

    Without `placed`, each of the rows is a unit.
    """
    return Source(
        rows,
        (),
        declared_rows,
        comparison.columns,
        comparison.changes,
        placed=placed or Placed.by_rows(rows),
    )


def refused_source(
    spark: SparkSession, comparison: Comparison, causes: tuple[str, ...] = ()
) -> Source:
    """Return the source of a file whose columns break the contract; its rows are not read.

    `causes` are sentences about what would explain it.
    """
    wrong = comparison.wrong and replace(comparison.wrong, causes=causes)
    none = spark.createDataFrame([], T.StructType([]))
    return Source(none, comparison.findings, None, wrong=wrong)
