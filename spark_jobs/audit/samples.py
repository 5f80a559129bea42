"""Add a few of the rows that break a check to its result, each with its address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lakegate.contract.checks import OF_ROWS, Check
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.report import ADDRESS, READABLE, CheckResult, Status
from spark_jobs.audit import check_sql, verdict
from spark_jobs.audit.run import Run
from spark_jobs.files.open import BAD_ROW, Source

_ROWS = 3
_COLUMNS = 8
_WIDEST = 200
_MOST_CHECKS = 20
Samples = tuple[Mapping[str, str | None], ...]


def with_samples(
    results: Sequence[CheckResult], run: Run, source: Source | None
) -> tuple[CheckResult, ...]:
    """Return the results; the first failed checks have sample rows where the contract allows it.

    Unparseable rows are shown as they stand in the file, with the cells at fault.
    """
    if not run.contract.allow_samples:
        return tuple(results)
    checks = {check.id: check for check in run.contract.checks}
    shown = [r.id for r in results if r.status in (Status.FAIL, Status.WARN)][:_MOST_CHECKS]
    return tuple(
        replace(result, samples=_samples(result, checks.get(result.id), run, source))
        if result.id in shown
        else result
        for result in results
    )


def _samples(result: CheckResult, check: Check | None, run: Run, source: Source | None) -> Samples:
    if source and result.id == READABLE:
        return _bad_rows(source, run.contract)
    if check is None or check.metric not in OF_ROWS:
        return ()
    rows = source.rows if source and check.quarantine else run.rows
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


def _bad_rows(source: Source, contract: Contract) -> Samples:
    """Return a few unparseable rows; where values must be hidden, only the names of their columns.

    Values are also hidden where the file may have columns that the table lacks, because those are
    not classified. One cell too many shifts all others, so that any cell may hold a confidential
    value.
    """
    unknown = contract.transform or contract.extra_columns == "drop"
    hides = bool(unknown or contract.concealed)
    if source.unreadable is not None:
        found = source.unreadable.limit(_ROWS).collect()
        return tuple(_bad_row(row["row"], row["cells"] or (), hides=hides) for row in found)
    if hides:
        return ()
    # All columns, because Spark refuses to read only the corrupt records of JSON; as texts, because
    # Python has no dates after the year 9999.
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in source.rows.columns]
    found = source.rows.where(F.col(BAD_ROW).isNotNull()).limit(_ROWS).select(*texts).collect()
    return tuple({"row": str(row[BAD_ROW])[:_WIDEST]} for row in found)


def _bad_row(row: str, cells: Sequence[Row], *, hides: bool) -> Mapping[str, str | None]:
    """Return which cells of a row could not be parsed, and the row where it may be shown."""
    named = [
        f"{cell['column']} {verdict.HIDDEN}" if hides else f"{cell['column']} '{cell['text']}'"
        for cell in cells
    ]
    shown = {"unreadable": ", ".join(named)[:_WIDEST] or "the whole row"}
    return shown if hides else {**shown, "row": row[:_WIDEST]}


def _shown(name: str, value: str | None, hidden: frozenset[str]) -> str | None:
    if name in hidden:
        return verdict.HIDDEN
    return value[:_WIDEST] if value and name not in ADDRESS else value
