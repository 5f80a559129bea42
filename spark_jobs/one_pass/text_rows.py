"""Read a text file by blocks of rows, in the driver or by Spark's tasks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.contract.reading.provenance import Origin
from lakegate.limits import Limits
from spark_jobs.audit.tier_arrow import Pass
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.arrow_text import Decoded
from spark_jobs.one_pass.examined import Examined, Part, Sink, measured_rows, together, write
from spark_jobs.one_pass.tasks import TaskFiles, spread
from spark_jobs.one_pass.text import BadPart, Text
from spark_jobs.storage import Storage
from spark_jobs.write.files import Rows

_PART = 64 << 20  # bytes of text that a task holds
_LOOK = 1 << 20  # bytes in which a row ends
_MOST_BAD = 16 << 20  # bytes of bad rows that a task returns


@dataclass(frozen=True)
class TextInDriver:
    """The rows of a text file of which at most `most` bytes come out."""

    text: Text
    most: int

    def examined(self, files: Sink | None = None) -> Examined:
        """Read all rows: see `examined.Prepared`."""
        text = self.text
        part = _part(text.all_blocks(self.most), text.contract, files)
        return _required(together([part], text.contract, text.rows), text)


@dataclass(frozen=True)
class TextInTasks:
    """The rows of a large text file, read by Spark's tasks."""

    text: Text
    spark: SparkSession
    storage: Storage
    part: int = _PART

    def examined(self, files: Sink | None = None) -> Examined:
        """Read all rows: see `examined.Prepared`."""
        text = self.text
        if Origin.ROW in text.contract.provenance.names:
            raise MustRewrite("its rows are numbered, and it is too large for the driver")
        own = TaskFiles.like(files, self.storage.spec, text.contract)
        work = partial(_in_task, own, text.head, text.limits)
        ranges = _ranges(text, self.part)
        return _required(spread(self.spark, work, ranges, text.contract, text.rows), text)


def _in_task(own: TaskFiles, head: bytes, limits: Limits, within: tuple[int, int]) -> Part:
    storage, files = own.open()
    text = Text(storage, own.contract, limits, head, gzipped=False)
    part = _part(text.blocks_within(*within), own.contract, files)
    if part.bad and sum(each.nbytes for each in part.bad.texts) > _MOST_BAD:
        raise MustRewrite("it has very many rows that cannot be read")
    return part


def _ranges(text: Text, size: int) -> list[tuple[int, int]]:
    """Return the parts of a text, from byte to byte, of so many bytes and up to the next row's end.

    Raises MustRewrite where no row ends for long.
    """
    found, start, rows = [], 0, text.rows
    while text.landed.size - start > size:
        at = start + size
        place = text.landed.range(at, _LOOK).find(rows.between)
        if place < 0 and at + _LOOK < text.landed.size:
            raise MustRewrite("it has long lines")
        if place < 0:
            break
        found.append((start, at + place + rows.left))
        start = at + place + len(rows.between) - rows.right
    return found if start == text.landed.size else [*found, (start, text.landed.size)]


def _part(blocks: Iterable[tuple[Decoded, Pass]], contract: Contract, files: Sink | None) -> Part:
    passes: list[Pass] = []
    bad = BadPart()

    def good() -> Iterator[Rows]:
        before = 0
        for block, found in blocks:
            passes.append(found)
            bad.add(block)
            count = len(block.good) + len(block.bad)
            numbers = np.delete(np.arange(count), block.ranks) + before + 1
            before += count
            yield measured_rows(block.good, found, numbers, contract)

    written = write(files, good())
    return Part(reduce(add, passes), written, bad)


def _required(found: Examined, text: Text) -> Examined:
    """Return a text that may enter its table. Raises MustRewrite."""
    contract = text.contract
    if not found.rows.read:
        raise MustRewrite("it has no rows")
    if found.rows.bad and any(check.quarantine for check in contract.checks):
        raise MustRewrite("its bad rows may be quarantined for other reasons, too")
    for column in contract.columns if contract.format == "json" else ():
        if column.required and column.name not in (found.bad.part.present if found.bad else ()):
            raise MustRewrite(f"its column {column.name} has no values")
    return found
