"""What was seen in the columns of a sample."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from reading.names import quoted

# What text can look like, each narrower than those after it that it could be mistaken for.
_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
SHAPES: Mapping[str, str] = {
    "boolean": r"true|false",
    "integer": r"-?(0|[1-9][0-9]{0,17})",
    "decimal": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?",
    "number": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,2})?",
    "date": _DATE,
    "timestamp": rf"{_DATE}[T ]{_TIME}(\.[0-9]{{1,6}})?",
    "instant": rf"{_DATE}[T ]{_TIME}(\.[0-9]{{1,6}})?(Z|[-+][0-9]{{2}}:[0-9]{{2}})",
    "time": _TIME,
    "uuid": r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "email": r"[^@ ]+@[^@ ]+\.[^@ ]+",
    "iban": r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}",
    "letters": r"[A-Z]{2,3}",
    "digits": r"[0-9]+",
}
NUMBERS = ("integer", "decimal", "number")
MOMENTS = ("date", "timestamp", "instant", "time")
FORMS = ("uuid", "email", "iban", "letters", "digits")
_MOST_VALUES = 20


@dataclass(frozen=True)
class Seen:
    """What was seen of a column.

    `type` is duckdb's. `shape` is what all its texts look like, a key of SHAPES or "". `low` and
    `high` are its least and greatest number, None where they are no finite numbers. `first` and
    `last` are its least and greatest value as text, `digits` and `scale` the most that stand
    before and after a point. `values` are all of them where they are few. `parts` are the fields of
    a structure, or the one item of a list, of which only names and types are known.
    """

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int
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
    parts: "tuple[Seen, ...]" = ()


def columns_of(
    connection: duckdb.DuckDBPyConnection, shapes: Mapping[str, tuple[str, ...]]
) -> tuple[Seen, ...]:
    """What is in each column of the view `sample`; `shapes` are those that its text may have.

    One query for its numbers, one for the values of those with few."""
    found = connection.sql("FROM sample")
    types = dict(zip(found.columns, found.types, strict=True))
    wanted = [_measures(n, str(type_), shapes.get(n, FORMS)) for n, type_ in types.items()]
    row = connection.sql(f"SELECT {', '.join(wanted)} FROM sample").fetchall()[0]
    seen = [
        _seen(name, type_, shapes.get(name, FORMS), measured)
        for (name, type_), measured in zip(types.items(), row, strict=True)
    ]
    few = [s.name for s in seen if s.type == "VARCHAR" and 0 < s.distinct <= _MOST_VALUES]
    lists = [f"list_sort(list(DISTINCT {quoted(name)}))" for name in few]
    told = connection.sql(f"SELECT {', '.join(lists)} FROM sample").fetchall()[0] if few else ()
    values = dict(zip(few, told, strict=True))
    return tuple(
        replace(s, values=tuple(v for v in values.get(s.name, ()) if v is not None)) for s in seen
    )


def _measures(name: str, type_: str, shapes: Iterable[str]) -> str:
    column, words = quoted(name), f"CAST({quoted(name)} AS VARCHAR)"
    measures = {"rows": "count(*)", "given": f"count({column})", "distinct": "0"}
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
        fits = (f"bool_and(regexp_full_match({words}, {text(SHAPES[s])}))" for s in shapes)
        measures["fits"] = f"[{', '.join(fits)}]"
    return "{" + ", ".join(f"'{key}': {sql}" for key, sql in measures.items()) + "}"


def _seen(name: str, type_: Any, shapes: Iterable[str], measured: dict[str, Any]) -> Seen:
    given, rows = measured.pop("given"), measured.pop("rows")
    fits = zip(shapes, measured.pop("fits", ()), strict=False)
    measured |= {end: _finite(measured.get(end)) for end in ("low", "high")}
    told: dict[str, Any] = {key: value for key, value in measured.items() if value is not None}
    shape = next((shape for shape, all_fit in fits if all_fit), "")
    return Seen(name, str(type_), rows, rows - given, shape=shape, parts=_parts(type_), **told)


def _parts(type_: Any) -> tuple[Seen, ...]:
    """The fields of a structure, or the item of a list."""
    if type_.id not in ("struct", "list", "array", "map"):
        return ()
    children = type_.children[:1] if type_.id == "array" else type_.children
    return tuple(Seen(n, str(part), 0, 0, 0, parts=_parts(part)) for n, part in children)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _is_nested(type_: str) -> bool:
    return type_.endswith("]") or type_.startswith(("STRUCT", "MAP", "UNION", "JSON", "BLOB"))


def _is_number(type_: str) -> bool:
    return type_ == "VARCHAR" or type_.startswith(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")
    )


def text(value: object) -> str:
    """A text as SQL reads it, whatever characters it has."""
    return "'" + str(value).replace("'", "''") + "'"
