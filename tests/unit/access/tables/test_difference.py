"""The rows by which two states of a table differ."""

from copy import copy
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, ListType, LongType, NestedField, StringType

from access.tables.difference import Difference, difference
from lakegate.errors import LakegateError
from tests.fakes.iceberg import iceberg_table

SCHEMA = Schema(
    NestedField(1, "Id", LongType()),
    NestedField(2, "x", DoubleType()),
    NestedField(3, "Tags", ListType(4, StringType(), element_required=False)),
)


def rows(*ids: int) -> pa.Table:
    """Return rows with these ids, alike in all else."""
    many = len(ids)
    columns = {"Id": list(ids), "x": [float("nan")] * many, "Tags": [["a", None]] * many}
    return pa.table(columns, SCHEMA.as_arrow())


def between(then: Table, now: Table, *hidden: str, most: int = 5) -> Difference:
    """Return what the table gains and loses."""
    return difference(then, now, lambda name: name in hidden, most)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with a data file of three rows, two of them alike."""
    return iceberg_table(tmp_path, SCHEMA, rows(1, 2, 2))


def test_only_rows_that_differ_count(table: Table) -> None:
    """A row of a data file that was written again is neither gained nor lost."""
    then = copy(table)
    table.delete("Id == 1")  # its data file is written again, without the row
    table.append(rows(2, 7))
    found = between(then, table)
    assert (found.gained, found.lost) == (1, 2)
    assert [row["Id"] for row in found.first_gained] == ["1"]
    assert [row["Id"] for row in found.first_lost] == ["2", "7"]
    assert between(table, table) == Difference(0, 0, (), ())


def test_equal_rows_are_counted_each(table: Table) -> None:
    """Of rows that are alike, as many are gained as are missing."""
    then = copy(table)
    table.delete("Id > 0")
    table.append(rows(2))
    assert (between(then, table).gained, between(then, table).lost) == (2, 0)


def test_older_rows_have_null_in_newer_columns(table: Table) -> None:
    """Rows are read by the columns of now."""
    then = copy(table)
    with table.update_schema() as change:
        change.add_column("note", StringType())
    table.delete("Id > 1")
    found = between(then, table)
    assert found.gained == 2
    assert found.first_gained[0] == {"Id": "2", "x": "nan", "Tags": "[a, NULL]", "note": None}


def test_confidential_values_are_hidden(table: Table) -> None:
    """Hidden columns have a word in place of their values; at most so many rows are shown."""
    then = copy(table)
    table.delete("Id > 0")
    found = between(then, table, "Id", most=2)
    assert found.gained == 3
    assert [row["Id"] for row in found.first_gained] == ["(hidden)", "(hidden)"]


def test_another_table_of_the_name_is_refused(table: Table, tmp_path: Path) -> None:
    """Rows of a table that was dropped are not compared with those of the one made since."""
    other = iceberg_table(tmp_path / "other", SCHEMA, rows(1))
    with pytest.raises(LakegateError, match="made again") as caught:
        between(table, other)
    assert caught.value.code == "TABLE_REPLACED"
