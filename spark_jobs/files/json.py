"""Read JSON, with one object a line or in one array; the contract gives the types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.errors import Quoting
from spark_jobs.files import flat_json, json_array
from spark_jobs.files.cells import LONGEST_ROW, Cell, broken_cells
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import (
    BAD_ROW,
    FILE,
    PLACE,
    Bytes,
    Source,
    Unreadable,
    readable_source,
    refused_source,
)
from spark_jobs.files.text_lines import LINE, collected, computed_once, numbered_lines, read_lines
from spark_jobs.files.variants import field, read_value
from spark_jobs.schema.compare import compare
from spark_jobs.schema.types import parse

_LONGEST_KEY = 1000
# Stands at the end of an array around a line: a random text that no file contains.
_END = token_hex(8)
_FLAT = "flat"
_SOUND = "sound"
_PARSED = "parsed"
_OBJECT = "object"


def is_array(head: bytes) -> bool:
    """Return if a JSON text that begins like this is an array."""
    return start_of(head)[:1] == b"["


def read_json(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, head: bytes, limits: Limits
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
    lines, found = _lines(spark, path, file, head, limits)
    names = {name.lower(): name for name in found.keys}
    absent = [c.name for c in contract.columns if not c.required and c.name.lower() not in names]
    comparison = compare([(name, "") for name in (*found.keys, *absent)], contract)
    if comparison.findings and found.keys:
        return refused_source(spark, comparison)
    typed, _ = typed_rows(lines, names, comparison.columns, flat=not found.repeated)

    def every() -> DataFrame:
        if is_array(head):
            return lines.withColumn(PLACE, F.monotonically_increasing_id())
        return numbered_lines(spark, path, "UTF-8")

    def bad() -> DataFrame:
        placed = every().where(f"btrim({LINE}, ' \\t') <> ''")
        return typed_rows(placed, names, comparison.columns, PLACE, flat=not found.repeated)[1]

    unreadable = Unreadable(bad, every, "item" if is_array(head) else "line")
    return readable_source(typed, comparison, found.rows, unreadable)


@dataclass(frozen=True)
class Found:
    """The keys of all objects in a file, sorted, and the number of its rows.

    Not each row is an object if there are `others`. A key is `repeated` if a flat object has it
    twice.
    """

    keys: tuple[str, ...]
    rows: int
    others: int
    repeated: bool


def _lines(
    spark: SparkSession, path: str, file: Bytes, head: bytes, limits: Limits
) -> tuple[DataFrame, Found]:
    """Return the rows of a file, each as its text, and what was found in them."""
    if not is_array(head):
        lines = object_lines(spark, path)
        return lines, _found(lines, limits)
    if pieces := json_array.split(spark, path, file, head):
        found = _found(pieces, limits)
        if not found.others:
            return pieces, found
    items = json_array.items_of(spark, path)
    return items, _found(items, limits)


def start_of(head: bytes) -> bytes:
    """Return the beginning of a JSON text without a mark and blanks before it."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")


def _found(lines: DataFrame, limits: Limits) -> Found:
    """Return the keys of all objects in the file, and the number of its rows.

    The driver gets at most one key more than the limit. Raises Permanent.
    """
    alike = _keys(lines)
    counted = alike.groupBy("key").agg(F.sum("rows").alias("rows"), F.expr(_REPEATED))
    brief = counted.selectExpr(f"left(key, {_LONGEST_KEY}) AS key", "rows", "repeated")
    found = collected(brief.limit(limits.most_columns + 2))
    names = sorted(row["key"] for row in found if row["key"] is not None)
    check_columns(len(names), limits)
    return Found(
        tuple(names),
        sum(row["rows"] for row in found),
        sum(row["rows"] for row in found if row["key"] is None),
        any(row["repeated"] for row in found),
    )


_REPEATED = "bool_or(repeated) AS repeated"


def keys_by_file(lines: DataFrame, most: int) -> list[Row]:
    """Return the `keys` of all objects in each `FILE`, sorted, and its number of `rows`.

    Of a file with more than `most` keys, one more is returned. `repeated` is as in `Found`.
    """
    every = f"slice(array_sort(collect_set(left(key, {_LONGEST_KEY}))), 1, {most + 1}) AS keys"
    counted = _keys(lines, FILE).groupBy(FILE)
    return counted.agg(F.expr(every), F.sum("rows").alias("rows"), F.expr(_REPEATED)).collect()


def _keys(lines: DataFrame, *kept: str) -> DataFrame:
    """Return each `key` of objects that have the same keys, or null for lines without any.

    The sum of `rows` is the number of lines. An object with a key that is `repeated` is none.
    """
    flat = lines.selectExpr(LINE, *kept, f"{flat_json.KEYS} AS {_FLAT}")
    every = _objects(flat, f"{_FLAT} IS NULL", _FLAT, *kept)
    own = f"map_keys(try_variant_get({_OBJECT}, '$', 'map<string,variant>'))"
    alike = every.selectExpr(f"sort_array(coalesce({_FLAT}, {own})) AS keys", *kept)
    repeated = "coalesce(size(array_distinct(keys)) < size(keys), false) AS repeated"
    counted = alike.groupBy("keys", *kept).count().selectExpr("*", repeated)
    there = "posexplode_outer(if(repeated, NULL, keys)) AS (nth, key)"
    return counted.selectExpr("count", "repeated", there, *kept).selectExpr(
        "if(coalesce(nth, 0) = 0, count, 0) AS rows", "repeated", "key", *kept
    )


def object_lines(spark: SparkSession, path: str | list[str]) -> DataFrame:
    """Return the lines of one object each."""
    return read_lines(spark, path, "UTF-8").where(f"btrim({LINE}, ' \\t') <> ''")


def _objects(lines: DataFrame, needed: str, *kept: str) -> DataFrame:
    """Return each line with its object; null unless `needed` and the line is exactly one object.

    The columns `kept` of the lines stay.
    """
    whole = (
        f"{_PARSED} IS NOT NULL AND try_variant_get({_PARSED}, '$[1]', 'string') = '{_END}'"
        f" AND try_variant_get({_PARSED}, '$[2]', 'variant') IS NULL"
        f" AND {flat_json.IS_TEXT}"
    )
    # Parsed as an array with a text at its end: anything else on the line would come before that.
    text = f"CASE WHEN {needed} THEN concat('[', {LINE}, ',\"{_END}\"]') END"
    parsed = f"{flat_json.VARIANT.format(text=text)} AS {_PARSED}"
    return lines.selectExpr(LINE, parsed, *kept).selectExpr(
        LINE,
        *kept,
        f"CASE WHEN {whole} THEN try_variant_get({_PARSED}, '$[0]', 'variant') END AS {_OBJECT}",
    )


def typed_rows(
    lines: DataFrame,
    names: Mapping[str, str],
    columns: Sequence[Column],
    *kept: str,
    flat: bool,
) -> tuple[DataFrame, DataFrame]:
    """Return the typed rows, and the unparseable rows with their broken values.

    `names` are the keys by their names in lower case. Both have the columns `kept`, too.
    Flat objects are read fast if `flat`, which no file with a repeated key may be.
    """
    readings = [
        _Reading.of(n, names.get(column.name.lower(), column.name), column)
        for n, column in enumerate(columns)
    ]
    fast = _fast(lines, readings, *kept) if flat else _none_fast(lines, readings, *kept)
    texts = [each.fast for each in readings]
    every = _objects(fast, f"NOT {_SOUND}", *texts, _SOUND, *kept)
    no_object = f"try_variant_get({_OBJECT}, '$', 'map<string,variant>') IS NULL AS no_object"
    found = [f"{field(_OBJECT, each.key)} AS {each.own}" for each in readings]
    values = every.selectExpr(LINE, no_object, *found, *texts, _SOUND, *kept)
    broken = " OR ".join(["no_object", *(each.cell.broken for each in readings)])
    named = [each.value for each in readings]
    owns = [each.own for each in readings]
    typed = computed_once(
        values.selectExpr(
            *named, LINE, "no_object", *owns, f"NOT {_SOUND} AND ({broken}) AS is_bad", *kept
        ),
        "is_bad",
    )
    shown = [
        (each.column.name, each.cell.broken, f"try_variant_get({each.own}, '$', 'string')")
        for each in readings
    ]
    return typed.selectExpr(
        *[f"{each.read} AS {quoted(each.column.name)}" for each in readings],
        f"CASE WHEN is_bad THEN make_valid_utf8({LINE}) END AS {BAD_ROW}",
        *kept,
    ), typed.where("is_bad").selectExpr(
        f"left(make_valid_utf8({LINE}), {LONGEST_ROW}) AS row",
        f"CASE WHEN NOT no_object THEN {broken_cells(shown)} END AS cells",
        *kept,
    )


@dataclass(frozen=True)
class _Reading:
    """The two ways to read a column: from a flat object, and from any object's variant.

    `fast`, `own` and `read` are columns' names: of the value in a flat object, of the value's
    variant, and of the result. `type` is how the flat object's value is parsed.
    """

    column: Column
    key: str
    fast: str
    own: str
    read: str
    type: str
    fast_cell: Cell
    cell: Cell

    @classmethod
    def of(cls, number: int, key: str, column: Column) -> "_Reading":
        """Return the ways to read a column, which is so and so many of the table's."""
        fast, own, read = (f"{kind}{number}" for kind in ("fast", "own", "read"))
        found = flat_json.fast_cell(fast, key, column)
        type_, fast_cell = found or ("variant", _cell(fast, column))
        return cls(column, key, fast, own, read, type_, fast_cell, _cell(own, column))

    @property
    def value(self) -> str:
        return f"if({_SOUND}, {self.fast_cell.value}, {self.cell.value}) AS {self.read}"


def _fast(lines: DataFrame, readings: Sequence[_Reading], *kept: str) -> DataFrame:
    """Return the lines with the values of flat objects, and if these are right."""
    struct = flat_json.parsed({each.key: each.type for each in readings})
    values = lines.selectExpr(LINE, *kept, f"{struct} AS {_FLAT}").selectExpr(
        LINE,
        *kept,
        *[f"{_FLAT}.{quoted(each.key)} AS {each.fast}" for each in readings],
        f"{flat_json.is_parsed(_FLAT)} AS {_PARSED}",
    )
    broken = " OR ".join(each.fast_cell.broken for each in readings)
    return values.selectExpr("*", f"{_PARSED} AND NOT ({broken}) AS {_SOUND}")


def _none_fast(lines: DataFrame, readings: Sequence[_Reading], *kept: str) -> DataFrame:
    none = [f"CAST(NULL AS {each.type}) AS {each.fast}" for each in readings]
    return lines.selectExpr(LINE, *kept, *none, f"false AS {_SOUND}")


def _cell(value: str, column: Column) -> Cell:
    if not column.is_declared:  # nobody said what it is: its text, whatever it is
        return Cell(f"try_variant_get({value}, '$', 'string')", "false")
    return read_value(value, parse(column.type))
