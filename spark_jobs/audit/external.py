"""Measure what is stated outside of the check: `type: sql` queries, and control files.

A query reads its own table as the file's rows, or with the scope `table` as the whole table. It
reads other tables as they were on main when the branch was created.
"""

import re
from decimal import Decimal
from math import isfinite

from pyspark.sql import DataFrame

from lakegate.contract.columns import quoted
from lakegate.contract.expectations import Number
from lakegate.errors import Permanent
from spark_jobs.audit import main_table
from spark_jobs.audit.run import Run
from spark_jobs.spark import sql_parser
from spark_jobs.spark.iceberg import table_name

_OF_PATHS = re.compile("[./:]")  # what no part of a table's name has


def answer(run: Run, sql: str, rows: DataFrame) -> Number:
    """Return the number that a query computes over `rows`; true and false are 1 and 0.

    Raises Permanent BAD_QUERY unless the query only reads and returns one number.
    """
    view = run.contract.table.rpartition(".")[2]
    text = _with_resolved_tables(run, sql, view)
    main_table.open_table(run)  # gives the session the catalog of the other tables
    rows.createOrReplaceTempView(quoted(view))
    try:
        answers = run.spark.sql(text).limit(2).collect()
    finally:
        run.spark.catalog.dropTempView(view)
    if len(answers) != 1 or len(answers[0]) != 1:
        shape = f"{len(answers) or 'no'} rows of {len(answers[0]) if answers else 0} values"
        raise Permanent("BAD_QUERY", f"the query must return one value, but returns {shape}")
    return _number(answers[0][0])


def _with_resolved_tables(run: Run, sql: str, view: str) -> str:
    """Return the query with each table under its name in this session."""
    read = sql_parser.tables_read(run.spark, sql)
    parts = {(part.lower(),) for part in read.parts}
    if (view.lower(),) in parts:
        raise Permanent("BAD_QUERY", f"WITH cannot use the table's own name {view} for a part")
    for place in sorted(read.tables, key=lambda place: place.start, reverse=True):
        if tuple(map(str.lower, place.name)) not in parts:
            sql = sql[: place.start] + _resolved(run, place, view) + sql[place.end :]
    return sql


def _resolved(run: Run, place: sql_parser.Place, view: str) -> str:
    own = run.contract.table
    full = str(place) if len(place.name) > 1 else f"{own.partition('.')[0]}.{place}"
    if len(place.name) > 2 or any(map(_OF_PATHS.search, place.name)):
        raise Permanent("BAD_QUERY", f"{place} is not a table name: write namespace.table")
    return quoted(view) if full.lower() == own.lower() else table_name(full, main_table.BASE)


def _number(value: object) -> Number:
    if isinstance(value, int | float | Decimal) and isfinite(value):
        return int(value) if isinstance(value, bool) else value
    # Without the value, which may be a row's.
    shown = "null" if value is None else f"a {type(value).__name__}"
    raise Permanent(
        "BAD_QUERY", f"the query must return a number, true or false, but returns {shown}"
    )
