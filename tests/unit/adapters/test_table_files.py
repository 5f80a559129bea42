"""All files that a table's state reaches are read from real manifests."""

import gc
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import (
    TableMetadata,
    TableMetadataCommonFields,
    TableMetadataUtil,
    new_table_metadata,
)
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from functions.adapters.iceberg.file_io import CLIENT, S3FileIO
from functions.adapters.iceberg.files import TableFilesReader
from tests.contract.aws import ACCOUNT

SCHEMA = Schema(NestedField(1, "id", LongType()))
PLACE = "s3://lake/warehouse/shop/orders"
LIST, METADATA = f"{PLACE}/metadata/list.avro", f"{PLACE}/metadata/1.json"
STATISTICS = f"{PLACE}/metadata/statistics.puffin"


@pytest.fixture
def io() -> Iterator[S3FileIO]:
    """Yield access to a bucket with a table: one file added, one deleted, with statistics."""
    with mock_aws():
        s3 = boto3.client("s3", **ACCOUNT)
        s3.create_bucket(Bucket="lake")
        made = S3FileIO({CLIENT: s3})
        _write(made)
        yield made


def _write(io: S3FileIO) -> None:
    added = _manifest(io, "added", ManifestEntryStatus.ADDED)
    deleted = _manifest(io, "deleted", ManifestEntryStatus.DELETED)
    with write_manifest_list(2, io.new_output(LIST), 1, None, 1, "null") as manifests:
        manifests.add_manifests([added, deleted])
    ToOutputFile.table_metadata(_table(), io.new_output(METADATA))


def _manifest(io: S3FileIO, name: str, status: ManifestEntryStatus) -> ManifestFile:
    output = io.new_output(f"{PLACE}/metadata/{name}.avro")
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{PLACE}/data/{name}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
    )
    entry = ManifestEntry.from_args(
        status=status, snapshot_id=1, sequence_number=1, file_sequence_number=1, data_file=file
    )
    spec = UNPARTITIONED_PARTITION_SPEC
    with write_manifest(2, spec, SCHEMA, output, 1, "null") as manifest:
        manifest.add_entry(entry)
    return manifest.to_manifest_file()


def _table() -> TableMetadata:
    made = new_table_metadata(SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, PLACE)
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": made.last_updated_ms,
        "manifest-list": LIST,
        "summary": {"operation": "append"},
    }
    statistics = {
        "snapshot-id": 1,
        "statistics-path": STATISTICS,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    found: dict[str, Any] = json.loads(made.model_dump_json())
    found.update({"snapshots": [snapshot], "current-snapshot-id": 1, "statistics": [statistics]})
    found["refs"] = {"main": {"snapshot-id": 1, "type": "branch"}}
    return TableMetadataUtil.parse_obj(found)


def test_deleted_entries_and_statistics_are_reached(io: S3FileIO) -> None:
    """A state reaches files that its manifests only say are deleted, and its statistics."""
    found = TableFilesReader(io).read(METADATA)
    data = {f"{PLACE}/data/added", f"{PLACE}/data/deleted", STATISTICS}
    assert found.manifests == {f"{PLACE}/metadata/added.avro", f"{PLACE}/metadata/deleted.avro"}
    assert found.paths == data | found.manifests | {LIST, METADATA}
    assert found.missing == frozenset()


@pytest.mark.parametrize("gone", [f"{PLACE}/metadata/added.avro", LIST, METADATA])
def test_what_cannot_be_read_is_missing(io: S3FileIO, gone: str) -> None:
    """A manifest, a list or a metadata file that is gone is named, each time that it is needed."""
    io.delete(gone)
    reader = TableFilesReader(io)
    for _ in range(2):
        assert reader.read(METADATA).missing == {gone}


def test_a_known_manifest_is_not_read(io: S3FileIO) -> None:
    """Of manifests that are known neither data files are read nor whether they are there."""
    known = f"{PLACE}/metadata/added.avro"
    io.delete(known)
    found = TableFilesReader(io).read(METADATA, known=[known])
    assert {f"{PLACE}/data/deleted", STATISTICS} <= found.paths
    assert f"{PLACE}/data/added" not in found.paths
    assert known in found.manifests
    assert found.missing == frozenset()


def test_of_a_state_that_was_read_nothing_stays_in_memory(io: S3FileIO) -> None:
    """A table of 2,000 columns has megabytes of metadata, and a look reads thousands of states."""
    reader, before = TableFilesReader(io), _states_in_memory()
    reader.read(METADATA)
    assert _states_in_memory() == before


def _states_in_memory() -> int:
    gc.collect()
    return sum(isinstance(each, TableMetadataCommonFields) for each in gc.get_objects())
