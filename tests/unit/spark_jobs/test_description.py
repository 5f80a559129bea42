"""A data file's bounds hide none of its values from a reader."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import conversions
from pyiceberg import types as ice

from spark_jobs.files.arrow.values import ColumnStatistics
from spark_jobs.write.description import Written, bounds_of, scan_task
from spark_jobs.write.layout import Field, Layout, Spec

_TYPES: dict[str, tuple[ice.PrimitiveType, st.SearchStrategy[Any]]] = {
    "boolean": (ice.BooleanType(), st.booleans()),
    "int": (ice.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (ice.LongType(), st.integers(-(2**63), 2**63 - 1)),
    "float": (ice.FloatType(), st.floats(allow_nan=False, width=32).filter(bool)),
    "double": (ice.DoubleType(), st.floats(allow_nan=False).filter(bool)),
    "decimal(38,2)": (ice.DecimalType(38, 2), st.integers(-(10**38) + 1, 10**38 - 1)),
    "date": (ice.DateType(), st.integers(-(2**31), 2**31 - 1)),
    "timestamp": (ice.TimestampType(), st.integers(-(2**63), 2**63 - 1)),
    "timestamptz": (ice.TimestamptzType(), st.integers(-(2**63), 2**63 - 1)),
    "string": (ice.StringType(), st.text()),
    "binary": (ice.BinaryType(), st.binary()),
}


def bounds(type_: str, low: Any, high: Any, mode: str) -> tuple[bytes | None, bytes | None]:
    """Return the bounds of a column that has these values and some nulls."""
    return bounds_of(Field(1, type_, mode), ColumnStatistics(9, 3, None, low, high))


@given(st.data())
@pytest.mark.parametrize("type_", _TYPES)
def test_bounds_are_icebergs_single_values(type_: str, data: st.DataObject) -> None:
    """A bound that is not shortened has the bytes that pyiceberg writes for its value."""
    theirs, values = _TYPES[type_]
    value = data.draw(values)
    if type_.startswith("decimal"):
        value = Decimal((value < 0, tuple(map(int, str(abs(value)))), -2))
    expected = conversions.to_bytes(theirs, value)
    assert bounds(type_, value, value, "full") == (expected, expected)


@given(st.text(max_size=30), st.integers(1, 20))
def test_a_short_text_includes_the_long_one(text: str, length: int) -> None:
    """Bounds have at most so many characters, and the text is between them, in UTF-8's order."""
    low, high = bounds("string", text, text, f"truncate({length})")
    assert low is not None
    assert low <= text.encode()
    assert len(low.decode()) <= length
    if high is None:
        assert set(text[:length]) == {"\U0010ffff"}
    else:
        assert text.encode() <= high
        assert len(high.decode()) <= length
        assert len(text) > length or high == low == text.encode()


@given(st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), min_size=17, max_size=20))
def test_the_last_characters_of_unicode_have_a_bound(text: str) -> None:
    """The next character is never half a surrogate pair, nor beyond the last one."""
    _, high = bounds("string", text, text, "truncate(16)")
    assert high is None or text.encode() < high


@given(st.binary(max_size=30) | st.integers(0, 30).map(lambda n: b"\xff" * n), st.integers(1, 20))
def test_short_bytes_include_the_long_ones(value: bytes, length: int) -> None:
    """Bounds have at most so many bytes, and the value is between them."""
    low, high = bounds("binary", value, value, f"truncate({length})")
    assert low == value[:length]
    if high is None:
        assert value[:length] == b"\xff" * length
        assert len(value) > length
    else:
        assert value <= high
        assert len(high) <= length


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_no_value_has_no_bound(mode: str) -> None:
    """A column of nulls has no bounds, and none are wanted beside counts."""
    assert bounds("long", None, None, mode) == (None, None)
    assert bounds("long", 1, 2, "counts") == (None, None)


def test_a_column_may_have_no_metrics() -> None:
    """A column of the mode `none` is in no metric, and one of `counts` only has counts."""
    fields = {"a": Field(7, "long", "none"), "b": Field(8, "long", "counts")}
    fields["c"] = Field(9, "string", "truncate(16)")
    columns = {
        "a": ColumnStatistics(2, 0, None, 1, 2),
        "b": ColumnStatistics(2, 1, None, 1, 1),
        "c": ColumnStatistics(2, 0, None, "x", "y"),
    }
    file = Written("s3://a/b", 99, 2, columns, {"a": 50, "b": 60, "c": 70}, (4,))
    found = json.loads(scan_task(file, Layout({}, fields, "s3://a/", spec=Spec(4))))["data-file"]
    assert found["column-sizes"] == {"keys": [8, 9], "values": [60, 70]}
    assert found["null-value-counts"] == {"keys": [8, 9], "values": [1, 0]}
    assert found["nan-value-counts"] == {"keys": [], "values": []}
    assert found["lower-bounds"] == {"keys": [9], "values": ["78"]}
    assert (found["spec-id"], found["record-count"], found["split-offsets"]) == (4, 2, [4])
