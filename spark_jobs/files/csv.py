"""CSV: cells found by Spark, rows found and counted beside it, types taken from the contract."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Any, BinaryIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from lakegate.contract.model import Column, Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files import text_lines
from spark_jobs.files.cells import blamed, read_cell
from spark_jobs.files.limits import check_columns, check_line
from spark_jobs.files.sniff import HEAD
from spark_jobs.files.source import BAD_ROW, Bytes, Source, opened, unread
from spark_jobs.files.text_lines import BY_BYTES, LINE, literal, measure, read_lines
from spark_jobs.schema.compare import compare

# Where the rows of a CSV file begin and end, found without Spark's parser. Pure.
#
# The grammar is RFC 4180's, with two liberties that everybody takes: a quote inside of a cell
# that began without one is a character like any other, and empty lines are no rows.

# Spark's names of the reader's options; delimiter, quote, escape and encoding are always given.
Options = Mapping[str, str]


@dataclass(frozen=True)
class Rows:
    """A file's rows, its header among them; `undecodable` where bytes were no text.

    `ends` are the line ends behind its rows: one of a kind, but for files put together of others.
    """

    count: int
    ends: frozenset[str]
    undecodable: bool


def complete_line(options: Options) -> str:
    """A Java regular expression for lines that are whole rows by themselves.

    Where all lines of a file match there is no line end within quotes, so that the file can be
    read line by line, in parallel. No part of it can go back, so that it takes linear time.
    """
    delimiter, quote, escape = (
        f"\\x{{{ord(options[name]):x}}}" for name in ("delimiter", "quote", "escape")
    )
    escaped = f"{quote}{quote}" if quote == escape else f"{escape}."
    inside = f"[^{quote}{escape}]*+(?:{escaped}[^{quote}{escape}]*+)*+"
    cell = f"(?:{quote}{inside}{quote}|(?!{quote})[^{delimiter}]*+)"
    return f"(?s)\\A{cell}(?:{delimiter}{cell})*+\\z"


def header(head: bytes, options: Options) -> tuple[tuple[str, ...], str]:
    """The names in a CSV file's first row, and its first line as it stands there.

    Raises Permanent NOT_CSV when the row cannot be read, or does not end within `head`.
    """
    text = head.decode(options["encoding"], errors="replace").removeprefix("\ufeff")
    if len(head) >= HEAD and not re.search(r"\S.*[\r\n]", text):
        raise Permanent("NOT_CSV", f"there is no line end among the first {HEAD:,} bytes")
    first = next(filter(None, re.split(r"\r\n?|\n", text)), "")
    try:
        rows = _reader(io.StringIO(text, newline=""), options)
        return tuple(next(filter(None, rows), ())), first
    except csv.Error as error:
        message = f"the first row cannot be read: {error}"
        raise Permanent("NOT_CSV", message) from error


def count_rows(
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    limits: Limits = DEFAULTS,
) -> Rows:
    """Count a CSV file's rows by its quotes and line ends; `opened` gives its bytes.

    Raises Permanent LINE_TOO_LONG where a line or a cell has more characters than are taken, and
    CORRUPT_FILE where a quote that was opened is not closed at the end of a cell: whatever follows
    might be data, or might be part of that cell.
    """
    try:
        return Rows(*_count(opened, options, "strict", limits), undecodable=False)
    except UnicodeDecodeError:
        return Rows(*_count(opened, options, "replace", limits), undecodable=True)


def _count(
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    options: Options,
    errors: str,
    limits: Limits,
) -> tuple[int, frozenset[str]]:
    with opened() as file:
        lines = _Lines(io.TextIOWrapper(file, options["encoding"], errors, newline=""), limits)
        reader = _reader(lines, options, limits.longest_line)
        try:
            counted = Counter((bool(row), lines.end) for row in reader)
            count = sum(number for (is_row, _), number in counted.items() if is_row)
            return count, frozenset(end for _, end in counted if end)
        except csv.Error as error:
            if "field limit" in str(error):
                check_line(limits.longest_line + 1, limits)
            message = (
                f"line {reader.line_num:,}: {error}. A quote there, or on a line before it, is not "
                "closed where its cell ends, so it is unknown where the next rows begin"
            )
            raise Permanent("CORRUPT_FILE", message) from error


@dataclass
class _Lines:
    """The lines, none longer than one may be in memory; `end` is the end of the latest one."""

    text: io.TextIOWrapper
    limits: Limits
    end: str = ""

    def __iter__(self) -> Iterator[str]:
        while line := self.text.readline(self.limits.longest_line + 2):
            length = len(line.rstrip("\r\n"))
            check_line(length, self.limits)
            self.end = line[length:]
            yield line


def _reader(lines: Iterable[str], options: Options, longest: int = HEAD) -> Any:
    csv.field_size_limit(longest)
    doubled = options["quote"] == options["escape"]
    return csv.reader(
        lines,
        delimiter=options["delimiter"],
        quotechar=options["quote"],
        doublequote=doubled,
        escapechar=None if doubled else options["escape"],
        strict=True,
    )


_BAD = "bad"
# What a cell "" is between two steps: a text that nobody could have written into a file.
_QUOTED_EMPTY = f"\ue000{token_hex(8)}"
_END_OF_INPUT = "\uffff"  # Spark's parser of single lines takes it for that
_OWN = ("header", "delimiter", "quote", "escape", "encoding")  # of the options, those of the parser
_PARSER = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BAD,
    "nullValue": "",
    "emptyValue": _QUOTED_EMPTY,
}


def read_csv(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, head: bytes, limits: Limits
) -> Source:
    """A CSV file's rows; `head` is the beginning of its text.

    A file in which every line is a whole row is read in parallel. Any other, and one in UTF-16, is
    read by one task, after its rows were counted by `csv_grammar`.
    """
    options = contract.options
    has_header = options["header"] == "true"
    names, first = header(head, options) if has_header else (_names(contract), "")
    if not names:
        raise Permanent("NO_HEADER", f"the file has no header among its first {HEAD:,} bytes")
    check_columns(len(names), limits)
    landing = compare([(name, "") for name in names], contract)
    if landing.findings:
        return unread(spark, landing)
    cells = _by_lines(spark, path, options, len(names), first) if _by_bytes(options) else None
    rows, count = cells or _by_quotes(spark, path, options, len(names), file, limits)
    typed, bad = _typed(rows, names, landing.columns, options)
    return opened(typed, landing, count, bad)


def _by_lines(
    spark: SparkSession, path: str, options: Options, width: int, first: str
) -> tuple[DataFrame, int] | None:
    """The rows of a file in which each line is one, and their number; None for any other file."""
    lines = read_lines(spark, path, options["encoding"])
    has_quote = f"contains({LINE}, {literal(options['quote'])})"
    is_open = f"{has_quote} AND NOT {LINE} RLIKE {literal(complete_line(options))}"
    found = measure(
        lines,
        {
            "lines": "count(*)",
            "open": f"count_if(({is_open}) OR contains({LINE}, '{_END_OF_INPUT}'))",
            "first": f"count_if({LINE} = {literal(first)})",
        },
    )
    if found["open"] or found["first"] > 1 or (first and not found["first"]):
        return None
    rows = lines.where(f"{LINE} <> {literal(first)}") if first else lines
    parser = {**_PARSER, **{name: options[name] for name in _OWN if name != "header"}}
    arguments = ", ".join(literal(text) for item in parser.items() for text in item)
    parsed = f"from_csv({LINE}, '{_schema(width)}', map({arguments})) AS parsed"
    cells = rows.selectExpr(LINE, parsed).selectExpr(
        *[f"parsed.{name}" for name in _cells(width)],
        f"if(is_valid_utf8({LINE}), parsed.{_BAD}, make_valid_utf8({LINE})) AS {_BAD}",
        LINE,
    )
    return cells, found["lines"] - (1 if first else 0)


def _by_quotes(
    spark: SparkSession, path: str, options: Options, width: int, file: Bytes, limits: Limits
) -> tuple[DataFrame, int]:
    """The rows of a file with line ends within quotes, and their number."""
    opened = partial(text_lines.plain, file, gzipped=path.endswith(".gz"))
    counted = count_rows(opened, options, limits)
    parser = {**_PARSER, **{name: options[name] for name in _OWN}, "lineSep": _end(counted)}
    rows = spark.read.schema(_schema(width)).options(**parser, multiLine="true").csv(path)
    line = f"concat_ws({literal(options['delimiter'])}, {', '.join(_cells(width))})"
    rows = rows.withColumn(LINE, F.expr(f"replace({line}, '{_QUOTED_EMPTY}')"))
    if counted.undecodable:
        damaged = f"if(contains({LINE}, '\ufffd'), {LINE}, {_BAD})"
        rows = rows.withColumn(_BAD, F.expr(damaged))
    return rows, counted.count - (options["header"] == "true")


def _end(rows: Rows) -> str:
    """Return the line end of all rows; told of none Spark's parser changes those within cells.

    Raises Permanent CORRUPT_FILE where they differ.
    """
    if len(rows.ends) > 1:
        ends = " and ".join(sorted(map(repr, rows.ends)))
        message = f"its rows end in different ways ({ends}), though there are line ends in cells"
        raise Permanent("CORRUPT_FILE", f"{message}: write the same one behind every row")
    return next(iter(rows.ends), "\n")


def _typed(
    rows: DataFrame, names: Sequence[str], columns: Sequence[Column], options: Options
) -> tuple[DataFrame, DataFrame]:
    """Cells as the columns' types, null where the file has none; a misfit marks its row.

    Beside these rows those with a misfit, and which of their cells it is; of a row with too few or
    too many cells none is to blame.
    """
    at = {name.lower(): cell for name, cell in zip(names, _cells(len(names)), strict=True)}
    found = [(f"t{n}", at.get(c.name.lower(), "NULL"), c) for n, c in enumerate(columns)]
    texts = [f"{_text(cell, column, options)} AS {text}" for text, cell, column in found]
    cells = [(column.name, read_cell(text, column)) for text, _, column in found]
    broken = " OR ".join([f"{_BAD} IS NOT NULL", *(cell.broken for _, cell in cells)])
    as_text = rows.selectExpr(*texts, _BAD, LINE)
    named = [(c.name, cell.broken, t) for (t, _, c), (_, cell) in zip(found, cells, strict=True)]
    return as_text.selectExpr(
        *[f"{cell.value} AS {quoted(name)}" for name, cell in cells],
        f"CASE WHEN {broken} THEN coalesce({_BAD}, {LINE}) END AS {BAD_ROW}",
    ), as_text.where(broken).selectExpr(
        f"coalesce({_BAD}, {LINE}) AS row",
        f"CASE WHEN {_BAD} IS NULL THEN {blamed(named)} END AS cells",
    )


def _text(cell: str, column: Column, options: Options) -> str:
    """A cell's text: null where the file has nothing, or what the contract says means nothing."""
    empty = literal(options.get("emptyValue", ""))
    if column.type != "string" and "emptyValue" not in options:
        empty = "NULL"  # nothing else could be meant
    text = f"CASE WHEN {cell} = '{_QUOTED_EMPTY}' THEN {empty} ELSE CAST({cell} AS STRING) END"
    return f"nullif({text}, {literal(options['nullValue'])})" if "nullValue" in options else text


def _by_bytes(options: Options) -> bool:
    return options["encoding"] in BY_BYTES


def _names(contract: Contract) -> tuple[str, ...]:
    return tuple(column.name for column in contract.columns)


def _cells(width: int) -> list[str]:
    return [f"c{n}" for n in range(width)]


def _schema(width: int) -> str:
    return ", ".join(f"{name} STRING" for name in (*_cells(width), _BAD))
