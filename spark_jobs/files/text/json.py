"""Read JSON, with one object a line or in one array; the contract gives the types."""

from collections.abc import Collection, Mapping, Sequence
from secrets import token_hex

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import (
    PLACE,
    Placed,
    Source,
    readable_source,
    refused_source,
)
from spark_jobs.files.text import json_array
from spark_jobs.files.text.cells import Cell
from spark_jobs.files.text.text_lines import (
    LINE,
    collected,
    numbered_lines,
    read_lines,
)
from spark_jobs.files.text.typed import typed_by_cells
from spark_jobs.files.text.variants import field, read_value
from spark_jobs.schema.compare import compare
from spark_jobs.schema.types import parse
from spark_jobs.spark.errors import Quoting

_LONGEST_KEY = 1000
# Stands at the end of an array around a line: a random text that no file contains.
_END = token_hex(8)
_PARSED = "parsed"
_OBJECT = "object"
# Half of a surrogate pair is invalid: Spark would read it as a question mark.
_HALF = (
    r"(?i)(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:d[89ab][0-9a-f]{2}(?!\\\\ud[c-f])"
    r"|(?<!\\\\ud[89ab][0-9a-f]{2}\\\\u)d[c-f])"
)
_IS_TEXT = f"(is_valid_utf8({LINE}) AND NOT (contains({LINE}, '\\\\u') AND {LINE} RLIKE '{_HALF}'))"
# A line's JSON as a variant, null if it is none. `try_parse_json` makes a new parser for each.
_VARIANT = (
    "from_json({text}, 'variant',"
    " map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false'))"
)


def is_array(head: bytes) -> bool:
    """Return if a JSON text that begins like this is an array."""
    return start_of(head)[:1] == b"["


def read_json(
    spark: SparkSession, path: str, contract: Contract, head: bytes, limits: Limits
) -> Source:
    """Read a JSON file; `head` is the beginning of its text.

    The first character tells an array from one object a line.
    Each row is parsed strictly: no duplicate key, nothing after the object.
    """
    start = start_of(head)
    if start[:1] not in (b"{", b"["):
        shown = start[:100].decode(errors="replace") or "nothing"
        message = "the contract says json, but the file begins with neither an object nor an array"
        raise Quoting("NOT_JSON", f"{message}: it is other text", f"{message}: {shown}")
    in_array = is_array(head)
    if in_array:
        lines = json_array.items_of(spark, path)
    else:
        lines = _filled(read_lines(spark, path, "UTF-8"))
    keys, count = _keys_and_rows(lines, limits)
    names = {name.lower(): name for name in keys}
    known = {*names, *missing_names(keys, contract)}
    absent = [c.name for c in contract.columns if not c.required and c.name.lower() not in known]
    comparison = compare([(name, "") for name in (*keys, *absent)], contract)
    if comparison.findings and keys:
        return refused_source(spark, comparison)
    typed, _ = typed_rows(lines, names, comparison.columns)

    def every() -> DataFrame:
        if in_array:
            return lines.withColumn(PLACE, F.monotonically_increasing_id())
        return numbered_lines(spark, path, "UTF-8")

    def numbered() -> tuple[DataFrame, DataFrame]:
        return typed_rows(_filled(every()), names, comparison.columns, PLACE)

    placed = Placed(numbered, every, "item" if in_array else "line")
    return readable_source(typed, comparison, count, placed)


def missing_names(keys: Collection[str], contract: Contract) -> set[str]:
    """Return the names, in lower case, of columns that objects with these keys may not lack.

    Else an absent key is null. But the keys that there are would be left out, where they are former
    names, or none is the contract's.
    """
    every = {column.name.lower() for column in contract.columns}
    is_foreign = bool(keys) and every.isdisjoint(key.lower() for key in keys)
    if is_foreign and contract.extra_columns == "drop":
        return every
    return {*contract.former.outdated(keys).values()}


def _filled(lines: DataFrame) -> DataFrame:
    """Return the lines that have more than blanks."""
    return lines.where(f"btrim({LINE}, ' \\t') <> ''")


def start_of(head: bytes) -> bytes:
    """Return the beginning of a JSON text without a mark and blanks before it."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")


def _keys_and_rows(lines: DataFrame, limits: Limits) -> tuple[list[str], int]:
    """Return the keys of all objects in the file, sorted, and the number of its rows.

    The driver gets at most one key more than the limit. Raises Permanent.
    """
    own = f"map_keys(try_variant_get({_OBJECT}, '$', 'map<string,variant>'))"
    alike = _objects(lines).selectExpr(f"sort_array({own}) AS keys").groupBy("keys").count()
    each = alike.selectExpr("count", "posexplode_outer(keys) AS (nth, key)")
    counted = each.groupBy("key").agg(F.expr("sum(if(coalesce(nth, 0) = 0, count, 0)) AS rows"))
    brief = counted.selectExpr(f"left(key, {_LONGEST_KEY}) AS key", "rows")
    rows = collected(brief.limit(limits.most_columns + 2))
    names = sorted(row["key"] for row in rows if row["key"] is not None)
    check_columns(len(names), limits)
    return names, sum(row["rows"] for row in rows)


def _objects(lines: DataFrame, *kept: str) -> DataFrame:
    """Return each line with its object; null unless the line is exactly one object.

    The columns `kept` of the lines stay.
    """
    whole = (
        f"{_PARSED} IS NOT NULL AND try_variant_get({_PARSED}, '$[1]', 'string') = '{_END}'"
        f" AND try_variant_get({_PARSED}, '$[2]', 'variant') IS NULL"
        f" AND {_IS_TEXT}"
    )
    # Parsed as an array with a text at its end: anything else on the line would come before that.
    text = f"concat('[', {LINE}, ',\"{_END}\"]')"
    parsed = f"{_VARIANT.format(text=text)} AS {_PARSED}"
    return lines.selectExpr(LINE, parsed, *kept).selectExpr(
        LINE,
        *kept,
        f"CASE WHEN {whole} THEN try_variant_get({_PARSED}, '$[0]', 'variant') END AS {_OBJECT}",
    )


def typed_rows(
    lines: DataFrame, names: Mapping[str, str], columns: Sequence[Column], *kept: str
) -> tuple[DataFrame, DataFrame]:
    """Return the typed rows, and the unparseable rows with their broken values.

    `names` are the keys by their names in lower case. Both have the columns `kept`, too.
    """
    keys = [names.get(column.name.lower(), column.name) for column in columns]
    no_object = f"try_variant_get({_OBJECT}, '$', 'map<string,variant>') IS NULL AS no_object"
    fields = [f"{field(_OBJECT, key)} AS own{n}" for n, key in enumerate(keys)]
    values = _objects(lines, *kept).selectExpr(LINE, no_object, *fields, *kept)
    cells = [
        (column.name, _cell(f"own{n}", column), f"try_variant_get(own{n}, '$', 'string')")
        for n, column in enumerate(columns)
    ]
    return typed_by_cells(values, cells, f"make_valid_utf8({LINE})", "no_object", kept)


def _cell(value: str, column: Column) -> Cell:
    if not column.is_declared:  # nobody said what it is: its text, whatever it is
        return Cell(f"try_variant_get({value}, '$', 'string')", "false")
    return read_value(value, parse(column.type))
