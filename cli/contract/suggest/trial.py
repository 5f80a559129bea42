"""Try a draft on its own sample, before a person sees it.

The job judges files in Spark. Here duckdb does it, by conditions that mean the same: those for
cells are the job's (spark_jobs/files/text/cells.py), and those for checks are
`access.tables.check_sql`.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

import duckdb

from access.tables.check_sql import FILE, POSITION, about_rows, addresses, quoted
from cli.contract.suggest.columns import ColumnProfile, answers, moment_in, text
from cli.contract.suggest.draft import draft
from cli.contract.suggest.sample import Sample, sample
from lakegate.contract.checks import Check
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from spark_jobs.schema.compare import compare

_TEXTS = ("csv", "json")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?"
_ZONE = "( ?(Z|UTC|[+-](0[0-9]|1[0-8])(:?[0-9]{2})?))?"
_NO_NUMBER = "nan|[+-]?inf|[+-]?infinity"
# A cell that is a value of a type, as spark_jobs/files/text/cells.py decides it.
_FORMS: Mapping[str, str] = {
    "boolean": "(?i)true|false|t|f|yes|no|y|n|1|0",
    "int": "[-+]?[0-9]+",
    "bigint": "[-+]?[0-9]+",
    "float": rf"(?i){_NO_NUMBER}|[0-9.e+-]+",
    "double": rf"(?i){_NO_NUMBER}|[0-9.e+-]+",
    "date": _DAY,
    "timestamp": f"{_DAY}({_TIME}{_ZONE})?",
    "timestamp_ntz": f"{_DAY}({_TIME})?",
}
_FIRST, _LAST = (
    f"TIMESTAMPTZ '{moment}+00'" for moment in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
)
_CASTS = {"int": "INTEGER", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP"}


def tried(connection: duckdb.DuckDBPyConnection, file: Path, table: str) -> str:
    """Return the draft of a contract for a file, which accepts all its cells but outliers.

    A column whose rules refuse more than the outliers gets its type alone; if the type does, it
    becomes text. Raises LakegateError: as `sample`, and UNFIT if no draft accepts the file.
    """
    opened = sample(connection, file)
    plain: frozenset[str] = frozenset()
    for _ in range(3):
        written = draft(opened, table, file.name, plain)
        contract = parse(written, f"the draft from {file}")
        refused = {*_refused(connection, opened, contract)}
        if not refused:
            return written
        opened = replace(opened, columns=tuple(_wider(c, refused & plain) for c in opened.columns))
        plain |= refused
    which = " and ".join(sorted(refused))
    message = f"{file} has cells in {which} that no draft accepts\nName the column's form by hand."
    raise LakegateError("UNFIT", message)


def _wider(column: ColumnProfile, refused: Set[str]) -> ColumnProfile:
    """Return the column as text if even its type refuses its own cells."""
    is_text = column.name in refused and column.type == "VARCHAR"
    return replace(column, shape="", strange=0, outliers=()) if is_text else column


def _refused(
    connection: duckdb.DuckDBPyConnection, opened: Sample, contract: Contract
) -> Iterator[str]:
    """Yield the columns of which the contract refuses more cells than the known outliers."""
    known = {column.name: column for column in opened.columns}
    _require_columns(opened, contract)
    plain = [c for c in contract.columns if not known[c.name].parts]
    values = {c.name: quoted(c.name) for c in plain}
    if opened.format in _TEXTS:
        values = {c.name: cell(quoted(c.name), c) for c in plain}
    selected = [f"{sql} AS {quoted(name)}" for name, sql in values.items()]
    columns = ", ".join([f"0 AS {FILE}", POSITION, *selected])
    connection.execute(f"CREATE OR REPLACE TEMP TABLE rows AS SELECT {columns} FROM sample")
    lost = [f"count_if(a.{q} IS NOT NULL AND b.{q} IS NULL)" for q in map(quoted, values)]
    broken = zip(values, answers(connection, lost, "sample a POSITIONAL JOIN rows b"), strict=True)
    yield from (name for name, count in broken if count > known[name].strange)
    for check in contract.checks:
        if about_rows(check, contract) and {*check.columns} <= {*values}:
            strange = sum(known[name].strange for name in check.columns)
            if _count(connection, check, contract) > strange:
                yield from check.columns


def _require_columns(opened: Sample, contract: Contract) -> None:
    """Raise LakegateError if the job would not take the file's columns for the contract's."""
    named = [(column.name, "") for column in opened.columns]
    for finding in compare(named, contract).findings:
        raise LakegateError("UNFIT", f"the sample cannot be described: {finding.message}")


def cell(value: str, column: Column) -> str:
    """Return the value of a text cell in SQL; null if the job would refuse it."""
    if column.kind in ("string", "time"):
        return value
    if column.written:
        return moment_in(value, column.written)
    if column.type.startswith("decimal"):
        scale = column.type.rpartition(",")[2].rstrip(")")
        form = rf"[-+]?[0-9]*([.][0-9]{{0,{scale}}}0*)?"
    else:
        form = _FORMS[column.type]
    fits = f"regexp_full_match({value}, {text(form)})"
    if column.kind in ("date", "timestamp", "timestamp_ntz"):
        fits += f" AND left({value}, 4) > '0000'"
    converted = f"TRY_CAST({value} AS {_CASTS.get(column.type, column.type)})"
    if column.kind == "timestamp":  # an offset may lead out of the years
        fits += f" AND {converted} BETWEEN {_FIRST} AND {_LAST}"
    if column.kind in ("float", "double"):
        finite = f"isfinite({converted}) OR regexp_full_match({value}, '(?i){_NO_NUMBER}')"
        fits += f" AND ({finite})"
    return f"CASE WHEN {fits} THEN {converted} END"


def _count(connection: duckdb.DuckDBPyConnection, check: Check, contract: Contract) -> int:
    """Return how many rows break a check."""
    types = {column.name: column.type for column in contract.columns}
    return int(connection.sql(f"SELECT count(*) FROM ({addresses(check, types)})").fetchall()[0][0])
