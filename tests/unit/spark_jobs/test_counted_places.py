"""Rows that Arrow wrote in the file's order are counted, also after rows that it left out."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from lakegate.contract.model import Contract
from spark_jobs.audit.places import Stored
from spark_jobs.files.source import PLACE
from spark_jobs.one_pass.apart import Apart, RowsApart
from spark_jobs.one_pass.counted_places import counted
from spark_jobs.one_pass.examined import Examined
from spark_jobs.write.layout import Layout, PartitionField, Spec

LAYOUT = Layout({}, {}, "s3://lake/")


def found(apart: list[int], units: int, rows: int = 9, unit: str = "line") -> Examined:
    """Return a CSV file with rows apart at these places, and others in two data files."""
    table = pa.table({PLACE: pa.array(apart, pa.int64())})
    part = Apart(rows=rows, broken=[table], units=units)
    contract = cast(Contract, SimpleNamespace(options={"header": "true"}))
    read = cast(Any, SimpleNamespace(unit=unit)) if unit else None
    files = [SimpleNamespace(location=name, rows=n) for name, n in (("a", 3), ("b", 4))]
    return Examined(cast(Any, None), {}, cast(Any, tuple(files)), RowsApart(contract, part, read))


def places(given: Examined, *rows: tuple[str, int]) -> list[str] | None:
    find = counted(given, LAYOUT)
    return find and find([Stored(0, file, position) for file, position in rows])


def test_rows_are_counted_over_data_files_and_rows_apart() -> None:
    """The header is line 1; rows that are in no data file, at places 0 and 4, count as well."""
    every = [("a", 0), ("a", 2), ("b", 0), ("b", 3), ("", 4)]
    assert places(found([4, 0], 10), *every) == ["line 3", "line 5", "line 7", "line 10", "line 6"]


def test_rows_of_a_file_without_lines_are_counted_from_1() -> None:
    """A Parquet file has rows, and no header."""
    assert places(found([], 0, 7, unit=""), ("a", 0), ("b", 3)) == ["row 1", "row 7"]


@pytest.mark.parametrize("units", [9, 11])
def test_where_lines_are_no_rows_the_file_must_be_read(units: int) -> None:
    """With empty lines, or fewer than rows, a row's number does not tell its line."""
    assert counted(found([4, 0], units), LAYOUT) is None


def test_where_unparseable_rows_are_not_held_the_file_must_be_read() -> None:
    """It is unknown which rows they were before, so later rows cannot be counted."""
    given = found([4, 0], 10)
    held = replace(given.apart.part, bad=1)
    assert counted(replace(given, apart=replace(given.apart, part=held)), LAYOUT) is None


def test_where_rows_are_divided_the_file_must_be_read() -> None:
    """A partitioned table's data files are in another order than the landed file."""
    divided = Layout({}, {}, "s3://lake/", spec=Spec(1, (PartitionField("day", "identity", 1),)))
    assert counted(found([], 8, 7), divided) is None
