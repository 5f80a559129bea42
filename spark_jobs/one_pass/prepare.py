"""Find by its head or footer if Arrow can be sure to read a landed file as Spark does.

    prepared     is it of a format, and has it exactly the columns, that Arrow reads like Spark?
    → examined   of each part: decode, measure all checks that Arrow can answer, write data files

A file that is declined here, or while its rows are read, is read and written by Spark, which also
says what is wrong with it: so nothing is ever refused here. Data files that were written before are
in no table then.
"""

import os
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.audit.arrow.tier_arrow import answerable
from spark_jobs.files.arrow.consistency import check_parquet, parquet_footer
from spark_jobs.files.arrow.exact import TEXTS, compared, why_inexact, why_never
from spark_jobs.files.arrow.parquet import ArrowFile, MustRewrite
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import Bytes
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass import row_groups, text_rows
from spark_jobs.one_pass.examined import Prepared
from spark_jobs.one_pass.text import Text
from spark_jobs.schema.compare import Comparison

_MOST_HERE = 256 << 20  # bytes that the driver decodes itself


def prepared(
    landed: Bytes,
    contract: Contract,
    limits: Limits,
    spark: SparkSession | None = None,
    most_here: int = _MOST_HERE,
    threads: int | None = None,
) -> Prepared:
    """Return the file, of which only the head or the footer was read.

    The parts of an object with more than `most_here` bytes, unpacked, are spread over the tasks of
    `spark`, those of a smaller one over `threads`, by default one a core. Raises MustRewrite, also
    for a large one without Spark, and LakegateError if it cannot be requested.
    """
    if reason := why_never(contract) or _why_unsure(contract):
        raise MustRewrite(reason)
    tasks = spark if isinstance(landed, Storage) else None
    if contract.format in TEXTS:
        text = Text.open(landed, contract, limits)
        if landed.size <= most_here:
            return Prepared(text.contract, partial(text_rows.in_driver, text, most_here))
        if tasks is None or text.gzipped:
            raise MustRewrite("it is too large for the driver")
        return Prepared(text.contract, partial(text_rows.in_tasks, text, tasks))
    file, comparison = _opened(landed, contract, limits)
    contract = replace(contract, columns=comparison.columns)
    if sum(row_groups.sizes(file)) <= most_here:
        read = partial(row_groups.in_driver, file, contract, threads or os.cpu_count() or 1)
    elif tasks is None:
        raise MustRewrite("it is too large for the driver")
    else:
        read = partial(row_groups.in_tasks, file, contract, tasks)
    return Prepared(contract, lambda files: replace(read(files), changes=comparison.changes))


def _why_unsure(contract: Contract) -> str:
    """Return why Arrow cannot tell which rows are to be quarantined; "" if it can."""
    left = (c.id for c in contract.checks if c.quarantine and not answerable(c, contract))
    return next((f"only Spark knows which rows {id_} quarantines" for id_ in left), "")


def _opened(landed: Bytes, contract: Contract, limits: Limits) -> tuple[ArrowFile, Comparison]:
    """Return a Parquet file that Arrow reads as the contract says, and how its columns differ."""
    try:
        footer = parquet_footer(landed)
        check_parquet(footer, landed.size, limits)
        file = ArrowFile(landed, footer)
        check_columns(len(file.metadata.schema), limits)
        if reason := why_inexact(footer, file.schema, contract):
            raise MustRewrite(reason)
        return file, compared(file.schema, contract)
    except (Permanent, ValueError) as error:  # Spark's reader says what is wrong
        raise MustRewrite(str(error)) from error
