"""Split a JSON file that is one array into the texts of its items.

The expressions look at strings and brackets only; each item is parsed later. Every loop is
possessive, so that matching needs neither backtracking nor a stack that grows with the text.
"""

from pyspark.sql import DataFrame, SparkSession

from lakegate.errors import Permanent
from spark_jobs.files.text.text_lines import LINE, literal, measure

_DEEPEST = 100
_BLANKS = "[ \\t\\r\\n]*+"
_MARK = r"\xEF\xBB\xBF"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_OTHER = r'[^"\[\]{}]++'


def _text_in_brackets() -> str:
    """Return the expression for the text between two brackets of any kind."""
    within = f"(?:{_OTHER}|{_STRING})*+"
    for _ in range(_DEEPEST):
        within = rf"(?:{_OTHER}|{_STRING}|[\[{{]{within}[\]}}])*+"
    return within


_ITEM = rf'(?:[^",\[\]{{}}]++|{_STRING}|[\[{{]{_text_in_brackets()}[\]}}])++'
_NEXT = f"(?s){_ITEM}"  # the next item, with the blanks around it
# A text that is one array, with one character for each byte.
_ARRAY = rf"(?s)\A(?:{_MARK})?{_BLANKS}\[(?:{_BLANKS}|{_ITEM}(?:,{_ITEM})*+)\]{_BLANKS}\z"
_INSIDE = r"(?s)\[(.*)\]"


def items_of(spark: SparkSession, path: str) -> DataFrame:
    """Return the items of a file that is one array, each as its text.

    Raises Permanent CORRUPT_FILE if it is anything else.
    """
    # One character for each byte keeps bytes that are not UTF-8 as they are.
    text = "decode(CAST(value AS BINARY), 'ISO-8859-1') AS text"
    file = spark.read.text(path, wholetext=True).selectExpr(text)
    whole = f"text RLIKE {literal(_ARRAY)}"
    if not measure(file, {"arrays": f"count_if({whole})"})["arrays"]:
        message = (
            "the file begins as a JSON array, but is not one: it is damaged, truncated or nested "
            f"more than {_DEEPEST} deep"
        )
        raise Permanent("CORRUPT_FILE", message)
    blanks = literal(" \t\r\n")
    inside = f"btrim(regexp_extract(text, {literal(_INSIDE)}), {blanks}) AS inside"
    items = file.selectExpr(inside).where("inside <> ''")
    items = items.selectExpr(f"explode(regexp_extract_all(inside, {literal(_NEXT)}, 0)) AS item")
    return items.selectExpr(
        f"CAST(encode(btrim(item, {blanks}), 'ISO-8859-1') AS STRING) AS {LINE}"
    )
