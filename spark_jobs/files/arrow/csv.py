"""Decode blocks of CSV with Arrow: cells are split as texts, and then read as values.

`csv` defines the meaning. Each line must be a complete row; one with too many or too few cells is
bad, and so is one with a bad cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql import DataFrame

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import has_decimal_comma
from lakegate.contract.written import FORMATS, MONTHS
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import (
    Block,
    Cells,
    Decoded,
    TextRows,
    declined,
    read_texts,
    table_of,
    text_of,
)
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.files.arrow.values import trues
from spark_jobs.files.text.csv import Header, header_of, typed_lines
from spark_jobs.files.text.csv_rows import Options
from spark_jobs.files.text.text_lines import BY_BYTES
from spark_jobs.schema.compare import compare

_MARK = b"\xef\xbb\xbf"
_MOST_CELLS = 10_000
_ENCODINGS = (*BY_BYTES, "WINDOWS-1252")  # of which a line end is one byte, too


def csv_rows(head: bytes, contract: Contract) -> TextRows:
    """Return how to decode a CSV file whose text begins with `head`. Raises MustRewrite."""
    options, header = contract.options, header_of(head, contract)
    comparison = compare([(name, "") for name in header.names], contract)
    if comparison.findings or not header.names:
        raise MustRewrite("its columns are not those that the contract allows")
    if options["encoding"] not in _ENCODINGS or options["quote"] != options["escape"]:
        raise MustRewrite("Spark alone reads its encoding or its escapes")
    if any(not "\t" <= options[name] <= "~" for name in ("delimiter", "quote")):
        raise MustRewrite("Spark alone reads its delimiter or its quotes")
    for column in comparison.columns:
        if column.written and not _is_usual(column):
            raise declined(column)

    def strictly(lines: DataFrame) -> tuple[DataFrame, DataFrame]:
        return typed_lines(lines, header, comparison.columns, options)

    own = replace(contract, columns=comparison.columns)
    decode = _Csv(own, header).decode
    return TextRows(b"\n", 0, decode, strictly, lambda _: comparison, "line", header.names)


@dataclass(frozen=True)
class _Csv:
    contract: Contract
    header: Header

    def decode(self, block: Block) -> Decoded:
        """Return a block's rows. Raises MustRewrite."""
        options = self.contract.options
        body = _in_utf8(block, options["encoding"])
        units = _line_count(body)
        _require_lines(body, options)
        body, before = self._without_header(body, is_first=block.is_first)
        if not body.strip(b"\r\n"):
            return Decoded(schema_of(self.contract.columns).empty_table(), units)
        texts, wrong = self._texts(body)
        by_name = {name.lower(): texts[name] for name in self.header.names}
        absent = pa.nulls(len(texts), pa.string())
        table, bad = table_of(
            self.contract,
            lambda column: _cells(by_name.get(column.name.lower(), absent), column, options),
        )
        if wrong is None and bad is None:
            return Decoded(table, units)
        lines, numbers = _lines(body)
        is_bad = np.zeros(len(lines), bool) if wrong is None else wrong
        if len(lines) - np.count_nonzero(is_bad) != len(table):
            raise MustRewrite("its lines are not its rows")
        if bad is not None:
            is_bad[~is_bad] = bad
            table = table.filter(pa.array(~bad))
        ranks = np.flatnonzero(is_bad)
        return Decoded(table, units, lines.take(pa.array(ranks)), before + numbers[ranks], ranks)

    def _without_header(self, body: bytes, *, is_first: bool) -> tuple[bytes, int]:
        """Return a block's lines of rows, and the number of lines before them."""
        header = self.header.first.encode()
        if not header:
            return body, 0
        end = next((e for e in (b"\n", b"\r\n") if body.startswith(header + e)), b"")
        if is_first and not end:
            raise MustRewrite("its header is not its first line")
        rest = body[len(header + end) :] if is_first else body
        if header in rest and header in rest.replace(b"\r", b"").split(b"\n"):
            raise MustRewrite("its header comes again")
        return rest, int(is_first)

    def _texts(self, body: bytes) -> tuple[pa.Table, np.ndarray[Any, Any] | None]:
        """Return the cells of rows that have all of them, and which lines have not, if any."""
        options, names = self.contract.options, self.header.names
        try:
            return _texts(body, options, names), None
        except (pa.ArrowException, UnicodeError):
            lines, _ = _lines(body)
        wrong = _with_other_cells(lines, options, len(names))
        fine = lines.filter(pa.array(~wrong)).cast(pa.binary()).to_pylist()
        if not fine:
            return pa.table([pa.array([], pa.string()) for _ in names], list(names)), wrong
        try:
            return _texts(b"\n".join(fine), options, names), wrong
        except (pa.ArrowException, UnicodeError) as error:
            raise MustRewrite("its rows have different numbers of cells") from error


def _in_utf8(block: Block, encoding: str) -> bytes:
    """Return a block's text in UTF-8, without a mark at the file's beginning."""
    if encoding == "UTF-8":
        return block.body.removeprefix(_MARK) if block.is_first else block.body
    if block.is_first and block.body.startswith(_MARK):
        raise MustRewrite("it begins with the mark of another encoding")
    if encoding not in BY_BYTES and block.body.count(b"\r") not in (0, block.body.count(b"\n")):
        raise MustRewrite("its lines have different ends")
    try:
        return block.body.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise MustRewrite(f"it is not {encoding}") from error


def _with_other_cells(lines: pa.Array, options: Options, width: int) -> np.ndarray[Any, Any]:
    """Return which of some complete rows have not so many cells."""
    delimiter, _ = _signs(options)
    outside = pc.replace_substring_regex(lines, f"(^|{delimiter}){_quoted(options)}", "\\1")
    counted = pc.count_substring(outside, options["delimiter"]).to_numpy()
    if counted.max(initial=0) > _MOST_CELLS:
        raise MustRewrite("it has rows with very many cells, of which Spark refuses some")
    different: np.ndarray[Any, Any] = counted != width - 1
    return different


def _line_count(body: bytes) -> int:
    """Return the number of lines, of which the last one may have no end."""
    return body.count(b"\n") + int(bool(body) and not body.endswith(b"\n"))


def _lines(body: bytes) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    """Return the lines that are not empty, and their numbers from 0."""
    lines = pa.array(body.replace(b"\r", b"").split(b"\n"), pa.string())
    numbers = np.flatnonzero(pc.binary_length(lines).to_numpy())
    return lines.take(pa.array(numbers)), numbers


def _require_lines(body: bytes, options: Options) -> None:
    """Raise MustRewrite unless each line is a row, and quotes stand only where they must."""
    if body.count(b"\r") != body.count(b"\r\n"):
        raise MustRewrite("its lines have different ends")
    if b"\0" in body or b"\xef\xbf\xbf" in body:
        raise MustRewrite("it has characters that only Spark's reader knows")
    text = text_of(body)
    if options["quote"] in text:
        match = pc.match_substring_regex(pa.array([text], pa.large_string()), _complete(options))
        if not match[0].as_py():
            raise MustRewrite("it has quotes within cells, or line ends within quotes")


def _complete(options: Options) -> str:
    """Return an expression for lines that are complete rows, in RE2, which has linear time."""
    delimiter, quote = _signs(options)
    cell = f"(?:{_quoted(options)}|[^{quote}{delimiter}\\r\\n]+)?"
    row = f"{cell}(?:{delimiter}{cell})*"
    return f"\\A(?:{row}\\r?\\n)*(?:{row})?\\z"


def _quoted(options: Options) -> str:
    """Return an expression for a cell in quotes, in a line that is a complete row."""
    _, quote = _signs(options)
    inside = f"[^{quote}\\r\\n]*"
    return f"{quote}{inside}(?:{quote}{quote}{inside})*{quote}"


def _signs(options: Options) -> tuple[str, str]:
    delimiter, quote = (f"\\x{ord(options[name]):02x}" for name in ("delimiter", "quote"))
    return delimiter, quote


def _texts(body: bytes, options: Options, names: tuple[str, ...]) -> pa.Table:
    """Return the cells as texts; empty ones without quotes are null."""
    parsing = pa.csv.ParseOptions(delimiter=options["delimiter"], quote_char=options["quote"])
    converting = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    if body.startswith(_MARK):
        body = _MARK + body  # Arrow drops one mark, but this one is of the first cell
    if not body.endswith(b"\n"):
        body += b"\n"  # else Arrow takes an empty last cell for a quoted one if that before it is
    reading = pa.csv.ReadOptions(
        use_threads=False, block_size=len(body) + 1, column_names=list(names)
    )
    return pa.csv.read_csv(pa.BufferReader(body), reading, parsing, converting)


def _cells(texts: Any, column: Column, options: Mapping[str, str]) -> Cells:
    if column.type != "string" or "emptyValue" in options:
        texts = _instead(texts, "", options.get("emptyValue"))
    if "nullValue" in options:
        texts = _instead(texts, options["nullValue"], None)
    if has_decimal_comma(options) and column.is_fractional:
        texts = pc.replace_substring(pc.replace_substring(texts, ".", "\0"), ",", ".")
    return read_texts(_in_iso(texts, column) if column.written else texts, column)


def _is_usual(column: Column) -> bool:
    """Return if a column's own format is one that has a form in ISO 8601 for the column's type."""
    form = FORMATS.get(column.written)
    return form is not None and (column.type != "date" or not form.has_time)


def _in_iso(texts: Any, column: Column) -> Any:
    """Return the texts of a column's own format in ISO 8601; others are no moments there.

    Raises MustRewrite for a text that Spark's reader might know as a moment.
    """
    form = FORMATS[column.written]
    shaped = pc.match_substring_regex(texts, form.shape)
    if trues(shaped) < len(texts) - texts.null_count:
        others = texts.filter(pc.invert(pc.fill_null(shaped, True)))
        if trues(pc.match_substring_regex(others, form.loose)):
            raise declined(column)
        texts = pc.if_else(shaped, texts, pa.scalar("no moment"))
    midnight = "" if form.has_time or column.type == "date" else " 00:00:00"
    texts = pc.replace_substring_regex(texts, form.shape, form.iso + midnight)
    for number, month in enumerate(MONTHS if "MMM" in form.pattern else (), 1):
        texts = pc.replace_substring_regex(texts, f"(?i)-{month}-", f"-{number:02}-")
    return pc.replace_substring_regex(texts, r"-([0-9])\b", r"-0\1")


def _instead(texts: Any, text: str, other: str | None) -> Any:
    return pc.if_else(pc.equal(texts, text), pa.scalar(other, pa.string()), texts)
