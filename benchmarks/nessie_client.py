"""Ask of Nessie what Lakegate asks for one file, step by step, without writing a data file."""

import secrets
import time
from collections.abc import Sequence

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID, SetSnapshotRefUpdate
from pyiceberg.types import LongType, NestedField

from lakegate.errors import Transient
from tests.services import Services


def create_tables(running: Services, names: Sequence[str]) -> None:
    """Make empty tables on main."""
    main = running.at("main")
    for name in names:
        main.create_namespace_if_not_exists(name.split(".")[0])
        main.create_table(name, Schema(NestedField(1, "id", LongType())))


class Client:
    """A client that ingests a file into each of its tables: each step for all tables."""

    def __init__(self, running: Services, tables: Sequence[str]) -> None:
        """Take over the services' catalog: no other client uses it then."""
        self._running = running
        name = secrets.token_hex(4)
        self._branches = {f"ingest/{table}/{name}": table for table in tables}
        self._bases: dict[str, str] = {}
        self._heads: dict[str, str] = {}
        self.busy = 0  # how often main was too busy to take a branch, which was then tried again

    def create(self) -> None:
        """Create the branches from main, as on_upload does."""
        for branch in self._branches:
            self._bases[branch] = self._running.catalog.create_branch(branch)

    def commit(self) -> None:
        """Commit a snapshot on each through the Iceberg REST catalog, as the job does."""
        for branch, table in self._branches.items():
            _commit(self._running.at(branch), table)
            self._heads[branch] = self._running.catalog.head(branch)

    def merge(self) -> None:
        """Merge the commits into main, as on_job_run does."""
        for branch, head in self._heads.items():
            while not self._merged(branch, head):
                self.busy += 1

    def delete(self) -> None:
        """Find each file's branches and delete them, as on_job_run does."""
        for branch in self._branches:
            for name in self._running.catalog.branches(branch):
                self._running.catalog.delete_branch(name)

    def _merged(self, branch: str, head: str) -> bool:
        try:
            self._running.catalog.merge(branch, head, self._bases[branch], "Publish", {})
        except Transient:
            return False
        return True


def _commit(catalog: RestCatalog, name: str) -> None:
    """Commit a snapshot without writing its manifests: Nessie does not read them."""
    table = catalog.load_table(name)
    number = secrets.randbits(62)
    fields = {
        "snapshot-id": number,
        "sequence-number": table.metadata.last_sequence_number + 1,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"{table.location()}/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "added-records": "1000"},
        "schema-id": table.metadata.current_schema_id,
    }
    snapshot = Snapshot.model_validate(fields)
    head = SetSnapshotRefUpdate.model_validate(
        {"ref-name": "main", "type": "branch", "snapshot-id": number}
    )
    unchanged = AssertTableUUID(uuid=table.metadata.table_uuid)
    catalog.commit_table(table, (unchanged,), (AddSnapshotUpdate(snapshot=snapshot), head))
