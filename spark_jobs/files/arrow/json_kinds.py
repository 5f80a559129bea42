"""Values of another kind than their column's, which are bad.

Each kind has the beginning by which it is guessed, as an expression of RE2, and the type as which
Arrow parses it.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from lakegate.contract.columns import Column
from spark_jobs.files.arrow.text import (
    NO_NUMBER,
    declined,
    places_of,
    read_texts,
)
from spark_jobs.files.arrow.values import is_decimal, trues

Kind = tuple[str, pa.DataType]
_TEXT: Kind = ('"', pa.string())
_TRUTH: Kind = ("[tf]", pa.bool_())
_NUMBER: Kind = ("[-0-9]", pa.float64())
_FRACTION: Kind = ("-?[0-9]+[.eE]", pa.float64())


def other_kinds(column: Column) -> list[Kind]:
    """Return the kinds of values that are bad in a column of JSON, where it has a type at all."""
    if not column.is_declared:
        return []
    match column.type:
        case "string" | "date" | "timestamp" | "timestamp_ntz":
            return [_NUMBER, _TRUTH]
        case "boolean":
            return [_TEXT, _NUMBER]
        case "int" | "bigint":
            digits = 18 if column.type == "int" else 19
            return [_TEXT, _TRUTH, _FRACTION, (f"-?[1-9][0-9]{{{digits},}}", pa.float64())]
        case "double":
            return [_TEXT, _TRUTH]
    before, after = places_of(column)
    long = (f"-?[0-9]+[.][0-9]{{{after}}}[0-9]*[1-9]", pa.float64())
    return [_TEXT, _TRUTH, long, (f"-?[1-9][0-9]{{{before},}}", pa.float64())]


def require_bad(values: Any, column: Column) -> None:
    """Raise MustRewrite unless values of another kind than their column's are bad."""
    is_text = pa.types.is_string(values.type)
    if values.null_count:
        raise declined(column)
    if is_text and column.type == "double" and trues(pc.match_substring_regex(values, NO_NUMBER)):
        raise declined(column)
    if (
        is_text
        and is_decimal(column)
        and read_texts(values, column).values.null_count < len(values)
    ):
        raise declined(column)
