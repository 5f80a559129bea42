"""Decode CSV and JSON with Arrow, where that provably means what Spark's readers mean.

`csv` and `json` define the meaning. Here a block of a file is either decoded to exactly their rows,
all of them good, or declined (MustRewrite): so nothing is refused, and no cell is guessed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from spark_jobs.audit.arrow_values import arrow_type, is_decimal, is_plain, trues
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.csv import header_of
from spark_jobs.files.csv_rows import Options
from spark_jobs.files.json import is_array, start_of
from spark_jobs.schema.compare import compare

_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_TIMES: Mapping[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_WHOLE = "^-?[0-9]+$"
_DAY = "[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
_MOMENT = f"{_DAY}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?"
# The usual ways to write a value, each with one meaning. Other ways are left to Spark.
_WRITTEN = {
    "int": _WHOLE,
    "bigint": _WHOLE,
    "float": "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$",
    "double": "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$",
    "boolean": "^(true|false)$",
    "date": f"^{_DAY}$",
    "timestamp": f"^{_MOMENT}Z?$",
    "timestamp_ntz": f"^{_MOMENT}$",
}
_DECIMAL = "^-?[0-9]{1,15}([.][0-9]{1,15})?$"  # of more than 38 digits Arrow makes other numbers


@dataclass(frozen=True)
class Block:
    """A part of a text that ends where a row ends."""

    body: bytes
    is_first: bool
    is_last: bool


@dataclass(frozen=True)
class Rows:
    """The text between a file's rows, and the function that makes a block of them a table.

    Rows are apart by `between`, of which the first `left` bytes belong to the row before it, and
    the last `right` bytes to the next one.
    """

    between: bytes
    left: int
    right: int
    decode: Callable[[Block], pa.Table]


def rows_of(head: bytes, contract: Contract) -> Rows:
    """Return how to read a file whose text begins with `head`. Raises MustRewrite."""
    for column in contract.columns:
        if not is_plain(column) or column.type == "binary" or column.written or column.zone:
            raise MustRewrite(f"Spark alone reads the texts of its column {column.name}")
    try:
        return _of_json(head, contract) if contract.format == "json" else _of_csv(head, contract)
    except Permanent as error:  # Spark's reader says what is wrong
        raise MustRewrite(error.code) from error


def schema_of(contract: Contract) -> pa.Schema:
    """Return the types of the contract's columns as Iceberg has them in Parquet."""
    return pa.schema([(column.name, _type(column)) for column in contract.columns])


def _type(column: Column) -> pa.DataType:
    return _TIMES.get(column.type) or arrow_type(column)


def _of_csv(head: bytes, contract: Contract) -> Rows:
    options, found = contract.options, header_of(head, contract)
    comparison = compare([(name, "") for name in found.names], contract)
    if comparison.findings or comparison.changes or not found.names:
        raise MustRewrite("its columns are not exactly the contract's")
    if options["encoding"] != "UTF-8" or options["quote"] != options["escape"]:
        raise MustRewrite("Spark alone reads its encoding or its escapes")
    if any(not "\t" <= options[name] <= "~" for name in ("delimiter", "quote")):
        raise MustRewrite("Spark alone reads its delimiter or its quotes")

    def decode(block: Block) -> pa.Table:
        return _csv_table(block, contract, found.names, found.first.encode())

    return Rows(b"\n", 1, 0, decode)


def _csv_table(block: Block, contract: Contract, names: tuple[str, ...], header: bytes) -> pa.Table:
    body = block.body.removeprefix(_MARK) if block.is_first else block.body
    _require_lines(body, contract.options)
    if block.is_first and header:
        end = next((e for e in (b"\n", b"\r\n") if body.startswith(header + e)), b"")
        if not end:
            raise MustRewrite("its header is not its first line")
        body = body[len(header + end) :]
    if not body.strip(b"\r\n"):
        return schema_of(contract).empty_table()
    texts = _csv_texts(body, contract.options, names)
    found = {name.lower(): texts[name] for name in names}
    return _table(contract, lambda column: _csv_column(found, column, contract.options))


def _require_lines(body: bytes, options: Options) -> None:
    """Raise MustRewrite unless each line is a row, and quotes stand only where they must."""
    if body.count(b"\r") != body.count(b"\r\n"):
        raise MustRewrite("its lines have different ends")
    if b"\0" in body or b"\xef\xbf\xbf" in body:
        raise MustRewrite("it has characters that only Spark's reader knows")
    text = _text(body)
    if options["quote"] in text:
        found = pc.match_substring_regex(pa.array([text], pa.large_string()), _complete(options))
        if not found[0].as_py():
            raise MustRewrite("it has quotes within cells, or line ends within quotes")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise MustRewrite("it is not UTF-8") from error


def _complete(options: Options) -> str:
    """Return an expression for lines that are complete rows, in RE2, which has linear time."""
    delimiter, quote = (f"\\x{ord(options[name]):02x}" for name in ("delimiter", "quote"))
    inside = f"[^{quote}\\r\\n]*"
    quoted = f"{quote}{inside}(?:{quote}{quote}{inside})*{quote}"
    cell = f"(?:{quoted}|[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*)?"
    row = f"{cell}(?:{delimiter}{cell})*"
    return f"\\A(?:{row}\\r?\\n)*(?:{row})?\\z"


def _csv_texts(body: bytes, options: Options, names: tuple[str, ...]) -> pa.Table:
    """Return the cells as texts; empty ones without quotes are null."""
    parsing = pa.csv.ParseOptions(delimiter=options["delimiter"], quote_char=options["quote"])
    converting = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    reading = pa.csv.ReadOptions(
        use_threads=False, block_size=len(body) + 1, column_names=list(names)
    )
    try:
        return pa.csv.read_csv(pa.BufferReader(body), reading, parsing, converting)
    except (pa.ArrowException, UnicodeError) as error:
        raise MustRewrite("its rows have different numbers of cells") from error


def _csv_column(
    texts: Mapping[str, pa.ChunkedArray], column: Column, options: Options
) -> pa.ChunkedArray:
    found = texts[column.name.lower()]
    if column.type != "string" or "emptyValue" in options:
        found = _instead(found, "", options.get("emptyValue"))
    if "nullValue" in options:
        found = _instead(found, options["nullValue"], None)
    return _read(found, column)


def _instead(texts: pa.ChunkedArray, text: str, other: str | None) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(texts, text), pa.scalar(other, pa.string()), texts)


def _read(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Return the values of texts; each must be written in the usual way. Raises MustRewrite."""
    if column.type == "string":
        return texts
    usual = pc.match_substring_regex(texts, _WRITTEN.get(column.type, _DECIMAL))
    if trues(usual) < len(texts) - texts.null_count:
        raise _declined(column)
    if column.type == "timestamp":
        return pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(_type(column))
    return _finite(texts.cast(_type(column)), column)


def _finite(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if column.type in ("float", "double") and pc.all(pc.is_finite(values)).as_py() is False:
        raise _declined(column)
    return values


def _declined(column: Column) -> MustRewrite:
    return MustRewrite(f"Spark alone reads all texts of its column {column.name}")


def _table(contract: Contract, read: Callable[[Column], pa.ChunkedArray]) -> pa.Table:
    columns = []
    for column in contract.columns:
        try:
            columns.append(read(column))
            if is_decimal(column):  # Arrow's parsers do not count the digits before the point
                columns[-1].validate(full=True)
        except (pa.ArrowException, UnicodeError) as error:
            raise _declined(column) from error
    return pa.table(columns, schema=schema_of(contract))


# JSON. Objects are parsed by Arrow, which accepts them in a row without anything between them. In
# JSON no line end can stand within a text, and nothing between } and { within an object: so where
# these are apart by a line end, an object ends. If there is one object more than such places, each
# place is the end of exactly one, and nothing else is between two of them.

_APART = re.compile(rb"\}([ \t]*\r?\n[ \t]*)\{")
_COMMA = re.compile(rb"\}([ \t\r\n]*,[ \t\r\n]*)\{")
# A decimal in a way that other parsers make a double of.
_DOUBLE = re.compile(rb"[0-9.][eE]|[0-9.]{30}")


def _of_json(head: bytes, contract: Contract) -> Rows:
    in_array = is_array(head)
    if start_of(head)[:1] not in (b"{", b"["):
        raise MustRewrite("it begins with neither an object nor an array")
    if any(column.type == "float" for column in contract.columns):
        raise MustRewrite("Spark alone reads numbers of the type float")
    found = (_COMMA if in_array else _APART).search(head)
    between = found[0] if found else b"},{" if in_array else b"}\n{"

    def decode(block: Block) -> pa.Table:
        return _json_table(block, contract, between, in_array=in_array)

    return Rows(between, 1, 1, decode)


def _json_table(block: Block, contract: Contract, between: bytes, *, in_array: bool) -> pa.Table:
    body = _objects(block, in_array=in_array)
    places = body.count(between)
    if not (body.startswith(b"{") and body.endswith(b"}")) or b"\0" in body:
        raise MustRewrite("its text is not of objects alone")
    if in_array:
        body = body.replace(between, b"}\n{")
    elif any(body.count(end) != places * between.count(end) for end in (b"\n", b"\r")):
        raise MustRewrite("its lines are not all alike")
    if any(map(is_decimal, contract.columns)) and _DOUBLE.search(body):
        raise MustRewrite("it has decimals in a form that only Spark reads")
    _text(body)
    found = _parsed(body, contract, spread=body.count(b"\n") > places)
    if found.num_rows != places + 1:
        raise MustRewrite("its objects are not apart in the same way")
    return _table(contract, lambda column: _json_column(found[column.name], column))


def _objects(block: Block, *, in_array: bool) -> bytes:
    """Return the text of a block's objects, without what is around all of them."""
    body = block.body
    if block.is_first:
        body = start_of(body)
        body = body[1:].lstrip(_BLANKS) if in_array else body
    if block.is_last:
        body = body.rstrip(_BLANKS)
        if in_array and not body.endswith(b"]"):
            raise MustRewrite("its array has no end")
        body = body[:-1].rstrip(_BLANKS) if in_array else body
    return body


def _parsed(body: bytes, contract: Contract, *, spread: bool) -> pa.Table:
    """Return the values of objects, which may be `spread` over several lines each.

    Dates and times are texts. Arrow refuses a key that comes twice, one that is no column, and a
    value of another kind than its column's.
    """
    types = [(c.name, pa.string() if c.type in _TIMES else _type(c)) for c in contract.columns]
    parsing = pa.json.ParseOptions(
        explicit_schema=pa.schema(types),
        newlines_in_values=spread,
        unexpected_field_behavior="error",
    )
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(body) + 1)
    try:
        return pa.json.read_json(pa.BufferReader(body), reading, parsing)
    except (pa.ArrowException, UnicodeError) as error:
        raise MustRewrite("it has values or keys that Arrow does not read") from error


def _json_column(values: Any, column: Column) -> Any:
    if column.type in _TIMES:
        return _read(values, column)
    if column.type == "double":  # Spark's parsers disagree about the sign of some zeros
        zeros = values.filter(pc.equal(values, 0.0))
        if pc.any(pc.less(pc.divide(1.0, zeros), 0.0)).as_py():
            raise _declined(column)
    return _finite(values, column)
