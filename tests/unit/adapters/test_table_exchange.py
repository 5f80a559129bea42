"""Data files are exchanged for others in an Iceberg table on the disk."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField

from functions.adapters.iceberg.exchange import exchange
from functions.adapters.iceberg.files import data_files, manifests_of
from tests.fakes.iceberg import iceberg_table

_SCHEMA = Schema(
    NestedField(1, "a", IntegerType(), required=False),
    NestedField(2, "b", IntegerType(), required=False),
)
_BY_BOTH = PartitionSpec(
    PartitionField(1, 1001, IdentityTransform(), "a"),
    PartitionField(2, 1002, IdentityTransform(), "b"),
    spec_id=0,
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table of three partitions, each with one file in a manifest of its own."""
    number = pa.int32()
    values = ({"a": pa.array([n], number), "b": pa.array([-n], number)} for n in range(3))
    return iceberg_table(tmp_path, _SCHEMA, *map(pa.table, values), partitions=_BY_BOTH)


def test_files_make_room_for_others(table: Table) -> None:
    """Removed files are gone, others stay, and what is registered again is there once."""
    first, *others = data_files(table)
    exchange(table, [first, others[0]], [first])
    left = sorted(file.file_path for file in data_files(table))
    assert left == sorted([first.file_path, others[1].file_path])


def test_statistics_of_what_stays_are_kept(tmp_path: Path) -> None:
    """A file in the manifest of a removed one has its bounds still, by which queries skip it."""
    values = [pa.table({"a": pa.array([n], pa.int32())}) for n in range(3)]
    together = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    table = iceberg_table(tmp_path, _SCHEMA, *values, properties=together)
    assert len(manifests_of(table)) == 1
    before = _bounds(table)
    first, *_ = data_files(table)
    exchange(table, [first], [])
    assert first.lower_bounds is None
    assert _bounds(table) == {k: v for k, v in before.items() if k != first.file_path}
    assert all(_bounds(table).values())


def _bounds(table: Table) -> dict[str, Any]:
    """Return the lower bounds of each file as pyiceberg reads them."""
    every = [e for m in manifests_of(table) for e in m.fetch_manifest_entry(table.io)]
    return {entry.data_file.file_path: entry.data_file.lower_bounds for entry in every}
