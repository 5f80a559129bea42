"""The rows of a repeated column are counted by their levels, as every writer packs them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.errors import Permanent
from spark_jobs.files.parquet import count_begun

Runs = list[tuple[bool, list[int]]]


def packed(runs: Runs, width: int) -> bytes:
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
    found = count_begun(packed(runs, width), len(levels), width)
    assert found == (levels.count(0), levels[0] == 0)


@given(st.binary(max_size=40), st.integers(0, 10**9), st.integers(1, 9))
def test_any_levels_are_counted_or_refused(levels: bytes, values: int, width: int) -> None:
    """Counting any bytes as levels ends soon."""
    with suppress(Permanent):
        begun, _ = count_begun(levels, values, width)
        assert 0 <= begun <= values


def test_fewer_levels_than_values_are_refused() -> None:
    """A page with fewer levels than values is refused."""
    assert count_begun(packed([(False, [0, 0])], 1), 2, 1) == (2, True)
    with pytest.raises(Permanent, match="fewer levels than values"):
        count_begun(packed([(False, [0, 0])], 1), 3, 1)
