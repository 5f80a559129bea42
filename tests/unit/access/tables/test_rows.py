"""Rows that break a check are found whatever the columns are called."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from access.tables.file_rows import FileRows
from access.tables.rows import Evidence
from lakegate.contract.model import parse
from tests.fakes.deployment import ORDERS
from tests.fakes.iceberg import iceberg_table


@pytest.mark.parametrize("rule", ["required: true", "unique: true"])
@pytest.mark.parametrize("name", ["_counted", "rows", "broken", "first", 'a"b', "a.b", "i"])
def test_a_column_may_have_any_name(tmp_path: Path, name: str, rule: str) -> None:
    """No name means something else in the queries."""
    named = "'" + name + "'"
    text = ORDERS.replace("name: id", f"name: {named}").replace("required: true", rule)
    contract = parse(text, "orders")
    schema = Schema(NestedField(1, name, LongType()))
    table = iceberg_table(tmp_path, schema, pa.table({name: [7, 7, None]}))
    with duckdb.connect() as connection:
        found = Evidence(connection, FileRows.all(table)).broken(
            contract.checks[0], contract, 5, lambda _: False
        )
    shown = [row[name] for row in found.rows]
    assert (found.count, shown) == ((1, [None]) if "required" in rule else (1, ["7", "7"]))
