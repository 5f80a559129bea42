"""Read a CSV sample as the job reads it: its options, and each cell as text.

Python's parser is the one by which the job counts a file's rows (spark_jobs/files/text/csv.py).
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from access.tables.check_sql import POSITION
from cli.contract.suggest.cells import Cells, refusal, refuse_bad_rows, table_of
from cli.contract.suggest.columns import CELLS, SHAPES, Outlier
from lakegate.contract.reading.properties import name_problem
from lakegate.contract.reading.settings import DECIMAL_SEPARATOR
from lakegate.contract.written import needs_decimal_comma
from spark_jobs.files.text.csv_rows import csv_reader, row_pattern

_DELIMITERS = (",", ";", "\t", "|")
_HEAD = 1 << 18  # characters that decide on the delimiter
_ENOUGH = 1000  # different cells that tell what a column is
_DEFAULTS = {"header": "true", "delimiter": ",", "quote": '"', "escape": '"', "encoding": "UTF-8"}
_UNQUOTED = "~^`\x01"  # one that is nowhere in a file is the quote of a file without quotes
_QUOTED_EMPTY = r'(^|[{0}\r\n])""(?=[{0}\r\n]|$)'
# Words for null: the first ones surely, the others only if they explain a column.
_SURE_NULLS = ("NULL", "null", "\\N", "None", "#N/A")
_NULLS = (*_SURE_NULLS, "NA", "N/A", "nan", "NaN")
_CONTROLS = re.compile("[\x80-\x9f]")
_SEPARATOR_LINE = re.compile('"?sep=.?"?\r?\n', re.IGNORECASE)
_YEAR = re.compile("(1[89]|20)[0-9]{2}")
_WITH_POINT, _WITH_COMMA = re.compile(r"-?[0-9]+\.[0-9]+"), re.compile("-?[0-9]+(,[0-9]+)?")
_DATA = re.compile("|".join(f"(?:{SHAPES[shape]})" for shape in CELLS if shape != "letters"))


@dataclass
class _Rows:
    """The rows of a file with as many cells as its first one, and the lines of the others."""

    names: Sequence[str]
    cells: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[Outlier] = field(default_factory=list)
    widths: Counter[int] = field(default_factory=Counter)
    ends: set[str] = field(default_factory=set)
    spans_lines: bool = False


def read_csv(data: bytes) -> Cells:
    """Return the cells of a file's bytes. Raises LakegateError UNREADABLE, with a remedy."""
    encoding, content = decoded(data)
    if _SEPARATOR_LINE.match(content):
        raise refusal(
            "begins with a line for Excel (sep=), which would be its header",
            "Write it without that line.",
        )
    options = _dialect(content[:_HEAD]) | {"encoding": encoding}
    options, rows = _parsed(content, options)
    if _lacks_header(rows):
        rows.cells.insert(0, tuple(rows.names))
        rows.lines.insert(0, 1)
        options["header"] = "false"
        rows.names = [f"column_{number}" for number in range(1, len(rows.names) + 1)]
    refuse_bad_rows(rows.bad, len(rows.cells), _why_bad(rows))
    if rows.spans_lines and len(rows.ends) > 1:
        raise refusal(
            "has cells with line ends, and rows that end differently (CRLF, LF)",
            "End all rows alike: the job cannot tell them apart.",
        )
    names, left_out = _names(rows.names)
    places = [rows.names.index(name) for name in names]
    table = table_of([[row[at] for at in places] for row in rows.cells], names, rows.lines)
    if re.search(_QUOTED_EMPTY.format(re.escape(options["delimiter"])), content):
        options |= {"nullValue": ""}
    options |= _null_word(table, options)
    table = _blank_as_null(table, options.get("nullValue"))
    if commas := _decimal_commas(table):
        options[DECIMAL_SEPARATOR] = ","
        table = _with_points(table, commas)
    given = {key: value for key, value in options.items() if _DEFAULTS.get(key) != value}
    return Cells("csv", given, table, dict.fromkeys(names, CELLS), left_out, tuple(rows.bad))


def decoded(data: bytes) -> tuple[str, str]:
    """Return the encoding of a text, by the contract's name for it, and its characters."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16", data.decode("utf-16", errors="replace")
    zeros = [data[place:4096:2].count(0) for place in (0, 1)]
    if max(zeros) > min(len(data), 4096) // 4:
        encoding = "UTF-16BE" if zeros[0] > zeros[1] else "UTF-16LE"
        return encoding, data.decode(encoding, errors="replace")
    text = data.decode("utf-8-sig", errors="replace")
    damaged = text.count("\ufffd")
    valid = sum(char > "\x7f" for char in text) - damaged if damaged else 0
    if valid >= damaged:
        return "UTF-8", text
    latin = data.decode("latin-1")
    if _CONTROLS.search(latin):
        return "WINDOWS-1252", data.decode("cp1252", errors="replace")
    return "ISO-8859-1", latin


def _dialect(head: str) -> dict[str, str]:
    """Return the options whose delimiter gives the first rows as many cells as the header."""
    quote = "'" if head.startswith("'") else '"'
    every = [_DEFAULTS | {"delimiter": d, "quote": quote, "escape": quote} for d in _DELIMITERS]
    return max(every, key=lambda options: _agreement(head, options))


def _agreement(head: str, options: Mapping[str, str]) -> tuple[bool, float, int]:
    widths: list[int] = []
    with suppress(csv.Error):
        rows = csv_reader(io.StringIO(head), options)
        widths.extend(len(row) for row in islice(rows, 1000) if row)
    common, count = Counter(widths).most_common(1)[0] if widths else (1, 0)
    return common > 1 and widths[0] == common, count * (common > 1) / (len(widths) or 1), common


def _parsed(content: str, options: dict[str, str]) -> tuple[dict[str, str], _Rows]:
    """Return the rows, and the options that read most of them: other quotes if need be."""
    absent = next((char for char in _UNQUOTED if char not in content), '"')
    failed: csv.Error | None = None
    readings: list[tuple[dict[str, str], _Rows]] = []
    for more in ({}, {"escape": "\\"}, {"quote": absent, "escape": absent}):
        try:
            readings.append((options | more, _read(content, options | more)))
        except csv.Error as error:
            failed = failed or error
            continue
        if not readings[-1][1].bad:
            return readings[-1]
    if not readings:
        raise refusal(f"is no CSV: {failed}", "Close each quote where its cell ends.") from failed
    return min(readings, key=lambda each: len(each[1].bad))


def _read(content: str, options: Mapping[str, str]) -> _Rows:
    lines, sound = _Lines(content), re.compile(f"{row_pattern(options)}[\r\n]*", re.DOTALL)
    reader = csv_reader(lines, options)
    rows = _Rows(next(filter(None, reader), []))
    width, before, is_damaged = len(rows.names), reader.line_num, "\ufffd" in content
    rows.widths[width] += 1
    lines.take()
    for row in reader:
        is_sound = sound.fullmatch(lines.take()) is not None
        first, before = before + 1, reader.line_num
        if not row:
            continue
        rows.spans_lines = rows.spans_lines or before > first
        rows.ends.add(lines.end)
        rows.widths[len(row)] += 1
        if (
            not is_sound
            or len(row) != width
            or (is_damaged and any("\ufffd" in cell for cell in row))
        ):
            rows.bad.append(Outlier(first, options["delimiter"].join(row)))
        else:
            rows.cells.append(tuple(row))
            rows.lines.append(first)
    rows.ends.discard("")
    return rows


@dataclass
class _Lines:
    """The lines of a text; `end` is the line end of the latest one."""

    content: str
    end: str = ""
    row: str = ""

    def __iter__(self) -> Iterator[str]:
        for line in io.StringIO(self.content, newline=""):
            self.end = line[len(line.rstrip("\r\n")) :]
            self.row += line
            yield line

    def take(self) -> str:
        """Return the lines since this was called before."""
        row, self.row = self.row, ""
        return row


def _why_bad(rows: _Rows) -> tuple[str, str]:
    width = len(rows.names)
    common, count = rows.widths.most_common(1)[0]
    if common != width:
        return (
            f"has {width} cells in its first row, but {common} in {count:,} of its rows",
            "Its first row must be the header, with a name for each column: mend or remove it.",
        )
    remedy = "Mend these rows: their cells cannot be told apart, or are no text in its encoding."
    return f"has rows without exactly {width} readable cells", remedy


def _lacks_header(rows: _Rows) -> bool:
    """Return if the first row has numbers, dates and the like, as the rows below it do."""
    below = rows.cells[:20]
    return bool(below) and any(
        _is_data(cell) and not _YEAR.fullmatch(cell) and all(_is_data(row[place]) for row in below)
        for place, cell in enumerate(rows.names)
    )


def _is_data(cell: str) -> bool:
    return bool(_DATA.fullmatch(cell))


def _names(header: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the names that columns can have, and a sentence for each of the others."""
    twice = [name for name, n in Counter(name.lower() for name in header).items() if n > 1]
    if twice:
        which = " and ".join(repr(name) for name in twice[:3])
        raise refusal(
            f"has more than one column named {which}",
            "Give each column a name of its own (upper and lower case are the same).",
        )
    named = [name for name in header if not name_problem(name, top=True)]
    if not named:
        raise refusal("has no header that names a column", "Write the names into its first line.")
    others = [f"column {n}" for n, name in enumerate(header, 1) if name_problem(name, top=True)]
    return named, tuple(f"{other} has no usable name" for other in others)


def _null_word(table: pa.Table, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for the word that means null, besides empty cells; none without one."""
    columns = [table[name] for name in table.column_names if name != POSITION]
    counts = {word: sum(_count(column, word) for column in columns) for word in _NULLS}
    word = max(counts, key=lambda each: counts[each])
    has_empty = any(_count(column, "") for column in columns)
    if not counts[word] or not (
        word in _SURE_NULLS or not has_empty or any(_explains(word, each) for each in columns)
    ):
        return {}
    quoted_empty = {"emptyValue": word} if "nullValue" in options else {}
    return {"nullValue": word} | quoted_empty


def _count(column: pa.ChunkedArray, word: str) -> int:
    return pc.sum(pc.equal(column, word)).as_py() or 0


def _explains(word: str, column: pa.ChunkedArray) -> bool:
    """Return if all other cells of a column with the word are numbers, dates and the like."""
    cells = pc.unique(column)[:_ENOUGH].to_pylist()
    others = [cell for cell in cells if cell not in ("", word)]
    return word in cells and bool(others) and all(map(_is_data, others))


def _decimal_commas(table: pa.Table) -> list[str]:
    """Return the columns of numbers such as 12,5; none if another has decimal points."""
    names = [name for name in table.column_names if name != POSITION]
    cells = {name: pc.unique(table[name]).drop_null()[:_ENOUGH].to_pylist() for name in names}
    if any(some and all(map(_WITH_POINT.fullmatch, some)) for some in cells.values()):
        return []
    return [
        name
        for name, some in cells.items()
        if all(map(_WITH_COMMA.fullmatch, some)) and any(map(needs_decimal_comma, some))
    ]


def _with_points(table: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        pointed = pc.replace_substring_regex(table[name], "^(-?[0-9]+),([0-9]+)$", r"\1.\2")
        table = table.set_column(table.column_names.index(name), name, pointed)
    return table


def _blank_as_null(table: pa.Table, word: str | None) -> pa.Table:
    for place, name in enumerate(table.column_names):
        if name != POSITION:
            column = table[name]
            nulls = pc.is_in(column, value_set=pa.array(list({"", word or ""})))
            table = table.set_column(place, name, pc.if_else(nulls, None, column))
    return table
