"""Read tables of main as they were when the run's branch was created.

Only files whose statistics allow one of the file's keys are read. Where no file is left, no row is
read at all.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.checks import Window
from lakegate.contract.columns import Column, quoted
from lakegate.errors import Permanent
from spark_jobs.audit.check_sql import literal
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg, jvm
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import add_catalog


@dataclass(frozen=True)
class Condition:
    """A condition on rows in Spark SQL, "" for all rows.

    If it is one of bounds alone, `bounds` are these: a column's name, a sign, and a value as
    Iceberg takes it. Spark takes a tenth of a second to make them of the SQL.
    """

    sql: str
    bounds: tuple[tuple[str, str, int | str], ...] = ()


# Returns scans (`org.apache.iceberg.FileScanTask`) of the data files that may have rows which meet
# a condition.
FindScans = Callable[[Condition], Sequence[Any]]

BASE = "base"
_BOUNDED = ("int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz", "string", "time")
_WHOLE = ("int", "bigint")
_LONGEST = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class MainTable:
    """A table of main: its name in Spark SQL, and its `org.apache.iceberg.Table` if it exists."""

    spark: SparkSession
    name: str
    table: Any | None

    def find_rows(self, condition: str) -> DataFrame | None:
        """Return the rows that meet a condition; None where statistics exclude them all."""
        if self.table is None:
            return None
        rows = self.spark.table(self.name)
        if not condition:
            return rows
        where = iceberg_filter(self.spark, self.name, condition)
        if where is not None and not iceberg.may_contain(self.table, where):
            return None
        return rows.where(condition)

    def find_scans(self, condition: Condition) -> Sequence[Any]:
        """Return scans of the data files whose statistics allow rows that meet a condition."""
        if self.table is None:
            return ()
        if condition.bounds:
            with suppress(*jvm.JavaError):  # a type that Iceberg itself does not convert
                where = iceberg.all_bounds(self.spark, condition.bounds)
                return iceberg.planned_scans(self.table, where)
        where = iceberg_filter(self.spark, self.name, condition.sql) if condition.sql else None
        return iceberg.planned_scans(self.table, where)

    def lacks_columns(self, columns: Sequence[str]) -> bool:
        """Return if a column is missing, as under an older contract: then no row has the key."""
        if self.table is None:
            return True
        there = {name.lower() for name in iceberg.schema_of(self.spark, self.table).names}
        return any(name.lower() not in there for name in columns)


def iceberg_filter(spark: SparkSession, name: str, condition: str) -> Any | None:
    """Return a Spark SQL condition as an Iceberg expression; None if there is none."""
    try:
        return iceberg.expression(spark, name, condition)
    except jvm.JavaError:
        return None


def open_table(run: Run, table: str = "") -> MainTable:
    """Return a table of main, by default the run's own, as it was when the branch was created."""
    add_catalog(run.spark, BASE, run.spec, run.main_at or run.spec.base_hash, run.token)
    name = table_name(table or run.contract.table, BASE)
    return MainTable(run.spark, name, iceberg.find_iceberg_table(run.spark, name))


def whole_table(run: Run) -> DataFrame:
    """Return the rows of the table with the file's rows among them."""
    return run.spark.table(table_name(run.contract.table))


def key_range(run: Run, columns: Sequence[Column], others: Sequence[str]) -> Condition:
    """Return the condition that the columns `others` lie within the file's range of `columns`.

    The bounds are from the statistics of the run's new files, so that Iceberg can skip files.
    Columns without bounds are left out: the result is of all rows if no column has any.
    """
    sql, bounds = [], []
    for column, other in zip(columns, others, strict=True):
        if column.kind in _BOUNDED and len(column.steps) == 1:
            ends = iceberg.bounds(run.spark, run.table, column.name, run.files)
            signs = zip((">=", "<="), (_text(end, column) for end in ends), strict=True)
            for sign, end in ((sign, end) for sign, end in signs if end):
                sql.append(f"{quoted(other)} {sign} {literal(end, column.type)}")
                bounds.append((other, sign, int(end) if column.type in _WHOLE else end))
    return Condition(" AND ".join(sql), tuple(bounds))


def within_window(run: Run, window: Window) -> str:
    """Return the condition that a row of the table lies in the window.

    Raises Permanent NO_WINDOW where no row of the file has a date.
    """
    column = run.contract.column(window.column)
    newest = run.rows.agg(F.max(quoted(column.name)).cast("string")).collect()[0][0]
    if newest is None:
        message = f"no row of the file has a {window.column}, so the window of last days is unknown"
        raise Permanent("NO_WINDOW", message)
    return f"{quoted(column.name)} >= {literal(newest, column.type)} - INTERVAL {window.days} DAYS"


def _text(end: object, column: Column) -> str:
    """Return a bound as a text for CAST; "" where it cannot be written as a literal."""
    try:
        match column.kind:
            case "date" if isinstance(end, int):
                return (date(1970, 1, 1) + timedelta(days=end)).isoformat()
            case "timestamp" | "timestamp_ntz" if isinstance(end, int):
                moment = _EPOCH + timedelta(microseconds=end)
                zone = "Z" if column.kind == "timestamp" else ""
                return moment.replace(tzinfo=None).isoformat() + zone
    except OverflowError:
        return ""
    text = "" if end is None else str(end)
    return text if len(text) <= _LONGEST and text.isprintable() else ""
