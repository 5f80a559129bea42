"""Split a JSON file that is one array into the texts of its items."""

import re

from pyspark.sql import DataFrame, SparkSession

from lakegate.errors import Permanent
from spark_jobs.files.sniff import HEAD
from spark_jobs.files.source import Bytes
from spark_jobs.files.text_lines import LINE, literal, measure, uncompressed

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


_INSIDE = r"(?s)\[(.*)\]"


def items_of(spark: SparkSession, path: str) -> DataFrame:
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


# Most arrays have the same text between any two of their items, which are objects. Their file is
# read by pieces between these texts, in parallel. Where a piece is no object, the file is no such
# array, and only the expressions above can tell what it is.

_CHUNK = 1 << 20
_BETWEEN = re.compile(rb"\}([ \t\r\n]*,[ \t\r\n]*)\{")
_FIRST = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*(\{.*)", re.DOTALL)
_LAST = re.compile(rb"(.*\})[ \t\r\n]*\][ \t\r\n]*", re.DOTALL)


def split(spark: SparkSession, path: str, file: Bytes, head: bytes) -> DataFrame | None:
    """Return the items of a file that is one array; None if it may not be split like that.

    They are its items if each of them is exactly one object. `head` is the beginning of the text.
    """
    found = _BETWEEN.search(head)
    if not found:
        return None
    between, mark = found[0], _mark(head)
    end, size = _end(path, file)
    begin, end = head[mark:].split(between)[0], end.split(between)[-1]
    first, last = _FIRST.fullmatch(begin), _LAST.fullmatch(end)
    if not first or not last:
        return None
    try:
        whole = {begin.decode(): first[1].decode() + "}", end.decode(): "{" + last[1].decode()}
    except UnicodeDecodeError:
        return None
    pieces = spark.read.text(path, lineSep=between.decode())
    measures = {f"n{n}": f"count_if(value = {literal(text)})" for n, text in enumerate(whole)}
    measures["bytes"] = f"sum(octet_length(value) + {len(between)})"
    if measure(pieces, measures) != {"n0": 1, "n1": 1, "bytes": size - mark + len(between)}:
        return None
    cases = " ".join(f"WHEN {literal(text)} THEN {literal(item)}" for text, item in whole.items())
    return pieces.selectExpr(f"CASE value {cases} ELSE concat('{{', value, '}}') END AS {LINE}")


def _mark(head: bytes) -> int:
    return len(head) - len(head.removeprefix(b"\xef\xbb\xbf"))


def _end(path: str, file: Bytes) -> tuple[bytes, int]:
    """Return the end of a file's text, and the text's size in bytes."""
    if not path.endswith(".gz"):
        return file.tail(HEAD), file.size
    end, size = b"", 0
    with uncompressed(file, gzipped=True) as text:
        while chunk := text.read(_CHUNK):
            end, size = (end + chunk)[-HEAD:], size + len(chunk)
    return end, size
