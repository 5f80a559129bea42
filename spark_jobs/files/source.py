"""What every format gives: rows with the contract's columns, and what is wrong with the file."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakegate.contract.columns import Column
from spark_jobs.schema.compare import Finding, Landing

BAD_ROW = "_lakegate_bad_row"


@dataclass(frozen=True)
class Source:
    """A file, opened.

    `findings` say what is wrong with its columns; only without any can `rows` be read: the
    `columns` in their order, and `BAD_ROW`. `promised_rows` is the number of rows that the file
    holds by another count than the reading's own, None where there is none. `changes` say what the
    contract's policy made of columns that are not quite the contract's. `source_rows` is how many
    rows went into the contract's transform. `unread` has the rows that cannot be read: the `row` as
    it stands in the file, and its `cells` that are to blame, each with its `column` and `text`; it
    is None where the format tells no more than `BAD_ROW`.
    """

    rows: DataFrame
    findings: tuple[Finding, ...]
    promised_rows: int | None
    columns: tuple[Column, ...] = ()
    changes: tuple[str, ...] = ()
    source_rows: int = 0
    unread: DataFrame | None = None


class Bytes(Protocol):
    """A file's bytes, beside their address for Spark."""

    @property
    def size(self) -> int:
        """Their number."""

    def head(self, length: int) -> bytes:
        """The first `length` bytes."""

    def tail(self, length: int) -> bytes:
        """The last `length` bytes."""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """All bytes, from the first to the last, once."""


@dataclass(frozen=True)
class LocalFile:
    """The bytes of a file on this machine."""

    path: Path

    @property
    def size(self) -> int:
        """Their number."""
        return self.path.stat().st_size

    def head(self, length: int) -> bytes:
        """The first `length` bytes."""
        with self.open() as file:
            return file.read(length)

    def tail(self, length: int) -> bytes:
        """The last `length` bytes."""
        with self.open() as file:
            file.seek(max(self.size - length, 0))
            return file.read()

    def open(self) -> BinaryIO:
        """All bytes, from the first to the last, once."""
        return self.path.open("rb")


def opened(
    rows: DataFrame, landing: Landing, promised_rows: int, unread: DataFrame | None = None
) -> Source:
    """A file whose columns land: `rows` has them, and `BAD_ROW`."""
    return Source(
        rows, (), promised_rows, landing.columns, landing.changes, source_rows=0, unread=unread
    )


def unread(spark: SparkSession, landing: Landing) -> Source:
    """A file whose columns break the contract: its rows are not looked at."""
    return Source(spark.createDataFrame([], T.StructType([])), landing.findings, None)
