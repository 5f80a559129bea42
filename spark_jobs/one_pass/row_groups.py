"""Read a Parquet file by its row groups, of which each part of the file has some."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from spark_jobs.audit.arrow import tier_arrow
from spark_jobs.audit.arrow.tier_arrow import Divided
from spark_jobs.files.arrow import values as arrow_values
from spark_jobs.files.arrow.parquet import ArrowFile, MustRewrite
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.files.source import Bytes
from spark_jobs.one_pass.apart import Apart, Numbers
from spark_jobs.one_pass.examined import Examined, Part, Sink, part_of, together
from spark_jobs.one_pass.tasks import spread

_PART = 128 << 20  # bytes of row groups, uncompressed, that become one data file
_SMALLEST_PART = 32 << 20


def in_driver(file: ArrowFile, contract: Contract, threads: int, files: Sink | None) -> Examined:
    """Read all rows of a Parquet file by so many threads at once: see `Prepared.examined`."""
    work = partial(_part, file, contract, files)
    with ThreadPoolExecutor(threads) as pool:
        return together(list(pool.map(work, _parts(file, at_least=threads))), contract)


def in_tasks(
    file: ArrowFile, contract: Contract, spark: SparkSession, files: Sink | None
) -> Examined:
    """Read all rows of a large Parquet file by Spark's tasks: see `Prepared.examined`."""
    work = partial(_in_task, file.file, file.footer, contract, files)
    return spread(spark, work, _parts(file), contract)


def sizes(file: ArrowFile) -> list[int]:
    """Return the uncompressed size of each row group in bytes, as the footer declares it."""
    return [group.total_byte_size for group in _row_groups(file)]


def _in_task(
    landed: Bytes, footer: bytes, contract: Contract, files: Sink | None, groups: Sequence[int]
) -> Part:
    return _part(ArrowFile(landed, footer), contract, files, groups)


def _part(file: ArrowFile, contract: Contract, files: Sink | None, groups: Sequence[int]) -> Part:
    names = file.schema.names
    starts = [0, *accumulate(group.num_rows for group in _row_groups(file))]

    def pieces() -> Iterator[tuple[Divided, Numbers]]:
        for number in groups:
            table = file.row_group(number, names)
            yield _divided(table, contract), np.arange(table.num_rows) + starts[number]

    return part_of(pieces(), Apart(), contract, files)


def _divided(table: pa.Table, contract: Contract) -> Divided:
    """Return some rows with the findings, before they are written. Raises MustRewrite."""
    divided = tier_arrow.divided(_completed(table, contract), contract)
    extra = set(table.column_names) - {column.name for column in contract.columns}
    undecodable = {name for name in extra if not arrow_values.is_decodable(table[name])}
    if names := divided.found.undecodable | undecodable:
        raise MustRewrite(f"{', '.join(sorted(names))} is not UTF-8")
    return divided


def _completed(table: pa.Table, contract: Contract) -> pa.Table:
    """Return rows with the contract's columns; those that they lack are null."""
    there, wanted = set(table.column_names), schema_of(contract.columns)
    return pa.table(
        {
            each.name: table[each.name] if each.name in there else pa.nulls(len(table), each.type)
            for each in wanted
        }
    )


def _row_groups(file: ArrowFile) -> Iterator[Any]:
    return map(file.metadata.row_group, range(file.metadata.num_row_groups))


def _parts(file: ArrowFile, at_least: int = 1) -> list[list[int]]:
    """Return the row groups of a file in parts; each becomes a data file.

    There are `at_least` so many, unless they would be small.
    """
    lengths = sizes(file)
    largest = min(_PART, max(sum(lengths) // at_least, _SMALLEST_PART))
    parts: list[list[int]] = [[]]
    held = 0
    for number, size in enumerate(lengths):
        if held and held + size > largest:
            parts, held = [*parts, []], 0
        parts[-1].append(number)
        held += size
    return parts
