"""Laws of the comparison: manifests agree with rows, bins are complete, samples are even."""

import math
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

from access.tables.file_rows import FileRows
from dashboard.compare import counting, distribution
from dashboard.compare.bins import Spread, bins
from dashboard.compare.figures import Kind
from dashboard.compare.one_side import text_of
from dashboard.compare.rows import evenly
from dashboard.compare.stated import stated_ends, stated_nulls
from tests.fakes.iceberg import iceberg_table

_VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    FloatType(): st.floats(width=32, allow_nan=False),
    DoubleType(): st.floats(allow_nan=False),
    DecimalType(12, 3): st.decimals(-(10**8), 10**8, places=3),
    BooleanType(): st.booleans(),
    DateType(): st.dates(),
    TimestampType(): st.datetimes(),
    StringType(): st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=15),
}
_IN_ORDER = (Kind.NUMBER, Kind.WHOLE, Kind.DAY, Kind.TIME)
_NUMBERS = st.floats(-1e300, 1e300) | st.integers(-50, 50).map(float)


@pytest.mark.parametrize("type_", _VALUES, ids=str)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_manifests_tell_what_the_rows_tell(type_: IcebergType, data: st.DataObject) -> None:
    """Manifests give the rows' nulls, smallest and largest value, in any number of files."""
    column = st.lists(st.none() | _VALUES[type_], min_size=1, max_size=6)
    files = data.draw(st.lists(column, min_size=1, max_size=3))
    schema = Schema(NestedField(1, "v", type_))
    arrow = schema.as_arrow()
    tables = [pa.table([pa.array(each, arrow.types[0])], schema=arrow) for each in files]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        made = FileRows.all(iceberg_table(Path(folder), schema, *tables)).data_files
        nulls, ends = stated_nulls(schema.fields[0], made), stated_ends(schema.fields[0], made)
        counting.enter(connection, counting.FILE, pa.concat_tables(tables).to_reader())
        counted = counting.counted(connection, counting.FILE, arrow.types[0])
    assert nulls == counted.nulls
    for told, read in zip(ends, (counted.smallest, counted.largest), strict=True):
        assert text_of(told) in _alike(text_of(read))


def _alike(text: str | None) -> set[str | None]:
    """Return whether two values are equal, as both zeros are."""
    return {"0", "-0"} if text in ("0", "-0") else {text}


@settings(max_examples=50, deadline=None)
@given(
    file=st.lists(_NUMBERS | st.sampled_from([math.inf, -math.inf, math.nan]), max_size=20),
    main=st.lists(_NUMBERS, max_size=20),
)
def test_bins_hold_every_number_once(file: list[float], main: list[float]) -> None:
    """Every number except NaN is in exactly one bin, and the few bins all have names."""
    with duckdb.connect() as connection:
        for name, numbers in ((counting.FILE, file), (counting.MAIN, main)):
            column = pa.table({"v": pa.array(numbers, pa.float64())})
            counting.enter(connection, name, column.to_reader())
        distribution.picture(connection, Kind.NUMBER, (counting.FILE, counting.MAIN))
        spreads = distribution.spreads(connection)
        found = bins(Kind.NUMBER, spreads.get(counting.FILE), spreads.get(counting.MAIN))
        assume(found)
        assert found
        counts = distribution.binned(connection, found)
    assert found.many <= 60
    assert [sum(each) for each in counts.values()] == [
        sum(not math.isnan(number) for number in side) for side in (file, main)
    ]


@given(low=st.integers(-1000, 1000), size=st.integers(0, 10**6), kind=st.sampled_from(_IN_ORDER))
def test_the_bulk_of_main_is_checked_closely(low: int, size: int, kind: Kind) -> None:
    """Main's range is between the outer bins, and at most 26 bins divide it."""
    found = bins(kind, None, Spread(low, low + size, low, low + size))
    assert found
    assert found.start <= low
    assert low + size < found.end
    assert found.many <= 26
    assert len(found.labels) == found.many + 2


@given(there=st.integers(1, 10_000), data=st.data())
def test_a_sample_is_spread_evenly(there: int, data: st.DataObject) -> None:
    """A sample has distinct members in order, and its gaps differ by at most one."""
    many = data.draw(st.integers(1, min(there, 100)))
    chosen = evenly(there, many)
    gaps = [after - before for before, after in pairwise(chosen)]
    assert len(chosen) == many
    assert all(gap > 0 for gap in gaps)
    assert max(gaps, default=0) - min(gaps, default=0) <= 1
    assert chosen[0] >= 0
    assert chosen[-1] < there


@pytest.mark.parametrize(
    ("wide", "bounds", "smallest"),
    [
        (LongType(), (pack("<i", -5), pack("<q", 2**40)), -5),
        (DoubleType(), (pack("<f", 0.5), pack("<d", 0.25)), 0.25),
        (DoubleType(), (pack("<d", math.nan), pack("<d", 0.25)), None),
        (LongType(), (pack("<q", 1), None), None),
    ],
)
def test_bounds_of_a_narrower_type_are_understood(
    wide: IcebergType, bounds: Sequence[bytes], smallest: float | None
) -> None:
    """Bounds from before a column was widened are read, and NaN is not a bound."""
    files = [
        DataFile.from_args(record_count=1, null_value_counts={1: 0}, lower_bounds={1: bound})
        for bound in bounds
    ]
    found, _ = stated_ends(NestedField(1, "v", wide), files)
    assert found.as_py() == smallest
