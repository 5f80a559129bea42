"""Rows that are kept out of the table, so that the rest of their file can be published."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract import Contract
from spark_jobs import sql
from spark_jobs.audit import READABLE
from spark_jobs.names import quoted
from spark_jobs.read import BAD_ROW


def condition(contract: Contract) -> str:
    """That a row of the file is kept out, in Spark SQL; "" where none can be."""
    return " OR ".join(reason for _, reason in _reasons(contract))


def kept_out(rows: DataFrame, contract: Contract) -> DataFrame:
    """The rows that are kept out: `row`, as JSON or as it stands in the file, and `reasons`.

    `reasons` are the ids of the checks that a row breaks.
    """
    named = [f"CASE WHEN {test} THEN {sql.string(id_)} END" for id_, test in _reasons(contract)]
    reasons = f"array_compact(array({', '.join(named)}))"
    columns = F.struct(*[F.col(quoted(column.name)) for column in contract.columns])
    row = F.coalesce(F.col(BAD_ROW), F.to_json(columns))
    broken = rows.where(F.expr(condition(contract)))
    return broken.select(row.alias("row"), F.expr(reasons).alias("reasons"))


def _reasons(contract: Contract) -> list[tuple[str, str]]:
    """What keeps a row out: the id of the check, and the condition."""
    unreadable = contract.quarantine and contract.quarantine.unreadable
    bad = [(READABLE, f"{quoted(BAD_ROW)} IS NOT NULL")] if unreadable else []
    checks = [check for check in contract.checks if check.quarantine]
    return [*bad, *((check.id, sql.counted(check, contract)) for check in checks)]
