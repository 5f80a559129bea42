"""The origin of rows: by their columns, or by the commit that added their data file."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from access.evidence.trace import first_with, matching
from access.tables.file_rows import FileRows
from access.tables.reader import columns_named
from functions.model.commits import Commit
from lakegate.contract.reading.other_columns import Origin, Provenance
from tests.fakes.iceberg import iceberg_table

_SCHEMA = Schema(
    NestedField(1, "Amount", LongType()),
    NestedField(2, "gate", StringType()),
    NestedField(3, "line", LongType()),
)
_NAMES = Provenance({Origin.INGESTION: "GATE", Origin.ROW: "line"})


def _commit(number: int) -> Commit:
    return Commit(str(number), "", "", {}, "", "")


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_oldest_commit_with_it_is_found(newer: int, older: int) -> None:
    """However long the history is, the answer is right, and few commits are asked."""
    asked: list[int] = []

    def has(hash_: str) -> bool:
        asked.append(int(hash_))
        return int(hash_) < newer

    found = first_with(map(_commit, range(newer + older)), has)
    assert found == (_commit(newer - 1) if newer else None)
    assert len(asked) <= 2 * max(1, newer).bit_length() + 1


def test_rows_are_counted_by_file_and_ingestion(tmp_path: Path) -> None:
    """Only rows that meet the condition count; those that name no ingestion are apart."""
    first = pa.table({"Amount": [1, 2, 3], "gate": ["a", "b", "a"], "line": [7, 8, 9]})
    second = pa.table({"Amount": [3, 4], "gate": pa.array([None, "a"]), "line": [None, 1]})
    rows = FileRows.all(iceberg_table(tmp_path, _SCHEMA, first, second))
    found = matching(rows, "amount > 1", _NAMES)
    assert sorted((id_, count, numbers) for _, id_, count, numbers in found) == [
        ("", 1, ()),
        ("a", 1, (1,)),
        ("a", 1, (9,)),
        ("b", 1, (8,)),
    ]
    assert {path for path, *_ in found} == set(rows.files)


def test_a_table_without_the_columns_names_only_its_files(tmp_path: Path) -> None:
    """Where the contract asks for columns that the table has not, data files are all there is."""
    plain = Schema(NestedField(1, "Amount", LongType()))
    rows = FileRows.all(iceberg_table(tmp_path, plain, pa.table({"Amount": [1, 2]})))
    assert matching(rows, "true", _NAMES) == [(rows.files[0], "", 2, ())]


@pytest.mark.parametrize("names", [_NAMES, Provenance()])
@pytest.mark.parametrize("name", ["i", "rows", "row_numbers"])
def test_a_column_may_have_any_name(tmp_path: Path, name: str, names: Provenance) -> None:
    """Rows are counted by file and ingestion, whatever the columns of the condition are called."""
    schema = Schema(NestedField(1, name, LongType()), NestedField(2, "gate", StringType()))
    table = pa.table({name: [1, 2], "gate": ["a", "a"]})
    rows = FileRows.all(iceberg_table(tmp_path, schema, table))
    ingestion = "a" if names.names else ""
    assert matching(rows, f"{name} > 0", names) == [(rows.files[0], ingestion, 2, ())]


@pytest.mark.parametrize(
    ("condition", "columns"),
    [("true", set()), ('"Amount" > 1 AND upper(gate) IS NULL', {"amount", "gate"})],
)
def test_only_columns_of_the_condition_are_read(condition: str, columns: set[str]) -> None:
    """A condition names the columns that it needs, in any case."""
    with duckdb.connect() as connection:
        assert columns_named(connection, condition) == columns
