"""Lakes in memory and in Iceberg, with a writer, for tests of tables."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import boto3
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from functions.adapters.iceberg.file_io import CLIENT
from functions.adapters.iceberg.tables import Tables
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake as Storage
from functions.model.intent import Intent
from tests.contract.aws import ACCOUNT
from tests.contract.conftest import Servers
from tests.fakes.catalog import FakeCatalog, FakeTable, FakeTables
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ROWS_A_FILE
from tests.fakes.storage import FakeLake

MERGED = 4
_PROPERTIES = {
    "format-version": "2",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": str(MERGED),
}


@dataclass(frozen=True)
class Lake:
    """The adapters, and a writer."""

    process: Callable[[], Tables | FakeTables]
    catalog: Catalog | FakeCatalog
    writer: "IcebergWriter | FakeWriter"
    table: str
    delete: Callable[[str], object]
    bases: dict[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> Tables | FakeTables:
        """Return the adapter of a process that has read nothing yet."""
        return self.process()

    def branch(self, name: str) -> str:
        """Return a new branch at main's head, used by no other test."""
        branch = f"ingest/{self.table}/{name}"
        self.bases[branch] = self.catalog.create_branch(branch)
        return branch

    def written(self, file: str) -> tuple[str, str]:
        """Return a branch off main with an appended file, and its head."""
        branch = self.branch(f"{file}-branch")
        return branch, self.writer.append(branch, file)

    def publish(self, branch: str, at: str) -> None:
        """Merge into main."""
        assert self.catalog.merge(branch, at, self.bases[branch], "Publish", {"k": "v"})

    def enter(self, target: str, *sources: tuple[str, str]) -> None:
        """Register the files of branches, each at a hash, in the table on `target`."""
        intents = [Intent(*source) for source in sources]
        assert self.tables.append_again(self.table, intents, target) == {}

    def replace(self, target: str, source: tuple[str, str], *removed: str) -> None:
        """Register a branch's files in the table on `target` and remove others."""
        addresses = [self.writer.address(file) for file in removed]
        self.tables.replace(self.table, Intent(*source), addresses, target)

    def on_main(self) -> list[str]:
        """Return the files that a query of main reads."""
        return self.writer.files("main")


class FakeWriter:
    """Writes into a FakeCatalog."""

    def __init__(self, catalog: FakeCatalog, table: str) -> None:
        self._catalog, self._table = catalog, table

    def append(self, branch: str, file: str) -> str:
        """See IcebergWriter."""
        table = self._catalog.table(branch, self._table) or FakeTable(uuid.uuid4().hex)
        return self._catalog.commit(branch, self._table, table.append(file))

    def create(self, branch: str) -> None:
        """See IcebergWriter."""
        self._catalog.commit(branch, self._table, FakeTable(uuid.uuid4().hex))

    def add_column(self, branch: str, *, required: bool = False) -> None:
        """See IcebergWriter."""
        new = "new@2!" if required else "new@2"
        self._catalog.commit(branch, self._table, self._there(branch).with_columns("id@1", new))

    def set_columns(self, branch: str, **ids: int) -> None:
        """See IcebergWriter."""
        columns = ("id@1", *(f"{name}@{id_}" for name, id_ in ids.items()))
        self._catalog.commit(branch, self._table, self._there(branch).with_columns(*columns))

    def partition(self, branch: str, buckets: int) -> None:
        """See IcebergWriter."""
        table = self._there(branch).partitioned(f"bucket[{buckets}]")
        self._catalog.commit(branch, self._table, table)

    def spec_of(self, reference: str, file: str) -> int:
        """See IcebergWriter."""
        table = self._there(reference)
        assert file in table.added
        return table.spec

    def put(self, branch: str, name: str, kind: str) -> str:
        """See IcebergWriter."""
        return self._catalog.commit(branch, name, FakeTable(uuid.uuid4().hex, kind=kind))

    def drop(self, branch: str) -> None:
        """See IcebergWriter."""
        self._catalog.commit(branch, self._table, None)

    def files(self, reference: str) -> list[str]:
        """See IcebergWriter."""
        return sorted(self._there(reference).files)

    def address(self, file: str) -> str:
        """See IcebergWriter."""
        return file

    def _there(self, reference: str) -> FakeTable:
        table = self._catalog.table(reference, self._table)
        assert table
        return table


class IcebergWriter:
    """Writes by pyiceberg, except for new columns, which Nessie 0.99 does not take from it."""

    def __init__(self, uri: str, token: str, s3: Any, table: str) -> None:
        self._uri, self._token, self._s3, self._name = uri, token, s3, table

    def append(self, branch: str, file: str) -> str:
        """Append a new data file, to a new table if needed; return the new head."""
        if not self._catalog(branch).table_exists(self._name):
            self.create(branch)
        table = self._catalog(branch).load_table(self._name)
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            append.append_data_file(_data_file(f"{table.location()}/data/{file}", table))
        return Catalog(self._uri, self._token).head(branch)

    def create(self, branch: str) -> None:
        """Create the table, without a row."""
        catalog = self._catalog(branch)
        catalog.create_namespace_if_not_exists(self._name.split(".")[0])
        catalog.create_table(
            self._name,
            Schema(NestedField(1, "id", LongType())),
            partition_spec=UNPARTITIONED_PARTITION_SPEC,
            properties=_PROPERTIES,
        )

    def add_column(self, branch: str, *, required: bool = False) -> None:
        """Add one column to the table."""
        self._set_columns(branch, {"new": 2}, required=required)

    def set_columns(self, branch: str, **ids: int) -> None:
        """Give the table these columns, each with its id, beside its first one and no others."""
        self._set_columns(branch, ids, required=False)

    def _set_columns(self, branch: str, ids: Mapping[str, int], *, required: bool) -> None:
        before = self._catalog(branch).load_table(self._name).metadata
        columns = [
            {"id": id_, "name": name, "type": "long", "required": required and name != "id"}
            for name, id_ in {"id": 1, **ids}.items()
        ]
        schema = Schema.model_validate({"type": "struct", "fields": columns})
        known = {known.as_struct(): known.schema_id for known in before.schemas}
        if schema.as_struct() in known:  # Nessie adds no schema a second time
            current = known[schema.as_struct()]
            self._update(branch, {"action": "set-current-schema", "schema-id": current})
            return
        number = {"schema-id": before.current_schema_id + 1}
        last = max(before.last_column_id, *ids.values(), 1)
        self._update(
            branch,
            {
                "action": "add-schema",
                "schema": schema.model_dump(by_alias=True) | number,
                "last-column-id": last,
            },
            {"action": "set-current-schema", "schema-id": -1},
        )

    def partition(self, branch: str, buckets: int) -> None:
        """Give the table a new partition spec, by buckets of its first column."""
        before = self._catalog(branch).load_table(self._name).metadata
        id_ = (before.last_partition_id or 999) + 1
        field = {"source-id": 1, "field-id": id_, "name": f"id_bucket_{buckets}"}
        number = {"spec-id": max(spec.spec_id for spec in before.partition_specs) + 1}
        spec = {**number, "fields": [{**field, "transform": f"bucket[{buckets}]"}]}
        self._update(
            branch,
            {"action": "add-spec", "spec": spec},
            {"action": "set-default-spec", "spec-id": -1},
        )

    def spec_of(self, reference: str, file: str) -> int:
        """Return the id of the partition spec of a data file that the newest commit added."""
        manifests = self._manifests(self._catalog(reference).load_table(self._name))
        found = [entry.data_file for manifest in manifests for entry in manifest]
        return next(each.spec_id for each in found if each.file_path.endswith(f"/{file}"))

    def sort(self, branch: str, direction: str) -> None:
        """Give the table another sort order, by its first column."""
        before = self._catalog(branch).load_table(self._name).metadata
        key = {"source-id": 1, "transform": "identity", "null-order": "nulls-last"}
        fields = [{**key, "direction": direction}]
        order = {"order-id": max(each.order_id for each in before.sort_orders) + 1}
        self._update(
            branch,
            {"action": "add-sort-order", "sort-order": {**order, "fields": fields}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        )

    def set_property(self, branch: str, name: str, value: str) -> None:
        """Set a property of the table."""
        self._update(branch, {"action": "set-properties", "updates": {name: value}})

    def _update(self, branch: str, *updates: dict[str, Any]) -> None:
        namespace, _, name = self._name.partition(".")
        prefix = quote(f"{branch}|lake", safe="")
        answer = requests.post(
            f"{self._uri}/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{name}",
            headers={"Authorization": f"Bearer {self._token}"},
            json={"requirements": [], "updates": updates},
            timeout=600,
        )
        assert answer.ok, answer.text

    def put(self, branch: str, name: str, kind: str) -> str:
        """Commit something that is no table under a name; return the new head."""
        place = f"s3://lake/warehouse/{name}"
        fields: dict[str, dict[str, Any]] = {
            "ICEBERG_VIEW": {"metadataLocation": place, "versionId": 1, "schemaId": 0},
            "DELTA_LAKE_TABLE": {
                "metadataLocationHistory": [place],
                "checkpointLocationHistory": [place],
                "lastCheckpoint": place,
            },
        }
        operation = {
            "type": "PUT",
            "key": {"elements": name.split(".")},
            "content": {"type": kind, **fields[kind]},
        }
        head = Catalog(self._uri, self._token).head(branch)
        answer = requests.post(
            f"{self._uri}/api/v2/trees/{quote(f'{branch}@{head}', safe='')}/history/commit",
            headers={"Authorization": f"Bearer {self._token}"},
            json={"commitMeta": {"message": "put"}, "operations": [operation]},
            timeout=600,
        )
        assert answer.ok, answer.text
        return Catalog(self._uri, self._token).head(branch)

    def drop(self, branch: str) -> None:
        """Drop the table."""
        self._catalog(branch).drop_table(self._name)

    def manifests(self, reference: str) -> int:
        """Return how many manifests a query has to open."""
        return len(self._manifests(self._catalog(reference).load_table(self._name)))

    def files(self, reference: str) -> list[str]:
        """Return the names of the data files that a query reads."""
        return sorted(
            entry.data_file.file_path.rpartition("/")[2]
            for manifest in self._manifests(self._catalog(reference).load_table(self._name))
            for entry in manifest
        )

    def address(self, file: str) -> str:
        """Return the address of a data file."""
        return f"{self._catalog('main').load_table(self._name).location()}/data/{file}"

    def _manifests(self, table: Table) -> list[list[Any]]:
        snapshot = table.current_snapshot()
        found = snapshot.manifests(table.io) if snapshot else []
        return [manifest.fetch_manifest_entry(table.io) for manifest in found]

    def _catalog(self, reference: str) -> RestCatalog:
        return RestCatalog(
            "lake",
            uri=f"{self._uri}/iceberg/{quote(reference, safe='')}",
            token=self._token,
            **{"py-io-impl": "functions.adapters.iceberg.file_io.S3FileIO", CLIENT: self._s3},
        )


def _data_file(path: str, table: Table) -> DataFile:
    """Return a data file in the table's order, in the first bucket if it is partitioned."""
    spec = table.spec()
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*[0 for _ in spec.fields]),
        record_count=ROWS_A_FILE,
        file_size_in_bytes=100,
        sort_order_id=table.sort_order().order_id,
    )
    file.spec_id = spec.spec_id
    return file


def deleting(storage: Storage | FakeLake) -> Callable[[str], object]:
    """Return a function that deletes an object of the lake bucket by its address."""
    return lambda address: storage.delete_objects([address.removeprefix("s3://lake/")])


PLACES = ["in memory", pytest.param("Iceberg", marks=pytest.mark.stack)]


def lake_of(request: pytest.FixtureRequest) -> Lake:
    """Return a lake whose main has the test's table with one file, `old`."""
    table = f"t{uuid.uuid4().hex[:12]}.orders"
    if request.param == "in memory":
        fake = FakeCatalog(FakeClock())
        gone = FakeLake()
        made = Lake(
            lambda: FakeTables(fake, gone.deleted),
            fake,
            FakeWriter(fake, table),
            table,
            deleting(gone),
        )
    else:
        servers: Servers = request.getfixturevalue("servers")
        known = (servers.nessie, servers.tokens["publisher"])
        s3 = boto3.client("s3", endpoint_url=servers.s3, **ACCOUNT)
        writer = IcebergWriter(*known, s3, table)
        store = Storage(s3, "lake")
        made = Lake(lambda: Tables(*known, s3), Catalog(*known), writer, table, deleting(store))
    made.publish(*made.written("old"))
    return made
