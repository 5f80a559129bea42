"""Profile the columns of a sample with duckdb.

A shape is what the texts of a column have in common. If 99 % of the cells have one, the others are
outliers: the column gets the shape's type, and the draft names the outliers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from access.tables.check_sql import POSITION, quoted
from cli.contract.suggest.forms import form_of
from lakegate.contract.written import FORMATS, narrowest
from lakegate.ecma_patterns import PATTERNS

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_WRITTEN = "moment in another format"  # of FORMATS, which take its place
# Each shape is narrower than the later ones that also match it.
SHAPES: Mapping[str, str] = {
    "boolean": r"true|false",
    "integer": r"-?(0|[1-9][0-9]{0,17})",
    "whole": r"-?[0-9]{1,38}",
    "decimal": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?",
    "number": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,2})?",
    "any number": (r"-?[0-9]{1,300}(\.[0-9]+)?([eE](\+?([0-2]?[0-9]{1,2}|30[0-7])|-[0-9]{1,3}))?"),
    "date": _DATE,
    "timestamp": rf"{_DATE}[T ]{_TIME}(\.[0-9]{{1,6}})?",
    "instant": rf"{_DATE}[T ]{_TIME}(\.[0-9]{{1,6}})?(Z|[-+](0[0-9]|1[0-7]):[0-5][0-9])",
    "time": _TIME,
    _WRITTEN: "|".join(each.regex for each in FORMATS.values()),
    **{format_: PATTERNS[format_] for format_ in ("uuid", "email", "ipv4")},
    "mail": r"[^@ ]+@[^@ ]+\.[^@ ]+",
    "iban": r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\x22{}|\\^`]+",
    "letters": r"[A-Z]{2,3}",
    "digits": r"[0-9]+",
}
MOMENTS = ("date", "timestamp", "instant", "time")
FORMS = ("uuid", "email", "ipv4", "mail", "iban", "uri", "letters", "digits")
CELLS = ("boolean", "integer", "decimal", "number", *MOMENTS, _WRITTEN, *FORMS)
# The shapes of JSON's values, by their kind.
JSON_SHAPES: Mapping[str, tuple[str, ...]] = {
    "text": (*MOMENTS, *FORMS),
    "number": ("integer", "whole", "decimal", "number", "any number"),
    "boolean": ("boolean",),
}
_WITH_DAY = ("date", "timestamp", "instant")
_NARROW = ("letters", "digits")  # a cell of another form is no outlier of these
_MOST_VALUES = 20
_MOST_SHOWN = 5
_SURE = 0.99  # share of cells
_HEAD = 1000  # rows, of which a shape has to fit most before it is tried on all
_AT_ONCE = 50  # aggregates in a query


@dataclass(frozen=True)
class Outlier:
    """A cell or a row that is unlike 99 % of the others, and its line (or row), from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class ColumnProfile:
    """The values of a column in the sample.

    `type` is duckdb's. `shape` is the key of SHAPES that all texts match but the outliers, or "".
    `low` and `high` are the least and greatest number, None if not finite. `first` and `last` are
    the least and greatest value as text. `digits` and `scale` are the most digits before and after
    a point. `values` lists all values if there are few; the rarest is there `rarest` times. `parts`
    are the fields of a structure or the item of a list, with name and type only. `form` is the
    pattern of the few forms that all texts without a shape have, or "". `strange` counts the
    outliers; `outliers` are the first of them.
    """

    name: str
    type: str
    rows: int = 0
    nulls: int = 0
    distinct: int = 0
    shape: str = ""
    low: float | None = None
    high: float | None = None
    first: str = ""
    last: str = ""
    shortest: int = 0
    longest: int = 0
    digits: int = 0
    scale: int = 0
    values: tuple[str, ...] = ()
    rarest: int = 0
    parts: "tuple[ColumnProfile, ...]" = ()
    form: str = ""
    strange: int = 0
    outliers: tuple[Outlier, ...] = ()


def columns_of(
    connection: duckdb.DuckDBPyConnection,
    shapes: Mapping[str, tuple[str, ...]],
    broken: Mapping[str, str],
) -> tuple[ColumnProfile, ...]:
    """Profile each column of the view `sample`, whose column `POSITION` numbers the lines.

    `shapes` limits the shapes of a column's text; `broken` has conditions, in SQL, that the job
    refuses a value.
    """
    sample = connection.sql("FROM sample")
    types = {n: t for n, t in zip(sample.columns, sample.types, strict=True) if n != POSITION}
    if not types:
        return ()
    texts = [name for name, type_ in types.items() if str(type_) == "VARCHAR"]
    shapes = _likely(connection, {name: shapes.get(name, FORMS) for name in texts})
    selected = [
        _measures(name, str(type_), shapes.get(name, ()), broken.get(name, "false"))
        for name, type_ in types.items()
    ]
    row = answers(connection, selected, "sample")
    profiles = [
        _profile(name, type_, shapes.get(name, ()), measured)
        for (name, type_), measured in zip(types.items(), row, strict=True)
    ]
    listed = [_with_moments(connection, each) for each in _listed(connection, profiles)]
    listed = [_with_form(connection, each) for each in listed]
    return tuple(_with_outliers(connection, each, broken) for each in listed)


def _likely(
    connection: duckdb.DuckDBPyConnection, shapes: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the shapes and formats of each text column that most of the first rows' cells have."""
    likely = _fitting(connection, shapes)
    written = {name: tuple(FORMATS) for name, each in likely.items() if _WRITTEN in each}
    formats = _fitting(connection, written)
    return {
        name: (*formats.get(name, ()), *(shape for shape in each if shape != _WRITTEN))
        for name, each in likely.items()
    }


def _fitting(
    connection: duckdb.DuckDBPyConnection, shapes: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    selected = []
    for name, each in shapes.items():
        fits = [f"count_if({_fits(quoted(name), shape)})" for shape in each]
        selected.append(f"[{', '.join([f'count({quoted(name)})', *fits])}]")
    counted = answers(connection, selected, f"(FROM sample LIMIT {_HEAD})")
    fitting = {}
    for (name, each), (given, *counts) in zip(shapes.items(), counted, strict=True):
        pairs = zip(each, counts, strict=True)
        fitting[name] = tuple(shape for shape, count in pairs if 2 * count >= given)
    return fitting


def answers(
    connection: duckdb.DuckDBPyConnection, selected: Sequence[str], source: str
) -> list[Any]:
    """Return the values of aggregates over rows, some of them by each query.

    What duckdb takes for one query grows with the square of their number.
    """
    row: list[Any] = []
    for first in range(0, len(selected), _AT_ONCE):
        some = ", ".join(selected[first : first + _AT_ONCE])
        row += connection.sql(f"SELECT {some} FROM {source}").fetchall()[0]
    return row


def _measures(name: str, type_: str, shapes: Sequence[str], broken: str) -> str:
    column, words = quoted(name), f"CAST({quoted(name)} AS VARCHAR)"
    measures = {"rows": "count(*)", "given": f"count({column})", "distinct": "0"}
    measures["strange"] = f"count_if({broken})"
    if not _is_nested(type_):
        number = f"TRY_CAST({column} AS DOUBLE)" if _is_number(type_) else "NULL::DOUBLE"
        measures |= {
            "distinct": f"count(DISTINCT {column})",
            "low": f"min({number})",
            "high": f"max({number})",
            "first": f"min({words})",
            "last": f"max({words})",
            "shortest": f"min(length({words}))",
            "longest": f"max(length({words}))",
            "digits": rf"max(length(regexp_extract({words}, '^-?([0-9]+)', 1)))",
            "scale": rf"max(length(regexp_extract({words}, '\.([0-9]+)$', 1)))",
        }
    if type_ == "VARCHAR":
        measures["fits"] = f"[{', '.join(f'count_if({_fits(words, s)})' for s in shapes)}]"
    return "{" + ", ".join(f"'{key}': {sql}" for key, sql in measures.items()) + "}"


def _fits(words: str, shape: str) -> str:
    """Return the condition that a text has a shape; a day must be one of the calendar."""
    if shape in FORMATS:
        return f"({moment_in(words, shape)} IS NOT NULL)"
    matches = f"regexp_full_match({words}, {text(SHAPES[shape])})"
    if shape in _WITH_DAY:
        day = f"left({words}, 10)"
        matches += f" AND {day} >= '0001' AND TRY_CAST({day} AS DATE) IS NOT NULL"
    return f"coalesce({matches}, false)"


def moment_in(words: str, pattern: str) -> str:
    """Return the day, or the local time, that a text in one of FORMATS is, in SQL; else null."""
    written = FORMATS[pattern]
    moment = f"try_strptime({words}, {text(written.directives)})"
    fits = f"regexp_full_match({words}, {text(written.regex)}) AND {moment} >= '0001-01-01'"
    return (
        f"CASE WHEN {fits} THEN CAST({moment} AS {'TIMESTAMP' if written.has_time else 'DATE'}) END"
    )


def _profile(
    name: str, type_: Any, shapes: Sequence[str], measured: dict[str, Any]
) -> ColumnProfile:
    given, rows = measured.pop("given"), measured.pop("rows")
    shape, strange = _shape(shapes, measured.pop("fits", ()), given)
    measured["strange"] += strange
    measured |= {end: _finite(measured.get(end)) for end in ("low", "high")}
    present: dict[str, Any] = {key: value for key, value in measured.items() if value is not None}
    parts = parts_of(type_)
    return ColumnProfile(name, str(type_), rows, rows - given, shape=shape, parts=parts, **present)


def _shape(shapes: Sequence[str], fits: Sequence[int], given: int) -> tuple[str, int]:
    """Return the first shape that most cells have, and the number of the others; "" for none."""
    if not given:
        return "", 0
    pairs = list(zip(shapes, fits, strict=False))
    most = max((count for _, count in pairs), default=0)
    fitting = [shape for shape, count in pairs if count == most]
    if len(narrowest([shape for shape in fitting if shape in FORMATS])) > 1:
        return "", 0  # each of its days may also be its month
    shape = next(iter(fitting), "")
    sure = given if shape in _NARROW else _SURE * given
    return (shape, given - most) if most and most >= sure else ("", 0)


def _listed(
    connection: duckdb.DuckDBPyConnection, profiles: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    """Return the profiles, with all the values of text columns that have few."""
    few = [s.name for s in profiles if s.type == "VARCHAR" and 0 < s.distinct <= _MOST_VALUES]
    lists = [f"histogram({quoted(name)})" for name in few]
    counts = dict(zip(few, answers(connection, lists, "sample"), strict=True))
    return [_with_values(each, counts.get(each.name, {})) for each in profiles]


def _with_values(column: ColumnProfile, counts: Mapping[str, int]) -> ColumnProfile:
    return replace(column, values=tuple(sorted(counts)), rarest=min(counts.values(), default=0))


def _with_moments(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> ColumnProfile:
    """Return the column with its first and last moment as ISO 8601, if it has another format."""
    if column.shape not in FORMATS:
        return column
    moment = moment_in(quoted(column.name), column.shape)
    ends = f"CAST(min({moment}) AS VARCHAR), CAST(max({moment}) AS VARCHAR)"
    first, last = connection.sql(f"SELECT {ends} FROM sample").fetchall()[0]
    return replace(column, first=first, last=last)


def _with_form(connection: duckdb.DuckDBPyConnection, column: ColumnProfile) -> ColumnProfile:
    if column.type != "VARCHAR" or column.shape or column.strange or not column.distinct:
        return column
    return replace(column, form=form_of(connection, column.name))


def _with_outliers(
    connection: duckdb.DuckDBPyConnection, column: ColumnProfile, broken: Mapping[str, str]
) -> ColumnProfile:
    if not column.strange:
        return column
    words = f"CAST({quoted(column.name)} AS VARCHAR)"
    strange = broken.get(column.name) or f"NOT {_fits(words, column.shape)}"
    rows = connection.sql(
        f"SELECT {POSITION}, {words} FROM sample WHERE {words} IS NOT NULL AND {strange}"
        f" ORDER BY 1 LIMIT {_MOST_SHOWN}"
    ).fetchall()
    return replace(column, outliers=tuple(Outlier(line, word) for line, word in rows))


def parts_of(type_: Any) -> tuple[ColumnProfile, ...]:
    """Return the fields of a structure, or the item of a list, of a duckdb type."""
    if type_.id not in ("struct", "list", "array", "map"):
        return ()
    children = type_.children[:1] if type_.id == "array" else type_.children
    return tuple(ColumnProfile(n, str(part), parts=parts_of(part)) for n, part in children)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _is_nested(type_: str) -> bool:
    return type_.endswith("]") or type_.startswith(("STRUCT", "MAP", "UNION", "JSON", "BLOB"))


def _is_number(type_: str) -> bool:
    return type_ == "VARCHAR" or type_.startswith(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")
    )


def text(value: object) -> str:
    """Return a SQL literal of a text."""
    return "'" + str(value).replace("'", "''") + "'"
