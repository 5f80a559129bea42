"""A lake in memory, and the layout of a table that nobody has changed."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakegate.contract.model import Contract
from spark_jobs.files.arrow.places import fields
from spark_jobs.write.description import Written
from spark_jobs.write.files import DataFiles
from spark_jobs.write.layout import Field, Layout
from tests.unit.lakegate.test_jobspec import SPEC

_ICEBERG = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}


@dataclass(frozen=True)
class MemoryLake:
    """The objects that were put, by their addresses."""

    objects: dict[str, bytes] = field(default_factory=dict)

    @contextmanager
    def new_object(self, address: str) -> Iterator[BinaryIO]:
        """Provide a stream to an object, which exists once the block ends without an error."""
        stream = io.BytesIO()
        yield stream
        self.objects[address] = stream.getvalue()

    def rows(self, file: Written) -> pa.Table:
        """Return the rows of a data file."""
        return pq.read_table(io.BytesIO(self.objects[file.location]))


def layout_for(contract: Contract, **given: Any) -> Layout:
    """Return the layout of a new table with the contract's columns."""
    ids = {place.path: number for number, place in enumerate(fields(contract.table_columns), 1)}
    kept = {
        place.path: Field(
            ids[place.path], _ICEBERG.get(str(place.type), str(place.type)), "truncate(16)"
        )
        for place in fields(contract.table_columns)
        if place.is_leaf
    }
    return Layout(**{"ids": ids, "fields": kept, "folder": "s3://lake/t/", **given})


def data_files(contract: Contract, **given: Any) -> tuple[MemoryLake, DataFiles]:
    """Return a lake in memory, and data files of a new table in it."""
    lake = MemoryLake()
    return lake, DataFiles(lake, layout_for(contract, **given), contract, SPEC)
