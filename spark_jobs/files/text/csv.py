"""Read CSV: Spark finds the cells, rows are counted separately, the contract gives the types."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from secrets import token_hex

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import has_decimal_comma
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import (
    PLACE,
    Bytes,
    Placed,
    Source,
    readable_source,
    refused_source,
)
from spark_jobs.files.text import text_lines
from spark_jobs.files.text.cells import read_cell
from spark_jobs.files.text.csv_rows import (
    Options,
    Rows,
    count_rows,
    csv_reader,
    first_lines,
    quoted_cell,
    row_pattern,
)
from spark_jobs.files.text.header_clues import clues
from spark_jobs.files.text.sniff import HEAD
from spark_jobs.files.text.text_lines import (
    BY_BYTES,
    LINE,
    literal,
    measure,
    read_lines,
)
from spark_jobs.files.text.typed import typed_by_cells
from spark_jobs.schema.compare import compare


def complete_line(options: Options) -> str:
    """Return a Java regular expression for lines that are complete rows.

    If all lines of a file match, no line end is within quotes, so that Spark can read the file line
    by line, in parallel. All parts are possessive, so matching takes linear time.
    """
    delimiter, quote = (re.escape(options[name]) for name in ("delimiter", "quote"))
    cell = f"(?:{quoted_cell(options)}|(?!{quote})[^{delimiter}]*+)"
    return f"(?s)\\A{cell}(?:{delimiter}{cell})*+\\z"


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, and its header as it stands there, "" without one."""

    names: tuple[str, ...]
    first: str


def header_of(head: bytes, contract: Contract) -> Header:
    """Return a CSV file's header, or the contract's names for a file without. Raises Permanent."""
    if contract.options["header"] == "true":
        return header(head, contract.options)
    return Header(tuple(column.name for column in contract.columns), "")


def header(head: bytes, options: Options) -> Header:
    """Return the header of a CSV file: the names in its first row, and its first line.

    Raises Permanent NOT_CSV when the row cannot be parsed, or does not end within `head`.
    """
    text = _text_of(head, options)
    if len(head) >= HEAD and not re.search(r"[\r\n]", text.lstrip()):
        raise Permanent("NOT_CSV", f"there is no line end in the first {HEAD:,} bytes")
    first = next(filter(None, re.split(r"\r\n?|\n", text)), "")
    try:
        rows = csv_reader(io.StringIO(text, newline=""), options)
        return Header(tuple(next(filter(None, rows), ())), first)
    except csv.Error as error:
        message = f"the first row cannot be parsed: {error}"
        raise Permanent("NOT_CSV", message) from error


def _text_of(head: bytes, options: Options) -> str:
    return head.decode(options["encoding"], errors="replace").removeprefix("\ufeff")


_BAD = "bad"
# Stands for a quoted empty cell between two steps: a random text that no file contains.
_QUOTED_EMPTY = f"\ue000{token_hex(8)}"
_PARSER_END = "\uffff"  # Spark's parser of single lines takes it for that
# Of the options, those of the parser of lines; that of files takes the header, too.
_PARSER_OPTIONS = ("delimiter", "quote", "escape", "encoding")
_PARSER = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BAD,
    "nullValue": "",
    "emptyValue": _QUOTED_EMPTY,
}

_WRITER = {
    "nullValue": "",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}


def read_csv(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, head: bytes, limits: Limits
) -> Source:
    """Read a CSV file; `head` is the beginning of its text.

    A file whose lines are all complete rows is read in parallel. Any other file, and one in UTF-16,
    is counted first and then read by one task.
    """
    options, heading = contract.options, header_of(head, contract)
    names = heading.names
    if not names:
        raise Permanent("NO_HEADER", f"the file has no header in its first {HEAD:,} bytes")
    check_columns(len(names), limits)
    comparison = compare([(name, "") for name in names], contract)
    if comparison.findings:
        return refused_source(spark, comparison, clues(_text_of(head, options), names, contract))
    by_bytes = options["encoding"] in BY_BYTES
    cells = _by_lines(spark, path, options, heading) if by_bytes else None
    rows, count = cells or _by_quotes(spark, path, options, len(names), file, limits)
    typed, _ = typed_rows(rows, names, comparison.columns, options)

    def every() -> DataFrame:
        if cells:
            return text_lines.numbered_lines(spark, path, options["encoding"])
        return rows.withColumn(PLACE, F.monotonically_increasing_id())

    def numbered() -> tuple[DataFrame, DataFrame]:
        if cells:
            lines = every().where(f"{LINE} <> ''")
            return typed_lines(lines, heading, comparison.columns, options)
        return typed_rows(every(), names, comparison.columns, options, PLACE)

    def lines_of(numbers: Sequence[int]) -> list[int]:
        before = int(options["header"] == "true")
        opened = partial(text_lines.uncompressed, file, gzipped=path.endswith(".gz"))
        found = first_lines(opened, options, [number + before for number in numbers])
        return [found.get(number + before, 0) for number in numbers]

    lines = None if cells else lines_of
    placed = Placed(numbered, every, "line", names, lines)
    return readable_source(typed, comparison, count, placed)


def _by_lines(
    spark: SparkSession, path: str, options: Options, header: Header
) -> tuple[DataFrame, int] | None:
    """Return the rows and their number if each line is a row; None for any other file."""
    lines, first = read_lines(spark, path, options["encoding"]), header.first
    is_open = _has_quotes_unlike(complete_line(options), options)
    measures = {
        "lines": "count(*)",
        "open": f"count_if(({is_open}) OR contains({LINE}, '{_PARSER_END}'))",
        "first": f"count_if({LINE} = {literal(first)})",
    }
    counts = measure(lines, measures)
    if counts["open"] or counts["first"] > 1 or (first and not counts["first"]):
        return None
    return _cells_of_lines(lines, options, header), counts["lines"] - (1 if first else 0)


def _has_quotes_unlike(pattern: str, options: Options) -> str:
    """Return the condition that a line has a quote, and is not as a regular expression says."""
    has_quote = f"contains({LINE}, {literal(options['quote'])})"
    return f"{has_quote} AND NOT {LINE} RLIKE {literal(pattern)}"


def _cells_of_lines(lines: DataFrame, options: Options, header: Header, *kept: str) -> DataFrame:
    """Return the cells of lines that are rows each, with the columns `kept` of the lines.

    A line with a quote within a cell that does not begin with one is bad: often a delimiter is
    missing before the quote, so that all cells behind it would move.
    """
    width, first = len(header.names), header.first
    rows = lines.where(f"{LINE} <> {literal(first)}") if first else lines
    parser = _PARSER | {name: options[name] for name in _PARSER_OPTIONS}
    arguments = ", ".join(literal(text) for item in parser.items() for text in item)
    stray = _has_quotes_unlike(f"(?s)\\A{row_pattern(options)}\\z", options)
    sound = f"is_valid_utf8({LINE}) AND NOT ({stray})"
    # Behind another cell, as the parser drops a byte order mark where it begins, in its first line.
    line = f"concat({literal(options['delimiter'])}, {LINE})"
    parsed = f"from_csv({line}, 'before STRING, {_schema(width)}', map({arguments})) AS parsed"
    return rows.selectExpr(LINE, parsed, *kept).selectExpr(
        *[f"parsed.{name}" for name in _cells(width)],
        f"if({sound} AND parsed.{_BAD} IS NULL, NULL, make_valid_utf8({LINE})) AS {_BAD}",
        LINE,
        *kept,
    )


def typed_lines(
    lines: DataFrame, header: Header, columns: Sequence[Column], options: Options
) -> tuple[DataFrame, DataFrame]:
    """Return lines that are rows each as `typed_rows`, with their `PLACE`."""
    placed = _cells_of_lines(lines, options, header, PLACE)
    return typed_rows(placed, header.names, columns, options, PLACE)


def _by_quotes(
    spark: SparkSession, path: str, options: Options, width: int, file: Bytes, limits: Limits
) -> tuple[DataFrame, int]:
    """Return the rows of a file with line ends within quotes, and their number."""
    open_text = partial(text_lines.uncompressed, file, gzipped=path.endswith(".gz"))
    counted = count_rows(open_text, options, limits)
    parser = _PARSER | {name: options[name] for name in ("header", *_PARSER_OPTIONS)}
    reader = spark.read.schema(_schema(width)).options(**parser, lineSep=_end(counted))
    rows = reader.options(multiLine="true").csv(path)
    rows = rows.withColumn(LINE, F.expr(_written(width, options)))
    if counted.undecodable:
        damaged = f"if(contains({LINE}, '\ufffd'), {LINE}, {_BAD})"
        rows = rows.withColumn(_BAD, F.expr(damaged))
    return rows, counted.count - (options["header"] == "true")


def _written(width: int, options: Options) -> str:
    """Return the text of a row of cells as a file has it, with quotes where they are needed."""
    own = {name: options[name] for name in ("delimiter", "quote", "escape")}
    arguments = ", ".join(literal(text) for item in (_WRITER | own).items() for text in item)
    text = f"to_csv(struct({', '.join(_cells(width))}), map({arguments}))"
    return f"replace({text}, '{_QUOTED_EMPTY}', {literal(2 * options['quote'])})"


def _end(rows: Rows) -> str:
    """Return the line end of all rows; without it, Spark's parser would change line ends in cells.

    Raises Permanent CORRUPT_FILE if rows have different line ends.
    """
    if len(rows.ends) > 1:
        ends = " and ".join(sorted(map(repr, rows.ends)))
        message = (
            f"rows have different line ends ({ends}), although cells contain line ends: end every "
            "row with the same one"
        )
        raise Permanent("CORRUPT_FILE", message)
    return next(iter(rows.ends), "\n")


def typed_rows(
    rows: DataFrame, names: Sequence[str], columns: Sequence[Column], options: Options, *kept: str
) -> tuple[DataFrame, DataFrame]:
    """Return the rows with the columns' types, and the unparseable rows with their broken cells.

    Absent columns are null. In a row with too few or too many cells no cell is marked as broken.
    Both have the columns `kept` as well.
    """
    at = {name.lower(): cell for name, cell in zip(names, _cells(len(names)), strict=True)}
    fields = [(f"t{n}", at.get(c.name.lower(), "NULL"), c) for n, c in enumerate(columns)]
    texts = [f"{_text(cell, column, options)} AS {text}" for text, cell, column in fields]
    as_text = rows.selectExpr(*texts, _BAD, LINE, *kept)
    cells = [(c.name, read_cell(_pointed(text, c, options), c), text) for text, _, c in fields]
    row = f"coalesce({_BAD}, {LINE})"
    return typed_by_cells(as_text, cells, row, f"{_BAD} IS NOT NULL", kept)


def _text(cell: str, column: Column, options: Options) -> str:
    """Return a cell's text; null where it is empty or has the contract's null value."""
    empty = literal(options.get("emptyValue", ""))
    if column.type != "string" and "emptyValue" not in options:
        empty = "NULL"  # nothing else could be meant
    text = f"CASE WHEN {cell} = '{_QUOTED_EMPTY}' THEN {empty} ELSE CAST({cell} AS STRING) END"
    return f"nullif({text}, {literal(options['nullValue'])})" if "nullValue" in options else text


def _pointed(text: str, column: Column, options: Options) -> str:
    """Return the text of a number with a decimal point; one that has a point is no number then."""
    if has_decimal_comma(options) and column.is_fractional:
        return f"translate({text}, ',.', '.,')"
    return text


def _cells(width: int) -> list[str]:
    return [f"c{n}" for n in range(width)]


def _schema(width: int) -> str:
    return ", ".join(f"{name} STRING" for name in (*_cells(width), _BAD))
