"""Rules of `type: sql`: the one answer of a query that only reads.

It sees its own table as the file's rows, or with the scope of the table as a whole with them among
it, and every other table as main had it where the branch was cut.
"""

import re
from decimal import Decimal
from math import isfinite

from pyspark.sql import DataFrame

from lakegate.errors import Permanent
from lakegate.expectations import Number
from spark_jobs import beyond, parsing
from spark_jobs.names import quoted, table_name
from spark_jobs.run import Run

_OF_PATHS = re.compile("[./:]")  # what no part of a table's name has


def answer(run: Run, sql: str, rows: DataFrame) -> Number:
    """What a query answers whose own table are `rows`; true and false are 1 and 0.

    Raises Permanent BAD_QUERY where it does anything but read, or does not answer one number.
    """
    view = run.contract.table.rpartition(".")[2]
    text = _placed(run, sql, view)
    beyond.main(run)  # gives the session the catalog of the other tables
    rows.createOrReplaceTempView(quoted(view))
    try:
        found = run.spark.sql(text).limit(2).collect()
    finally:
        run.spark.catalog.dropTempView(view)
    if len(found) != 1 or len(found[0]) != 1:
        shape = f"{len(found) or 'no'} rows of {len(found[0]) if found else 0} values"
        raise Permanent("BAD_QUERY", f"the query answers {shape}, and must answer one value")
    return _number(found[0][0])


def _placed(run: Run, sql: str, view: str) -> str:
    """The query with each table by the name that it has in this session."""
    read = parsing.tables_read(run.spark, sql)
    parts = {(part.lower(),) for part in read.parts}
    if (view.lower(),) in parts:
        raise Permanent("BAD_QUERY", f"WITH cannot give the table's own name {view} to a part")
    for place in sorted(read.tables, key=lambda place: place.start, reverse=True):
        if tuple(map(str.lower, place.name)) not in parts:
            sql = sql[: place.start] + _here(run, place, view) + sql[place.end :]
    return sql


def _here(run: Run, place: parsing.Place, view: str) -> str:
    own = run.contract.table
    full = str(place) if len(place.name) > 1 else f"{own.partition('.')[0]}.{place}"
    if len(place.name) > 2 or any(map(_OF_PATHS.search, place.name)):
        raise Permanent("BAD_QUERY", f"{place} is no table: name it as namespace.table")
    return quoted(view) if full.lower() == own.lower() else table_name(full, beyond.BASE)


def _number(value: object) -> Number:
    if isinstance(value, int | float | Decimal) and isfinite(value):
        return int(value) if isinstance(value, bool) else value
    shown = "null" if value is None else f"a {type(value).__name__}"  # which may be a row's
    raise Permanent("BAD_QUERY", f"the query answers {shown}, which is no number, true or false")
