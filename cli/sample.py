"""A sample of data, looked at with duckdb: what is in each of its columns."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.orc

from cli.seen import FORMS, MOMENTS, NUMBERS, SHAPES, Seen, columns_of, text
from lakegate.errors import LakegateError
from reading.names import quoted

_NULLS = ("NA", "N/A", "NULL", "null", "None", "\\N", "nan", "NaN")
_JSON_TEXT = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "UUID")
_JSON_NUMBERS = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE")


@dataclass(frozen=True)
class Sample:
    """A file's format and the options to read it, both as a contract has them, and its columns."""

    format: str
    options: Mapping[str, str]
    rows: int
    columns: tuple[Seen, ...]


def sample(file: Path) -> Sample:
    """Look at a file: parquet, CSV, TSV, JSON (lines or one array), ORC, and gzip of text.

    Raises LakegateError UNREADABLE when it is none of these, or cannot be read, and NO_ROWS.
    """
    try:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            format_, options, source, shapes = _opened(connection, file)
            connection.execute(f"CREATE VIEW sample AS {source}")
            columns = columns_of(connection, shapes)
            if not columns or not columns[0].rows:
                raise LakegateError("NO_ROWS", f"{file} has no rows, which tell nothing")
            return Sample(format_, options, columns[0].rows, columns)
    except (duckdb.Error, pa.ArrowException, OSError, EOFError) as error:
        raise LakegateError("UNREADABLE", f"{file} cannot be read: {error}") from error


_Opened = tuple[str, dict[str, str], str, dict[str, tuple[str, ...]]]


def _opened(connection: duckdb.DuckDBPyConnection, file: Path) -> _Opened:
    """Format, options, the query of the rows, and what the texts of columns may be read as."""
    name = file.name.removesuffix(".gz").lower()
    head = _head(file)
    if head.startswith(b"PAR1"):
        return "parquet", {}, f"FROM read_parquet({text(file)})", {}
    if head.startswith(b"ORC"):
        connection.register("orc", pyarrow.orc.read_table(file))
        return "orc", {}, "FROM orc", {}
    if head.startswith(b"Obj\x01"):
        message = f"{file} is Avro, from which no contract can be drafted yet: give it as parquet"
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
    """The word that stands for null, which is none where empty cells do."""
    columns = [quoted(name) for name in connection.sql(read).columns]
    counts = [
        " + ".join(f"count_if({column} = {text(word)})" for column in columns) for word in _NULLS
    ]
    empty = " + ".join(f"count_if({column} IS NULL)" for column in columns)
    told = connection.sql(f"SELECT {', '.join(counts)}, {empty} {read}").fetchall()[0]
    *words, nulls = (count or 0 for count in told)
    return _NULLS[words.index(max(words))] if max(words) and not nulls else ""


def _json(connection: duckdb.DuckDBPyConnection, file: Path) -> _Opened:
    """Numbers as they are written, and texts that duckdb takes for moments, are read as text."""
    found = connection.sql(f"FROM read_json({text(file)}, sample_size=-1)")
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    shapes: dict[str, tuple[str, ...]]
    shapes = {name: NUMBERS for name, type_ in types.items() if type_ in _JSON_NUMBERS}
    texts = [n for n, type_ in types.items() if type_ == "VARCHAR" or type_.startswith(_JSON_TEXT)]
    shapes |= dict.fromkeys(texts, MOMENTS + FORMS)
    read_as = {name: "VARCHAR" if name in shapes else type_ for name, type_ in types.items()}
    columns = ", ".join(f"{text(name)}: {text(type_)}" for name, type_ in read_as.items())
    return "json", {}, f"FROM read_json({text(file)}, columns={{{columns}}})", shapes
