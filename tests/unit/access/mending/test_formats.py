"""Broken rows are written in the landed file's own format, and joined with it byte by byte."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakegate.errors import LakegateError
from tests.fakes.scenario import Scenario
from tests.unit.access.mending.rejected_files import Rejected

pytestmark = pytest.mark.usefixtures("quiet")

CSV = "- {property: format, value: csv}"
JSON = "- {property: format, value: json}"
COLUMNS = "      - {name: name, logicalType: string}\n"


def options(**given: str | bool) -> str:
    """Return settings of CSV with options of its reader."""
    named = ", ".join(f"{name}: {json.dumps(value)}" for name, value in given.items())
    return f"{CSV}\n  - {{property: options, value: {{{named}}}}}"


@pytest.fixture
def rejected(deployment: Scenario, tmp_path: Path) -> Callable[..., Rejected]:
    """Return a function that lands a file that is rejected for some of its rows."""

    def land(body: bytes, broken: dict[int, str], **how: Any) -> Rejected:
        return Rejected(deployment, body, broken, tmp_path, columns=COLUMNS, **how)

    return land


def test_csv_keeps_everything_but_the_corrected_rows(rejected: Callable[..., Rejected]) -> None:
    """Number and reason come first, other bytes stay, and a row without its cells is raw text."""
    body = b'id,name\r\n1,Ann\r\n,"B, b"\r\n\r\n4,"say ""x"""\r\n5,too,many\r\n6,last'
    file = rejected(body, {3: "a row without id", 6: "3 cells", 7: 'not "a"'})
    written, out = file.write()
    assert (written.rows, written.unit) == (3, "line")
    assert out == (
        b"_line,_reason,id,name\r\n"
        b'3,"a row without id",,"B, b"\r\n'
        b'6,"3 cells",5,too,many\r\n'
        b'7,"not ""a""",6,last\n'
    )
    corrected = (
        out.replace(b',,"B', b',2,"B').replace(b"too,many", b"'many").replace(b"6,l", b"6,L")
    )
    done, mended = file.mend(corrected)
    assert mended == b'id,name\r\n1,Ann\r\n2,"B, b"\r\n\r\n4,"say ""x"""\r\n5,\'many\r\n6,Last'
    assert (done.replaced, done.removed, done.left) == (3, 0, 0)


def test_other_dialects_and_encodings_are_kept(rejected: Callable[..., Rejected]) -> None:
    """Delimiter, quote, escape and encoding of the file are those of the broken rows."""
    how = options(delimiter=";", quote="'", escape="\\", encoding="ISO-8859-1")
    file = rejected(
        "id;name\n;'Jürgen\\'s'\n".encode("latin-1"), {2: "a 'quote' — \\"}, settings=how
    )
    _, out = file.write()
    assert out.decode("latin-1") == (
        "_line;_reason;id;name\n2;'a \\'quote\\' ? \\\\';;'Jürgen\\'s'\n"
    )
    _, mended = file.mend(out.replace(b";;'", b";2;'"))
    assert mended.decode("latin-1") == "id;name\n2;'Jürgen\\'s'\n"


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-16BE"])
def test_wide_text_with_its_mark_is_kept(rejected: Callable[..., Rejected], encoding: str) -> None:
    """A file in UTF-16 stays one, with its byte order and its mark."""
    codec = "utf-16-be" if encoding == "UTF-16" else encoding
    body = "\ufeffid,name\n,Ü\n2,\ud800\n".encode(codec, "surrogatepass")  # half a character
    file = rejected(body, {2: "empty"}, settings=options(encoding=encoding), spans=True)
    _, out = file.write()
    assert out == '\ufeff_line,_reason,id,name\n2,"empty",,Ü\n'.encode(codec)
    _, mended = file.mend(out.replace(",,".encode(codec), ",7,".encode(codec)))
    assert mended == body.replace("\n,Ü".encode(codec), "\n7,Ü".encode(codec))


def test_a_packed_file_is_of_the_byte_order_within_it(rejected: Callable[..., Rejected]) -> None:
    """A gzip file in UTF-16 has its mark in what is packed."""
    how = {"settings": options(encoding="UTF-16"), "spans": True, "key": "shop/orders/a.csv.gz"}
    file = rejected(gzip.compress("\ufeffid,name\n,Ü\n".encode("utf-16-be")), {2: "empty"}, **how)
    _, out = file.write()
    assert out.decode("utf-16") == '_line,_reason,id,name\n2,"empty",,Ü\n'


def test_a_row_with_line_ends_has_its_first_lines_number(
    rejected: Callable[..., Rejected],
) -> None:
    """Where rows hold line ends, their numbers are those of the lines in which they begin."""
    body = b'\xef\xbb\xbfid,name\n1,"a\nb"\n\n,"c\nd"\n3,e\n'
    file = rejected(body, {5: "no id"}, spans=True)
    _, out = file.write()
    assert out == b'\xef\xbb\xbf_line,_reason,id,name\n5,"no id",,"c\nd"\n'
    _, mended = file.mend(out.replace(b",,", b",2,"))
    assert mended == body.replace(b"\n,", b"\n2,")


def test_a_file_without_a_header_gets_the_contracts(rejected: Callable[..., Rejected]) -> None:
    """Broken rows of a file without a header have the contract's names, and it stays without."""
    file = rejected(b"1,a\n,b\n", {2: "no id"}, settings=options(header=False))
    _, out = file.write()
    assert out == b'_line,_reason,"id","name"\n2,"no id",,b\n'
    _, mended = file.mend(out.replace(b",,", b",2,"))
    assert mended == b"1,a\n2,b\n"


def test_an_escape_at_the_end_of_a_line_joins_no_rows(rejected: Callable[..., Rejected]) -> None:
    """Outside of quotes the escape is a character like any other, as it is to the job."""
    body = b"id,name\n,C:\\\n,b\n"
    file = rejected(body, {2: "no id", 3: "no id"}, settings=options(escape="\\"))
    _, out = file.write()
    done, mended = file.mend(out.replace(b",,", b",7,"))
    assert (done.replaced, done.left) == (2, 0)
    assert mended == body.replace(b"\n,", b"\n7,")


def test_tsv_is_written_as_tsv(rejected: Callable[..., Rejected]) -> None:
    """A TSV file's broken rows have tabs between their cells."""
    how = "- {property: format, value: tsv}"
    file = rejected(b"id\tname\n\tb\n", {2: "no id"}, settings=how)
    _, out = file.write()
    assert out == b'_line\t_reason\tid\tname\n2\t"no id"\t\tb\n'
    _, mended = file.mend(out.replace(b"\t\t", b"\t2\t"))
    assert mended == b"id\tname\n2\tb\n"


def test_bytes_that_are_no_text_stay(rejected: Callable[..., Rejected]) -> None:
    """Bytes that are not UTF-8 are shown as they are, and stay in rows that nobody corrects."""
    file = rejected(b"id,name\n1,\xff\n2,\xfe\n", {2: "not text", 3: "not text"})
    _, out = file.write()
    assert out == b'_line,_reason,id,name\n2,"not text",1,\xff\n3,"not text",2,\xfe\n'
    _, mended = file.mend(out.replace(b"\xff", "ÿ".encode()))
    assert mended == "id,name\n1,ÿ\n".encode() + b"2,\xfe\n"


def test_a_packed_file_lands_packed(rejected: Callable[..., Rejected]) -> None:
    """Rows of a gzip file are written as plain text, and the mended file is gzip again."""
    file = rejected(gzip.compress(b"id,name\n,a\n"), {2: "no id"}, key="shop/orders/a.csv.gz")
    _, out = file.write()
    assert out == b'_line,_reason,id,name\n2,"no id",,a\n'
    _, mended = file.mend(out.replace(b",,", b",1,"))
    assert gzip.decompress(mended) == b"id,name\n1,a\n"


def test_names_do_not_clash_with_columns(deployment: Scenario, tmp_path: Path) -> None:
    """A column of the file, or of the contract, with such a name makes ours longer."""
    columns = "      - {name: _REASON, logicalType: string}\n"
    file = Rejected(deployment, b"id,_Reason\n,b\n", {2: "no id"}, tmp_path, columns=columns)
    _, out = file.write()
    assert out == b'_line_,_reason_,id,_Reason\n2,"no id",,b\n'


def test_json_lines_keep_everything_else(rejected: Callable[..., Rejected]) -> None:
    """Number and reason are the first keys; digits and key order stay; no object is a text."""
    body = (
        b'\xef\xbb\xbf{"id": null, "name": "\xc3\xbc", "n": 12345678901234567890.10}\n'
        b'{"id": 2}\n\n{"id": 3\n{}\n[5]'
    )
    broken = {1: "a row without id", 4: "no object", 5: 'says "x"', 6: "no object"}
    file = rejected(body, broken, settings=JSON, key="shop/orders/a.jsonl")
    _, out = file.write()
    assert out == (
        b'{"_line": 1, "_reason": "a row without id",'
        b' "id": null, "name": "\xc3\xbc", "n": 12345678901234567890.10}\n'
        b'{"_line": 4, "_reason": "no object", "_text": "{\\"id\\": 3"}\n'
        b'{"_line": 5, "_reason": "says \\"x\\""}\n'
        b'{"_line": 6, "_reason": "no object", "_text": "[5]"}\n'
    )
    corrected = out.replace(b"null", b"1").replace(b'"x\\""}', b'"x\\"", "id": 5}')
    corrected = corrected.replace(b'"{\\"id\\": 3"', b'"{\\"id\\": 3}"')
    corrected = corrected.replace(b'"_text": "[5]"', b'"id": 6')
    _, mended = file.mend(corrected, "fixed.jsonl")
    assert mended == (
        body.replace(b"null", b"1")
        .replace(b'{"id": 3\n', b'{"id": 3}\n')
        .replace(b"{}", b'{"id": 5}')
        .replace(b"[5]", b'{"id": 6}')
    )


ARRAY = (
    b'\xef\xbb\xbf [ {"id": null, "name": "a, [b] \\"}"},\n'
    b'  {\n   "id": 2,\n   "n": [1, {"x": 1}]\n  },\n  5\n ,{"id": "x"}]\n'
)
ARRAYS: dict[str, Any] = {"settings": JSON, "unit": "item", "key": "shop/orders/a.json"}


def test_an_array_keeps_everything_but_the_corrected_items(
    rejected: Callable[..., Rejected],
) -> None:
    """An item may have several lines and signs of JSON in texts; one that is no object is text."""
    file = rejected(ARRAY, {1: "no id", 2: "odd", 3: "no object"}, **ARRAYS)
    written, out = file.write()
    assert (written.rows, written.unit) == (3, "item")
    assert out == (
        b'[\n{"_item": 1, "_reason": "no id", "id": null, "name": "a, [b] \\"}"},\n'
        b'{"_item": 2, "_reason": "odd", "id": 2,\n   "n": [1, {"x": 1}]},\n'
        b'{"_item": 3, "_reason": "no object", "_text": "5"}\n]\n'
    )
    _, mended = file.mend(out.replace(b"null", b"1").replace(b'"_text": "5"', b'"id": 5'))
    assert mended == (
        ARRAY.replace(b"null", b"1")
        .replace(b'{\n   "id": 2', b'{"id": 2')
        .replace(b"}]\n  }", b"}]}")
        .replace(b"\n  5", b'\n  {"id": 5}')
    )


@pytest.mark.parametrize("removed", [{1}, {4}, {2, 3}, {3, 4}, {1, 2, 4}, {1, 2, 3, 4}])
def test_an_array_without_some_items_is_an_array(
    rejected: Callable[..., Rejected], removed: set[int]
) -> None:
    """Commas stand between the items that are left, and nowhere else."""
    file = rejected(ARRAY, dict.fromkeys(removed, "no id"), **ARRAYS)
    done, mended = file.mend(b"[]", drop_missing=True)
    assert done.removed == len(removed)
    every = json.loads(ARRAY.decode("utf-8-sig"))
    left = [item for number, item in enumerate(every, 1) if number not in removed]
    assert json.loads(mended.decode("utf-8-sig")) == left


@pytest.mark.parametrize(
    ("corrected", "line"),
    [
        (b'{"_item": 1, "_reason": "no id", "id": 1}\n', 1),
        (b'[\n{"_item": 1, "_reason": "no id", "id": 1}\n', 3),
        (b'[\n{"_item": 1, "_reason": "no id",\n"id": 1}\n{}]', 4),
        (b'[{"_item": 1, "_reason": "no id", "id": 1},\n5]', 2),
        (b'[{"_item": 1, "_reason": "no id", "_text": "{}, {}"}]', 1),
        (b'[{"_item": 1, "_reason": "no id", "_text": "1]"}]', 1),
    ],
)
def test_a_wrong_array_names_its_line(
    rejected: Callable[..., Rejected], corrected: bytes, line: int
) -> None:
    """Lines, no JSON, an item without its number, and two items in place of one are refused."""
    file = rejected(b'[{"id": null}]', {1: "no id"}, **ARRAYS)
    with pytest.raises(LakegateError, match=rf"BAD_CORRECTION.*fixed.csv, line {line}: "):
        file.mend(corrected)


BAD = {
    "another header": (b"line,_reason,id,name\n", 1, "columns are not as they were written"),
    "nothing": (b"", 1, "columns are not as they were written"),
    "no number": (b'_line,_reason,id,name\nx,"no id",2,b\n', 2, "the number of a line"),
    "no reason": (b"_line,_reason,id,name\n2\n", 2, "the number of a line"),
    "a good row": (b"_line,_reason,id,name\n3,,2,b\n", 2, "line 3 of monday.csv is not one"),
    "twice": (b"_line,_reason,id,name\n\n2,,2,b\n2,,2,b\n", 4, "line 2 .* a second time"),
    "an open quote": (b'_line,_reason,id,name\n2,"no id,2,b\n', 2, "it is no CSV"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_correction_names_file_and_line(
    rejected: Callable[..., Rejected], name: str
) -> None:
    """Nothing lands of a file that was not corrected as it was written."""
    corrected, line, problem = BAD[name]
    file = rejected(b"id,name\n,b\n3,c\n", {2: "no id"})
    message = rf"BAD_CORRECTION.*fixed.csv, line {line}: .*{problem}.*\nNothing was uploaded"
    with pytest.raises(LakegateError, match=message):
        file.mend(corrected)
    assert len(list(file.deployment.landing.landed())) == 1


@pytest.mark.parametrize(
    "corrected",
    [
        b'{"_reason": "no id", "_line": 1, "id": 1}\n',
        b'{"_line": 1, "_reason": "no id", "id": }\n',
        b'{"_line": 1, "_reason": "no id", "id": ' + b"[" * 9_999 + b"]" * 9_999 + b"}\n",
        b'{"_line": 1, "_reason": "no id", "_text": "a\\nb"}\n',
        b'{"_line": 2, "_reason": "no id", "id": 1}\n',
        b"id\n",
    ],
)
def test_a_wrong_line_of_json_is_named(rejected: Callable[..., Rejected], corrected: bytes) -> None:
    """Keys in another order, no JSON, several lines, and another row's number are refused."""
    file = rejected(b'{"id": null}\n{"id": 2}\n', {1: "no id"}, settings=JSON)
    with pytest.raises(LakegateError, match=r"BAD_CORRECTION.*fixed.csv, line 1: "):
        file.mend(corrected)


def test_long_cells_are_kept(rejected: Callable[..., Rejected]) -> None:
    """A cell may be as long as the limits allow, also in a file whose cells hold line ends."""
    long = b"x" * 100_000
    file = rejected(b'id,name\n1,"a\nb"\n,"' + long + b'\n"\n', {4: "empty"}, spans=True)
    _, out = file.write()
    assert out == b'_line,_reason,id,name\n4,"empty",,"' + long + b'\n"\n'
    _, mended = file.mend(out.replace(b',,"', b',2,"'))
    assert mended == b'id,name\n1,"a\nb"\n2,"' + long + b'\n"\n'
