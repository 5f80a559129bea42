"""Register data files in a table, and remove others, by metadata alone.

It mends faults of pyiceberg 0.12.0: what is appended gets the table's default partition spec, and
threads that look for removed files share what each has read, and keep all of it.
"""

from collections.abc import Sequence

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    SetDefaultSpecUpdate,
    UpdatesAndRequirements,
    UpdateTableMetadata,
)
from pyiceberg.table.update.snapshot import _OverwriteFiles

from functions.adapters.iceberg.manifests import live


def exchange(table: Table, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
    """Remove data files from the table and register others, in one transaction."""
    with table.transaction() as change:
        if old:
            with Removal(Operation.OVERWRITE, change, table.io) as removal:
                for file in old:
                    removal.delete_data_file(file)
        # A separate snapshot also drops the manifests that the removal emptied.
        append(change, new)


class Removal(_OverwriteFiles):
    """A removal that finds the removed files manifest by manifest, without their statistics.

    pyiceberg's threads hold many manifests at a time. And they share an evaluator, which keeps the
    partitions of what it reads: now and then it takes those of another manifest, and does not find
    a file that is there.
    """

    def _deleted_entries(self) -> list[ManifestEntry]:
        before = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        manifests = before.manifests(self._io) if before else []
        specs = {manifest.partition_spec_id for manifest in manifests}
        may_have = {spec_id: self._build_manifest_evaluator(spec_id) for spec_id in specs}
        removed = [
            self._deleted(entry)
            for manifest in manifests
            if may_have[manifest.partition_spec_id](manifest)
            for entry in live(manifest, self._io)
            if entry.data_file in self._deleted_data_files
        ]
        self._validate_required_deletes(removed)
        return removed

    def _deleted(self, entry: ManifestEntry) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED,
            snapshot_id=self._snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


def append(change: Transaction, files: Sequence[DataFile]) -> None:
    """Append data files of one partition spec, which need not be the table's newest.

    Theirs is the table's default meanwhile.
    """
    default = change.table_metadata.default_spec_id
    _DefaultSpec(change, next((file.spec_id for file in files), default)).commit()
    with change.update_snapshot().merge_append() as append:
        for file in files:
            append.append_data_file(file)
    _DefaultSpec(change, default).commit()


class _DefaultSpec(UpdateTableMetadata["_DefaultSpec"]):
    """Makes a partition spec that the table has the one for new files."""

    def __init__(self, change: Transaction, spec_id: int) -> None:
        super().__init__(change)
        self._spec_id = spec_id

    def _commit(self) -> UpdatesAndRequirements:
        if self._spec_id == self._transaction.table_metadata.default_spec_id:
            return (), ()
        return (SetDefaultSpecUpdate.model_validate({"spec-id": self._spec_id}),), ()
