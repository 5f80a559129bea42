"""The transform of a contract: one SELECT over the landed file, which it reads as `file`."""

import re
from collections.abc import Iterator

from lakegate.contract_fields import Field
from lakegate.contract_sql import mistake

_NO_CODE = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_CALLED = re.compile(r"\b(\w+)`?\s*\(")
_CHANGING = (
    *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "now", "curdate"),
    *("monotonically_increasing_id", "spark_partition_id", "user", "version"),
    *("input_file_name", "input_file_block_start", "input_file_block_length"),
)
_CHANGING_WORDS = re.compile(
    r"\b(current_(?:timestamp|date|time|timezone|user|catalog|database|schema)|localtimestamp"
    r"|session_user|tablesample|unix_timestamp\s*\(\s*\))",
    re.IGNORECASE,
)


def read_transform(settings: Field, format_: str) -> str:
    """The text of the transform in Spark SQL; "" where the contract has none."""
    if not settings.has("transform"):
        return ""
    sql = settings.required_text("transform").strip().removesuffix(";").rstrip()
    if reason := next(_mistakes(sql), "") if sql else "":
        settings.refuse(reason, "transform")
    if format_ == "csv" and settings.at("options").at("header").node.text == "false":
        settings.refuse("names the file's columns: the file needs a header", "transform")
    return sql


def _mistakes(sql: str) -> Iterator[str]:
    """Why the text is no transform, as far as its words tell."""
    if reason := mistake(sql):
        yield reason
    code = _NO_CODE.sub("''", sql)
    unquoted = _NAME.sub(" ", code)
    if not re.search(r"\bfile\b", code, re.IGNORECASE):
        yield "must read the landed file: SELECT … FROM file"
    called = [name for name in _CALLED.findall(code) if name.lower() in _CHANGING]
    for name in (*called, *_CHANGING_WORDS.findall(unquoted)):
        yield f"has {name}: a transform must make the same rows of a file each time that it runs"
    words = unquoted.upper().split()
    if {"LIMIT", "OFFSET"} & set(words) and "ORDER" not in words:
        yield "has LIMIT without ORDER BY, which takes other rows each time that it runs"
