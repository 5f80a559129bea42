"""Hostile files are recognized before any reader believes them, without Spark."""

import gzip
import io
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.arrow.consistency import check_parquet, parquet_footer
from spark_jobs.files.arrow.thrift import Compact
from spark_jobs.files.columnar.avro import count_rows as count_avro
from spark_jobs.files.columnar.levels import count_begun
from spark_jobs.files.limits import (
    check_array,
    check_columns,
    check_rows,
)
from spark_jobs.files.source import LocalFile
from spark_jobs.files.text.csv import header
from spark_jobs.files.text.csv_rows import count_rows
from spark_jobs.files.text.sniff import check_text
from spark_jobs.files.text.text_lines import Unpacked, check_gzip
from tests.fakes.in_memory import InMemory
from tests.fakes.lying_parquet import TERA, parquet, placed, promising
from tests.unit.spark_jobs.test_file_formats import OPTIONS, code_of

PYARROW = sorted((Path(pa.__file__).parent / "tests" / "data").rglob("*.parquet"))
HONEST = parquet()


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[..., str]:
    """Return the code by which a Parquet file is refused for its footer, or ""."""

    def tell(body: bytes, limits: Limits = DEFAULTS) -> str:
        file = tmp_path / "file.parquet"
        file.write_bytes(body)
        try:
            landed = LocalFile(file)
            check_parquet(parquet_footer(landed), landed.size, limits)
        except Permanent as refusal:
            return refusal.code
        return ""

    return tell


@pytest.mark.parametrize("file", PYARROW, ids=lambda file: file.name)
def test_honest_parquet_is_taken(refusal: Callable[..., str], file: Path) -> None:
    """Files of real writers, old ones too, are accepted."""
    assert refusal(file.read_bytes()) == ""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (promising(TERA, TERA), "TOO_MANY_ROWS"),
        (promising(TERA, 3), "CORRUPT_FILE"),
        (promising(4, 3), "CORRUPT_FILE"),
        (promising(-1, 3), "CORRUPT_FILE"),
        (placed(packed=-5), "CORRUPT_FILE"),
        (placed(unpacked=-5), "CORRUPT_FILE"),
        (placed(packed=1 << 40), "CORRUPT_FILE"),
        (placed(data=10**9), "CORRUPT_FILE"),
        (placed(data=-10), "CORRUPT_FILE"),
        (placed(unpacked=1 << 60), "ZIP_BOMB"),
        (HONEST[:-8] + b"\xff\xff\xff\x7fPAR1", "CORRUPT_FILE"),
        (HONEST[:-8] + b"\xff\xff\xff\xffPAR1", "CORRUPT_FILE"),
        (HONEST[:-8] + b"\0\0\0\0PAR1", "CORRUPT_FILE"),
        (b"PAR1\x19\xfc\xff\xff\xff\xff\x07\x07\0\0\0PAR1", "CORRUPT_FILE"),  # a list of 2^31
        (b"PAR1\x18\xff\xff\xff\xff\x07\x06\0\0\0PAR1", "CORRUPT_FILE"),  # a text of 2^31
        (b"PAR1" + b"\x1c" * 10**5 + (10**5).to_bytes(4, "little") + b"PAR1", "CORRUPT_FILE"),
    ],
)
def test_a_footer_that_cannot_be_true_is_refused(
    refusal: Callable[..., str], body: bytes, code: str
) -> None:
    """Rows without values, positions outside of the file and negative sizes are refused."""
    assert refusal(body) == code


def test_parquet_has_limits(refusal: Callable[..., str]) -> None:
    """As many rows and bytes as the limit are accepted, and not one more."""
    assert refusal(HONEST, Limits(most_rows=3)) == ""
    assert refusal(HONEST, Limits(most_rows=2)) == "TOO_MANY_ROWS"
    assert refusal(placed(unpacked=500), Limits(largest_unpacked=1000)) == ""
    assert refusal(placed(unpacked=500), Limits(largest_unpacked=999)) == "ZIP_BOMB"


@given(st.binary(max_size=60))
def test_any_footer_is_read_or_refused(text: bytes) -> None:
    """Reading any bytes as a footer ends, at worst with ValueError."""
    try:
        for _ in Compact(text).fields(4):
            pass
    except ValueError:
        pass


def test_rows_columns_and_arrays_have_limits() -> None:
    """A count at the limit is accepted, one more is refused."""
    limits = Limits(most_rows=5, most_columns=6, largest_array=7)
    check_rows(5, limits)
    check_columns(6, limits)
    check_array(7, limits)
    assert code_of(lambda: check_rows(6, limits)) == "TOO_MANY_ROWS"
    assert code_of(lambda: check_rows(-1, limits)) == "TOO_MANY_ROWS"
    assert code_of(lambda: check_columns(7, limits)) == "TOO_MANY_COLUMNS"
    assert code_of(lambda: check_array(8, limits)) == "TOO_LARGE"


@pytest.fixture
def packed(tmp_path: Path) -> Callable[..., Unpacked]:
    """Return a checker of gzip files."""

    def unpack(body: bytes, limits: Limits = DEFAULTS) -> Unpacked:
        file = tmp_path / "file.gz"
        file.write_bytes(body)
        return check_gzip(LocalFile(file), 200, limits)

    return unpack


def test_gzip_has_a_limit_of_its_own(packed: Callable[..., Unpacked]) -> None:
    """A gzip file uncompresses to as many bytes as the limit, and no more."""
    body = gzip.compress(b"x" * 1000)
    assert packed(body, Limits(largest_unpacked=1000)) == Unpacked(1000, 1000)
    assert code_of(lambda: packed(body, Limits(largest_unpacked=999))) == "ZIP_BOMB"


def test_a_bomb_is_met_with_little_memory(packed: Callable[..., Unpacked]) -> None:
    """A gigabyte of zeros, in many members or packed twice, is refused with little memory."""
    member = gzip.compress(bytes(32 << 20))
    assert code_of(lambda: packed(member * 32)) == "ZIP_BOMB"
    twice = gzip.compress(member)
    assert packed(twice).size == len(member)
    assert code_of(lambda: check_text("csv", member, "UTF-8")) == "NOT_CSV"


def test_each_boolean_of_a_list_takes_a_byte() -> None:
    """A footer has no more values than bytes, so that none unpacks to gigabytes of booleans."""
    assert Compact(bytes([0x19, 0x21, 1, 2, 0])).struct() == {1: [True, False]}
    count = b"\xff\xff\x03"
    lying = b"\x19\xf9" + count + (b"\xf1" + count) * 0xFFFF
    with pytest.raises(ValueError, match="longer than the footer"):
        Compact(lying).struct()


def test_a_row_over_many_lines_has_a_limit() -> None:
    """No more of a row that goes on over lines is collected than fits into memory."""
    body = b"id\n" + b'"a\n",' * 30_000 + b"x\n"

    def count(longest: int) -> object:
        return count_rows(
            lambda: nullcontext(io.BytesIO(body)), OPTIONS, Limits(longest_line=longest)
        ).count

    assert count(200_000) == 2
    assert code_of(lambda: count(100_000)) == "LINE_TOO_LONG"


@pytest.mark.parametrize("before", ["", "\r\n\n"])
def test_a_line_without_an_end_is_refused_after_one_look(before: str) -> None:
    """A text of one endless line takes no time that grows with the square of its length."""
    head = (before + "x," * (1 << 20)).encode()
    assert code_of(lambda: header(head, OPTIONS)) == "NOT_CSV"
    assert header(head + b"\n", OPTIONS).names[:2] == ("x", "x")


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(b"id\n1\n")[:-3],
        gzip.compress(b"id\n1\n") + b"garbage",
        gzip.compress(b"id\n1\n") + gzip.compress(b"2\n")[:-9],
        b"\x1f\x8b\x08\x08" + bytes(6) + b"a name without an end",
    ],
    ids=["cut", "more after it", "a second one cut", "a name without an end"],
)
def test_broken_gzip_is_refused(packed: Callable[..., Unpacked], body: bytes) -> None:
    """Gzip that is truncated, followed by other data, or no gzip at all is refused."""
    assert code_of(lambda: packed(body)) == "CORRUPT_FILE"


@given(st.lists(st.sampled_from([b"", b"ab", b"x" * 9]), max_size=6), st.sampled_from(b"\n\r"))
def test_the_longest_line_is_found(lines: list[bytes], end: int) -> None:
    """The longest line of a compressed text is found, with any line ends and chunks."""
    members = [gzip.compress(line + bytes([end])) for line in lines]
    found = check_gzip(InMemory(b"".join(members) or gzip.compress(b"")), 200)
    assert found.longest_line == max(map(len, lines), default=0)


@pytest.mark.parametrize(
    ("text", "fits"),
    [("1,aaa\n", True), ("1,aaaa\n", False), ('"a\nb"\n', True), ('"a\nb",\n', False)],
)
def test_a_csv_row_has_a_limit(text: str, *, fits: bool) -> None:
    """A row, of one line or of several, may be as long as the limit, and no longer."""
    opened = lambda: nullcontext(io.BytesIO(text.encode()))  # noqa: E731
    if fits:
        assert count_rows(opened, OPTIONS, Limits(longest_line=5)).count == 1
    else:
        code = code_of(lambda: count_rows(opened, OPTIONS, Limits(longest_line=5)))
        assert code == "LINE_TOO_LONG"


def test_a_header_that_is_read_meanwhile_shortens_no_cell() -> None:
    """The files of a shared run are read at the same time, and each has its own limit."""

    class Meanwhile(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            header(b"id\n", OPTIONS)
            return super().read1(size)

    body = b"id\n" + b'"' + b"long\n" * 20_000 + b'"\n'
    assert count_rows(lambda: nullcontext(Meanwhile(body)), OPTIONS).count == 2


def test_avro_blocks_of_nothing_are_counted() -> None:
    """A block that declares 10^12 empty rows is counted, and refused by the limit."""
    sync, tera = bytes(16), bytes([0x80, 0xC0, 0xCA, 0xF3, 0x84, 0xA3, 0x02])
    rows = count_avro(io.BytesIO(b"Obj\x01\0" + sync + tera + b"\0" + sync))
    assert rows > DEFAULTS.most_rows
    assert code_of(lambda: check_rows(rows, DEFAULTS)) == "TOO_MANY_ROWS"


@pytest.mark.parametrize(
    "head", [b"\x01", b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff" * 11]
)
def test_avro_that_lies_about_lengths_is_refused(head: bytes) -> None:
    """A negative length, one beyond the file's end, or an endless one is refused at once."""
    assert code_of(lambda: count_avro(io.BytesIO(b"Obj\x01" + head + bytes(40)))) in (
        "CORRUPT_FILE",
        "TRUNCATED_FILE",
    )


Runs = list[tuple[bool, list[int]]]


def packed_levels(runs: Runs, width: int) -> bytes:
    """Return levels in Parquet's hybrid of bit-packed runs and repeated values."""
    out = b""
    for is_packed, levels in runs:
        if is_packed:
            groups = -(-len(levels) // 8)
            bits = sum(level << width * n for n, level in enumerate(levels))
            out += varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
        else:
            out += varint(len(levels) << 1) + levels[0].to_bytes((width + 7) // 8, "little")
    return out


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


@st.composite
def hybrids(draw: st.DrawFn) -> tuple[Runs, int]:
    width = draw(st.integers(1, 9))
    level = st.integers(0, (1 << width) - 1)
    repeated = st.tuples(st.just(False), st.builds(lambda v, n: [v] * n, level, st.integers(1, 99)))
    full = st.integers(1, 3).flatmap(lambda n: st.lists(level, min_size=8 * n, max_size=8 * n))
    runs = draw(st.lists(repeated | st.tuples(st.just(True), full), max_size=5))
    return [*runs, (True, draw(st.lists(level, min_size=1, max_size=20)))], width


@given(hybrids())
def test_the_rows_that_begin_are_counted(hybrid: tuple[Runs, int]) -> None:
    """Levels that are 0 are counted with any packing, and the first one is reported."""
    runs, width = hybrid
    levels = [level for _, run in runs for level in run]
    found = count_begun(packed_levels(runs, width), len(levels), width)
    assert found == (levels.count(0), levels[0] == 0)


@given(st.binary(max_size=40), st.integers(0, 10**9), st.integers(1, 9))
def test_any_levels_are_counted_or_refused(levels: bytes, values: int, width: int) -> None:
    """Counting any bytes as levels ends soon."""
    with suppress(Permanent):
        begun, _ = count_begun(levels, values, width)
        assert 0 <= begun <= values


def test_fewer_levels_than_values_are_refused() -> None:
    """A page with fewer levels than values is refused."""
    assert count_begun(packed_levels([(False, [0, 0])], 1), 2, 1) == (2, True)
    with pytest.raises(Permanent, match="fewer levels than values"):
        count_begun(packed_levels([(False, [0, 0])], 1), 3, 1)
