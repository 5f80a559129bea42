"""Data files are exchanged for others in an Iceberg table on the disk."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField

from functions.adapters.iceberg.exchange import Removal, exchange
from functions.adapters.iceberg.files import data_files
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


def test_threads_do_not_share_what_they_read(table: Table) -> None:
    """A manifest is judged by its own partitions, though another one is judged meanwhile."""
    snapshot = table.current_snapshot()
    assert snapshot
    other, *_, mine = snapshot.manifests(table.io)
    (file,) = [each for each in data_files(table) if each in _files(mine, table)]
    removal = Removal(Operation.OVERWRITE, table.transaction(), table.io)
    removal.delete_data_file(file)
    removal._build_delete_files_partition_predicate()  # noqa: SLF001  as pyiceberg calls it
    has_removed = removal._build_manifest_evaluator(0)  # noqa: SLF001

    class Meanwhile(list[Any]):
        def __getitem__(self, position: Any) -> Any:
            assert not has_removed(other)
            return super().__getitem__(position)

    interrupted: Any = SimpleNamespace(partitions=Meanwhile(mine.partitions or ()))
    assert has_removed(interrupted)


def _files(manifest: ManifestFile, table: Table) -> list[Any]:
    return [entry.data_file for entry in manifest.fetch_manifest_entry(table.io)]
