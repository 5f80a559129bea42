"""A few of the rows that break a check, each with its address in the data files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lakegate.contract.checks import OF_ROWS, Check
from lakegate.contract.model import Contract
from lakegate.report import ADDRESS, READABLE, CheckResult, Status
from spark_jobs.audit import check_sql, tiers
from spark_jobs.audit.run import Run
from spark_jobs.files.open import BAD_ROW, Source
from spark_jobs.spark.iceberg import quoted

_ROWS = 3
_COLUMNS = 8
_WIDEST = 200
_MOST_CHECKS = 20
Samples = tuple[Mapping[str, str | None], ...]


def with_samples(
    results: Sequence[CheckResult], run: Run, source: Source
) -> tuple[CheckResult, ...]:
    """The results, with rows that break each of the first failed checks where that is allowed.

    Rows that could not be read are shown as they stand in the file, with the cells to blame.
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


def _samples(result: CheckResult, check: Check | None, run: Run, source: Source) -> Samples:
    if result.id == READABLE:
        return _bad_rows(source, run.contract)
    if check is None or check.metric not in OF_ROWS:
        return ()
    rows = source.rows if check.quarantine else run.rows
    return _broken_rows(rows, check, run.contract, kept=not check.quarantine)


def _broken_rows(rows: DataFrame, check: Check, contract: Contract, *, kept: bool) -> Samples:
    """Rows that break the check; only those that were `kept` in the table have an address.

    Columns that the contract does not name are left out: nobody may see their values.
    """
    own = [contract.column(name).top for name in check.columns]
    declared = (column.name for column in contract.columns if column.is_declared)
    names = list(dict.fromkeys((*own, *declared)))[:_COLUMNS]
    address = ADDRESS if kept else ()
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in (*address, *names)]
    broken = rows.where(F.expr(check_sql.counted(check, contract))).select(*texts).limit(_ROWS)
    return tuple(
        {name: _shown(name, value, contract.concealed) for name, value in row.asDict().items()}
        for row in broken.collect()
    )


def _bad_rows(source: Source, contract: Contract) -> Samples:
    """A few rows as they stand in the file; only columns where a cell must not be shown.

    That is so, too, where the file may have columns that the table has not: nobody classified them.
    One cell too many moves all others, so that any of them may hold what another is to conceal.
    """
    unknown = contract.transform or contract.extra_columns == "drop"
    hides = bool(unknown or contract.concealed)
    if source.unread is not None:
        found = source.unread.limit(_ROWS).collect()
        return tuple(_bad_row(row["row"], row["cells"] or (), hides=hides) for row in found)
    if hides:
        return ()
    # Whole rows: Spark refuses to read from JSON nothing but what it could not read. As texts:
    # Python has no dates after the year 9999.
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in source.rows.columns]
    found = source.rows.where(F.col(BAD_ROW).isNotNull()).limit(_ROWS).select(*texts).collect()
    return tuple({"row": str(row[BAD_ROW])[:_WIDEST]} for row in found)


def _bad_row(row: str, cells: Sequence[Row], *, hides: bool) -> Mapping[str, str | None]:
    """Return which cells of a row could not be read, and the row where it may be shown."""
    named = [
        f"{cell['column']} {tiers.HIDDEN}" if hides else f"{cell['column']} '{cell['text']}'"
        for cell in cells
    ]
    shown = {"unreadable": ", ".join(named)[:_WIDEST] or "the row as a whole"}
    return shown if hides else {**shown, "row": row[:_WIDEST]}


def _shown(name: str, value: str | None, hidden: frozenset[str]) -> str | None:
    if name in hidden:
        return tiers.HIDDEN
    return value[:_WIDEST] if value and name not in ADDRESS else value
