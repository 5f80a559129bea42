"""JSON: objects, one a line or in one array, with types taken from the contract."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakegate.columns import Column, quoted
from lakegate.contract import Contract
from lakegate.errors import Permanent
from spark_jobs.ddl import parse
from spark_jobs.formats.cells import Cell
from spark_jobs.formats.json_values import field, read_value
from spark_jobs.formats.lines import LINE, measure, read_lines
from spark_jobs.formats.source import BAD_ROW, Bytes, Source, opened, unread
from spark_jobs.schema import compare, is_undeclared

_LARGEST_ARRAY = 256 << 20
_PARSED = "parsed"
_OBJECT = "object"
# Half of a surrogate pair is no character: Spark would read it as a question mark.
_HALF = (
    r"(?i)(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:d[89ab][0-9a-f]{2}(?!\\\\ud[c-f])"
    r"|(?<!\\\\ud[89ab][0-9a-f]{2}\\\\u)d[c-f])"
)


def read_json(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, head: bytes
) -> Source:
    """A JSON file's rows; `head` is the beginning of its text.

    Its first character tells whether it is an array, which is read whole and by one task, or
    has one object a line. Each row is parsed strictly: no key twice, nothing after it.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if start[:1] not in (b"{", b"["):
        shown = start[:100].decode(errors="replace") or "nothing"
        message = (
            f"the contract says json, but the file begins with no object and no array: {shown}"
        )
        raise Permanent("NOT_JSON", message)
    lines = _items(spark, path, file) if start[:1] == b"[" else _lines(spark, path)
    rows = _parsed(lines)
    found = measure(rows, {"lines": "count(*)", "keys": _KEYS})
    names = {name.lower(): name for name in found["keys"]}
    absent = [c.name for c in contract.columns if not c.required and c.name.lower() not in names]
    landing = compare([(name, "") for name in (*found["keys"], *absent)], contract)
    if landing.findings and found["keys"]:
        return unread(spark, landing)
    return opened(_typed(rows, names, landing.columns), landing, found["lines"])


# The keys of every object in the file.
_KEYS = (
    "array_sort(array_distinct(flatten(collect_set("
    f"map_keys(try_variant_get({_OBJECT}, '$', 'map<string,variant>'))))))"
)


def _lines(spark: SparkSession, path: str) -> DataFrame:
    return read_lines(spark, path, "UTF-8").where(f"btrim({LINE}, ' \\t') <> ''")


def _items(spark: SparkSession, path: str, file: Bytes) -> DataFrame:
    """The items of a file that is one array, each as its text.

    Raises Permanent CORRUPT_FILE where it is not one array and nothing else.
    """
    if file.size > _LARGEST_ARRAY:
        message = f"an array of more than {_LARGEST_ARRAY:,} bytes is too large to be read whole"
        raise Permanent("TOO_LARGE", f"{message}: write one object a line")
    text = spark.read.text(path, wholetext=True).selectExpr(
        "trim(LEADING '\ufeff' FROM value) AS text", "is_valid_utf8(value) AS valid"
    )
    # In an array of two whatever stands after the first one's end is a mistake.
    whole = text.selectExpr(
        "valid", "from_json(concat('[', text, ',[]]'), 'array<array<string>>') AS found"
    ).where("valid AND size(found) = 2 AND size(found[1]) = 0")
    if not measure(whole, {"files": "count(*)"})["files"]:
        message = "the file begins as a JSON array, but is not one: it is damaged or cut short"
        raise Permanent("CORRUPT_FILE", message)
    return whole.selectExpr("explode(found[0]) AS item").selectExpr(
        f"coalesce(item, 'null') AS {LINE}"
    )


def _parsed(lines: DataFrame) -> DataFrame:
    """Each line, and the object that it is: null where it is not exactly one."""
    whole = (
        f"try_variant_get({_PARSED}, '$[1]', 'int') = 0"
        f" AND try_variant_get({_PARSED}, '$[2]', 'variant') IS NULL"
        f" AND is_valid_utf8({LINE})"
        f" AND NOT (contains({LINE}, '\\\\u') AND {LINE} RLIKE '{_HALF}')"
    )
    # In an array with a 0 after it: what else stands on the line would come between the two.
    parsed = f"try_parse_json(concat('[', {LINE}, ',0]')) AS {_PARSED}"
    return lines.selectExpr(LINE, parsed).selectExpr(
        LINE,
        f"CASE WHEN {whole} THEN try_variant_get({_PARSED}, '$[0]', 'variant') END AS {_OBJECT}",
    )


def _typed(rows: DataFrame, names: dict[str, str], columns: Sequence[Column]) -> DataFrame:
    """Objects as the columns; a value that does not fit marks its row."""
    at = {f"v{n}": column for n, column in enumerate(columns)}
    found = [
        f"{field(_OBJECT, names.get(c.name.lower(), c.name))} AS {name}" for name, c in at.items()
    ]
    cells = [(column.name, _cell(value, column)) for value, column in at.items()]
    no_object = f"try_variant_get({_OBJECT}, '$', 'map<string,variant>') IS NULL AS no_object"
    broken = " OR ".join(["no_object", *(cell.broken for _, cell in cells)])
    return rows.selectExpr(LINE, no_object, *found).selectExpr(
        *[f"{cell.value} AS {quoted(name)}" for name, cell in cells],
        f"CASE WHEN {broken} THEN make_valid_utf8({LINE}) END AS {BAD_ROW}",
    )


def _cell(value: str, column: Column) -> Cell:
    if is_undeclared(column):  # nobody said what it is: its text, whatever it is
        return Cell(f"try_variant_get({value}, '$', 'string')", "false")
    return read_value(value, parse(column.type))
