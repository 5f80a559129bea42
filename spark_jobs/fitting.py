"""Find the landed files that fit their table as they are, and enter copies of them.

A Parquet file's own pages are copied. The rows of a text are decoded by Arrow, and become pages.

All checks that Arrow can answer are measured in the pass that decodes every value, before anything
is written. A file that this module declines is read and appended by Spark, which also says what is
wrong with it: so nothing is ever refused here.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Protocol
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.limits import Limits
from spark_jobs.append import Opened, Target
from spark_jobs.audit import tier_arrow
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.audit.tier_arrow import Pass
from spark_jobs.decoded import BadRows, Lake, Written, decode
from spark_jobs.files.arrow import ArrowFile, MustRewrite
from spark_jobs.files.footer import file_end, with_field_ids
from spark_jobs.files.limits import FOOTER_END, check_columns, check_parquet, parquet_footer
from spark_jobs.files.places import fields, leaves
from spark_jobs.files.registrable import TEXTS, why_never, why_rewritten
from spark_jobs.files.source import Bytes
from spark_jobs.register import Layout, data_file, layout, new_location, register
from spark_jobs.spark.jvm import JavaError
from spark_jobs.storage import Storage

_COPIES = 8  # at once
_MOST_HERE = 512 << 20  # bytes that the driver decodes itself


class Pages(Protocol):
    """A Parquet file whose pages can be put elsewhere: a landed object, or one of its rows."""

    def copy(self, address: str, length: int, end: bytes) -> int:
        """Put its first `length` bytes, and then `end`, at an address; return the copy's size."""


class LandedBytes(Bytes, Pages, Lake, Protocol):
    """A landed object's bytes, and the place of its data files, as `storage.Storage`."""


@dataclass(frozen=True)
class Fitting:
    """A Parquet file that fits its table as it is, and the findings over all its rows.

    It is the landed one, or was written of a text. Its `pages` end where its own footer begins, at
    `pages_end`; it gets another `footer`, which describes the same pages. `bad` are the rows of a
    text that are not in it, as they cannot be read.
    """

    pages: Pages
    footer: bytes
    metadata: pq.FileMetaData
    pages_end: int
    found: Pass
    measured: Mapping[str, Measured]
    bad: BadRows | None = None

    @property
    def way(self) -> str:
        """Return how the file comes into the table, for the report."""
        return "decoded by Arrow" if isinstance(self.pages, Written) else "registered"

    @property
    def rows(self) -> RowCounts:
        """Return the file's row counts: those that cannot be read are quarantined, and no other."""
        bad = self.bad.count if self.bad else 0
        return RowCounts(self.found.rows + bad, bad, quarantined=bad)


def examine(
    landed: LandedBytes,
    contract: Contract,
    limits: Limits,
    spark: SparkSession | None = None,
    most_here: int = _MOST_HERE,
) -> Fitting:
    """Return the file with all findings of one pass over its values.

    The row groups of an object with more than `most_here` bytes, unpacked, are spread over the
    tasks of `spark`. Raises MustRewrite if Spark must append its rows, Damaged if these must not be
    published, LakegateError if it cannot be requested.
    """
    if contract.format in TEXTS:
        return _examined_text(landed, contract, limits)
    footer = _footer(landed, contract, limits)
    file = _opened(landed, footer, contract, limits)
    every = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    groups = [number for number, group in enumerate(every) if group.num_rows]
    size = sum(group.total_byte_size for group in every)
    if spark and isinstance(landed, Storage) and size > most_here:
        passes = _passes_in_tasks(spark, landed.spec, file.footer, contract, groups)
    else:
        passes = _passes(file, contract, groups)
    return _fitting(landed, file, landed.size - len(footer) - FOOTER_END, passes, contract)


def _fitting(
    pages: Pages, file: ArrowFile, pages_end: int, passes: Sequence[Pass], contract: Contract
) -> Fitting:
    found = reduce(add, passes)
    measured = tier_arrow.measures(found, contract)
    _require_plain(found, measured, contract)
    return Fitting(pages, file.footer, file.metadata, pages_end, found, measured)


def _examined_text(landed: LandedBytes, contract: Contract, limits: Limits) -> Fitting:
    """Return the good rows of a text file as a Parquet file, and the others apart."""
    if reason := why_never(contract):
        raise MustRewrite(reason)
    text = decode(landed, contract, limits)
    if text.bad.count and any(check.quarantine for check in contract.checks):
        raise MustRewrite("its bad rows may be quarantined for other reasons, too")
    _require_present(text.bad, contract)
    body, end = text.parquet, len(text.parquet) - FOOTER_END
    length = int.from_bytes(body[end : end + 4], "little")
    file = _opened(landed, bytes(body[end - length : end]), contract, limits)
    fitting = _fitting(Written(landed, body), file, end - length, [text.found], contract)
    return replace(fitting, bad=text.bad)


def _require_present(bad: BadRows, contract: Contract) -> None:
    """Raise MustRewrite if a required key may be in none of a JSON file's objects."""
    for column in contract.columns if contract.format == "json" else ():
        if column.required and column.name not in bad.present:
            raise MustRewrite(f"its column {column.name} has no values")


def _passes(file: ArrowFile, contract: Contract, groups: Sequence[int]) -> list[Pass]:
    work = partial(_pass, file, contract)
    if len(groups) == 1:
        return [work(groups[0])]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(work, groups))


def _passes_in_tasks(
    spark: SparkSession, spec: JobSpec, footer: bytes, contract: Contract, groups: Sequence[int]
) -> list[Pass]:
    work = partial(_pass_or_reason, spec, footer, contract)
    try:
        found = spark.sparkContext.parallelize(groups, len(groups)).map(work).collect()
    except JavaError as error:
        raise MustRewrite("Spark's tasks cannot decode it") from error
    if reasons := [each for each in found if isinstance(each, MustRewrite)]:
        raise reasons[0]
    return [each for each in found if isinstance(each, Pass)]


def _pass_or_reason(
    spec: JobSpec, footer: bytes, contract: Contract, number: int
) -> Pass | MustRewrite:
    """Return the findings over a row group, or why Spark must append it: a task cannot raise it."""
    try:
        return _pass(ArrowFile(Storage.of_objects(spec), footer), contract, number)
    except MustRewrite as why:
        return why


def _pass(file: ArrowFile, contract: Contract, number: int) -> Pass:
    return tier_arrow.measure(file.row_group(number, leaves(contract)), contract)


def _footer(landed: LandedBytes, contract: Contract, limits: Limits) -> bytes:
    """Return the footer of a file that can be registered by its description."""
    if reason := why_never(contract):
        raise MustRewrite(reason)
    try:
        footer = parquet_footer(landed)
        check_parquet(footer, landed.size, limits)
    except Permanent as error:  # Spark's reader says what is wrong
        raise MustRewrite(error.message) from error
    if reason := why_rewritten(footer, contract):
        raise MustRewrite(reason)
    return footer


def _opened(landed: LandedBytes, footer: bytes, contract: Contract, limits: Limits) -> ArrowFile:
    ids = {place.path: id_ for id_, place in enumerate(fields(contract), 1)}
    try:
        check_columns(len(leaves(contract)), limits)
        return ArrowFile(landed, with_field_ids(footer, ids))
    except (Permanent, ValueError) as error:
        raise MustRewrite(str(error)) from error


def _require_plain(found: Pass, measured: Mapping[str, Measured], contract: Contract) -> None:
    """Raise MustRewrite if a row may have to stay out of the table, or a text is no text."""
    if found.undecodable:
        raise MustRewrite(f"{', '.join(sorted(found.undecodable))} is not UTF-8")
    for check in contract.checks:
        if check.quarantine and (check.id not in measured or measured[check.id].value):
            raise MustRewrite(f"{check.id} may quarantine rows")


def enter(
    spark: SparkSession,
    opened: Opened,
    files: Sequence[Fitting],
    contract: Contract,
    ingestion: str,
    branch: Target,
) -> tuple[list[Any], str]:
    """Append copies of the files in one commit that names the ingestion.

    Returns their data files (`org.apache.iceberg.DataFile`) in order, and the commit's hash. Raises
    MustRewrite if the table cannot take files as they are, else as `register.register`.
    """
    where = layout(spark, opened.table, contract)
    if where.obstacle:
        raise MustRewrite(where.obstacle)
    with ThreadPoolExecutor(_COPIES) as threads:
        located = [
            (each, new_location(opened.table, f"{uuid4()}.parquet"))
            for each in files
            if each.found.rows
        ]
        sizes = threads.map(lambda both: _copied(both[0], both[1], where), located)
        made = [
            data_file(
                spark,
                where,
                location,
                size,
                each.found.rows,
                each.found.columns,
                each.metadata,
            )
            for (each, location), size in zip(located, sizes, strict=True)
        ]
    added, audited_hash = register(opened, made, ingestion, branch)
    by_location = {str(file.location()): file for file in added}
    if by_location.keys() != {location for _, location in located}:
        raise Permanent("COUNT_MISMATCH", "the commit has other files than were registered")
    return [by_location[location] for _, location in located], audited_hash


def _copied(each: Fitting, location: str, where: Layout) -> int:
    """Put a copy of the file with the table's field ids at an address; return its size."""
    footer = with_field_ids(each.footer, where.ids)
    return each.pages.copy(location, each.pages_end, file_end(footer))
