"""Read a text file by blocks of rows, in the driver or by Spark's tasks."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.contract.reading.other_columns import Origin
from lakegate.limits import Limits
from spark_jobs.audit.arrow.tier_arrow import Divided
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Decoded
from spark_jobs.files.source import Bytes
from spark_jobs.one_pass.apart import Apart, Numbers
from spark_jobs.one_pass.examined import Examined, Part, Sink, part_of, together
from spark_jobs.one_pass.tasks import spread
from spark_jobs.one_pass.text import Text, rows_of

_PART = 64 << 20  # bytes of text that a task holds
_LOOK = 1 << 20  # bytes in which a row ends


def in_driver(text: Text, most: int, files: Sink | None) -> Examined:
    """Read all rows of a text of at most `most` bytes: see `Prepared.examined`."""
    part = _part(text.all_blocks(most), text.contract, files)
    return _required(together([part], text.contract, text.rows), text)


def in_tasks(text: Text, spark: SparkSession, files: Sink | None, part: int = _PART) -> Examined:
    """Read all rows of a large text by Spark's tasks: see `Prepared.examined`."""
    if Origin.ROW in text.contract.provenance.names:
        raise MustRewrite("its rows are numbered, and it is too large for the driver")
    work = partial(_in_task, text.landed, text.contract, text.limits, text.head, files)
    examined = spread(spark, work, _ranges(text, part), text.contract, text.rows)
    return _required(examined, text)


def _in_task(
    landed: Bytes,
    contract: Contract,
    limits: Limits,
    head: bytes,
    files: Sink | None,
    within: tuple[int, int],
) -> Part:
    text = Text(landed, contract, limits, head, gzipped=False, rows=rows_of(head, contract))
    return _part(text.blocks_within(*within), contract, files)


def _ranges(text: Text, size: int) -> list[tuple[int, int]]:
    """Return the parts of a text, from byte to byte, of so many bytes and up to the next row's end.

    Raises MustRewrite where no row ends for long.
    """
    ranges, start, rows = [], 0, text.rows
    while text.landed.size - start > size:
        at = start + size
        place = text.landed.range(at, _LOOK).find(rows.between)
        if place < 0 and at + _LOOK < text.landed.size:
            raise MustRewrite("it has long lines")
        if place < 0:
            break
        ranges.append((start, at + place + 1))
        start = at + place + len(rows.between) - rows.right
    return ranges if start == text.landed.size else [*ranges, (start, text.landed.size)]


def _part(
    blocks: Iterable[tuple[Decoded, Divided]], contract: Contract, files: Sink | None
) -> Part:
    apart = Apart()

    def pieces() -> Iterator[tuple[Divided, Numbers]]:
        for block, divided in blocks:
            count = len(block.good) + len(block.bad)
            numbers = np.delete(np.arange(count), block.ranks) + apart.rows
            apart.add_text(block)
            yield divided, numbers

    return part_of(pieces(), apart, contract, files)


def _required(examined: Examined, text: Text) -> Examined:
    """Return a text that may enter its table, with its changes. Raises MustRewrite."""
    contract, present = text.contract, examined.apart.part.present
    comparison = text.rows.compared(present)
    if not examined.rows.read:
        raise MustRewrite("it has no rows")
    names = present.union(column.name for column in contract.columns)
    if comparison.findings or len(names) > text.limits.most_columns:
        raise MustRewrite("it has keys that only Spark tells apart")
    for column in contract.columns if contract.format == "json" else ():
        if column.required and column.name not in present:
            raise MustRewrite(f"its column {column.name} has no values")
    return replace(examined, changes=comparison.changes)
