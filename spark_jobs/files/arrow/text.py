"""Texts as Arrow decodes them: blocks of a file, their rows, and cells as values or as bad ones.

Spark's readers (`csv`, `json`) define the meaning. Here a text is a value only if it is written in
a usual way, and bad only if Spark's readers accept no such text. Any other text is for Spark alone
(MustRewrite): so nothing is refused, and no cell is guessed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.types import schema_of, type_of
from spark_jobs.files.arrow.values import FLOATING, is_decimal, trues
from spark_jobs.schema.compare import Comparison
from spark_jobs.schema.types import digits

Unparseable: TypeAlias = list[pa.Table]  # each row as it stands in its file, in `LINE`


@dataclass(frozen=True)
class Block:
    """A part of a text that ends where a row ends."""

    body: bytes
    is_first: bool
    is_last: bool


@dataclass(frozen=True)
class Decoded:
    """The rows of a block: the good ones, and the `bad` ones, each as it stands in the file.

    The block has so many `units`, lines or items; `places` are those of the bad rows, and `ranks`
    are theirs among all rows, from 0. Of the columns in `present` some row, good or bad, has a
    value; keys in it that are no columns are in some row.
    """

    good: pa.Table
    units: int
    bad: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    places: np.ndarray[Any, Any] = field(default_factory=lambda: np.array([], np.int64))
    ranks: np.ndarray[Any, Any] = field(default_factory=lambda: np.array([], np.int64))
    present: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TextRows:
    """The text between a file's rows, and the function that decodes a block of them.

    Rows are apart by `between`, of which the first byte belongs to the row before it, and the last
    `right` bytes to the next one. `strictly` is how Spark's own reader reads some rows by their
    lines, as `source.Placed` does, which has `unit` and `names`. `compared` compares with the
    contract's columns those of the file, to which all keys of its objects are added.
    """

    between: bytes
    right: int
    decode: Callable[[Block], Decoded]
    strictly: Callable[[DataFrame], tuple[DataFrame, DataFrame]]
    compared: Callable[[Iterable[str]], Comparison]
    unit: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cells:
    """A column's values, null where a cell is bad. `bad` says where, None if no cell is."""

    values: Any
    bad: Any = None

    def without(self, bad: Any) -> "Cells":
        """Return the cells, of which more are bad; nulls in `bad` mean that a cell is not."""
        bad = pc.fill_null(bad, False)
        if not trues(bad):
            return self
        every = bad if self.bad is None else pc.or_(self.bad, bad)
        return Cells(pc.if_else(bad, pa.scalar(None, self.values.type), self.values), every)


def text_of(body: bytes) -> str:
    """Return the text of some bytes in UTF-8. Raises MustRewrite."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise MustRewrite("it is not UTF-8") from error


def table_of(
    contract: Contract, read: Callable[[Column], Cells]
) -> tuple[pa.Table, np.ndarray[Any, Any] | None]:
    """Return the rows, and which of them are bad; None if none is. Raises MustRewrite."""
    columns, bad = [], None
    for column in contract.columns:
        try:
            cells = read(column)
            if is_decimal(column):  # Arrow's parsers do not count the digits before the point
                cells.values.validate(full=True)
        except (pa.ArrowException, UnicodeError) as error:
            raise declined(column) from error
        columns.append(cells.values)
        if cells.bad is not None:
            mask = cells.bad.to_numpy()
            bad = mask if bad is None else bad | mask
    return pa.table(columns, schema=schema_of(contract.columns)), bad


def declined(column: Column) -> MustRewrite:
    """Return why a column's texts are for Spark."""
    return MustRewrite(f"Spark alone reads all texts of its column {column.name}")


# The usual ways to write a value, each with one meaning; and, more widely, what else may be a value
# for Spark's readers. All expressions are RE2's, which take linear time.
_BIGINT = "[0-9]{1,19}"  # may still be too large, which no other expression tells
_INT = "[0-9]{1,18}"
_FLOATING = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"
NO_NUMBER = "(?i)^[+-]?(nan|inf|infinity)$"
_ANY_FLOATING = f"(?i)^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$|{NO_NUMBER[4:]}"
_DAYS = "0[1-9]|1[0-9]|2[0-8]"
_IN_YEAR = (
    f"((0[1-9]|1[0-2])-({_DAYS})|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
    "|02-29)"  # of which no expression tells the years
)
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
_MOMENT = f"[12][0-9]{{3}}-{_IN_YEAR}[T ]{_TIME}:[0-5][0-9]([.][0-9]{{1,6}})?"
_ANY_MOMENT = f"[0-9]{{4}}-{_IN_YEAR}([T ]{_TIME}(:[0-5][0-9]([.][0-9]+)?)?"
_ZONE = "( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?"
_FORMS = {
    "int": (f"^-?{_INT}$", f"^[+-]?0*{_INT}$"),
    "bigint": (f"^-?{_BIGINT}$", f"^[+-]?0*{_BIGINT}$"),
    "float": (_FLOATING, _ANY_FLOATING),
    "double": (_FLOATING, _ANY_FLOATING),
    "boolean": ("^(true|false)$", "(?i)^(true|false|t|f|yes|no|y|n|1|0)$"),
    "date": (f"^[12][0-9]{{3}}-{_IN_YEAR}$", f"^[0-9]{{4}}-{_IN_YEAR}$"),
    "timestamp": (f"^{_MOMENT}Z?$", f"^{_ANY_MOMENT}{_ZONE})?$"),
    "timestamp_ntz": (f"^{_MOMENT}$", f"^{_ANY_MOMENT})?$"),
}
_MOST_DIGITS = 15  # on either side: of more than 38 digits Arrow makes other numbers


def places_of(column: Column) -> tuple[int, int]:
    """Return how many digits a decimal column has before the point and after it."""
    precision, scale = digits(column.type)
    return precision - scale, scale


def _forms(column: Column) -> tuple[str, str]:
    """Return the expressions for the usual texts of a column, and for all that may be values."""
    if not is_decimal(column):
        return _FORMS[column.type]
    before, after = places_of(column)
    most, some = max(min(before, _MOST_DIGITS), 1), min(after, _MOST_DIGITS)
    fraction = f"([.][0-9]{{1,{some}}})?" if some else ""
    wide = f"0*[0-9]{{1,{max(before, 1)}}}([.][0-9]{{0,{after}}}0*)?|[.][0-9]{{0,{after}}}0*"
    return f"^-?[0-9]{{1,{most}}}{fraction}$", f"^[+-]?({wide})$"


def read_texts(texts: Any, column: Column) -> Cells:
    """Return the cells of a column of texts. Raises MustRewrite if one is for Spark."""
    if column.type == "string":
        return Cells(texts)
    usual, wide = _forms(column)
    is_usual, bad = pc.match_substring_regex(texts, usual), None
    if trues(is_usual) < len(texts) - texts.null_count:
        bad = pc.invert(pc.fill_null(is_usual, True))
        if trues(pc.match_substring_regex(texts.filter(bad), wide)):
            raise declined(column)
        texts = pc.if_else(bad, pa.scalar(None, texts.type), texts)
    return refuse_too_large(Cells(_values(texts, column), bad), column)


def _values(texts: Any, column: Column) -> Any:
    if column.type == "timestamp":
        return pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(type_of(column))
    return texts.cast(parsed_type(column))


def parsed_type(column: Column) -> pa.DataType:
    """Return the type as which Arrow parses a column's values, which may be too large for it."""
    return pa.int64() if column.type == "int" else type_of(column)


def refuse_too_large(cells: Cells, column: Column) -> Cells:
    """Return the cells; of these, values that are too large for the column's type are bad."""
    values = cells.values
    if column.type in FLOATING:
        return cells.without(pc.invert(pc.is_finite(values)))
    if column.type == "int":
        large = pc.or_(pc.less(values, -(1 << 31)), pc.greater(values, (1 << 31) - 1))
        kept = cells.without(large)
        return Cells(kept.values.cast(pa.int32()), kept.bad)
    if is_decimal(column):
        before, after = places_of(column)
        most = Decimal(f"{'9' * before}.{'9' * after}")
        return cells.without(pc.greater(pc.abs(values), pa.scalar(most, values.type)))
    return cells
