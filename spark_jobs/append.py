"""The append, watched: what goes into the table is counted in the very pass that writes it."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from lakegate.checks import Check
from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import Tier
from spark_jobs import jvm, quarantine, scan
from spark_jobs.audit import Rows
from spark_jobs.quoting import Quoting
from spark_jobs.read import BAD_ROW, Source
from spark_jobs.run import Measured, Run
from spark_jobs.write import Opened, Target, append

_ROWS, _BAD, _KEPT_OUT = "rows", "bad_rows", "kept_out"
Found = dict[str, Any]


def append_watched(
    spec: JobSpec, branch: Target, source: Source, contract: Contract, opened: Opened
) -> tuple[Run, Rows, dict[str, Measured]]:
    """Append the file's rows, all but those that go into quarantine.

    Returns the run, the file's rows, and the measures that were taken on the way, by check id.
    Raises Permanent when rows are lost between the file, the audit and the table.
    """
    spark = source.rows.sparkSession
    split = _condition(source.rows, contract, nulled=spec.null_unreadable)
    keeping = [check for check in contract.checks if check.quarantine]
    riding = scan.riding(contract)
    first = second = Observation("file")
    rows, of_table = source.rows, list(scan.aggregates(riding, contract))
    if split:
        rows = rows.observe(first, *_counts(split), *scan.aggregates(keeping, contract))
        second = Observation("table")
        rows = rows.where(~F.expr(split)).observe(second, _count(), *of_table)
    else:
        rows = rows.observe(first, *_counts(split), *of_table)
    files, audited_hash = append(rows.drop(BAD_ROW), opened, contract, spec.ingestion, branch)
    found, kept = dict(first.get), dict(second.get)
    read, bad, kept_out = (int(found[name]) for name in (_ROWS, _BAD, _KEPT_OUT))
    counted = Rows(read, bad, kept_out, spec.null_unreadable)
    run = Run(spark, spec, branch.token, contract, opened.table, files, audited_hash)
    _require_all(source, counted, kept[_ROWS], run.written)
    return run, counted, _measured(keeping, found, riding, kept)


def _condition(rows: DataFrame, contract: Contract, *, nulled: bool) -> str:
    split = quarantine.condition(contract, nulled=nulled)
    for check in filter(lambda check: check.quarantine, contract.checks):
        scan.require_own_sql(rows.sparkSession, check)
    try:
        rows.where(F.expr(split or "true"))
    except jvm.JavaError as error:
        what = "it cannot be told which rows go into quarantine"
        plain, shown = f"{what}: {jvm.refusal(error)}", f"{what}: {jvm.said(error)}"
        raise Quoting("BAD_CONDITION", plain, shown) from error
    return split


def _counts(split: str) -> list[Expression]:
    bad = F.count_if(F.col(BAD_ROW).isNotNull()).alias(_BAD)
    return [_count(), bad, F.count_if(F.expr(split or "false")).alias(_KEPT_OUT)]


def _count() -> Expression:
    return F.count(F.lit(1)).alias(_ROWS)


def _require_all(source: Source, counted: Rows, audited: int, written: int) -> None:
    """That the rows of the file, of the audit and of the table are the same, each counted apart."""
    if not counted.written == audited == written:
        message = f"{counted.written:,} rows were read, {audited:,} audited, {written:,} written"
        raise Permanent("COUNT_MISMATCH", message)
    if source.promised_rows not in (None, counted.read):
        message = f"the file promises {source.promised_rows:,} rows; {counted.read:,} can be read"
        raise Permanent("CORRUPT_FILE", message)


def _measured(
    keeping: Sequence[Check], found: Found, riding: Sequence[Check], kept: Found
) -> dict[str, Measured]:
    of_file = scan.read(keeping, found, int(found[_ROWS]), Tier.APPEND)
    return of_file | scan.read(riding, kept, int(kept[_ROWS]), Tier.APPEND)
