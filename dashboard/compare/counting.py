"""Count a column's values with duckdb, where each side's column is the column `v` of a table."""

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from access.tables.streaming import reading, watched

FILE, MAIN = "file", "main"  # the sides' tables
EXACT_ROWS = 2_000_000  # beyond it, what is different is estimated


@dataclass(frozen=True)
class Counted:
    """Counts of some rows; `smallest` and `largest` are Arrow's, null without values.

    NaN counts among the `nans` only. `estimated` says that `distinct`, the number of different
    values, is an estimate (HyperLogLog).
    """

    rows: int
    nulls: int
    distinct: int
    estimated: bool
    nans: int
    smallest: pa.Scalar
    largest: pa.Scalar


def enter(connection: duckdb.DuckDBPyConnection, side: str, column: pa.RecordBatchReader) -> None:
    """Load a side's column."""
    failures: list[Exception] = []
    batches = watched(column, failures)
    connection.register("entering", pa.RecordBatchReader.from_batches(column.schema, batches))
    with reading(failures):
        run(connection, f"CREATE OR REPLACE TEMP TABLE {side} AS FROM (FROM entering) t(v)")


def counted(connection: duckdb.DuckDBPyConnection, side: str, type_: pa.DataType) -> Counted:
    """Return rows, nulls, distinct values, the smallest and the largest of a side's column."""
    ((rows,),) = run(connection, f"SELECT count(*) FROM {side}")
    distinct = "count(DISTINCT v)" if rows <= EXACT_ROWS else "approx_count_distinct(v)"
    nan = "isnan(v)" if pa.types.is_floating(type_) else "false"
    row = connection.sql(
        f"SELECT count(*) FILTER (v IS NULL), {distinct}, count(*) FILTER ({nan}), "
        f"min(v) FILTER (NOT {nan}), max(v) FILTER (NOT {nan}) FROM {side}"
    ).to_arrow_table()
    nulls, many, nans = (column[0].as_py() for column in row.columns[:3])
    ends = (column[0] for column in row.columns[3:])
    return Counted(rows, nulls, many, rows > EXACT_ROWS, nans, *ends)


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    return connection.execute(sql).fetchall()
