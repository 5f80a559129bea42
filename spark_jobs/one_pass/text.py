"""Decode a landed text file with Arrow, in blocks of rows that are measured at once."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import BinaryIO, TypeVar

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.audit.arrow import tier_arrow
from spark_jobs.audit.arrow.tier_arrow import Divided
from spark_jobs.files.arrow.csv import csv_rows
from spark_jobs.files.arrow.json import json_rows
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Block, Decoded, TextRows
from spark_jobs.files.arrow.values import is_plain
from spark_jobs.files.source import Bytes
from spark_jobs.files.text import sniff
from spark_jobs.files.text.text_lines import most_unpacked, uncompressed

_BLOCK = 4 << 20
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def rows_of(head: bytes, contract: Contract) -> TextRows:
    """Return how to decode a file whose text begins with `head`. Raises MustRewrite."""
    for column in contract.columns:
        if not is_plain(column) or column.type == "binary" or column.zone:
            raise MustRewrite(f"Spark alone reads the texts of its column {column.name}")
    try:
        return (json_rows if contract.format == "json" else csv_rows)(head, contract)
    except Permanent as error:  # Spark's reader says what is wrong
        raise MustRewrite(error.code) from error


@dataclass(frozen=True)
class Text:
    """A landed text file that Arrow decodes; `head` is the beginning of its text.

    The `contract` has the columns to write.
    """

    landed: Bytes
    contract: Contract
    limits: Limits
    head: bytes
    gzipped: bool
    rows: TextRows

    @classmethod
    def open(cls, landed: Bytes, contract: Contract, limits: Limits) -> "Text":
        """Return the file, of which only the beginning was read.

        Raises MustRewrite if Spark must read the file, LakegateError if it cannot be requested.
        """
        if not landed.size:
            raise MustRewrite("it is empty")
        with _left_to_spark():
            head = landed.range(0, sniff.HEAD)
            gzipped = sniff.is_gzip(head)
            text_head = sniff.text_head(head, gzipped=gzipped)
            sniff.check_text(contract.format, text_head, contract.options.get("encoding", "UTF-8"))
            rows = rows_of(text_head, contract)
            own = replace(contract, columns=rows.compared(()).columns)
            text = cls(landed, own, limits, text_head, gzipped, rows)
            width = max(len(rows.names), len(own.columns))
            if width > limits.most_columns or landed.size > text.most:
                raise MustRewrite("it is too large")
            return text

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

    def all_blocks(self, most: int) -> Iterator[tuple[Decoded, Divided]]:
        """Yield the rows of each block in order, and how its good ones are divided.

        Raises as `open`, and MustRewrite for more than `most` bytes of text.
        """
        with _left_to_spark(), uncompressed(self.landed, gzipped=self.gzipped) as text:
            longest = self.limits.longest_line
            yield from self._decoded(blocks(text, self.rows, min(most, self.most), longest))

    def blocks_within(self, start: int, end: int) -> Iterator[tuple[Decoded, Divided]]:
        """Yield the same of a part that begins and ends between rows."""
        with BytesIO(self.landed.range(start, end - start)) as text:
            text_blocks = blocks(text, self.rows, end - start, self.limits.longest_line)
            is_first, is_last = not start, end == self.landed.size
            yield from self._decoded(
                replace(
                    each,
                    is_first=each.is_first and is_first,
                    is_last=each.is_last and is_last,
                )
                for each in text_blocks
            )

    def _decoded(self, text_blocks: Iterable[Block]) -> Iterator[tuple[Decoded, Divided]]:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from _ahead(threads, self._measured, text_blocks)

    def _measured(self, block: Block) -> tuple[Decoded, Divided]:
        decoded = self.rows.decode(block)
        return decoded, tier_arrow.divided(decoded.good, self.contract)


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
        ready, rest = rest[: at + 1], rest[at + len(rows.between) - rows.right :]
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
