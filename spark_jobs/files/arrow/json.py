"""Decode blocks of JSON objects with Arrow.

`json` defines the meaning. Objects are parsed by Arrow, which accepts them in a row without
anything between them. In JSON no line end can stand within a text, and nothing between } and {
within an object: so where these are apart by a line end, an object ends. If there is one object
more than such places, each place is the end of exactly one, and nothing else is between two of
them.

Arrow refuses objects whose values are of another kind than their columns. Then each value's kind is
guessed by its first characters, and objects of the same kinds are parsed together: Arrow refuses
any guess that is wrong.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql import DataFrame

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from spark_jobs.files.arrow.json_kinds import Kind, other_kinds, require_bad
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import (
    Block,
    Cells,
    Decoded,
    TextRows,
    declined,
    parsed_type,
    read_texts,
    refuse_too_large,
    table_of,
    text_of,
)
from spark_jobs.files.arrow.types import TIMES, schema_of
from spark_jobs.files.arrow.values import is_decimal, trues
from spark_jobs.files.source import PLACE
from spark_jobs.files.text.json import is_array, missing_names, start_of, typed_rows
from spark_jobs.schema.compare import Comparison, compare

_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_APART = re.compile(rb"\}([ \t]*\r?\n[ \t]*)\{")
_COMMA = re.compile(rb"\}([ \t\r\n]*,[ \t\r\n]*)\{")
# A decimal in a way that other parsers make a double of.
_DOUBLE = re.compile(rb"[0-9.][eE]|[0-9.]{30}")
_LONG = re.compile(rb"[0-9.]{300}")  # digits of which Spark's parser refuses some more
_Mask = np.ndarray[Any, Any]


def json_rows(head: bytes, contract: Contract) -> TextRows:
    """Return how to decode a JSON file whose text begins with `head`. Raises MustRewrite."""
    in_array = is_array(head)
    if start_of(head)[:1] not in (b"{", b"["):
        raise MustRewrite("it begins with neither an object nor an array")
    if any(column.type == "float" for column in contract.columns):
        raise MustRewrite("Spark alone reads numbers of the type float")
    if any(column.type != "string" for column in contract.columns if not column.is_declared):
        raise MustRewrite("Spark alone reads a column that the contract lacks and that is no text")
    matched = (_COMMA if in_array else _APART).search(head)
    between = matched[0] if matched else b"},{" if in_array else b"}\n{"
    decode = _Json(contract, between, in_array).decode

    def strictly(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
        return typed_rows(rows, {}, contract.columns, PLACE)

    def compared(keys: Iterable[str]) -> Comparison:
        missing = missing_names(present := {*keys}, contract)
        columns = [c.name for c in contract.columns if c.name.lower() not in missing]
        names = (*sorted(present - {*columns}), *columns)
        return compare([(name, "") for name in names], contract)

    return TextRows(between, 1, decode, strictly, compared, "item" if in_array else "line")


@dataclass(frozen=True)
class _Json:
    contract: Contract
    between: bytes
    in_array: bool

    def decode(self, block: Block) -> Decoded:
        """Return a block's rows. Raises MustRewrite."""
        body = self._objects(block)
        places = body.count(self.between)
        self._require_objects(body, places)
        whole = body.replace(self.between, b"}\n{") if self.in_array else body
        spread = whole.count(b"\n") > places
        before = 0 if self.in_array else _lines_before(block)
        try:
            parsed = _parsed(whole, places + 1, self.contract, spread=spread)
        except MustRewrite:
            rows = self._rows(block, body, whole, spread=spread)
            good, bad, present = _Groups(rows, whole, self.contract, spread).decoded()
        else:
            good, bad = _typed(parsed, self.contract)
            rows = None if bad is None else self._rows(block, body, whole, spread=spread)
            present = _present(parsed, self.contract)
        if bad is None:
            return Decoded(good, before + places + 1, present=present)
        ranks = np.flatnonzero(bad)
        texts = rows.take(pa.array(ranks))
        return Decoded(good, before + places + 1, texts, before + ranks, ranks, present)

    def _objects(self, block: Block) -> bytes:
        """Return the text of a block's objects, without what is around all of them."""
        body = block.body
        if block.is_first:
            body = start_of(body)
            body = body[1:].lstrip(_BLANKS) if self.in_array else body
        if block.is_last:
            body = body.rstrip(_BLANKS)
            if self.in_array and not body.endswith(b"]"):
                raise MustRewrite("its array has no end")
            body = body[:-1].rstrip(_BLANKS) if self.in_array else body
        return body

    def _require_objects(self, body: bytes, places: int) -> None:
        """Raise MustRewrite unless a text is of objects that are apart in the same way."""
        if not (body.startswith(b"{") and body.endswith(b"}")) or b"\0" in body:
            raise MustRewrite("its text is not of objects alone")
        ends = (b"\n", b"\r")
        if not self.in_array and any(
            body.count(end) != places * self.between.count(end) for end in ends
        ):
            raise MustRewrite("its lines are not all alike")
        if any(map(is_decimal, self.contract.columns)) and _DOUBLE.search(body):
            raise MustRewrite("it has decimals in a form that only Spark reads")
        text_of(body)

    def _rows(self, block: Block, body: bytes, whole: bytes, *, spread: bool) -> Any:
        """Return each object as it stands in the file. Raises MustRewrite.

        `whole` is the text of all objects, apart by line ends.
        """
        if not self.in_array and (
            self.between.strip(b"\r{}") != b"\n"
            or block.body.removeprefix(_MARK).strip(b"\r\n") != body
        ):
            raise MustRewrite("it has unreadable rows, and blanks around some of its rows")
        if not spread and b"\r" not in whole:
            return pa.array(whole.split(b"\n"), pa.string())
        return pa.array(body.replace(self.between, b"}\0{").split(b"\0"), pa.string())


def _lines_before(block: Block) -> int:
    """Return the number of lines before a block's first object."""
    return block.body[: len(block.body) - len(start_of(block.body))].count(b"\n")


def _parsed(
    body: bytes,
    count: int,
    contract: Contract,
    other: Mapping[str, pa.DataType] = MappingProxyType({}),
    *,
    spread: bool,
) -> pa.Table:
    """Return the values of so many objects, which may be `spread` over several lines each.

    Dates and times are texts; some columns have `other` types. Raises MustRewrite: Arrow refuses a
    key that comes twice, one that may not be there, and a value of another kind than its type.
    """
    types = {c.name: pa.string() if c.type in TIMES else parsed_type(c) for c in contract.columns}
    parsing = pa.json.ParseOptions(
        explicit_schema=pa.schema(list({**types, **other}.items())),
        newlines_in_values=spread,
        unexpected_field_behavior="infer" if contract.extra_columns == "drop" else "error",
    )
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(body) + 1)
    try:
        table = pa.json.read_json(pa.BufferReader(body), reading, parsing)
    except (pa.ArrowException, UnicodeError) as error:
        raise MustRewrite("it has values or keys that Arrow does not read") from error
    if table.num_rows != count:
        raise MustRewrite("its objects are not apart in the same way")
    _require_plain(table.select([name for name in table.column_names if name not in types]), body)
    return table


def _typed(parsed: pa.Table, contract: Contract) -> tuple[pa.Table, _Mask | None]:
    """Return the good ones of parsed rows, and which are bad."""
    table, bad = table_of(contract, lambda column: _cells(parsed[column.name], column))
    return (table, None) if bad is None else (table.filter(pa.array(~bad)), bad)


def _cells(values: Any, column: Column) -> Cells:
    if column.type in TIMES:
        return read_texts(values, column)
    if column.type == "double":  # Spark's parsers disagree about the sign of some zeros
        zeros = values.filter(pc.equal(values, 0.0))
        if trues(pc.less(pc.divide(1.0, zeros), 0.0)) or trues(pc.invert(pc.is_finite(values))):
            raise declined(column)
    return refuse_too_large(Cells(values), column)


def _require_plain(extra: pa.Table, body: bytes) -> None:
    """Raise MustRewrite if parsers differ in the values of keys that are no columns."""
    for values in extra.columns:
        is_number = pa.types.is_floating(values.type)
        if pa.types.is_nested(values.type) or (
            is_number and (_LONG.search(body) or trues(pc.invert(pc.is_finite(values))))
        ):
            raise MustRewrite("it has keys whose values only Spark reads")


def _present(table: pa.Table, contract: Contract) -> frozenset[str]:
    columns = {column.name for column in contract.columns}
    rows = table.num_rows
    return frozenset(
        n for n in table.column_names if n not in columns or table[n].null_count < rows
    )


_MOST_GROUPS = 64


@dataclass(frozen=True)
class _Groups:
    """Objects of which Arrow refused one, to be parsed by the kinds of their values.

    `whole` is the text of all of them.
    """

    rows: pa.Array
    whole: bytes
    contract: Contract
    spread: bool

    def decoded(self) -> tuple[pa.Table, _Mask | None, frozenset[str]]:
        """Return the good rows, which of all are bad, and the columns with values."""
        good = schema_of(self.contract.columns).empty_table()
        bad, present = np.zeros(len(self.rows), bool), frozenset[str]()
        for mask, kinds in self._groups():
            other = {column.name: type_ for column, (_, type_) in kinds.items()}
            count = int(np.count_nonzero(mask))
            text = self._text(mask, count)
            parsed = _parsed(text, count, self.contract, other, spread=self.spread)
            present |= _present(parsed, self.contract)
            for column in kinds:
                require_bad(parsed[column.name], column)
            if kinds:
                bad[mask] = True
                continue
            good, own = _typed(parsed, self.contract)
            if own is not None:
                bad[mask] = own
        return good, bad if bad.any() else None, present

    def _text(self, mask: _Mask, count: int) -> bytes:
        if count == len(self.rows):
            return self.whole
        return b"\n".join(self.rows.filter(pa.array(mask)).cast(pa.binary()).to_pylist())

    def _groups(self) -> Iterator[tuple[_Mask, dict[Column, Kind]]]:
        """Yield the rows whose values have the same kinds, and the columns with another kind."""
        guessed = {column: self._guessed(column) for column in self.contract.columns}
        other = {column: kinds for column, kinds in guessed.items() if kinds.any()}
        groups = np.zeros(len(self.rows), np.int64)
        for kinds in other.values():
            _, groups = np.unique(groups * 8 + kinds, return_inverse=True)
        numbers, firsts = np.unique(groups, return_index=True)
        if len(numbers) > _MOST_GROUPS:
            raise MustRewrite("its values have too many kinds")
        for group, first in zip(numbers, firsts, strict=True):
            at = {column: int(kinds[first]) for column, kinds in other.items()}
            yield groups == group, {c: other_kinds(c)[n - 1] for c, n in at.items() if n}

    def _guessed(self, column: Column) -> _Mask:
        """Return of each row the number of the other kind that its value may have, 0 for none."""
        kinds = other_kinds(column)
        name = re.escape(json.dumps(column.name, ensure_ascii=False))
        key = f"{name}[ \t\r\n]*:[ \t\r\n]*"
        any_kind = key + "(" + "|".join(begin for begin, _ in kinds) + ")"
        guessed = np.zeros(len(self.rows), np.int64)
        if not kinds or not trues(pc.match_substring_regex(self.rows, any_kind)):
            return guessed
        for number, (begin, _) in enumerate(kinds, 1):
            fits = pc.match_substring_regex(self.rows, key + f"({begin})")
            guessed[(guessed == 0) & fits.to_numpy(zero_copy_only=False)] = number
            if guessed.all():
                break
        return guessed
