"""Change Iceberg tables on Nessie's branches by metadata alone.

Nessie refuses to merge a branch whose table main has changed since. Then the same data files are
registered on a fresh branch in main's newer table, where they lie. No data file is read or written.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

import requests
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
    RESTError,
    UnauthorizedError,
)
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.table import Table

from functions.adapters.iceberg.errors import CannotRebase, FilesGone, MetadataGone
from functions.adapters.iceberg.exchange import append, exchange
from functions.adapters.iceberg.file_io import CLIENT, S3FileIO
from functions.adapters.iceberg.files import (
    DoubledFile,
    TableChange,
    TableFiles,
    TableFilesReader,
    TableRows,
    TableSize,
    added,
    change_of,
    data_file,
    data_files,
    doubled_files,
    manifests_of,
    opened,
    size_of,
    totals,
)
from functions.adapters.iceberg.fit import require_fit, specs_of
from functions.adapters.iceberg.manifests import live
from functions.adapters.iceberg.rest import NessieCatalog
from functions.adapters.secrets import Bearer, Secret
from functions.model.intent import Intent
from lakegate.audit.audit_tables import Entry, HistoryTable
from lakegate.errors import LakegateError
from lakegate.refusals import forbidden, unavailable
from lakegate.tokens import TokenRefused

_PARALLEL = 8
_TRANSIENT = (
    RESTError,
    CommitFailedException,
    CommitStateUnknownException,
    requests.RequestException,
    ClientError,
    BotoCoreError,
    OSError,
    ValidationError,  # the answer is not a catalog's
)


@dataclass(frozen=True)
class _Written:
    """A table on a branch, and the files that its newest commit added."""

    table: Table
    added: tuple[DataFile, ...]


class Tables:
    """The tables that one token may change."""

    def __init__(self, nessie_uri: str, token: str | Secret, s3: Any) -> None:
        """Use Nessie at `nessie_uri` (without a slash) and boto3's `s3` client."""
        self._uri = nessie_uri
        self._bearer = Bearer(token)
        self._s3 = s3
        self._reader = TableFilesReader(S3FileIO({CLIENT: s3}))

    def append_again(
        self, table: str, sources: Sequence[Intent], target: str
    ) -> Mapping[Intent, LakegateError]:
        """Register in `table` on `target` the files that each of `sources` added, in one commit.

        The files stay where they lie, even those of another table, which the source's branch
        created. Returns the sources whose files could not be registered, and why: CannotRebase
        where the table on `target` could not read the files as written, or the catalog's error.
        Raises such an error where the table on `target` itself is the reason.
        """
        with self._translated():
            current = self._load(table, target)
        fitting = self._fitting(table, sources, current)
        written = [each for each in fitting.values() if isinstance(each, _Written)]
        files = [file for each in written for file in each.added]
        if files:
            with self._translated(), current.transaction() as change:
                append(change, files)
        return {s: each for s, each in fitting.items() if isinstance(each, LakegateError)}

    def replace(self, table: str, source: Intent, removed: Collection[str], target: str) -> None:
        """Register what `source` added to `table` on `target` and remove `removed`.

        `removed` are addresses of data files. Raises CannotRebase where the table on `target` could
        not read the files as written, FilesGone where it lacks some of `removed`.
        """
        with self._translated():
            current = self._load(table, target)
            written = self._fitting(table, [source], current)[source]
            if isinstance(written, LakegateError):
                raise written
            files = [each for each in data_files(current) if each.file_path in removed]
            if gone := set(removed) - {file.file_path for file in files}:
                raise FilesGone(gone)
            exchange(current, files, written.added)

    def enter(self, entries: Sequence[Entry], lake_bucket: str, target: str) -> None:
        """Register data files in the history tables on `target`; create missing tables.

        A file that is listed already moves to its new partition, unless it was rewritten since.
        Raises Permanent where another table has the name of a history table.
        """
        with self._translated():
            catalog = self._catalog(target)
            for table in dict.fromkeys(entry.table for entry in entries):
                current = opened(catalog, table, lake_bucket)
                _register(current, [entry for entry in entries if entry.table == table])

    def make(self, tables: Iterable[HistoryTable], lake_bucket: str, target: str) -> None:
        """Create the missing history tables on `target`, empty.

        Raises Permanent where another table has the name of a history table.
        """
        with self._translated():
            for table in tables:
                opened(self._catalog(target), table, lake_bucket)

    def _fitting(
        self, table: str, sources: Sequence[Intent], current: Table
    ) -> dict[Intent, _Written | LakegateError]:
        """Return what each source wrote, if `current` can take it together with the others'."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            read = list(pool.map(lambda source: self._written(table, source), sources))
            fine = (each for each in read if isinstance(each, _Written))
            together = {file.file_path for each in fine for file in each.added}
            fit = pool.map(lambda each: self._fit(each, current, together), read)
            return _refuse_other_specs(dict(zip(sources, fit, strict=True)))

    def _written(self, table: str, source: Intent) -> _Written | LakegateError:
        try:
            with self._translated():
                state = self._load(table, f"{source.branch}@{source.hash}")
                return _Written(state, tuple(added(state)))
        except LakegateError as error:
            is_gone = isinstance(error, MetadataGone)
            return CannotRebase(error.code, error.message) if is_gone else error

    def _fit(
        self, written: _Written | LakegateError, current: Table, together: Collection[str]
    ) -> _Written | LakegateError:
        if isinstance(written, LakegateError):
            return written
        try:
            with self._translated():
                require_fit(written.table, written.added, current, together)
                return written
        except LakegateError as error:
            return error

    def files(self, metadata: str, known: Collection[str] = ()) -> TableFiles:
        """Return the files of the table state that a metadata file describes.

        Data files that only the manifests in `known` name are left out.
        """
        with self._translated():
            return self._reader.read(metadata, known)

    def rows(self, table: str, reference: str) -> TableRows:
        """Return a table's row counts at a branch or `main@<hash>`; zero without a table.

        The counts come from its manifest list and from the manifests of its delete files.
        """
        with self._translated():
            state = self._if_there(table, reference)
            if not state:
                return TableRows()
            counts = totals(manifests_of(state), state.io)
            return TableRows(str(state.metadata.table_uuid), *counts)

    def size(self, table: str, reference: str) -> TableSize:
        """Return how many data files a table has, and of what size. Raises as `files`."""
        with self._translated():
            return size_of(self._load(table, reference))

    def change(self, table: str, before: str, after: str) -> TableChange:
        """Return how a table changed between two references, as `main@<hash>`.

        It reads only the manifests that one state has and the other lacks, and those of the delete
        files that were there before.
        """
        with self._translated():
            old, new = self._manifests(table, before), self._manifests(table, after)
            return change_of(old, new, S3FileIO({CLIENT: self._s3}))

    def listed(self, table: str, reference: str, most: int = 0) -> Iterator[str]:
        """Yield the addresses of a table's data files, manifest by manifest.

        With `most` it yields at most that many, from a sample of manifests seeded by the reference.
        """
        with self._translated():
            manifests = list(self._manifests(table, reference).values())
            data = [each for each in manifests if each.content == ManifestContent.DATA]
            chance = Random(reference)  # noqa: S311 - a sample
            for manifest in chance.sample(data, min(len(data), most or len(data))):
                found = live(manifest, S3FileIO({CLIENT: self._s3}))
                paths = [entry.data_file.file_path for entry in found]
                share = min(len(paths), -(-most // len(data)) or len(paths))
                yield from chance.sample(paths, share)

    def _manifests(self, table: str, reference: str) -> dict[str, ManifestFile]:
        """Return a table's manifests by address; empty for a missing table."""
        known = self._if_there(table, reference)
        manifests = manifests_of(known) if known else []
        return {manifest.manifest_path: manifest for manifest in manifests}

    def doubled(self, table: str, reference: str) -> list[DoubledFile]:
        """Return the data files that a table lists more than once, by path.

        It reads all manifests of the table.
        """
        with self._translated():
            state = self._if_there(table, reference)
            return doubled_files(state) if state else []

    def _load(self, table: str, reference: str) -> Table:
        return self._catalog(reference).load_table(table)

    def _if_there(self, table: str, reference: str) -> Table | None:
        try:
            return self._load(table, reference)
        except NoSuchTableError:
            return None

    def _catalog(self, reference: str) -> NessieCatalog:
        return NessieCatalog(
            "lake",
            uri=f"{self._uri}/iceberg/{quote(reference, safe='')}",
            token=self._bearer.text(),
            **{"py-io-impl": "functions.adapters.iceberg.file_io.S3FileIO", CLIENT: self._s3},
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        token = self._bearer.text()
        try:
            yield
        except UnauthorizedError as error:
            self._bearer.after(token)  # for the next try
            raise TokenRefused(self._bearer.name) from error
        except NoSuchTableError as error:
            raise CannotRebase("TABLE_GONE", f"the table is not on main: {error}") from error
        except FileNotFoundError as error:  # a manifest, or a manifest list
            message = f"{error} is gone, as upkeep deletes what only commits before KeepDays reach"
            raise MetadataGone("METADATA_GONE", message) from error
        except ForbiddenError as error:
            raise forbidden(self._bearer.name, str(error)) from error
        except _TRANSIENT as error:
            message = f"the Iceberg catalog did not answer: {error}"
            raise unavailable(error, "CATALOG_UNAVAILABLE", message) from error
        except LakegateError:
            raise
        except Exception as error:  # others may have changed the table in any way
            message = f"the table's metadata cannot be used: {type(error).__name__}: {error}"
            raise CannotRebase("TABLE_UNUSABLE", message) from error


def _refuse_other_specs(
    fitting: Mapping[Intent, _Written | LakegateError],
) -> dict[Intent, _Written | LakegateError]:
    """Return the same, with an error for sources whose files are of another spec than the first's.

    One snapshot gets all files, and `append` takes those of one partition spec.
    """
    fine = [each for each in fitting.values() if isinstance(each, _Written)]
    first = set([file.spec_id for each in fine for file in each.added][:1])
    error = CannotRebase("PARTITIONING_CHANGED", "the files have several partitionings")
    return {
        source: error if isinstance(each, _Written) and specs_of(each.added) - first else each
        for source, each in fitting.items()
    }


def _register(current: Table, entries: Sequence[Entry]) -> None:
    """Register data files in one table; those listed already replace their old entries."""
    again = {entry.file.path for entry in entries if entry.again}
    old = [file for file in data_files(current) if file.file_path in again] if again else []
    there = {file.file_path for file in old}
    due = [entry for entry in entries if not entry.again or entry.file.path in there]
    exchange(current, old, [data_file(current, entry) for entry in due])
