"""The rows of an Iceberg table by column name."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

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


ITEM = StructType(NestedField(9, "piece", LongType(), required=False))


@pytest.mark.parametrize(
    ("kind", "full"),
    [
        (ListType(2, ITEM, element_required=False), [{"piece": 7}]),
        (MapType(2, StringType(), 3, ITEM, value_required=False), [("a", {"piece": 7})]),
    ],
)
def test_null_is_read_as_null(tmp_path: Path, kind: ListType | MapType, full: list[Any]) -> None:
    """A null array or map of structs stays one, and an empty one stays empty."""
    schema = Schema(NestedField(1, "items", kind, required=False))
    table = iceberg_table(tmp_path, schema, pa.table({"items": [None]}, schema.as_arrow()))
    rows = FileRows.all(table)
    values = [None, [], full]
    pq.write_table(pa.table({"items": values}, table.schema().as_arrow()), rows.files[0])
    (batch,) = rows.batches(0, ["items"])
    assert batch.column(0).to_pylist() == values
    assert table.scan().to_arrow()["items"].to_pylist() == values
