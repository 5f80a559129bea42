"""The rows of an Iceberg table by column name."""

from pathlib import Path

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from access.tables.file_rows import FileRows
from tests.fakes.iceberg import iceberg_table

SCHEMA = Schema(NestedField(1, "Id", LongType()), NestedField(2, "Name", StringType()))


def test_columns_are_found_in_any_case_and_order(tmp_path: Path) -> None:
    """Columns are found in any case, and named as requested."""
    held = pa.table({"Id": [1, 2], "Name": ["a", "b"]})
    rows = FileRows.added(iceberg_table(tmp_path, SCHEMA, held))
    asked = ["name", "ID"]
    assert rows.schema(asked).names == asked
    (batch,) = rows.batches(0, asked)
    assert batch.to_pydict() == {"name": ["a", "b"], "ID": [1, 2]}
