"""Decode a landed text file with Arrow, in blocks of rows that are measured at once."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.audit import tier_arrow
from spark_jobs.audit.arrow_values import is_plain
from spark_jobs.audit.bad_cells import MOST_NAMED
from spark_jobs.audit.tier_arrow import Pass
from spark_jobs.files import sniff
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.arrow_csv import csv_rows
from spark_jobs.files.arrow_json import json_rows
from spark_jobs.files.arrow_text import Block, Decoded, TextRows
from spark_jobs.files.source import PLACE, Bytes, Unreadable
from spark_jobs.files.text_lines import LINE, most_unpacked, uncompressed

_BLOCK = 4 << 20
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


@dataclass
class BadPart:
    """The unparseable rows of a part of a text file, each as it stands there.

    `first` are a few of them by their places in the part, which has so many `units`, lines or
    items. Of the columns in `present` some row, good or bad, has a value.
    """

    texts: list[pa.Array] = field(default_factory=list)
    first: dict[int, str] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    units: int = 0

    def add(self, block: Decoded) -> None:
        """Add those of the next block."""
        left = MOST_NAMED - len(self.first)
        pairs = zip(block.places[:left], block.bad[:left], strict=True)
        first = {int(place): text.as_py() for place, text in pairs}
        texts = [block.bad] if len(block.bad) else []
        self.texts += texts
        self.first |= {self.units + at: text for at, text in first.items()}
        self.present |= block.present
        self.units += block.units

    def __add__(self, after: "BadPart") -> "BadPart":
        moved = {self.units + place: text for place, text in after.first.items()}
        return BadPart(
            self.texts + after.texts,
            {**self.first, **moved},
            self.present | after.present,
            self.units + after.units,
        )

    @property
    def count(self) -> int:
        """Return the number of bad rows."""
        return sum(map(len, self.texts))


@dataclass(frozen=True)
class BadRows:
    """The unparseable rows of a text file, and how Spark's strict reader names their cells."""

    read: TextRows
    part: BadPart

    @property
    def count(self) -> int:
        """Return the number of bad rows."""
        return self.part.count

    @property
    def texts(self) -> list[pa.Array]:
        """Return each bad row as it stands in the file."""
        return self.part.texts

    def unreadable(self, spark: SparkSession) -> Unreadable:
        """Return the first bad rows, whose cells Spark's strict reader names."""
        first = dict(islice(self.part.first.items(), MOST_NAMED))
        rows = pa.table({LINE: list(first.values()), PLACE: list(first)})
        lines = spark.createDataFrame(rows).coalesce(1)  # all are taken by one job

        def broken() -> DataFrame:
            return self.read.broken(lines)

        return Unreadable(broken, lambda: lines, self.read.unit, self.read.names)


def rows_of(head: bytes, contract: Contract) -> TextRows:
    """Return how to decode a file whose text begins with `head`. Raises MustRewrite."""
    for column in contract.columns:
        if not is_plain(column) or column.type == "binary" or column.written or column.zone:
            raise MustRewrite(f"Spark alone reads the texts of its column {column.name}")
    try:
        return (json_rows if contract.format == "json" else csv_rows)(head, contract)
    except Permanent as error:  # Spark's reader says what is wrong
        raise MustRewrite(error.code) from error


@dataclass(frozen=True)
class Text:
    """A landed text file that Arrow decodes; `head` is the beginning of its text."""

    landed: Bytes
    contract: Contract
    limits: Limits
    head: bytes
    gzipped: bool

    @classmethod
    def open(cls, landed: Bytes, contract: Contract, limits: Limits) -> "Text":
        """Return the file, of which only the beginning was read.

        Raises MustRewrite if Spark must read the file, LakegateError if it cannot be requested.
        """
        if not landed.size:
            raise MustRewrite("it is empty")
        with _left_to_spark():
            head = landed.head(sniff.HEAD)
            gzipped = sniff.is_gzip(head)
            text_head = sniff.text_head(head, gzipped=gzipped)
            sniff.check_text(contract.format, text_head, contract.options.get("encoding", "UTF-8"))
            text = cls(landed, contract, limits, text_head, gzipped)
            if len(contract.columns) > limits.most_columns or landed.size > text.most:
                raise MustRewrite("it is too large")
            return text

    @cached_property
    def rows(self) -> TextRows:
        """Return how to decode its rows. Raises MustRewrite."""
        return rows_of(self.head, self.contract)

    @property
    def most(self) -> int:
        """Return to how many bytes it may be uncompressed: Spark's reader refuses larger ones."""
        most = self.limits.largest_unpacked
        if self.rows.unit == "item":
            most = min(most, self.limits.largest_array)
        if not self.gzipped:
            return most
        ratio = int(self.contract.options["maxCompressionRatio"])
        return min(most, most_unpacked(self.landed.size, ratio, self.limits))

    def all_blocks(self, most: int) -> Iterator[tuple[Decoded, Pass]]:
        """Yield the rows of each block in order, with the findings over its good ones.

        Raises as `open`, and MustRewrite for more than `most` bytes of text.
        """
        with _left_to_spark(), uncompressed(self.landed, gzipped=self.gzipped) as text:
            longest = self.limits.longest_line
            yield from self._decoded(blocks(text, self.rows, min(most, self.most), longest))

    def blocks_within(self, start: int, end: int) -> Iterator[tuple[Decoded, Pass]]:
        """Yield the same of a part that begins and ends between rows."""
        with BytesIO(self.landed.range(start, end - start)) as text:
            found = blocks(text, self.rows, end - start, self.limits.longest_line)
            is_first, is_last = not start, end == self.landed.size
            yield from self._decoded(
                replace(
                    each,
                    is_first=each.is_first and is_first,
                    is_last=each.is_last and is_last,
                )
                for each in found
            )

    def _decoded(self, found: Iterable[Block]) -> Iterator[tuple[Decoded, Pass]]:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from _ahead(threads, self._measured, found)

    def _measured(self, block: Block) -> tuple[Decoded, Pass]:
        decoded = self.rows.decode(block)
        return decoded, tier_arrow.measure(decoded.good, self.contract)


@contextmanager
def _left_to_spark() -> Iterator[None]:
    """Raise MustRewrite for a text that Arrow does not read: Spark's reader says what is wrong."""
    try:
        yield
    except Permanent as error:
        if error.code == "CORRUPT_FILE" or error.code.startswith("NOT_"):
            raise MustRewrite(f"it is no text that Arrow reads ({error.code})") from error
        raise


def blocks(text: BinaryIO, rows: TextRows, most: int, longest_line: int) -> Iterator[Block]:
    """Yield a text in blocks that end where a row ends. Raises MustRewrite for a long one."""
    rest, read, is_first = b"", 0, True
    while chunk := text.read(_BLOCK):
        read += len(chunk)
        if read > most:
            raise MustRewrite("it is too large")
        rest += chunk
        at = rest.rfind(rows.between)
        if at < 0:
            _require_short(rest, longest_line)
            continue
        ready, rest = rest[: at + rows.left], rest[at + len(rows.between) - rows.right :]
        _require_short(ready, longest_line)
        yield Block(ready, is_first, is_last=False)
        is_first = False
    _require_short(rest, longest_line)
    yield Block(rest, is_first, is_last=True)


def _require_short(body: bytes, longest: int) -> None:
    """Raise MustRewrite if a line may be longer than `longest`.

    A longer line has no line end in one of the steps, each half as long.
    """
    step = max(longest // 2, 1)
    starts = range(0, len(body) - step, step)
    if any(body.find(b"\n", start, start + step) < 0 for start in starts):
        raise MustRewrite("it has long lines")


def _ahead(
    threads: ThreadPoolExecutor, work: Callable[[_Item], _Done], items: Iterable[_Item]
) -> Iterator[_Done]:
    """Yield the results of work in order, of which a few are done ahead."""
    waiting: deque[Future[_Done]] = deque()
    for item in items:
        waiting.append(threads.submit(work, item))
        if len(waiting) > 2 * (os.cpu_count() or 1):
            yield waiting.popleft().result()
    for future in waiting:
        yield future.result()
