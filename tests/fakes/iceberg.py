"""Iceberg tables on the local disk without a catalog, written by pyiceberg."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata


class _Kept(NoopCatalog):
    """A catalog that accepts every commit and stores nothing; the table keeps its own metadata."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        metadata = update_table_metadata(table.metadata, updates)
        response = {"metadata": metadata, "metadata-location": table.metadata_location}
        return CommitTableResponse.model_validate(response)


def iceberg_table(
    folder: Path,
    schema: Schema,
    *files: pa.Table,
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    """Return a table with one data file for each of `files`."""
    metadata = new_table_metadata(
        schema,
        partitions,
        UNSORTED_SORT_ORDER,
        location=str(folder),
        properties={"format-version": "2", **properties},
    )
    location: Any = str(folder / "metadata.json")
    table = Table(("a", "b"), metadata, location, PyArrowFileIO(), _Kept("kept"))
    for rows in files:
        table.append(rows)
    return table
