"""Rows that are kept out of the table, so that the rest of their file can be published."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract import Contract
from lakegate.report import READABLE
from spark_jobs import sql
from spark_jobs.names import quoted
from spark_jobs.read import BAD_ROW


def condition(contract: Contract, *, nulled: bool = False) -> str:
    """That a row of the file is kept out, in Spark SQL; "" where none can be.

    Rows with a cell that cannot be read are, unless these cells are to be `nulled`.
    """
    return " OR ".join(reason for _, reason in _reasons(contract, nulled=nulled))


def kept_out(rows: DataFrame, contract: Contract, *, nulled: bool = False) -> DataFrame:
    """The rows that are kept out: `row`, as JSON or as it stands in the file, and `reasons`.

    `reasons` are the ids of the checks that a row breaks.
    """
    reasons_of = _reasons(contract, nulled=nulled)
    named = [f"CASE WHEN {test} THEN {sql.string(id_)} END" for id_, test in reasons_of]
    reasons = f"array_compact(array({', '.join(named)}))"
    columns = F.struct(*[F.col(quoted(column.name)) for column in contract.columns])
    row = F.coalesce(F.col(BAD_ROW), F.to_json(columns))
    broken = rows.where(F.expr(condition(contract, nulled=nulled)))
    return broken.select(row.alias("row"), F.expr(reasons).alias("reasons"))


def _reasons(contract: Contract, *, nulled: bool) -> list[tuple[str, str]]:
    """What keeps a row out: the id of the check, and the condition."""
    bad = [] if nulled else [(READABLE, f"{quoted(BAD_ROW)} IS NOT NULL")]
    checks = [check for check in contract.checks if check.quarantine]
    return [*bad, *((check.id, sql.counted(check, contract)) for check in checks)]
