"""Split a JSON file that is one array into the texts of its items."""

from pyspark.sql import DataFrame, SparkSession

from lakegate.errors import Permanent
from spark_jobs.files.text.text_lines import LINE, literal, measure

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
