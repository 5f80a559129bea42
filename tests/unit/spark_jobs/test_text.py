"""Text files that Arrow decodes, and those that it leaves to Spark's strict readers.

That both mean the same is checked wherever Spark reads a text in `tests/spark`.
"""

import gzip
import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakegate.contract.model import Contract, parse
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.one_pass.text import blocks, rows_of
from tests.spark.hostile_cells import BAD, CELLS, COLUMNS, same
from tests.spark.measuring import contract_of, rows_by_arrow

_TYPES = {
    "id": ("integer", "bigint"),
    "name": ("string", "string"),
    "amount": ("number", "decimal(6,2)"),
    "size": ("number", "double"),
    "ok": ("boolean", "boolean"),
    "day": ("date", "date"),
    "at": ("timestamp", "timestamp"),
}
_ROWS = {"metric": "rowCount", "mustBeGreaterThan": 0}
_NOON = datetime(2026, 11, 24, 12, 0, 0, 500000, tzinfo=UTC).replace(tzinfo=None)
_ALL = (7, "a", Decimal("1.50"), 0.25, True, date(2026, 11, 24), _NOON)
_TEXTS = "7,a,1.5,0.25,true,2026-11-24,2026-11-24T12:00:00.5Z"
_OBJECT = (
    '{"id":7,"name":"a","amount":1.5,"size":0.25,"ok":true,"day":"2026-11-24",'
    '"at":"2026-11-24T12:00:00.5Z"}'
)
_NULLS = (8, *[None] * 6)


def contract(format_: str, *names: str, required: bool = False, **options: Any) -> Contract:
    """Return the contract of a file with these columns, or with all that there are."""
    properties: list[Mapping[str, Any]] = [
        {"name": name, "logicalType": logical, "physicalType": type_, "required": required}
        for name, (logical, type_) in _TYPES.items()
        if name in (names or _TYPES)
    ]
    settings: dict[str, Any] = {"options": options} if options else {}
    return parse(contract_of(properties, [_ROWS], format=format_, **settings), "a test")


def decoded(tmp_path: Path, body: bytes, asked: Contract, limits: Limits = DEFAULTS) -> Any:
    """Return the rows of a file without bad ones; None if it is left to Spark."""
    found = both(tmp_path, body, asked, limits)
    if found is None:
        return None
    good, bad = found
    assert not bad
    return good


def both(tmp_path: Path, body: bytes, asked: Contract, limits: Limits = DEFAULTS) -> Any:
    """Return a file's good and bad rows; None if it is left to Spark."""
    file = tmp_path / "file"
    file.write_bytes(body)
    return rows_by_arrow(file, asked, limits)


@pytest.mark.parametrize(
    "body",
    [
        f"{','.join(_TYPES)}\n{_TEXTS}\n8,,,,,,\n",
        f"\ufeff{','.join(_TYPES)}\r\n{_TEXTS}\r\n\r\n8,,,,,,",
        f'"id","name",amount,size,ok,day,at\n"7","a",{_TEXTS[4:]}\n8,,"",,"",,\n',
        "at,day,ok,size,amount,NAME,id\n" + ",".join(_TEXTS.split(",")[::-1]) + "\n,,,,,,8\n",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_csv_is_decoded(tmp_path: Path, body: str, packed: bool) -> None:
    """Usual CSV has the values of its texts, and null for an empty cell, also within gzip."""
    plain = body.encode()
    found = decoded(tmp_path, gzip.compress(plain) if packed else plain, contract("csv"))
    assert found == [_ALL, _NULLS]


@pytest.mark.parametrize(
    ("body", "options", "rows"),
    [
        ('id,name\n1,"a ""b"", c"\n2,"5"" pipe"\n3,""\n4,\n', {},
         [(1, 'a "b", c'), (2, '5" pipe'), (3, ""), (4, None)]),
        ("id;name\n1;NA\n2;'a;b'\n", {"delimiter": ";", "nullValue": "NA", "quote": "'",
                                       "escape": "'"},
         [(1, None), (2, "a;b")]),
        ('id,name\n1,""\n', {"emptyValue": "-"}, [(1, "-")]),
        ("1,a\n2,b\n", {"header": False}, [(1, "a"), (2, "b")]),
        ('id,name\n1,"x{""y"":[1]}"\n', {}, [(1, 'x{"y":[1]}')]),
    ],
)  # fmt: skip
def test_csv_is_decoded_by_its_options(
    tmp_path: Path, body: str, options: dict[str, Any], rows: list[Any]
) -> None:
    """Quotes, delimiter, header, null value and empty value are the contract's."""
    assert decoded(tmp_path, body.encode(), contract("csv", "id", "name", **options)) == rows


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "WINDOWS-1252"])
def test_letters_of_one_byte_are_decoded(tmp_path: Path, encoding: str) -> None:
    """Western encodings are read; a mark of UTF-8 and a byte without a letter are Spark's."""
    asked = contract("csv", "id", "name", encoding=encoding)
    body = "id,name\r\n1,Größe\r\n".encode(encoding)
    assert decoded(tmp_path, body, asked) == [(1, "Größe")]
    left = [b"\xef\xbb\xbf" + body]
    if encoding == "WINDOWS-1252":  # of which Spark's reader wants one line end
        left += [body + b"2,\x81\r\n", body + b"2,b\n"]
    assert [decoded(tmp_path, each, asked) for each in left] == [None] * len(left)


def test_a_decimal_comma_is_decoded(tmp_path: Path) -> None:
    """Numbers have the contract's decimal separator; a thousands separator makes a bad row."""
    asked = contract("csv", "id", "name", "amount", "size", delimiter=";", decimalSeparator=",")
    body = b"id;name;amount;size\n1;a,b;1,50;-0,25\n2;a.b;1.000,5;1\n3;;7;1.5\n"
    good, bad = both(tmp_path, body, asked)
    assert good == [(1, "a,b", Decimal("1.50"), -0.25)]
    assert bad == ["2;a.b;1.000,5;1", "3;;7;1.5"]


@pytest.mark.parametrize(
    "body",
    [
        f'{_OBJECT}\n{{"id":8}}\n',
        f'\n {_OBJECT}\r\n{{"id": 8, "name": null}}\r\n\r\n',
        f'[{_OBJECT},{{"id":8}}]',
        f'\ufeff [ {_OBJECT} ,\n {{"id":8}} ]\n',
        f'[\n{_OBJECT.replace(",", chr(44) + chr(10))},\n{{\n"id":8\n}}\n]',
    ],
)
def test_json_is_decoded(tmp_path: Path, body: str) -> None:
    """Objects, one a line or in an array, have their values, and null for an absent key."""
    assert decoded(tmp_path, body.encode(), contract("json")) == [_ALL, _NULLS]


def test_brackets_in_texts_are_text(tmp_path: Path) -> None:
    """A text with brackets and commas is decoded, where it is not what is between two objects."""
    rows = [(n, text) for n, text in enumerate(["}", "{", "},", '{"id":1}', "[]", '\\"}\n{'])]
    objects = [json.dumps({"id": n, "name": text}) for n, text in rows]
    asked = contract("json", "id", "name")
    assert decoded(tmp_path, "\n".join(objects).encode(), asked) == rows
    assert decoded(tmp_path, f"[{', '.join(objects)}]".encode(), asked) == rows


_LEFT_CSV = [
    *(f"id,size\n{text},1\n" for text in ("+1", "9" * 19, "0" * 20)),
    *(f"id,size\n1,{text}\n" for text in ("nan", "Infinity", ".5", "1.", "1E400x\n1,-INF")),
    *("id,size\n", "id\n1\n", "id,size,more\n1,2,3\n", "id,size\nx,1\nid,size\n"),
    *("id,size\n1,2\r3,4\n", 'id,size\n"1,2\n', 'id,size\n"1"2,3\n', "size,id\n\n1,\0\n", "\n"),
    f"id,size\n1{',2' * 20_000}\n",
    *(
        'id,size\n1,2"3"\n',
        'id,size\n1, "2"\n',
        'id,size\n1,"2\n3,"\n',
        "id,size\n\xe9,1\n",
        "id,size\nx,1\n+2,2\n",
    ),
]
_LEFT_JSON = [
    *(f'{{"id":{value}}}' for value in ("[]", "{}", "9" * 19, '"1","id":"2"', '"1","x":2')),
    *(f'{{"size":{value}}}' for value in ("NaN", "1e400", "-0", "-0.0", '"nan"', "'1'", "01")),
    *(f'{{"id":1}}\n{text}' for text in (' {"id":"x"}', '{"id":"x"} ', '{"id":"x"}\n{"id":tru}')),
    '{"id":1}\n{"id":"x"}\n{"size":"inf"}',
    *('{"id":1,"id":1}', '{"ID":1}', '{"id":1,"x":2}', '{"id":1}{"id":2}', '{"id":1} x'),
    *('{"id":1,}', '{"id":1', '[{"id":1}', '[{"id":1}]]', "[]", "{}\0", '{"id":1}\r{"id":2}'),
    *('{"id":\n1}', '{"id":1}\n{"id":2}{"id":3}\n{"id":\n4}', '[{"id":1} {"id":2},{"id":3}]'),
    *('[{"id":1},{"id":2},[{"id":3}]]', '[{"id":1},,{"id":2}]', '[{"id":1},{"id":2},3]', "\n"),
]


@pytest.mark.parametrize(
    ("format_", "body"),
    [*(("csv", each) for each in _LEFT_CSV), *(("json", each) for each in _LEFT_JSON)],
)
def test_anything_else_is_left_to_spark(tmp_path: Path, format_: str, body: str) -> None:
    """A file with one unusual row is not decoded, wherever that row is."""
    asked = contract(format_, "id", "size")
    assert decoded(tmp_path, body.encode("latin-1"), asked) is None


_TABLE = "id,amount,size,ok,day,at,name\n"
_BAD_CELLS = [
    *((text, "0", "0") for text in ("x", "1.0", " 1", "0x1f", "1e3", "-", "N/A", "9" * 20)),
    *(("1", text, "0") for text in ("1,5", "1.555", "12345", "1e2", "1..5", "EUR", "--", "\u0663")),
    *(("1", "0", text) for text in ("0x1p3", "1d", ".", "1e400", "1 ", "1 000", "nano", "e5")),
]
_BAD_TIMES = [
    *((text, "2026-11-24", "") for text in ("maybe", "2", "TRUE!", "wahr")),
    *(("", text, "") for text in ("24.11.2026", "2026-13-01", "2026-04-31", "26-11-24", "today")),
    *(("", "", f"2026-11-24{text}") for text in ("T24:00:00", "T1:00:00Z", " noon", "T10:61:00")),
]


@pytest.mark.parametrize("bad", [*_BAD_CELLS, *_BAD_TIMES])
def test_rows_with_bad_cells_are_kept_as_they_stand(
    tmp_path: Path, bad: tuple[str, str, str]
) -> None:
    """A row of CSV with a text that nobody takes for a value is bad, and no other row is."""
    cells = ["7", "1.5", "0.25", "true", "2026-11-24", "2026-11-24T12:00:00.5Z", "a"]
    at = slice(3) if bad in _BAD_CELLS else slice(3, 6)
    quoted = [f'"{text}"' if "," in text else text for text in bad]
    good = ",".join(cells)
    cells[at] = quoted
    text = f"{_TABLE}{good}\n\n{','.join(cells)}\n{good}\n"
    assert both(tmp_path, text.encode(), contract("csv")) == ([_ALL, _ALL], [",".join(cells)])


def test_a_mark_within_a_file_belongs_to_its_cell(tmp_path: Path) -> None:
    """A byte order mark at the beginning of a row is text of the first cell, as for Spark."""
    names = contract("csv", "id", "name")
    assert decoded(tmp_path, b"name,id\n\xef\xbb\xbfa,7\n", names) == [(7, "\ufeffa")]
    good, bad = both(tmp_path, b"id,name\n\xef\xbb\xbf7,a\n8,b\n", names)
    assert (good, bad) == ([(8, "b")], ["\ufeff7,a"])


@pytest.mark.parametrize("row", ["1", "1,2,3", '1,"2,3",4', '"1,2"', "1,2,", ",,"])
def test_rows_with_other_cells_than_the_header_are_bad(tmp_path: Path, row: str) -> None:
    """A row with too few or too many cells is bad, wherever its delimiters are."""
    asked = contract("csv", "id", "name")
    body = f'id,name\r\n1,"a,b"\r\n{row}\r\n2,"5"" or 6"""\r\n'
    rows = [(1, "a,b"), (2, '5" or 6"')]
    assert both(tmp_path, body.encode(), asked) == (rows, [row])
    assert both(tmp_path, f"id,name\n{row}\n{row}".encode(), asked) == ([], [row, row])


@pytest.mark.parametrize("end", ["", "\n3\n"], ids=["no line end", "a bad row"])
def test_the_last_empty_cell_is_null_after_a_quoted_one(tmp_path: Path, end: str) -> None:
    """An empty cell at the end of all good rows is null, whatever the cell before it is."""
    body = f'id,name\n"1",\n"2",{end}'
    good, _ = both(tmp_path, body.encode(), contract("csv", "id", "name"))
    assert good == [(1, None), (2, None)]


@pytest.mark.parametrize(
    "bad",
    [
        *(f'"id":{value}' for value in ('"1"', '""', "1.0", "1e3", "-0.5", "9" * 20, "true")),
        *(f'"size":{value}' for value in ('"x"', '"1.5"', "false", '" nan"', '"\\u0031"')),
        *(f'"ok":{value}' for value in ('"true"', "1", "0.0")),
        *(f'"name":{value}' for value in ("1", "-1.5e3", "true", "123456789012345678901234567890")),
        *(f'"day":{value}' for value in ("20261124", '"24.11.2026"', '""', "false")),
        *('"id":"x","name":5', '"name": \t7,"size":"s","id":null', '"id":"x","name":"\\"id\\":5"'),
    ],
)
@pytest.mark.parametrize("between", ["\n", "\r\n", ",", " ,\n  "])
def test_objects_with_bad_values_are_kept_as_they_stand(
    tmp_path: Path, bad: str, between: str
) -> None:
    """An object with a value of another kind than its column's is bad, and no other one is."""
    objects = [_OBJECT.replace('"amount":1.5,', ""), f"{{{bad}}}", '{"id":8}', f"{{{bad}}}"]
    text = between.join([*objects, objects[0]])
    asked = contract("json", "id", "name", "size", "ok", "day", "at")
    rows = [
        tuple(value for value in row if value != Decimal("1.50")) for row in (_ALL, _NULLS[:-1])
    ]
    found = both(tmp_path, (f"[{text}]" if "," in between else text).encode(), asked)
    assert found == ([*rows, rows[0]], [objects[1], objects[1]])


@pytest.mark.parametrize("name", ["a\\E", "\\Q(", "[é]|b", 'say "x"'])
def test_a_key_may_have_signs_of_expressions(tmp_path: Path, name: str) -> None:
    """An object with a bad value is found, whatever the characters of its column's name."""
    column = {"name": name, "logicalType": "integer"}
    asked = parse(contract_of([column], [_ROWS], format="json"), "a test")
    objects = [json.dumps({name: value}, ensure_ascii=False) for value in (1, "x", True, 2)]
    assert both(tmp_path, "\n".join(objects).encode(), asked) == ([(1,), (2,)], objects[1:3])


@pytest.mark.parametrize("number", ["1.555", "12345.5", "123456789", '"1,5"', '"EUR"'])
def test_a_decimal_that_does_not_fit_is_bad(tmp_path: Path, number: str) -> None:
    """A decimal with more digits than its type, and a text that is none, are bad."""
    bad = f'{{"amount":{number}}}'
    asked = contract("json", "amount")
    rows = [(Decimal("1.50"),)]
    assert both(tmp_path, f'{{"amount":1.5}}\n{bad}'.encode(), asked) == (rows, [bad])


@pytest.mark.parametrize("number", ["1e2", "1.5E1", "1." + "0" * 40])
def test_a_decimal_that_may_lose_digits_is_left_to_spark(tmp_path: Path, number: str) -> None:
    """A decimal with an exponent, or with more digits than Arrow counts, is not decoded."""
    assert decoded(tmp_path, f'{{"amount":{number}}}'.encode(), contract("json", "amount")) is None


def of_column(format_: str, column: str) -> Contract:
    """Return the contract of a file with one of the hostile cells' columns."""
    found = next(each for each in COLUMNS if each[0] == column)
    keys = ("name", "logicalType", "physicalType")[: len(found)]
    properties = [dict(zip(keys, found, strict=True))]
    return parse(contract_of(properties, [_ROWS], format=format_), "a test")


def test_no_cell_is_misread(tmp_path: Path) -> None:
    """A cell that other readers misread has its value, or is left to Spark; usual ones are not."""
    taken = 0
    for cell in CELLS:
        quoted = '"' + cell.text.replace('"', '""') + '"'
        for format_, text, wanted in [
            ("csv", f"{cell.column}\n{quoted}\n", cell.csv),
            (
                "json",
                f'{{"{cell.column}": {cell.text}}}',
                None if cell.text == "null" else cell.bare,
            ),
            ("json", f'{{"{cell.column}": {json.dumps(cell.text)}}}', cell.quoted),
        ]:
            if found := both(tmp_path, text.encode(), of_column(format_, cell.column)):
                good, bad = found
                assert same(wanted, good[0][0]) if good else wanted == BAD and bad, (text, found)
                taken += 1
    assert taken > len(CELLS) / 2


def test_a_required_key_must_be_there(tmp_path: Path) -> None:
    """A JSON file of which no object has a required key is left to Spark, which refuses it."""
    body = b'{"id":1}\n{"id":2}\n'
    assert decoded(tmp_path, body, contract("json", "id", "name")) == [(1, None), (2, None)]
    assert decoded(tmp_path, body, contract("json", "id", "name", required=True)) is None


@pytest.mark.parametrize(
    "limits", [Limits(longest_line=20), Limits(largest_unpacked=50), Limits(most_columns=1)]
)
def test_what_exceeds_a_limit_is_left_to_spark(tmp_path: Path, limits: Limits) -> None:
    """Spark's reader refuses a file with its reason, so Arrow must not accept it."""
    body = b"id,name\n1,a\n2," + 50 * b"x" + b"\n3,b\n"
    asked = contract("csv", "id", "name")
    assert decoded(tmp_path, body, asked, limits) is None
    assert decoded(tmp_path, body, asked)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 34])
@pytest.mark.parametrize("format_", ["csv", "lines", "array"])
def test_blocks_end_between_rows(size: int, format_: str) -> None:
    """The rows of all blocks are those of the file, however many bytes are read at once."""
    objects = [json.dumps({"id": n, "name": f"a,{n}"}) for n in range(5)]
    text = {
        "csv": "id,name\r\n" + "".join(f'{n},"a,{n}"\r\n' for n in range(5)),
        "lines": "\n".join(objects) + "\n",
        "array": f"[ {' , '.join(objects)} ]",
    }[format_].encode()
    rows = rows_of(text, contract("csv" if format_ == "csv" else "json", "id", "name"))
    found = [rows.decode(each) for each in blocks(_Slow(text, size), rows, 1000, 1000)]
    assert [row for each in found for row in each.good.to_pylist()] == [
        {"id": n, "name": f"a,{n}"} for n in range(5)
    ]


class _Slow(io.BytesIO):
    """A stream that returns a few bytes at once."""

    def __init__(self, body: bytes, most: int) -> None:
        super().__init__(body)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._most)


def test_other_types_are_left_to_spark() -> None:
    """A column whose texts have no usual form makes every file Spark's."""
    asked = parse(
        contract_of([{"name": "c", "logicalType": "string", "physicalType": "binary"}], [_ROWS],
                    format="csv"), "a test",
    )  # fmt: skip
    with pytest.raises(MustRewrite, match="its column c"):
        rows_of(b"c\nYQ==\n", asked)
