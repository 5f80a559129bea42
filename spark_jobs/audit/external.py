"""Rules of `type: sql`: the one answer of a query that only reads.

It sees its own table as the file's rows, or with the scope of the table as a whole with them among
it, and every other table as main had it where the branch was cut.
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
from lakegate.contract.expectations import Number
from lakegate.contract.reading.values import NONE
from lakegate.contract.rules import Control, Rule
from lakegate.errors import Permanent
from spark_jobs.audit import check_sql, main_table
from spark_jobs.audit.run import Run
from spark_jobs.spark import sql_parser
from spark_jobs.spark.iceberg import quoted, table_name

_OF_PATHS = re.compile("[./:]")  # what no part of a table's name has


def answer(run: Run, sql: str, rows: DataFrame) -> Number:
    """What a query answers whose own table are `rows`; true and false are 1 and 0.

    Raises Permanent BAD_QUERY where it does anything but read, or does not answer one number.
    """
    view = run.contract.table.rpartition(".")[2]
    text = _placed(run, sql, view)
    main_table.main(run)  # gives the session the catalog of the other tables
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
    read = sql_parser.tables_read(run.spark, sql)
    parts = {(part.lower(),) for part in read.parts}
    if (view.lower(),) in parts:
        raise Permanent("BAD_QUERY", f"WITH cannot give the table's own name {view} to a part")
    for place in sorted(read.tables, key=lambda place: place.start, reverse=True):
        if tuple(map(str.lower, place.name)) not in parts:
            sql = sql[: place.start] + _here(run, place, view) + sql[place.end :]
    return sql


def _here(run: Run, place: sql_parser.Place, view: str) -> str:
    own = run.contract.table
    full = str(place) if len(place.name) > 1 else f"{own.partition('.')[0]}.{place}"
    if len(place.name) > 2 or any(map(_OF_PATHS.search, place.name)):
        raise Permanent("BAD_QUERY", f"{place} is no table: name it as namespace.table")
    return quoted(view) if full.lower() == own.lower() else table_name(full, main_table.BASE)


def _number(value: object) -> Number:
    if isinstance(value, int | float | Decimal) and isfinite(value):
        return int(value) if isinstance(value, bool) else value
    shown = "null" if value is None else f"a {type(value).__name__}"  # which may be a row's
    raise Permanent("BAD_QUERY", f"the query answers {shown}, which is no number, true or false")


# Control files: what a sender says of a file in another one beside it, against the file's rows.

_ROWS = "rows"
_CLOSE = Fraction(1, 10**9)  # relative: sums of floats depend on their order


def differing(run: Run, control: Control, text: str) -> tuple[int, str]:
    """How many of a control file's numbers are not those of the file, and which.

    Raises Permanent BAD_CONTROL where it does not tell exactly what it has to.
    """
    told, found = _told(control, text), _found(run, control)
    apart = [name for name in told if not _same(told[name], found[name])]
    hidden = [f"sum({c.name})" for c in run.contract.columns if c.sensitive]
    words = [
        f"{name} is another"
        if name in hidden
        else f"{name} is {_shown(found[name])}, not {told[name]}"
        for name in apart
    ]
    return len(apart), "; ".join(words)


def _told(control: Control, text: str) -> Mapping[str, Decimal]:
    given = _parsed(control, text)
    wanted = [_ROWS, *(f"sum({name})" for name in control.sums)]
    if sorted(given) != sorted(wanted):
        others = len(set(given).difference(wanted))
        raise _bad(f"it must tell {', '.join(wanted)}, all of them, and tells {others} others")
    try:
        return {name: Decimal(str(given[name])) for name in wanted}
    except InvalidOperation:
        raise _bad("what it tells are not all numbers") from None


def _parsed(control: Control, text: str) -> Mapping[str, object]:
    if control.format == "csv":
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise _bad("it must be a header and one line of as many numbers")
        return {name.strip(): value.strip() for name, value in zip(*lines, strict=True)}
    try:
        given = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise _bad(f"it is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise _bad("it must be one JSON object")
    return given


def _found(run: Run, control: Control) -> Mapping[str, Decimal | float | None]:
    checks = [Check("", Metric.SUM, (name,), Rule(), NONE) for name in control.sums]
    sums = [F.expr(check_sql.value(check, run.contract)) for check in checks]
    found = run.rows.agg(*sums).collect()[0] if sums else ()
    named = {f"sum({name})": value for name, value in zip(control.sums, found, strict=True)}
    return {_ROWS: Decimal(run.written), **named}


def _same(told: Decimal, found: Decimal | float | None) -> bool:
    if found is None or not (told.is_finite() and isfinite(found)):
        return False
    if isinstance(found, float):
        return abs(Fraction(found) - Fraction(told)) <= abs(Fraction(told)) * _CLOSE
    return told == found


def _shown(found: Decimal | float | None) -> str:
    return "without a value" if found is None else str(found)


def _bad(reason: str) -> Permanent:
    return Permanent("BAD_CONTROL", f"the control file cannot be used: {reason}")
