"""Measure what is stated outside of the check: `type: sql` queries, and control files.

A query reads its own table as the file's rows, or with the scope `table` as the whole table. It
reads other tables as they were on main when the branch was created.
"""

import csv
import io
import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import quoted
from lakegate.contract.expectations import NONE, Number
from lakegate.contract.rules import Control, Rule
from lakegate.errors import Permanent
from spark_jobs.audit import check_sql, main_table
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
        found = run.spark.sql(text).limit(2).collect()
    finally:
        run.spark.catalog.dropTempView(view)
    if len(found) != 1 or len(found[0]) != 1:
        shape = f"{len(found) or 'no'} rows of {len(found[0]) if found else 0} values"
        raise Permanent("BAD_QUERY", f"the query must return one value, but returns {shape}")
    return _number(found[0][0])


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


# Control files: numbers that the sender states in a second file beside the landed one.

_ROWS = "rows"
_CLOSE = Fraction(1, 10**9)  # relative: sums of floats depend on their order


def control_differences(run: Run, control: Control, text: str) -> tuple[int, str]:
    """Return how many of a control file's numbers differ from the file's, and which.

    Raises Permanent BAD_CONTROL unless the control file states exactly the numbers of the contract.
    """
    stated, found = _stated(control, text), _found(run, control)
    apart = [name for name in stated if not _same(stated[name], found[name])]
    hidden = [f"sum({c.name})" for c in run.contract.columns if c.sensitive]
    words = [
        f"{name} differs"
        if name in hidden
        else f"{name} is {_shown(found[name])}, not {stated[name]}"
        for name in apart
    ]
    return len(apart), "; ".join(words)


def _stated(control: Control, text: str) -> Mapping[str, Decimal]:
    given = _parsed_control(control, text)
    wanted = [_ROWS, *(f"sum({name})" for name in control.sums)]
    if sorted(given) != sorted(wanted):
        others = len(set(given).difference(wanted))
        raise _bad_control(f"it must state exactly {', '.join(wanted)}, but states {others} others")
    try:
        return {name: Decimal(str(given[name])) for name in wanted}
    except InvalidOperation:
        raise _bad_control("a stated value is not a number") from None


def _parsed_control(control: Control, text: str) -> Mapping[str, object]:
    if control.format == "csv":
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise _bad_control("it must be a header and one line with as many numbers")
        return {name.strip(): value.strip() for name, value in zip(*lines, strict=True)}
    try:
        given = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise _bad_control(f"it is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise _bad_control("it must be one JSON object")
    return given


def _found(run: Run, control: Control) -> Mapping[str, Decimal | float | None]:
    checks = [Check("", Metric.SUM, (name,), Rule(), NONE) for name in control.sums]
    sums = [F.expr(check_sql.value(check, run.contract)) for check in checks]
    found = run.rows.agg(*sums).collect()[0] if sums else ()
    named = {f"sum({name})": value for name, value in zip(control.sums, found, strict=True)}
    return {_ROWS: Decimal(run.written), **named}


def _same(stated: Decimal, found: Decimal | float | None) -> bool:
    if found is None or not (stated.is_finite() and isfinite(found)):
        return False
    if isinstance(found, float):
        return abs(Fraction(found) - Fraction(stated)) <= abs(Fraction(stated)) * _CLOSE
    return stated == found


def _shown(found: Decimal | float | None) -> str:
    return "without a value" if found is None else str(found)


def _bad_control(reason: str) -> Permanent:
    return Permanent("BAD_CONTROL", f"the control file is invalid: {reason}")
