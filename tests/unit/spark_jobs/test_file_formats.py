"""A file's kind, rows and uncompressed size are found without Spark."""

import gzip
import io
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.errors import Permanent
from spark_jobs.files.columnar.avro import count_rows as count_avro
from spark_jobs.files.source import LocalFile
from spark_jobs.files.text.csv import Header, complete_line, header
from spark_jobs.files.text.csv_rows import Rows, count_rows, first_lines, row_pattern
from spark_jobs.files.text.sniff import check_binary, check_text
from spark_jobs.files.text.text_lines import check_gzip

OPTIONS = {"delimiter": ",", "quote": '"', "escape": '"', "encoding": "UTF-8"}
_COMPLETE = complete_line(OPTIONS).removeprefix("(?s)\\A").removesuffix("\\z")
CELLS = st.text(st.sampled_from('ab,"\n é'), max_size=6)


def rows_in(body: bytes, **options: str) -> Rows:
    return count_rows(lambda: nullcontext(io.BytesIO(body)), OPTIONS | options)


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(Permanent) as caught:
        act()
    return caught.value.code


@given(st.lists(st.lists(CELLS, min_size=2, max_size=3), max_size=5))
def test_rows_are_counted_whatever_their_cells_hold(rows: list[list[str]]) -> None:
    """Quoted cells may contain delimiters, quotes and line ends."""
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    found = rows_in("\r\n".join(quoted).encode())
    assert (found.count, found.undecodable) == (len(rows), False)
    assert found.ends <= {"\r\n"}


@given(st.lists(st.lists(CELLS, min_size=2, max_size=3), max_size=5))
def test_the_line_in_which_a_row_begins_is_found(rows: list[list[str]]) -> None:
    """Line ends in the cells of earlier rows count, and so do blank lines; unknown rows have none.

    What is read ends with the last row that is asked for.
    """
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    body = "\n\n".join([*quoted, '"never read']).encode()
    begins = [1 + "\n\n".join([*quoted[:n], ""]).count("\n") for n in range(len(quoted))]
    wanted = range(1, len(rows) + 1, 2)
    found = first_lines(lambda: nullcontext(io.BytesIO(body)), OPTIONS, wanted)
    assert found == {number: begins[number - 1] for number in wanted}


@pytest.mark.parametrize("text", ['1,"a\n2,b\n', '1,"a\n2,b\n3,"c"\n', '1,"a"b"\n'])
def test_a_quote_that_is_not_closed_is_found(text: str) -> None:
    """A quote that is not closed at the end of its cell is an error."""
    assert code_of(lambda: rows_in(text.encode())) == "CORRUPT_FILE"


def test_undecodable_bytes_are_reported() -> None:
    """Latin-1 that is declared as UTF-8 is counted and marked as undecodable."""
    ends = frozenset("\n")
    assert rows_in(b"1,caf\xe9\n2,x\n") == Rows(2, ends, undecodable=True)
    assert rows_in(b"1,caf\xe9\n", encoding="ISO-8859-1") == Rows(1, ends, undecodable=False)


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("1,a", True), ("", True), ('1,"a"', True), ('"a ""b"", c",2', True), ('1,5" pipe', True),
        ('1,"a', False), ('a",1', True), ('1,"a"b', False), ('"a""', False), ('5" x,"a', False),
    ],
)  # fmt: skip
def test_a_line_is_a_complete_row_or_may_continue(line: str, whole: bool) -> None:
    """A line is a complete row only if none of its cells can continue in the next line."""
    assert bool(re.match(_COMPLETE + r"\Z", line)) is whole


@given(st.lists(st.text(st.sampled_from('a,"'), max_size=8), min_size=1, max_size=4))
def test_lines_that_are_rows_are_as_many_rows(lines: list[str]) -> None:
    """If every line is a row, there are as many as lines that are not empty, and no other way."""
    whole, complete = (re.compile(f"{text}\\Z") for text in (row_pattern(OPTIONS), _COMPLETE))
    body = "\n".join(lines).encode()
    if all(map(whole.match, lines)):
        assert rows_in(body).count == sum(map(bool, lines))
    elif all(map(complete.match, lines)):
        assert code_of(lambda: rows_in(body)) == "CORRUPT_FILE"


def test_a_mark_before_a_quote_is_no_part_of_its_cell() -> None:
    """A file that begins with a byte order mark and a quote is counted."""
    assert rows_in(b'\xef\xbb\xbf"id"\n"1\n"\n').count == 2


def test_a_header_is_the_first_row_that_is_there() -> None:
    """The header is the first non-empty line, without a byte order mark."""
    assert header(b'\xef\xbb\xbf\r\nid,"a,b"\r\n1,2', OPTIONS) == Header(("id", "a,b"), 'id,"a,b"')


@pytest.mark.parametrize(
    ("head", "described"),
    [
        (b"PK\x03\x04", "ZIP"), (b"\x1f\x8b\x08", "gzip"), (b"<!DOCTYPE html>", "HTML"),
        (b"\xff\xfei\x00", "UTF-16"), (b"ORC\x00\x08", "an ORC file"), (bytes(50), "binary data"),
        (b"PAR1\x15\x04", "Parquet"), (b"SQLite format 3\0", "SQLite"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_named(head: bytes, described: str) -> None:
    """A file of another kind is refused with the name of that kind."""
    with pytest.raises(Permanent, match=described) as caught:
        check_text("csv", head, "UTF-8")
    assert caught.value.code == "NOT_CSV"


@pytest.mark.parametrize("head", [b"ORCHARD,trees\n", b"PAR1,PAR2\n", b"a\0b,c\n" + b"x" * 50])
def test_text_is_not_taken_for_something_else(head: bytes) -> None:
    """A header may begin like a magic number, and one NUL does not make a file binary."""
    check_text("csv", head, "UTF-8")


def test_a_binary_file_without_its_end_was_cut_short() -> None:
    """Parquet and ORC files without their last bytes are refused as truncated."""
    assert code_of(lambda: check_binary("orc", b"ORC\x08", b"1234")) == "TRUNCATED_FILE"
    assert code_of(lambda: check_binary("parquet", b"PAR1\x08", b"1234")) == "TRUNCATED_FILE"
    assert code_of(lambda: check_binary("avro", b"PAR1\x08", b"PAR1")) == "NOT_AVRO"
    check_binary("orc", b"ORC\x08", b"ORC\x17")


def test_gzip_may_unpack_to_a_multiple_of_its_size(tmp_path: Path) -> None:
    """A file that uncompresses to more than the contract allows is refused early."""
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(bytes(80 << 20)))
    assert code_of(lambda: check_gzip(LocalFile(file), 200)) == "ZIP_BOMB"
    check_gzip(LocalFile(file), 2000)
    file.write_bytes(gzip.compress(b"id\n1\n") * 2)
    check_gzip(LocalFile(file), 1)


def test_avro_rows_are_counted_by_blocks() -> None:
    """The blocks' counts are added up; a block with a wrong or missing end is refused."""
    sync = bytes(range(16))
    head = b"Obj\x01\x02\x02k\x02v\x00" + sync
    body = head + b"\x06\x04ab" + sync + b"\x02\x02c" + sync
    assert count_avro(io.BytesIO(body)) == 4
    assert count_avro(io.BytesIO(head)) == 0
    assert code_of(lambda: count_avro(io.BytesIO(body[:-1]))) == "TRUNCATED_FILE"
    assert code_of(lambda: count_avro(io.BytesIO(body[:-1] + b"!"))) == "CORRUPT_FILE"
