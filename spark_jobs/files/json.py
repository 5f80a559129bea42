"""Read JSON, with one object a line or in one array; the contract gives the types."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.errors import Quoting
from spark_jobs.files.cells import IS_NO_NUMBER, Cell, broken_cells, read_text
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import BAD_ROW, FILE, Bytes, Source, readable_source, refused_source
from spark_jobs.files.text_lines import LINE, collected, literal, measure, read_lines
from spark_jobs.schema.compare import compare
from spark_jobs.schema.types import Array, Map, Struct, Type, parse

# Regular expressions for the items of an array. They look at strings and brackets only; each item
# is parsed later. Every loop is possessive, so that matching needs neither backtracking nor a stack
# that grows with the text.

DEEPEST = 100
BLANKS = " \t\r\n"
_BLANKS = "[ \\t\\r\\n]*+"
_MARK = r"\xEF\xBB\xBF"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_OTHER = r'[^"\[\]{}]++'


def array() -> str:
    """Return the expression for a text that is one array, with one character for each byte."""
    items = f"{_item()}(?:,{_item()})*+"
    return rf"(?s)\A(?:{_MARK})?{_BLANKS}\[(?:{_BLANKS}|{items})\]{_BLANKS}\z"


def item() -> str:
    """Return the expression for the next item of an array, with the blanks around it."""
    return f"(?s){_item()}"


def _item() -> str:
    return rf'(?:[^",\[\]{{}}]++|{_STRING}|[\[{{]{_within()}[\]}}])++'


def _within() -> str:
    """Return the expression for the text between two brackets of any kind."""
    within = f"(?:{_OTHER}|{_STRING})*+"
    for _ in range(DEEPEST):
        within = rf"(?:{_OTHER}|{_STRING}|[\[{{]{within}[\]}}])*+"
    return within


# Values are parsed from a `variant`, in Spark SQL. Unlike Spark's JSON reader it keeps whether a
# value was a text or a number, and its digits.

_FLOATING = ("float", "double")


def field(value: str, key: str) -> str:
    """Return the value of an object's key as a variant; SQL null if the key is absent."""
    if '"' in key and "'" in key:
        why = "contains both kinds of quotes, and cannot be read from JSON"
        raise Quoting("UNREADABLE_TYPE", f"a key {why}", f"the key {key} {why}")
    path = f"$['{key}']" if '"' in key else f'$["{key}"]'
    return f"try_variant_get({value}, {literal(path)}, 'variant')"


def read_value(value: str, type_: Type, depth: int = 0) -> Cell:
    """Parse the variant in the SQL expression `value` as a value of the type.

    A key that the struct does not have makes the cell broken. JSON's null becomes null.
    """
    match type_:
        case Struct():
            cell = _struct(value, type_, depth)
        case Array():
            cell = _array(value, type_, depth)
        case Map():
            cell = _map(value, type_, depth)
        case _:
            cell = _scalar(value, str(type_))
    there = f"{value} IS NOT NULL AND NOT is_variant_null({value})"
    return Cell(cell.value, f"({there} AND ({cell.broken}))")


def _scalar(value: str, type_: str) -> Cell:
    kind = f"schema_of_variant({value})"
    text = f"try_variant_get({value}, '$', 'string')"
    cell = read_text(text, type_)
    if type_ in ("int", "bigint"):
        fits = f"{kind} = 'BIGINT'"
    elif type_ in _FLOATING:
        # A number that became infinite was too large.
        fits = f"({kind} = 'STRING') = ({IS_NO_NUMBER.format(text=text)})"
    elif type_.startswith("decimal"):
        fits = f"{kind} <> 'DOUBLE'"  # digits may have been lost
    elif type_ == "boolean":
        fits = f"{kind} = 'BOOLEAN'"
    else:
        fits = f"{kind} = 'STRING'"
    return Cell(cell.value, f"NOT {fits} OR {text} IS NULL OR {cell.broken}")


def _struct(value: str, type_: Struct, depth: int) -> Cell:
    members = f"try_variant_get({value}, '$', 'map<string,variant>')"
    cells = [(name, read_value(field(value, name), each, depth)) for name, each in type_.fields]
    named = ", ".join(f"{literal(name)}, {cell.value}" for name, cell in cells)
    known = ", ".join(literal(name) for name, _ in cells)
    strange = f"size(array_except(map_keys({members}), array({known}))) > 0"
    broken = " OR ".join([f"{members} IS NULL", strange, *(cell.broken for _, cell in cells)])
    return Cell(f"CASE WHEN {members} IS NOT NULL THEN named_struct({named}) END", broken)


def _array(value: str, type_: Array, depth: int) -> Cell:
    item = f"e{depth}"
    items = f"try_variant_get({value}, '$', 'array<variant>')"
    cell = read_value(item, type_.item, depth + 1)
    broken = f"{items} IS NULL OR exists({items}, {item} -> {cell.broken})"
    return Cell(f"transform({items}, {item} -> {cell.value})", broken)


def _map(value: str, type_: Map, depth: int) -> Cell:
    item = f"e{depth}"
    members = f"try_variant_get({value}, '$', 'map<string,variant>')"
    key = read_text(f"k{depth}", str(type_.key))
    cell = read_value(item, type_.value, depth + 1)
    names = f"exists(map_keys({members}), k{depth} -> {key.broken})"
    values = f"exists(map_values({members}), {item} -> {cell.broken})"
    entries = f"transform_values({members}, (k{depth}, {item}) -> {cell.value})"
    renamed = f"transform_keys({entries}, (k{depth}, {item}) -> {key.value})"
    text = str(type_.key) == "string"
    return Cell(entries if text else renamed, f"{members} IS NULL OR {names} OR {values}")


_LONGEST_KEY = 1000
_INSIDE = r"(?s)\[(.*)\]"
_PARSED = "parsed"
_OBJECT = "object"
# Half of a surrogate pair is invalid: Spark would read it as a question mark.
_HALF = (
    r"(?i)(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:d[89ab][0-9a-f]{2}(?!\\\\ud[c-f])"
    r"|(?<!\\\\ud[89ab][0-9a-f]{2}\\\\u)d[c-f])"
)


def is_array(head: bytes) -> bool:
    """Return if a JSON text that begins like this is an array."""
    return start_of(head)[:1] == b"["


def read_json(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, head: bytes, limits: Limits
) -> Source:
    """Read a JSON file; `head` is the beginning of its text.

    The first character tells an array, which one task reads as a whole, from one object a line.
    Each row is parsed strictly: no duplicate key, nothing after the object.
    """
    start = start_of(head)
    if start[:1] not in (b"{", b"["):
        shown = start[:100].decode(errors="replace") or "nothing"
        message = "the contract says json, but the file begins with neither an object nor an array"
        raise Quoting("NOT_JSON", f"{message}: it is other text", f"{message}: {shown}")
    rows = parsed_lines(_items(spark, path) if is_array(head) else object_lines(spark, path))
    keys, count = _keys(rows, limits)
    names = {name.lower(): name for name in keys}
    absent = [c.name for c in contract.columns if not c.required and c.name.lower() not in names]
    comparison = compare([(name, "") for name in (*keys, *absent)], contract)
    if comparison.findings and keys:
        return refused_source(spark, comparison)
    typed, bad = typed_rows(rows, names, comparison.columns)
    return readable_source(typed, comparison, count, bad)


def start_of(head: bytes) -> bytes:
    """Return the beginning of a JSON text without a mark and blanks before it."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")


def _keys(rows: DataFrame, limits: Limits) -> tuple[list[str], int]:
    """Return the keys of all objects in the file, and the number of its rows.

    The driver gets at most one key more than the limit. Raises Permanent.
    """
    keys = f"map_keys(try_variant_get({_OBJECT}, '$', 'map<string,variant>'))"
    alike = rows.selectExpr(f"array_sort({keys}) AS keys").groupBy("keys").count()
    each = alike.selectExpr("count", "posexplode_outer(keys) AS (nth, key)")
    counted = each.groupBy("key").agg(F.expr("sum(if(coalesce(nth, 0) = 0, count, 0)) AS rows"))
    brief = counted.selectExpr(f"left(key, {_LONGEST_KEY}) AS key", "rows")
    found = collected(brief.limit(limits.most_columns + 2))
    names = sorted(row["key"] for row in found if row["key"] is not None)
    check_columns(len(names), limits)
    return names, sum(row["rows"] for row in found)


def keys_by_file(rows: DataFrame, most: int) -> list[Row]:
    """Return the `keys` of all objects in each `FILE`, sorted, and its number of `rows`.

    Of a file with more than `most` keys, one more is returned. `rows` are `parsed_lines`.
    """
    keys = f"map_keys(try_variant_get({_OBJECT}, '$', 'map<string,variant>'))"
    alike = rows.selectExpr(FILE, f"array_sort({keys}) AS keys").groupBy(FILE, "keys").count()
    each = alike.selectExpr(FILE, "count", "posexplode_outer(keys) AS (nth, key)")
    every = f"slice(array_sort(collect_set(left(key, {_LONGEST_KEY}))), 1, {most + 1}) AS keys"
    count = "sum(if(coalesce(nth, 0) = 0, count, 0)) AS rows"
    return each.groupBy(FILE).agg(F.expr(every), F.expr(count)).collect()


def object_lines(spark: SparkSession, path: str | list[str]) -> DataFrame:
    """Return the lines of one object each."""
    return read_lines(spark, path, "UTF-8").where(f"btrim({LINE}, ' \\t') <> ''")


def _items(spark: SparkSession, path: str) -> DataFrame:
    """Return the items of a file that is one array, each as its text.

    Raises Permanent CORRUPT_FILE if it is anything else.
    """
    # One character for each byte keeps bytes that are not UTF-8 as they are.
    text = "decode(CAST(value AS BINARY), 'ISO-8859-1') AS text"
    file = spark.read.text(path, wholetext=True).selectExpr(text)
    whole = f"text RLIKE {literal(array())}"
    if not measure(file, {"arrays": f"count_if({whole})"})["arrays"]:
        message = (
            "the file begins as a JSON array, but is not one: it is damaged, truncated or nested "
            f"more than {DEEPEST} deep"
        )
        raise Permanent("CORRUPT_FILE", message)
    blanks = literal(BLANKS)
    inside = f"btrim(regexp_extract(text, {literal(_INSIDE)}), {blanks}) AS inside"
    items = file.selectExpr(inside).where("inside <> ''")
    items = items.selectExpr(f"explode(regexp_extract_all(inside, {literal(item())}, 0)) AS item")
    return items.selectExpr(
        f"CAST(encode(btrim(item, {blanks}), 'ISO-8859-1') AS STRING) AS {LINE}"
    )


def parsed_lines(lines: DataFrame, *kept: str) -> DataFrame:
    """Return each line with its object; null unless the line is exactly one object.

    The columns `kept` of the lines stay.
    """
    whole = (
        f"try_variant_get({_PARSED}, '$[1]', 'int') = 0"
        f" AND try_variant_get({_PARSED}, '$[2]', 'variant') IS NULL"
        f" AND is_valid_utf8({LINE})"
        f" AND NOT (contains({LINE}, '\\\\u') AND {LINE} RLIKE '{_HALF}')"
    )
    # Parsed as an array with a 0 at its end: anything else on the line would come before the 0.
    parsed = f"try_parse_json(concat('[', {LINE}, ',0]')) AS {_PARSED}"
    return lines.selectExpr(LINE, parsed, *kept).selectExpr(
        LINE,
        *kept,
        f"CASE WHEN {whole} THEN try_variant_get({_PARSED}, '$[0]', 'variant') END AS {_OBJECT}",
    )


def typed_rows(
    rows: DataFrame, names: Mapping[str, str], columns: Sequence[Column], *kept: str
) -> tuple[DataFrame, DataFrame]:
    """Return the typed rows, and the unparseable rows with their broken values.

    `names` are the keys by their names in lower case. The typed rows have the columns `kept`, too.
    """
    at = {f"v{n}": column for n, column in enumerate(columns)}
    found = [
        f"{field(_OBJECT, names.get(c.name.lower(), c.name))} AS {name}" for name, c in at.items()
    ]
    cells = [(column.name, _cell(value, column)) for value, column in at.items()]
    no_object = f"try_variant_get({_OBJECT}, '$', 'map<string,variant>') IS NULL AS no_object"
    broken = " OR ".join(["no_object", *(cell.broken for _, cell in cells)])
    values = rows.selectExpr(LINE, no_object, *found, *kept)
    named = [
        (name, cell.broken, f"try_variant_get({value}, '$', 'string')")
        for value, (name, cell) in zip(at, cells, strict=True)
    ]
    return values.selectExpr(
        *[f"{cell.value} AS {quoted(name)}" for name, cell in cells],
        f"CASE WHEN {broken} THEN make_valid_utf8({LINE}) END AS {BAD_ROW}",
        *kept,
    ), values.where(broken).selectExpr(
        f"make_valid_utf8({LINE}) AS row",
        f"CASE WHEN NOT no_object THEN {broken_cells(named)} END AS cells",
    )


def _cell(value: str, column: Column) -> Cell:
    if not column.is_declared:  # nobody said what it is: its text, whatever it is
        return Cell(f"try_variant_get({value}, '$', 'string')", "false")
    return read_value(value, parse(column.type))
