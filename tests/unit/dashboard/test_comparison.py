"""The comparison of a file's columns with main's, without confidential values."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
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
    StructType,
    TimestampType,
    TimestamptzType,
)

from access.tables.file_rows import FileRows
from dashboard.compare.compare import ALL, compare
from dashboard.compare.distribution import OTHERS
from dashboard.compare.figures import Column, Comparison, Figure, Origin
from dashboard.compare.one_side import text_of
from tests.fakes.iceberg import iceberg_table

NAN, INF = float("nan"), float("inf")
_FEW = (1, 1)  # cells: of more than 500 rows, a sample is read


def table(folder: Path, type_: IcebergType, *files: Sequence[Any], **properties: str) -> Table:
    """Return a table with one column, named v."""
    schema = Schema(NestedField(1, "v", type_))
    arrow = schema.as_arrow()
    rows = (pa.table([pa.array(values, arrow.types[0])], schema=arrow) for values in files)
    return iceberg_table(folder, schema, *rows, properties=properties)


def column(
    file: Table | None, main: Table | None, cells: Any = ALL, shown: Sequence[str] = ("v",)
) -> Column:
    """Return the comparison of the one column."""
    return compared(file, main, cells, shown).columns[0]


def compared(
    file: Table | None, main: Table | None, cells: Any = ALL, shown: Sequence[str] = ("v",)
) -> Comparison:
    assert file
    return compare(FileRows.all(file), FileRows.all(main) if main else None, ["v"], shown, cells)


def told(found: Column) -> list[Any]:
    """Return a column's figures for the file and then for main, without their sources."""
    sides = [side for side in (found.file, found.main) if side]
    figures = ((s.nulls, s.distinct, s.smallest, s.largest) for s in sides)
    return [[figure and figure.value for figure in side] for side in figures]


@pytest.mark.parametrize(
    ("type_", "values", "smallest", "largest"),
    [
        (IntegerType(), [3, None, -7, 3], "-7", "3"),
        (LongType(), [2**62, None, -(2**62), 2**62], str(-(2**62)), str(2**62)),
        (FloatType(), [0.5, None, -1.5, 0.5], "-1.5", "0.5"),
        (DoubleType(), [0.5, None, -INF, 0.5], "-inf", "0.5"),
        (DecimalType(9, 2), [Decimal("1.50"), None, Decimal("-0.05")] * 2, "-0.05", "1.50"),
        (StringType(), ["b", None, "ä", "b"], "b", "ä"),
        (BooleanType(), [True, None, False, True], "false", "true"),
        (DateType(), [date(2026, 2, 1), None, date(1, 1, 1)] * 2, "0001-01-01", "2026-02-01"),
        (
            TimestampType(),
            [datetime(2026, 2, 1, 3, 4, 5), None, datetime(9999, 12, 31)] * 2,  # noqa: DTZ001
            "2026-02-01 03:04:05",
            "9999-12-31 00:00:00",
        ),
        (
            TimestamptzType(),
            [datetime(2026, 2, 1, tzinfo=UTC), None, datetime(2026, 1, 1, 0, 0, 0, 5, UTC)] * 2,
            "2026-01-01 00:00:00.000005Z",
            "2026-02-01 00:00:00Z",
        ),
    ],
)
def test_a_column_of_each_type_is_reported(
    tmp_path: Path, type_: IcebergType, values: list[Any], smallest: str, largest: str
) -> None:
    """A column of each type has nulls, distinct values, smallest and largest value and a chart."""
    found = column(table(tmp_path, type_, values), None)
    nulls = values.count(None)
    assert told(found) == [[nulls, 2, smallest, largest]]
    assert found.picture
    assert sum(found.picture.file) == pytest.approx(1)


def test_both_sides_are_counted_in_the_same_bins(tmp_path: Path) -> None:
    """Both sides have the same bins, also beyond main's range, and the shares are complete."""
    main = table(tmp_path / "main", LongType(), [1, 2, 2, 3])
    found = column(table(tmp_path / "file", LongType(), [3, 4, 1_000, None]), main)
    assert found.picture
    assert dict(zip(found.picture.labels, found.picture.main, strict=True)) == {
        "< 1": 0,
        "1": 0.25,
        "2": 0.5,
        "3": 0.25,
        "4": 0,
        "5": 0,
        "≥ 6": 0,
    }
    assert found.picture.file == pytest.approx((0, 0, 0, 1 / 3, 1 / 3, 0, 1 / 3))


def test_nan_and_infinity_have_their_place(tmp_path: Path) -> None:
    """NaN is counted apart and is never the smallest value; infinity is beyond the last bin."""
    found = column(table(tmp_path, DoubleType(), [1.0, 2.0, NAN, INF]), None)
    assert found.file
    assert (found.file.nans, told(found)) == (1, [[0, 4, "1", "inf"]])
    assert found.picture
    assert found.picture.file[-1] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("type_", "values", "note"),
    [
        (DoubleType(), [], "there is no value"),
        (DoubleType(), [None, None], "there is no value"),
        (DoubleType(), [NAN], "no value is there twice"),
        (DoubleType(), [INF], "no value is there twice"),
        (StringType(), ["a", "b"], "no value is there twice"),
    ],
)
def test_without_values_to_draw_there_is_no_picture(
    tmp_path: Path, type_: IcebergType, values: list[Any], note: str
) -> None:
    """A column without a finite value or a repeated text has no chart, and a note says why."""
    found = column(table(tmp_path, type_, values), None)
    assert (found.picture, found.note) == (None, note)


def test_an_empty_main_is_reported_as_empty(tmp_path: Path) -> None:
    """An empty main is shown as empty beside the file's figures."""
    main = table(tmp_path / "main", StringType())
    found = compared(table(tmp_path / "file", StringType(), ["a", "a"]), main)
    assert told(found.columns[0]) == [[0, 1, "a", "a"], [0, 0, None, None]]
    assert found.main
    assert (found.main.rows, found.main.whole) == (0, True)
    assert found.columns[0].picture
    assert found.columns[0].picture.main == ()


def test_the_most_frequent_values_of_both_are_drawn(tmp_path: Path) -> None:
    """The chart has the most frequent values of either side, and one bar for the others."""
    main = table(tmp_path / "main", StringType(), ["a"] * 6 + ["b"] * 2 + list("cdefghijkl"))
    found = column(table(tmp_path / "file", StringType(), ["z", "z", "a", "l"]), main)
    assert found.picture
    labels = found.picture.labels
    shares = dict(
        zip(labels, zip(found.picture.file, found.picture.main, strict=True), strict=True)
    )
    assert labels[0] == "a"
    assert shares["z"] == (0.5, 0)
    assert shares["a"] == pytest.approx((0.25, 6 / 18))
    assert labels[-1] == OTHERS
    assert sum(found.picture.main) == pytest.approx(1)


def test_a_column_main_has_not_is_reported_for_the_file(tmp_path: Path) -> None:
    """A column that the file added has figures of the file only."""
    schema = Schema(NestedField(1, "w", LongType()))
    main = iceberg_table(tmp_path / "main", schema, pa.table({"w": [1]}))
    found = column(table(tmp_path / "file", LongType(), [1]), main)
    assert found.main is None
    assert told(found) == [[0, 1, "1", "1"]]


def test_types_that_can_be_drawn_together_are(tmp_path: Path) -> None:
    """Different numeric types share their bins; a number and a text have no chart."""
    main = table(tmp_path / "main", DoubleType(), [0.5, 1.5])
    number = column(table(tmp_path / "a", LongType(), [1, 2]), main)
    text = column(table(tmp_path / "b", StringType(), ["1", "1"]), main)
    assert number.picture
    assert (text.picture, text.note) == (None, "its values are of another kind on main")
    assert told(text) == [[0, 1, "1", "1"], [0, 2, "0.5", "1.5"]]


def test_bytes_are_counted_and_columns_within_named(tmp_path: Path) -> None:
    """Binary columns are only counted and nested columns only named, without values."""
    schema = Schema(
        NestedField(1, "v", BinaryType()),
        NestedField(2, "n", StructType(NestedField(3, "inner", LongType()))),
    )
    rows = pa.table({"v": [b"secret", b"secret", None], "n": [{"inner": 1}, None, None]})
    made = iceberg_table(tmp_path, schema, rows.cast(schema.as_arrow()))
    found = compare(FileRows.all(made), None, ["v", "n"], ["v", "n"], ALL)
    bytes_, nested = found.columns
    assert told(bytes_) == [[1, 1, None, None]]
    assert "secret" not in str(found)
    assert (nested.file, nested.name) == (None, "n")


@pytest.mark.parametrize("cells", [ALL, _FEW])
def test_of_hidden_columns_no_value_is_reported(tmp_path: Path, cells: Any) -> None:
    """A hidden column has counts only, and no bounds, chart or value."""
    file = table(tmp_path, StringType(), ["Ann Smith"] * 700 + [None])
    found = column(file, file, cells, shown=())
    assert found.file
    assert (found.file.nulls.value, found.file.distinct.value) == (1, 1)
    assert (found.file.smallest, found.file.largest, found.picture) == (None, None, None)
    assert "Ann" not in str(found)


def test_of_many_rows_a_sample_is_read_and_said_to_be_one(tmp_path: Path) -> None:
    """Figures of a sample say so, and figures from manifests are exact."""
    files = [list(range(start, start + 400)) for start in range(0, 4_000, 400)]
    main = table(tmp_path, LongType(), *files)
    found = compared(main, main, (None, 1))
    of = found.columns[0].main
    assert found.main
    assert of
    assert (found.main.rows, found.main.whole) == (4_000, False)
    assert 500 <= found.main.read < 4_000
    assert 1 < found.main.files_read < 10
    assert of.nulls == Figure(0, Origin.MANIFESTS)
    assert of.smallest == Figure("0", Origin.MANIFESTS)
    assert of.largest == Figure("3999", Origin.MANIFESTS)
    assert of.distinct == Figure(found.main.read, Origin.SAMPLE)
    assert compared(main, main, (None, 1)) == found


def test_bounds_of_texts_are_said_to_be_bounds(tmp_path: Path) -> None:
    """Bounds of texts from manifests are called bounds, because they may be truncated."""
    long = "0123456789abcdefghij"
    main = table(tmp_path, StringType(), [long] * 700)
    sampled, read = column(main, None, _FEW).file, column(main, None).file
    assert sampled
    assert read
    assert sampled.smallest == Figure(long[:16], Origin.BOUND)
    assert read.smallest == Figure(long, Origin.ROWS)


def test_without_statistics_of_all_files_the_sample_decides(tmp_path: Path) -> None:
    """If one data file lacks statistics, all figures come from the sample."""
    main = table(tmp_path, LongType(), [5] * 300)
    with main.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    main.append(pa.table({"v": [1, *[None] * 299]}, schema=main.schema().as_arrow()))
    found = column(main, None, _FEW).file
    assert found
    assert {found.nulls.origin, found.distinct.origin} == {Origin.SAMPLE}
    assert found.smallest == Figure("1", Origin.SAMPLE)


def test_a_sample_reads_files_that_are_older_than_a_column(tmp_path: Path) -> None:
    """A column that an older file lacks is null in its rows."""
    old, new = NestedField(1, "w", LongType()), NestedField(2, "v", LongType())
    made = iceberg_table(tmp_path, Schema(old), pa.table({"w": [1] * 400}))
    with made.update_schema() as change:
        change.add_column("v", LongType())
    made.append(pa.table({"w": [1] * 400, "v": [5] * 400}))
    assert [field.name for field in made.schema().fields] == [old.name, new.name]
    found = compared(made, None, _FEW)
    profile = found.columns[0].file
    assert profile
    assert not found.file.whole
    assert profile.nulls.origin is Origin.SAMPLE
    assert profile.smallest == Figure("5", Origin.SAMPLE)


def test_values_that_act_on_a_page_are_shown_as_marks() -> None:
    """Line ends and direction marks are shown as visible characters, and long texts are cut."""
    assert text_of(pa.scalar("a\n\u202eb")) == "a␊\ufffdb"
    assert text_of(pa.scalar("x" * 1_000_000)) == "x" * 80 + "…"
