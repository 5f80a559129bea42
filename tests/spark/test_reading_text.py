"""Text files: what other readers change silently is a bad row or refuses the file."""

import gzip
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakegate.contract.written import FORMATS
from tests.spark.conftest import Read, parquet

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]

TWO = [("id", "integer"), ("name", "string")]
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("body", "rows", "bad"),
    [
        (b"id,name\n1,a", [(1, "a")], 0),
        (b"\xef\xbb\xbfid,name\r\n1,a\r\n\r\n2,b\r\n", [(1, "a"), (2, "b")], 0),
        (b'name,id\n"a\nb",1\n"",2\n', [("a\nb", 1), ("", 2)], 0),
        (b'id,name\n1,\n2,""\n"",x\n', [(1, None), (2, ""), (None, "x")], 0),
        (b'id,name\n1,"a ""b"", c"\n2,5" pipe\n', [(1, 'a "b", c')], 1),
        (b"id,name\n1\n2,b,c\n3,c\n", [(3, "c")], 2),
        (b"id,name\n1,caf\xe9\n2,\xef\xbf\xbd\n", [(2, "\ufffd")], 1),
        (b'id,name\n1,caf\xe9\n2,"b\nc"\n', [(2, "b\nc")], 1),
        (b'id,name\n1,a\x00b\n\x002,c\n3,"d\ne"\n', [(1, "a\0b"), (3, "d\ne")], 1),
        (b"id,name\n1,a\nid,name\n2,b\n", [(1, "a"), (2, "b")], 1),
        (b"id,name\n1,a\r2,b\r", [(1, "a"), (2, "b")], 0),
        (b"id,name\n", [], 0),
    ],
)
def test_every_row_of_a_csv_file_is_a_row_or_a_bad_one(
    reading: Reading, body: bytes, rows: list[Any], bad: int
) -> None:
    """Rows are those of RFC 4180; anything else is counted as a bad row."""
    found = reading(body, "csv", TWO)
    swapped = body.startswith(b"name")
    assert found.rows == [(row[1], row[0]) if swapped else row for row in rows]
    assert (len(found.bad), found.promised, found.code) == (bad, len(rows) + bad, "")


@pytest.mark.parametrize(
    "body",
    [
        b'id,name\n1,"abc\n2,def\n',
        b'id,name\n1,"abc\n2,def\n3,"x"\n',
        b'id,name\n1,"abc"def"\n2,x\n',
        b'id,name\n1,5" x,"abc\n2,def\n',
        b'id,name\r\n1,"a\nb"\n2,"c"\r\n',
    ],
)
def test_a_quote_that_is_not_closed_swallows_nothing(reading: Reading, body: bytes) -> None:
    """A file whose rows are ambiguous is refused."""
    assert reading(body, "csv", TWO).code == "CORRUPT_FILE"


@pytest.mark.parametrize(
    ("body", "options", "good"),
    [
        (b'id,name\n1,a\n2,5" pipe\n3,"b"\n', {}, [(1, "a"), (3, "b")]),
        (b'id,name\n1,$78.07"All, Table"\n2,b\n', {}, [(2, "b")]),
        (b'id,name\n1,a"b"\n2, "c"\n3,"5"" d"\n', {}, [(3, '5" d')]),
        (b"id;name\n1;'a'\n2;it's\n3;\"b\n", {"delimiter": ";", "quote": "'", "escape": "'"},
         [(1, "a"), (3, '"b')]),
        (b'id,name\n1,a\\"b\n2,"c\\"d"\n', {"escape": "\\"}, [(2, 'c"d')]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_quote_within_an_unquoted_cell_makes_its_row_bad(
    reading: Reading, body: bytes, options: dict[str, Any], good: list[Any], end: bytes
) -> None:
    """Quotes stand around cells; one elsewhere shows that a delimiter may be missing."""
    found = reading(body.replace(b"\n", end), "csv", TWO, **options)
    assert (found.rows, len(found.bad)) == (good, body.count(b"\n") - 1 - len(good))
    assert found.promised == len(found.rows) + len(found.bad)
    within = body + b'9,"two\nlines"\n'.replace(b'"', options.get("quote", '"').encode()).replace(
        b",", options.get("delimiter", ",").encode()
    )
    assert reading(within, "csv", TWO, **options).code == "CORRUPT_FILE"


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16LE"])
@pytest.mark.parametrize(("quote", "escape"), [('"', '"'), ("'", "\\")])
def test_a_bad_row_is_kept_as_it_stands_in_its_file(
    reading: Reading, encoding: str, quote: str, escape: str
) -> None:
    """Its empty cells, blanks and quotes are there, also if a cell has a line end."""
    rows = ["v,,Oslo", "w, p ,", 'x,"a,b",""', 'y,"two\nlines",\\a', 'z,"say ~"hi~"",c']
    texts = [row.replace("~", escape).replace('"', quote) for row in rows]
    body = "\n".join(["id,name,city", "1,a,b", *texts, ""]).encode(encoding)
    options = {"encoding": encoding, "quote": quote, "escape": escape}
    found = reading(body, "csv", [*TWO, ("city", "string")], **options)
    assert sorted(found.bad) == texts


@pytest.mark.parametrize("body", [b'id,name\n1,"b\n2,"d\n', b'id,name\n1,"say ""hi"""\n'])
def test_quotes_are_escaped_only_as_the_contract_says(reading: Reading, body: bytes) -> None:
    """A doubled quote, or one that a line end follows, is no text where a backslash escapes."""
    assert reading(body, "csv", TWO, escape="\\").code == "CORRUPT_FILE"


@pytest.mark.parametrize(
    ("body", "options", "rows"),
    [
        ("id,name\n1,é\n".encode("latin-1"), {"encoding": "ISO-8859-1"}, [(1, "é")]),
        (b'id,name\n1,\x80\n2,"\x9c\n"\n', {"encoding": "windows-1252"}, [(1, "€"), (2, "œ\n")]),
        ("id,name\n1,é\n".encode("utf-16"), {"encoding": "UTF-16"}, [(1, "é")]),
        ("id,name\n1,é\n".encode("utf-16-le"), {"encoding": "UTF-16LE"}, [(1, "é")]),
        (b"1|NA\n2|\n3|''\n", {"header": False, "delimiter": "|", "nullValue": "NA", "quote": "'"},
         [(1, None), (2, None), (3, "")]),
        (b'id,name\n1,""\n2,\n', {"nullValue": ""}, [(1, None), (2, None)]),
        (b'id,name\n1,""\n', {"emptyValue": "-"}, [(1, "-")]),
        (b'id,name\n1,"a\\"b"\n2,"c\nd"\n', {"escape": "\\"}, [(1, 'a"b'), (2, "c\nd")]),
        (b'id,name\n1,a\\\n2,"c\nd"\n', {"escape": "\\"}, [(1, "a\\"), (2, "c\nd")]),
    ],
)  # fmt: skip
def test_csv_is_read_as_its_options_say(
    reading: Reading, body: bytes, options: dict[str, Any], rows: list[Any]
) -> None:
    """Encoding, delimiter, quote, escape and null value are the contract's; no row is lost."""
    found = reading(body, "csv", TWO, **options)
    assert (found.rows, found.promised) == (rows, len(rows))


def test_a_byte_without_a_character_makes_its_row_bad(reading: Reading) -> None:
    """Windows-1252 leaves five bytes without a character."""
    body = b"id,name\n1,a\n2,\x81\n3,\x9d\x80\n4,\xe9\n"
    found = reading(body, "csv", TWO, encoding="Windows-1252")
    assert (found.rows, len(found.bad)) == ([(1, "a"), (4, "é")], 2)


@pytest.mark.parametrize("written", ["utf-16-le", "utf-16-be", "utf-8"])
def test_utf_16_has_a_mark_or_a_named_order(reading: Reading, written: str) -> None:
    """Without a byte order mark, no text is read as UTF-16: readers differ in its order."""
    body = "id,name\n1,é\n".encode(written)
    assert reading(body, "csv", TWO, encoding="UTF-16").code == "NOT_CSV"


def test_numbers_may_have_a_decimal_comma(reading: Reading) -> None:
    """Where the contract says so, a comma is a number's point, and a point makes it a bad cell."""
    columns = [
        {"name": "id", "logicalType": "integer"},
        {"name": "size", "logicalType": "number"},
        {"name": "price", "logicalType": "number", "physicalType": "decimal(6,2)"},
        {"name": "name", "logicalType": "string"},
    ]
    body = b"id;size;price;name\n1;-1,5e3;2,50;a,b.c\n2;1.5;1,0;x\n3;1;1.234,5;y\n4;;7;\n5;,5;1;z\n"
    found = reading(body, "csv", columns, delimiter=";", decimalSeparator=",")
    assert found.rows == [
        (1, -1500.0, Decimal("2.50"), "a,b.c"),
        (4, None, Decimal("7.00"), None),
        (5, 0.5, Decimal("1.00"), "z"),
    ]
    assert found.bad == ["2;1.5;1,0;x", "3;1;1.234,5;y"]


PACKED = gzip.compress(b"id,name\n1,a\n2,b\n", mtime=0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (PACKED, ""),
        (PACKED[:-6], "CORRUPT_FILE"),
        (PACKED + b"junk", "CORRUPT_FILE"),
        (PACKED[:14] + b"\xff\xff" + PACKED[16:], "CORRUPT_FILE"),
        (gzip.compress(b"", mtime=0), "EMPTY_OBJECT"),
        (gzip.compress(b"", mtime=0) * 2, "EMPTY_OBJECT"),
        (gzip.compress(b"", mtime=0) + PACKED, ""),
        (gzip.compress(b"i", mtime=0) + gzip.compress(b"d,name\n1,a\n", mtime=0), ""),
        (gzip.compress(b"id,name\n" + bytes(70 << 20), mtime=0), "ZIP_BOMB"),
        (b"", "EMPTY_OBJECT"),
        (b"\n\n", "NO_HEADER"),
        (b"<!DOCTYPE html><p>Access denied", "CORRUPT_FILE"),
    ],
)
def test_a_gzip_file_is_complete_and_no_bomb(reading: Reading, body: bytes, code: str) -> None:
    """Gzip is uncompressed; damaged, truncated, empty or too large data is refused."""
    name = "file" if code == "NO_HEADER" else "file.gz"
    assert reading(body, "csv", TWO, name=name).code == code


OBJECT = [
    ("id", "integer"),
    ("name", "string"),
    ("m", "number", "decimal(6,2)"),
    ("d", "number"),
    ("b", "boolean"),
    ("day", "date"),
]
ALL = '{"id":0,"name":"a","m":1.5,"d":1,"b":true,"day":"2013-01-01"}\n'
BAD_OBJECTS = [
    '{"id":"2"}', '{"id":1.5}', '{"id":12345678901234567890}', '{"name":5}', '{"name":{"x":1}}',
    '{"name":true}', '{"m":2.555}', '{"m":true}', '{"d":NaN}', '{"d":"1.5"}', '{"d":1e400}',
    '{"b":"true"}', '{"b":1}', '{"day":"2013"}', '{"day":20130101}', '{"id":2,"id":3}',
    '{"id":2}{"id":3}', '{"id":2},{"id":3}', '{"id":2}] x', '{"id":2},0', "[1]", "5", "null",
    '{"name":"\\ud83d"}', "{broken", "{'id':2}", '{"d":[1]}',
    '{"m":0.1234567890123456789012345678901234567890123}', '{"id":1.0}', '{id:2}', '{"id":2,}',
    '{"id":02}', '{"id":+2}', '{"id":2/* */}', '{"id":2}//', '{"id":2} #', '{"d":-Infinity}',
    '{"d":NaN,"d":1}', '{"name":"\t"}', '{"name":"\x01"}', '{"name":"\\x41"}', '{"name":\'x\'}',
    '{"name":"\\udc00\\ud800"}', '{"id":0x2}', '{"d":.5}', '{"d":5.}', '{"id" 2}', '{"id":}',
    "NaN", "Infinity", "1e999", "'x'", '{"name":["}"]}', '{"b":True}', '{"b":tru}', '{"id":[2}',
    '{"id":2},0]x',
]  # fmt: skip
# These end an array, or are more than one of its items.
NO_ITEMS = (
    *('{"id":2},{"id":3}', '{"id":2}] x', '{"id":2},0', '{"id":2},0]x', "{broken", '{"id":[2}'),
)


def test_a_json_row_that_is_not_quite_right_is_a_bad_one(reading: Reading) -> None:
    """A value that Spark's JSON reader would change or half read makes its row bad."""
    items = [text for text in BAD_OBJECTS if text not in NO_ITEMS]
    for body, bad in (
        ("\n".join([ALL, *BAD_OBJECTS]), BAD_OBJECTS),
        ("[\n  " + "\r\n , ".join([ALL, *items]) + "\n]\n", items),
    ):
        found = reading(body.encode(), "json", OBJECT)
        assert found.rows == [(0, "a", Decimal("1.50"), 1.0, True, date(2013, 1, 1))]
        assert found.bad == bad
        assert found.promised == len(bad) + 1


@pytest.mark.parametrize(
    ("body", "rows", "bad"),
    [
        (b'{"id":1}\n\n  \n{"id":2,"name":"\\ud83d\\ude00"}', [(1, None), (2, "😀")], 0),
        (b'[{"id":1},\n {"id":2, "name":"x"}]', [(1, None), (2, "x")], 0),
        (b'\xef\xbb\xbf[\n  {\n"id":1},\n{"id":1,"id":2},\nnull, 5]\n', [(1, None)], 3),
        (b'{"id":1,"name":"caf\xe9"}\n{"ID":2}\n'.replace(b"ID", b"id"), [(2, None)], 1),
        (b'[{"id":1,"name":"caf\xe9"},{"id":2,"name":"\xef\xbf\xbd"}]', [(2, "\ufffd")], 1),
        (b'\xef\xbb\xbf[{"id":1,"name":"],{\\"[\xc3\xa9"}]', [(1, '],{"[\u00e9')], 0),
        (b"[ \r\n]\n", [], 0),
        (b'{"ID":2,"NAME":"x"}\n', [(2, "x")], 0),
        (b"[]", [], 0),
    ],
)
def test_json_is_lines_or_one_array(
    reading: Reading, body: bytes, rows: list[Any], bad: int
) -> None:
    """Objects come one a line, or in one array on one or more lines."""
    found = reading(body, "json", TWO)
    assert (found.rows, len(found.bad), found.code) == (rows, bad, "")
    assert found.promised == len(rows) + bad


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'[{"id":1},{"id":2}', "CORRUPT_FILE"),
        (b'[{"id":1},{"id":2},]', "CORRUPT_FILE"),
        (b'[{"id":1},{"name":"x}]', "CORRUPT_FILE"),
        (b'[{"id":1},{"id":2}}]', "CORRUPT_FILE"),
        (b"[" * 200 + b"]" * 200, "CORRUPT_FILE"),
        (b'[{"id":1}]\n[{"id":2}]', "CORRUPT_FILE"),
        (b'{"id":1}\n' * 9000 + b'{"id":2,"more":1}\n', "EXTRA_COLUMN"),
        (b'{"id":1}\n{"ID":2}\n', "DUPLICATE_COLUMN"),
        (b'{"name":"n1"}\n', "MISSING_COLUMN"),
        (b"id,name\n1,a\n", "NOT_JSON"),
        (parquet({"id": [1]}), "NOT_JSON"),
        (b"  \n", "NOT_JSON"),
    ],
)
def test_json_that_is_something_else_is_refused(reading: Reading, body: bytes, code: str) -> None:
    """Incomplete arrays, trailing text, other formats and other keys are refused."""
    id_ = {"name": "id", "logicalType": "integer", "required": True}
    assert reading(body, "json", [id_, TWO[1]]).code == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (parquet({"id": [1]}), "NOT_CSV"),
        (b"id\n1\n", "MISSING_COLUMN"),
        (b"id,name,x\n", "EXTRA_COLUMN"),
    ],
)
def test_csv_that_is_something_else_is_refused(reading: Reading, body: bytes, code: str) -> None:
    """A file of another format, or with other columns in its header, is refused."""
    assert reading(body, "csv", TWO).code == code


NESTED = [
    ("id", "integer"),
    {"name": "at", "logicalType": "object", "properties": [
        {"name": "city", "logicalType": "string"}, {"name": "zip it", "logicalType": "integer"}]},
    {"name": "tags", "logicalType": "array", "items": {"name": "t", "logicalType": "string"}},
]  # fmt: skip


def test_nested_json_is_read_as_strictly(reading: Reading) -> None:
    """Values within objects and arrays have their types, and no key is ignored."""
    good = '{"id":1,"at":{"city":"x","zip it":5},"tags":["a",null]}\n{"id":2,"at":null,"tags":[]}\n'
    bad = [
        '{"id":3,"at":{"city":"x","zip":5}}',
        '{"id":3,"at":5}',
        '{"id":3,"at":{"zip it":"5"}}',
        '{"id":3,"at":{"city":"a","city":"b"}}',
        '{"id":3,"tags":"x"}',
        '{"id":3,"tags":["x",5]}',
    ]
    found = reading((good + "\n".join(bad)).encode(), "json", NESTED)
    array = ",".join([*good.splitlines(), *bad])
    assert reading(f"[{array}]".encode(), "json", NESTED) == found
    assert found.rows == [(1, ("x", 5), ["a", None]), (2, None, [])]
    assert found.bad == bad


def _moment(logical: str, **options: Any) -> list[dict[str, Any]]:
    column = {"name": "t", "logicalType": logical, "logicalTypeOptions": options}
    return [{"name": "id", "logicalType": "integer"}, column]


def test_a_mark_within_a_file_belongs_to_its_cell(reading: Reading) -> None:
    """A byte order mark is no part of the file's text only at its beginning."""
    columns = [{"name": "name", "logicalType": "string"}, {"name": "id", "logicalType": "integer"}]
    mark = b"\xef\xbb\xbf"
    rows = [mark + b"a,1", mark + b"b", b'"c",3', mark + b"d,x", mark + b"e,5"]
    found = reading(mark + b"name,id\n" + b"\n".join(rows) + b"\n", "csv", columns)
    assert found.rows == [("\ufeffa", 1), ("c", 3), ("\ufeffe", 5)]
    assert found.bad == ["\ufeffb", "\ufeffd,x"]


@pytest.mark.parametrize(
    ("logical", "pattern", "good", "bad"),
    [
        ("date", "dd/MM/yyyy", ("31/12/2013", date(2013, 12, 31)), "12/31/2013"),
        ("date", "yyyyMMdd", ("20131231", date(2013, 12, 31)), "20131301"),
        ("date", "d.M.yyyy", ("1.2.2013", date(2013, 2, 1)), "1.2.2013 x"),
        ("date", "ddMMMyyyy", ("02JAN2007", date(2007, 1, 2)), "02JAM2007"),
        ("date", "ddMMMyyyy", ("02feb2007", date(2007, 2, 2)), "31FEB2007"),
        ("timestamp", "dd/MM/yyyy HH:mm", ("01/01/2013 12:00", NOON), "01/01/2013"),
        ("timestamp", "yyyy-MM-dd HH:mm:ssXXX", ("2013-01-01 14:00:00+02:00", NOON), "2013-01-01"),
    ],
)
def test_dates_are_read_as_the_contract_says_they_are_written(
    reading: Reading, logical: str, pattern: str, good: tuple[str, Any], bad: str
) -> None:
    """A date in the contract's format is read; any other makes its row bad."""
    body = f"id,t\n1,{good[0]}\n2,{bad}\n3,\n".encode()
    found = reading(body, "csv", _moment(logical, format=pattern))
    assert found.rows == [(1, good[1]), (3, None)]
    assert len(found.bad) == 1


def test_each_usual_format_is_read_as_its_directives_say(reading: Reading) -> None:
    """What is recognised as a format is read by the job in that format, and nothing else is."""
    moment = datetime(2026, 9, 30, 7, 5, 9)  # noqa: DTZ001
    columns = [
        {"name": f"c{n}", "logicalType": "timestamp", "physicalType": "timestamp_ntz",
         "logicalTypeOptions": {"format": pattern}}
        for n, pattern in enumerate(FORMATS)
    ]  # fmt: skip
    texts = [moment.strftime(each.directives) for each in FORMATS.values()]
    header = ",".join(f"c{n}" for n in range(len(texts)))
    found = reading(f"{header}\n{','.join(texts)}\n".encode(), "csv", columns)
    assert found.rows == [
        tuple(
            datetime.strptime(text, each.directives)  # noqa: DTZ007
            for text, each in zip(texts, FORMATS.values(), strict=True)
        )
    ]


@pytest.mark.parametrize(("written", "text"), [("", "2013-01-15"), ("dd-MM-yyyy", "15-01-2013")])
def test_a_day_is_midnight_in_the_contracts_zone(reading: Reading, written: str, text: str) -> None:
    """The end of a date, such as -15 or -2013, is not taken for a zone."""
    asked = {"format": written} if written else {}
    column = _moment("timestamp", defaultTimezone="Europe/Berlin", **asked)
    found = reading(f"id,t\n1,{text}\n".encode(), "csv", column)
    assert found.rows == [(1, datetime(2013, 1, 14, 23, tzinfo=UTC).replace(tzinfo=None))]


def test_a_zone_that_the_contract_has_written_counts(reading: Reading) -> None:
    """A time whose zone is in the contract's format is not in the contract's zone."""
    column = _moment("timestamp", format="dd-MM-yyyy HH:mmX", defaultTimezone="Europe/Berlin")
    found = reading(b"id,t\n1,01-01-2013 12:00Z\n2,01-01-2013 14:00+02\n", "csv", column)
    assert found.rows == [(1, NOON), (2, NOON)]


def test_a_time_without_a_zone_is_of_the_contracts_zone(reading: Reading) -> None:
    """Noon in Berlin is 11 in UTC; a zone in the text counts; a skipped hour is bad."""
    texts = ["2013-01-01T13:00:00", "2013-01-01T12:00:00Z", "2013-03-31T02:30:00"]
    body = "".join(f"{n},{text}\n" for n, text in enumerate(texts)).encode()
    found = reading(b"id,t\n" + body, "csv", _moment("timestamp", defaultTimezone="Europe/Berlin"))
    assert found.rows == [(0, NOON), (1, NOON)]
    assert found.bad == ["2,2013-03-31T02:30:00"]


def test_keys_of_a_map_that_cannot_be_read_make_their_row_bad(reading: Reading) -> None:
    """A key that is no value of its type, or is there twice by value, spoils no other row."""
    parts = {"key": {"logicalType": "integer"}, "value": {"logicalType": "string"}}
    column = {"name": "m", "logicalType": "map", "map": parts}
    rows = [b'{"m":{"1":"a"}}', b'{"m":{"x":"b"}}', b'{"m":{"1":"a","01":"b"}}', b'{"m":null}']
    found = reading(b"\n".join(rows), "json", [column])
    assert (found.rows, found.bad) == ([({1: "a"},), (None,)], [row.decode() for row in rows[1:3]])
