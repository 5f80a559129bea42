"""Profile a sample of data with duckdb: its format, and the values of each column."""

import gzip
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.orc

from access.check_sql import quoted
from lakegate.errors import LakegateError

# Profiles of columns.

# Shapes of text; each is narrower than the later ones that also match it.
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
class ColumnProfile:
    """The values of a column in the sample.

    `type` is duckdb's. `shape` is the key of SHAPES that all texts match, or "". `low` and `high`
    are the least and greatest number, None if not finite. `first` and `last` are the least and
    greatest value as text. `digits` and `scale` are the most digits before and after a point.
    `values` lists all values if there are few. `parts` are the fields of a structure or the item of
    a list, with name and type only.
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
    parts: "tuple[ColumnProfile, ...]" = ()


def columns_of(
    connection: duckdb.DuckDBPyConnection, shapes: Mapping[str, tuple[str, ...]]
) -> tuple[ColumnProfile, ...]:
    """Profile each column of the view `sample`; `shapes` limits the shapes of a column's text.

    One query reads the numbers, another the values of columns with few of them.
    """
    found = connection.sql("FROM sample")
    types = dict(zip(found.columns, found.types, strict=True))
    selected = [_measures(n, str(type_), shapes.get(n, FORMS)) for n, type_ in types.items()]
    row = connection.sql(f"SELECT {', '.join(selected)} FROM sample").fetchall()[0]
    profiles = [
        _profile(name, type_, shapes.get(name, FORMS), measured)
        for (name, type_), measured in zip(types.items(), row, strict=True)
    ]
    few = [s.name for s in profiles if s.type == "VARCHAR" and 0 < s.distinct <= _MOST_VALUES]
    lists = [f"list_sort(list(DISTINCT {quoted(name)}))" for name in few]
    row = connection.sql(f"SELECT {', '.join(lists)} FROM sample").fetchall()[0] if few else ()
    values = dict(zip(few, row, strict=True))
    return tuple(
        replace(s, values=tuple(v for v in values.get(s.name, ()) if v is not None))
        for s in profiles
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


def _profile(
    name: str, type_: Any, shapes: Iterable[str], measured: dict[str, Any]
) -> ColumnProfile:
    given, rows = measured.pop("given"), measured.pop("rows")
    fits = zip(shapes, measured.pop("fits", ()), strict=False)
    measured |= {end: _finite(measured.get(end)) for end in ("low", "high")}
    present: dict[str, Any] = {key: value for key, value in measured.items() if value is not None}
    shape = next((shape for shape, all_fit in fits if all_fit), "")
    return ColumnProfile(
        name, str(type_), rows, rows - given, shape=shape, parts=_parts(type_), **present
    )


def _parts(type_: Any) -> tuple[ColumnProfile, ...]:
    """Return the fields of a structure, or the item of a list."""
    if type_.id not in ("struct", "list", "array", "map"):
        return ()
    children = type_.children[:1] if type_.id == "array" else type_.children
    return tuple(ColumnProfile(n, str(part), 0, 0, 0, parts=_parts(part)) for n, part in children)


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


_NULLS = ("NA", "N/A", "NULL", "null", "None", "\\N", "nan", "NaN")
_JSON_TEXT = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "UUID")
_JSON_NUMBERS = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE")


@dataclass(frozen=True)
class Sample:
    """A file's format and reader options as in a contract, and the profiles of its columns."""

    format: str
    options: Mapping[str, str]
    rows: int
    columns: tuple[ColumnProfile, ...]


def sample(file: Path) -> Sample:
    """Profile a file: parquet, ORC, CSV, TSV or JSON (lines or one array), also gzipped text.

    Raises LakegateError UNREADABLE for any other or a broken file, and NO_ROWS.
    """
    try:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            format_, options, source, shapes = _opened(connection, file)
            connection.execute(f"CREATE VIEW sample AS {source}")
            columns = columns_of(connection, shapes)
            if not columns or not columns[0].rows:
                raise LakegateError("NO_ROWS", f"{file} has no rows")
            return Sample(format_, options, columns[0].rows, columns)
    except (duckdb.Error, pa.ArrowException, OSError, EOFError) as error:
        raise LakegateError("UNREADABLE", f"cannot read {file}: {error}") from error


_Opened = tuple[str, dict[str, str], str, dict[str, tuple[str, ...]]]


def _opened(connection: duckdb.DuckDBPyConnection, file: Path) -> _Opened:
    """Return format, options, the query of the rows, and the possible shapes of text columns."""
    name = file.name.removesuffix(".gz").lower()
    head = _head(file)
    if head.startswith(b"PAR1"):
        return "parquet", {}, f"FROM read_parquet({text(file)})", {}
    if head.startswith(b"ORC"):
        connection.register("orc", pyarrow.orc.read_table(file))
        return "orc", {}, "FROM orc", {}
    if head.startswith(b"Obj\x01"):
        message = f"{file} is Avro, which cannot be sampled yet\nConvert it to parquet."
        raise LakegateError("UNREADABLE", message)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") and not name.endswith("sv"):
        return _json(connection, file)
    return _csv(connection, file)


def _head(file: Path) -> bytes:
    open_ = gzip.open if file.name.endswith(".gz") else open
    with open_(file, "rb") as stream:
        return bytes(stream.read(64))


def _csv(connection: duckdb.DuckDBPyConnection, file: Path) -> _Opened:
    dialect = connection.execute(
        f"SELECT Delimiter, Quote FROM sniff_csv({text(file)}, sample_size=-1)"
    ).fetchall()[0]
    delimiter, quote = dialect[0], dialect[1] if len(dialect[1]) == 1 else '"'
    read = (
        f"FROM read_csv({text(file)}, all_varchar=true, header=true, delim={text(delimiter)}, "
        f"quote={text(quote)}, escape={text(quote)}, allow_quoted_nulls=false, sample_size=-1"
    )
    null = _null_word(connection, f"{read})")
    defaults = {"delimiter": ",", "quote": '"', "nullValue": ""}
    given = {"delimiter": delimiter, "quote": quote, "nullValue": null}
    options = {key: value for key, value in given.items() if value != defaults[key]}
    names = connection.sql(f"{read})").columns
    source = f"{read}, nullstr={text(null)})"
    return "csv", options, source, dict.fromkeys(names, tuple(SHAPES))


def _null_word(connection: duckdb.DuckDBPyConnection, read: str) -> str:
    """Return the word that means null, "" if empty cells do."""
    columns = [quoted(name) for name in connection.sql(read).columns]
    counts = [
        " + ".join(f"count_if({column} = {text(word)})" for column in columns) for word in _NULLS
    ]
    empty = " + ".join(f"count_if({column} IS NULL)" for column in columns)
    row = connection.sql(f"SELECT {', '.join(counts)}, {empty} {read}").fetchall()[0]
    *words, nulls = (count or 0 for count in row)
    return _NULLS[words.index(max(words))] if max(words) and not nulls else ""


def _json(connection: duckdb.DuckDBPyConnection, file: Path) -> _Opened:
    """Read numbers as written, and texts that duckdb converts to dates or times as text."""
    found = connection.sql(f"FROM read_json({text(file)}, sample_size=-1)")
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    shapes: dict[str, tuple[str, ...]]
    shapes = {name: NUMBERS for name, type_ in types.items() if type_ in _JSON_NUMBERS}
    texts = [n for n, type_ in types.items() if type_ == "VARCHAR" or type_.startswith(_JSON_TEXT)]
    shapes |= dict.fromkeys(texts, MOMENTS + FORMS)
    read_as = {name: "VARCHAR" if name in shapes else type_ for name, type_ in types.items()}
    columns = ", ".join(f"{text(name)}: {text(type_)}" for name, type_ in read_as.items())
    return "json", {}, f"FROM read_json({text(file)}, columns={{{columns}}})", shapes
