"""Add a few of the rows that break a check to its result, each with its address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.checks import OF_ROWS, Check
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.diagnosis import HIDDEN
from lakegate.report import ADDRESS, READABLE, CheckResult, Status
from spark_jobs.audit import check_sql
from spark_jobs.audit.bad_cells import bad_cells
from spark_jobs.audit.run import Run
from spark_jobs.files.open import Source

_ROWS = 3
_COLUMNS = 8
_WIDEST = 200
_MOST_CHECKS = 20
Samples = tuple[Mapping[str, str | None], ...]


def with_samples(results: Sequence[CheckResult], run: Run, read: Source) -> tuple[CheckResult, ...]:
    """Return the results; the first failed checks have sample rows where the contract allows it.

    Of unparseable rows the cells at fault are named, whose values may be hidden. `read` is the file
    if Spark read it, else its rows that are not in the table.
    """
    checks = {check.id: check for check in run.contract.checks}
    shown = [r.id for r in results if r.status in (Status.FAIL, Status.WARN)][:_MOST_CHECKS]
    return tuple(
        replace(result, samples=_samples(result, checks.get(result.id), run, read))
        if result.id in shown
        else result
        for result in results
    )


def _samples(result: CheckResult, check: Check | None, run: Run, read: Source) -> Samples:
    if result.id == READABLE:
        return tuple(cell.sample for cell in bad_cells(read, run.contract))
    if not (run.contract.allow_samples and check and check.metric in OF_ROWS and result.counted):
        return ()
    rows = read.rows if check.quarantine else run.rows
    return _broken_rows(rows, check, run.contract, in_table=not check.quarantine)


def _broken_rows(rows: DataFrame, check: Check, contract: Contract, *, in_table: bool) -> Samples:
    """Return rows that break the check; only rows in the table (`in_table`) have an address.

    Columns that the contract does not declare are left out, because their values may be
    confidential.
    """
    own = [contract.column(name).top for name in check.columns]
    declared = (column.name for column in contract.columns if column.is_declared)
    names = list(dict.fromkeys((*own, *declared)))[:_COLUMNS]
    address = ADDRESS if in_table else ()
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in (*address, *names)]
    broken = rows.where(F.expr(check_sql.counts_row(check, contract))).select(*texts).limit(_ROWS)
    return tuple(
        {name: _shown(name, value, contract.concealed) for name, value in row.asDict().items()}
        for row in broken.collect()
    )


def _shown(name: str, value: str | None, hidden: frozenset[str]) -> str | None:
    if name in hidden:
        return HIDDEN
    return value[:_WIDEST] if value and name not in ADDRESS else value
