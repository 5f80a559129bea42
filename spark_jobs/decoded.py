"""Decode a landed text file with Arrow, and write its good rows as Parquet in the same pass."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import BinaryIO, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
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
from spark_jobs.files.arrow_text import Block, Decoded, Rows, schema_of
from spark_jobs.files.source import PLACE, Bytes, Unreadable
from spark_jobs.files.text_lines import LINE, most_unpacked, uncompressed

_MOST = 256 << 20  # bytes of text that the driver decodes itself
_BLOCK = 4 << 20
_ROW_GROUP = 64 << 20  # bytes decoded
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


class Lake(Protocol):
    """The place of new objects, as `storage.Storage`."""

    def write(self, address: str, body: bytes) -> None:
        """Put an object at an address."""


@dataclass(frozen=True)
class Written:
    """A file that a run has written, and not put anywhere yet."""

    lake: Lake
    body: memoryview

    def copy(self, address: str, length: int, end: bytes) -> int:
        """Put its first `length` bytes, and then `end`, at an address; return the copy's size."""
        self.lake.write(address, b"".join((self.body[:length], end)))
        return length + len(end)


@dataclass
class BadRows:
    """The unparseable rows of a text file, each as it stands there.

    `first` are a few of them by their places in the file. Of the columns in `present` some row of
    the file, good or bad, has a value.
    """

    read: Rows
    texts: list[pa.Array] = field(default_factory=list)
    first: dict[int, str] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    _units: int = 0

    def add(self, block: Decoded) -> None:
        """Add those of the next block."""
        self.present |= block.present
        for place, text in zip(block.places[:MOST_NAMED], block.bad[:MOST_NAMED], strict=True):
            if len(self.first) < MOST_NAMED:
                self.first[self._units + int(place)] = text.as_py()
        if len(block.bad):
            self.texts.append(block.bad)
        self._units += block.units

    @property
    def count(self) -> int:
        """Return the number of bad rows."""
        return sum(map(len, self.texts))

    def unreadable(self, spark: SparkSession) -> Unreadable:
        """Return the first bad rows, whose cells Spark's strict reader names."""
        rows = pa.table({LINE: list(self.first.values()), PLACE: list(self.first)})
        lines = spark.createDataFrame(rows).coalesce(1)  # all are taken by one job

        def broken() -> DataFrame:
            return self.read.broken(lines)

        return Unreadable(broken, lambda: lines, self.read.unit, self.read.names)


@dataclass(frozen=True)
class DecodedText:
    """A text file's good rows as a Parquet file, the findings over them, and the bad rows."""

    parquet: memoryview
    found: Pass
    bad: BadRows


def rows_of(head: bytes, contract: Contract) -> Rows:
    """Return how to decode a file whose text begins with `head`. Raises MustRewrite."""
    for column in contract.columns:
        if not is_plain(column) or column.type == "binary" or column.written or column.zone:
            raise MustRewrite(f"Spark alone reads the texts of its column {column.name}")
    try:
        return (json_rows if contract.format == "json" else csv_rows)(head, contract)
    except Permanent as error:  # Spark's reader says what is wrong
        raise MustRewrite(error.code) from error


def decode(landed: Bytes, contract: Contract, limits: Limits) -> DecodedText:
    """Return the rows of a text file, decoded and measured.

    Raises MustRewrite if Spark must read the file, LakegateError if it cannot be requested.
    """
    if not landed.size:
        raise MustRewrite("it is empty")
    head = landed.head(sniff.HEAD)
    gzipped = sniff.is_gzip(head)
    most = _most(landed.size, contract, limits, gzipped=gzipped)
    try:
        text_head = sniff.text_head(head, gzipped=gzipped)
        sniff.check_text(contract.format, text_head, contract.options.get("encoding", "UTF-8"))
        rows = rows_of(text_head, contract)
        with uncompressed(landed, gzipped=gzipped) as text:
            return _written(blocks(text, rows, most, limits.longest_line), rows, contract)
    except Permanent as error:  # Spark's reader says what is wrong
        if error.code == "CORRUPT_FILE" or error.code.startswith("NOT_"):
            raise MustRewrite(f"it is no text that Arrow reads ({error.code})") from error
        raise


def _most(size: int, contract: Contract, limits: Limits, *, gzipped: bool) -> int:
    """Return how many bytes of text may be decoded here: no limit of a text is larger."""
    most = min(_MOST, limits.largest_array, limits.largest_unpacked)
    if len(contract.columns) > limits.most_columns or size > most:
        raise MustRewrite("it is too large for the driver")
    if gzipped:
        ratio = int(contract.options["maxCompressionRatio"])
        return min(most, most_unpacked(size, ratio, limits))
    return most


def blocks(text: BinaryIO, rows: Rows, most: int, longest_line: int) -> Iterator[Block]:
    """Yield a text in blocks that end where a row ends. Raises MustRewrite for a long one."""
    rest, read, is_first = b"", 0, True
    while chunk := text.read(_BLOCK):
        read += len(chunk)
        if read > most:
            raise MustRewrite("it is too large for the driver")
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


def _written(found: Iterable[Block], rows: Rows, contract: Contract) -> DecodedText:
    sink, passes, bad = pa.BufferOutputStream(), [], BadRows(rows)
    with ThreadPoolExecutor(os.cpu_count()) as threads, _writer(sink, contract) as writer:
        group: list[pa.Table] = []
        for block, passed in _ahead(threads, partial(_measured, rows, contract), found):
            passes.append(passed)
            bad.add(block)
            group.append(block.good)
            if sum(each.nbytes for each in group) >= _ROW_GROUP:
                writer.write_table(pa.concat_tables(group))
                group = []
        if any(table.num_rows for table in group):
            writer.write_table(pa.concat_tables(group))
    every = reduce(add, passes)
    if not every.rows and not bad.count:
        raise MustRewrite("it has no rows")
    return DecodedText(memoryview(sink.getvalue()), every, bad)


def _writer(sink: pa.NativeFile, contract: Contract) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink,
        schema_of(contract),
        compression="zstd",
        write_statistics=False,
        store_schema=False,
        write_page_checksum=True,
    )


def _measured(rows: Rows, contract: Contract, block: Block) -> tuple[Decoded, Pass]:
    decoded = rows.decode(block)
    return decoded, tier_arrow.measure(decoded.good, contract)


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
