"""Cells that readers misread, each with its value in CSV and in JSON."""

import math
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

BAD = "a bad row"
COLUMNS = [
    ("id", "integer"),
    ("i", "integer", "int"),
    ("l", "integer", "bigint"),
    ("d", "number", "double"),
    ("f", "number", "float"),
    ("m", "number", "decimal(6,2)"),
    ("b", "boolean"),
    ("day", "date"),
    ("ts", "timestamp"),
    ("n", "timestamp", "timestamp_ntz"),
    ("s", "string"),
    ("x", "string", "binary"),
]


@dataclass(frozen=True)
class Cell:
    """A cell's text in a column, and its value in CSV and TSV, and bare and quoted in JSON."""

    column: str
    text: str
    csv: Any
    bare: Any
    quoted: Any


def _moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[arg-type,misc]


# Column, text, value in CSV, bare value in JSON. A quoted number or boolean is invalid in JSON.
_NUMBERS: list[tuple[str, str, Any, Any]] = [
    *(("i", text, int(text), int(text)) for text in ("7", "-0", "-2147483648", "2147483647")),
    *(("i", text, int(text), BAD) for text in ("007", "+8", "-07")),
    *(("i", text, BAD, 7) for text in (" 7", "7 ", "\t7", "7\t")),  # blanks are none of JSON's
    *(("i", text, BAD, BAD) for text in ("2147483648", "-2147483649", "1e3", "1.5", "0x10")),
    *(("i", text, BAD, BAD) for text in ("1.0", "1.", ".0", "1e0", "1E2", "-0.0")),
    *(("i", text, BAD, BAD) for text in ("1_000", "1,000", "1 000", "1L", "--1", "-", "+", "- 1")),
    *(("i", text, BAD, BAD) for text in ("\u0663", "\uff17", "7\u00a0", "\u22121", "\u00b2")),
    *(("i", text, BAD, BAD) for text in ("NaN", "Infinity", "true", "'7'", "0b1", "0o7", "seven")),
    ("i", "", None, BAD),
    ("i", "null", BAD, None),
    ("i", "NULL", BAD, BAD),
    ("l", "9223372036854775807", 2**63 - 1, 2**63 - 1),
    ("l", "-9223372036854775808", -(2**63), -(2**63)),
    *(("l", text, BAD, BAD) for text in ("9223372036854775808", "1e18", "9223372036854775807.0")),
    *(("d", text, float(text), float(text)) for text in ("1.5", "1e10", "-1E+2", "0.1", "4e-320")),
    *(("d", text, float(text), float(text)) for text in ("1e-999", "12345678901234567890.5")),
    *(("d", text, float(text), float(text)) for text in ("1.7976931348623157e308", "1e0")),
    ("d", "0." + "123456789" * 6, 0.12345678912345679, 0.12345678912345679),
    ("d", "-0.0", -0.0, 0.0),  # Spark's variant keeps no sign of zero
    *(("d", text, float(text), BAD) for text in (".5", "5.", "+1.5", "007.5", "+.5e+1")),
    ("d", " 1", BAD, 1.0),
    *(("d", text, BAD, BAD) for text in ("1e999", "-1e999", "1.8e308", "1" + "0" * 400)),
    *(("d", text, BAD, BAD) for text in ("1.5d", "1f", "0x1p3", "1_0.0", "1e", "1,5", "1e1.5")),
    *(("d", text, BAD, BAD) for text in ("\u0661.5", "1.5%", "$1.5", "e5", ".", "1..5", "1.2.3")),
    *(("f", text, float(text), float(text)) for text in ("1.5", "0.25", "1e10")),
    *(("f", text, BAD, BAD) for text in ("3.5e38", "-3.5e38", "1e39", "1e999", "1.5f")),
]
_NO_NUMBERS = ("NaN", "nan", "inf", "+inf", "-INF", "Infinity", "-Infinity", "+Infinity")
_LIKE_NO_NUMBERS = ("infinite", "-NaN", "1.#INF", "nan(1)", "\u221e", "NA", " NaN")
# Decimals may be quoted.
_DECIMALS: list[tuple[str, Any, Any]] = [
    *((text, Decimal(text), Decimal(text)) for text in ("1.5", "-0.05", "9999.99", "0.00", "12")),
    *((text, Decimal(text), Decimal(text)) for text in ("1.2300", "1.5" + "0" * 30)),
    *((text, Decimal(text), BAD) for text in ("-.5", "5.", "+1.5", "0001.50", "1.5" + "0" * 60)),
    *((text, BAD, BAD) for text in ("1.239", "12345.67", "1e2", "1.5E0", "1e999", "NaN", "1,50")),
    *(
        (text, BAD, BAD)
        for text in ("0." + "123456789" * 6, "1_0", "\u0661", "0x1", ".", "-", "1.5m")
    ),
]
# Values that are texts in JSON too.
_TEXTS: list[tuple[str, str, Any]] = [
    ("day", "2012-02-29", date(2012, 2, 29)),
    ("day", "0001-01-01", date(1, 1, 1)),
    ("day", "9999-12-31", date(9999, 12, 31)),
    *(("day", text, BAD) for text in ("2013-02-29", "2013-02-30", "2013-13-01", "2013-00-10")),
    *(("day", text, BAD) for text in ("2013", "2013-01-01 or so", "today")),
    *(("day", text, BAD) for text in ("2013-1-1", "20131231", "31/12/2013", "2013-12-31x")),
    *(("day", text, BAD) for text in ("2013-12-31T00:00:00", "now", "epoch", "10000-01-01")),
    *(("day", text, BAD) for text in (" 2013-12-31", "2013-12-31 ", "+2013-12-31", "-2013-12-31")),
    *(("day", text, BAD) for text in ("\uff12013-12-31", "2013-12-3\u0661", "2013\u201112-31")),
    ("ts", "2013-01-01T12:00:00Z", _moment(2013, 1, 1, 12)),
    ("ts", "2013-01-01 14:00:00+02:00", _moment(2013, 1, 1, 12)),
    ("ts", "2013-01-01T12:00:00.1234560Z", _moment(2013, 1, 1, 12, 0, 0, 123456)),
    ("ts", "2012-02-29T23:59:59", _moment(2012, 2, 29, 23, 59, 59)),
    *(("ts", f"2013-01-01T{text}", BAD) for text in ("24:00:00Z", "23:59:60Z", "12:60:00Z")),
    *(("ts", f"2013-01-01T12:00:00{text}", BAD) for text in (".1234567Z", "+24:00", "+19:00")),
    *(("ts", f"2013-01-01T12:00:00{text}", BAD) for text in (" Europe/Berlin", "+2:00", "z")),
    *(("ts", f"2013-01-01T12:00:00{text}", BAD) for text in ("\u2212" + "02:00", " ", ",5Z")),
    *(("ts", text, BAD) for text in ("2013-02-30T00:00:00Z", "12:30", "now", "1356998400")),
    *(("ts", text, BAD) for text in ("2013", "2013-01-01T25:00:00")),
    *(("ts", text, BAD) for text in ("2013-W01-1", "2013-001", "Jan 1 2013", "20130101T120000Z")),
    ("ts", "0001-01-02T00:00:00-14:00", _moment(1, 1, 2, 14)),  # of the first day PySpark fails
    ("ts", "9999-12-31T23:59:59.999999Z", _moment(9999, 12, 31, 23, 59, 59, 999_999)),
    *(("ts", text, BAD) for text in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")),
    *(("ts", text, BAD) for text in ("9999-12-31 23:00-01:00", "0001-01-01 00:59+01")),
    ("n", "2013-01-01 12:00", _moment(2013, 1, 1, 12)),
    ("n", "2013-01-01T12:00:00.0000000", _moment(2013, 1, 1, 12)),
    *(("n", f"2013-01-01T12:00:00{text}", BAD) for text in ("Z", "+00:00", "+01:00", " UTC")),
    *(("s", text, text) for text in ("a", " a ", "null", "NULL", "\\N", "\\", "\\n", "\\u0041")),
    *(("s", text, text) for text in ("'", '"', 'a"b', "a,b", "a\tb", "{", "]", "}, {", "],[")),
    *(("s", text, text) for text in ("\x00", "a\x01b", "\x1b[2J", "\x7f", "\x85", "\x0b", "\x0c")),
    *(("s", text, text) for text in ("\u2028", "\u2029", "\ufeff", "\ufffd", "\u00a0", "\u200b")),
    *(("s", text, text) for text in ("\ue000", "\uf8ff", "\U0001f600", "e\u0301", "\u202e")),
    *(("s", text, text) for text in ("=1+1", "@x", "#c", "${x}", "%s", "1e999", "NaN", "\\x")),
    *(("s", text, text) for text in ("=cmd|'/c calc'!A1", "+1", "-1", "\t=1", "<script>")),
    ("x", "AAEC", b64decode("AAEC")),
    *(("x", text, BAD) for text in ("AAE", "Y!Jj", "AAEC ", "AA EC", "AA==AA==")),
    *(("x", text, BAD) for text in ("AAE\u00c9", "-_-_")),
]  # fmt: skip
# Line ends in cells make Spark read a CSV file by its quotes instead of by its lines.
LINE_ENDS = (
    "\uffff",
    "a\nb",
    "a\r\nb",
    "a\rb",
    "\n",
    "\r\n",
    "\r",
    "a\r\n\r\nb",
    "a\n",
    "\r\na",
    "a\n\rb",
)

CELLS = [
    *(Cell(column, text, csv, bare, BAD) for column, text, csv, bare in _NUMBERS),
    *(Cell(c, text, float(text), BAD, float(text)) for text in _NO_NUMBERS for c in "df"),
    *(Cell("d", text, BAD, BAD, BAD) for text in _LIKE_NO_NUMBERS),
    *(Cell("m", text, csv, bare, csv) for text, csv, bare in _DECIMALS),
    Cell("b", "true", True, True, BAD),
    Cell("b", "false", False, False, BAD),
    *(Cell("b", text, True, BAD, BAD) for text in ("TRUE", "tRuE", "t", "Yes", "y", "1")),
    *(Cell("b", text, False, BAD, BAD) for text in ("FALSE", "f", "No", "n", "0")),
    *(Cell("b", text, BAD, BAD, BAD) for text in ("on", "2", "-1", "1.0", "wahr", "ture")),
    Cell("b", " true", BAD, True, BAD),
    *(Cell(column, text, value, BAD, value) for column, text, value in _TEXTS),
    Cell("s", "", "", BAD, ""),
    Cell("day", "", None, BAD, BAD),
]


def same(one: Any, other: Any) -> bool:
    """Return if two values are equal: NaN is NaN, and 0.0 is not -0.0."""
    if isinstance(other, bytearray):
        other = bytes(other)
    if isinstance(one, float) and isinstance(other, float):
        signs = math.copysign(1, one) == math.copysign(1, other)
        return (math.isnan(one) and math.isnan(other)) or (one == other and signs)
    return type(one) is type(other) and bool(one == other)
