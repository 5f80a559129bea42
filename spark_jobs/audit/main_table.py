"""What lies beyond the file: main where the run's branch was cut, pruned before it is read.

Of a table only the files are read whose statistics allow a key of the file's; where they allow none
that alone is the answer.
"""

from collections.abc import Callable, Sequence
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

# The rows to compare with that meet a condition in Spark SQL ("" for all); None for no rows.
Had = Callable[[str], DataFrame | None]

BASE = "base"
_BOUNDED = ("int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz", "string", "time")
_LONGEST = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Main:
    """One of main's tables where the branch was cut: its name in Spark SQL, and Iceberg's table."""

    spark: SparkSession
    name: str
    table: Any | None

    def had(self, condition: str) -> DataFrame | None:
        """Its rows that meet a condition; None where there is no such row, by its statistics."""
        if self.table is None:
            return None
        rows = self.spark.table(self.name)
        if not condition:
            return rows
        where = excluding(self.spark, self.name, condition)
        if where is not None and not iceberg.may_have(self.table, where):
            return None
        return rows.where(condition)

    def lacks(self, columns: Sequence[str]) -> bool:
        """Whether it has not all of these columns, as under an older contract: no row has a key."""
        if self.table is None:
            return True
        there = {name.lower() for name in self.spark.table(self.name).columns}
        return any(name.lower() not in there for name in columns)


def excluding(spark: SparkSession, name: str, condition: str) -> Any | None:
    """A condition on a table in Iceberg's terms; None where these have no words for it."""
    try:
        return iceberg.expression(spark, name, condition)
    except jvm.JavaError:
        return None


def main(run: Run, table: str = "") -> Main:
    """A table of main, by default the run's own, as it was where the run's branch was cut."""
    spec = run.spec
    add_catalog(run.spark, BASE, spec.nessie_uri, spec.branch, spec.base_hash, run.token)
    name = table_name(table or run.contract.table, BASE)
    return Main(run.spark, name, iceberg.find_iceberg_table(run.spark, name))


def whole(run: Run) -> DataFrame:
    """The table's rows with the file's among them."""
    return run.spark.table(table_name(run.contract.table))


def between(run: Run, columns: Sequence[Column], others: Sequence[str]) -> str:
    """That the columns named `others` have values between the least and greatest of the columns.

    In Spark SQL with literals, by which Iceberg leaves files out; the ends are taken from the
    statistics of the run's new files. Columns without such ends are left out: "" if all are.
    """
    limits = []
    for column, other in zip(columns, others, strict=True):
        if column.kind in _BOUNDED and len(column.steps) == 1:
            ends = iceberg.ends(run.spark, run.table, column.name, run.files)
            signs = zip((">=", "<="), (_text(end, column) for end in ends), strict=True)
            limits += [
                f"{quoted(other)} {sign} {literal(end, column.type)}" for sign, end in signs if end
            ]
    return " AND ".join(limits)


def newer(run: Run, window: Window) -> str:
    """That a row of the table is in the window, in Spark SQL.

    Raises Permanent NO_WINDOW where no row of the file has a date to go by.
    """
    column = run.contract.column(window.column)
    newest = run.rows.agg(F.max(quoted(column.name)).cast("string")).collect()[0][0]
    if newest is None:
        message = f"no row of the file has a {window.column}, so there are no last days to look at"
        raise Permanent("NO_WINDOW", message)
    return f"{quoted(column.name)} >= {literal(newest, column.type)} - INTERVAL {window.days} DAYS"


def _text(end: object, column: Column) -> str:
    """One end of a column's values as Spark's CAST takes it; "" where it is not to be written."""
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
