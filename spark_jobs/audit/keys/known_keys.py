"""Look up a run's keys in data files of its table through key digests.

Data files without an equal hash are not read. In the others the keys themselves are compared. A
digest is an aid: one that is missing or damaged is made again from its data file, and a data file
of which none can be made is left to Spark.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from lakegate.audit.report import DataFile
from lakegate.errors import Permanent
from spark_jobs.audit.keys import arrow_keys, column_hashes
from spark_jobs.audit.keys.arrow_keys import Hashes, HashRows
from spark_jobs.audit.keys.counts import Keys
from spark_jobs.audit.keys.key_columns import KeyColumns, Unreadable
from spark_jobs.audit.keys.key_digest import Subject, Untrusted, pack, unpack
from spark_jobs.lake.storage import Storage

MOST_OWN = 10_000_000  # rows of the run whose hashes the driver holds, in 80 MB
_MOST = 32_000_000  # rows of a data file with a digest, and rows that are read again
_AT_ONCE = 8  # digests in memory
_TASKS = 256
_Array: TypeAlias = NDArray[Any]
Select: TypeAlias = Callable[[Sequence[pa.ChunkedArray]], pa.Table]  # some keys of a row group


@dataclass(frozen=True)
class KeyFiles:
    """The files of one key in a table's folders: data files and their digests."""

    storage: Storage
    columns: KeyColumns
    hash_rows: HashRows = column_hashes.mixed

    def subject(self, file: DataFile) -> Subject:
        """Return what a data file's digest is of."""
        return Subject(file.path, file.bytes, self.columns.text)

    def hashes(self, file: DataFile) -> Hashes:
        """Return the hashes of the keys in a data file. Raises Unreadable, LakegateError."""
        groups = self.columns.read(self.storage, file)
        parts = [arrow_keys.hashes(columns, self.hash_rows) for columns in groups]
        return reduce(add, parts) if parts else Hashes((), exact=False)

    def may_have_digest(self, file: DataFile) -> bool:
        """Return if a data file is one that the run may put a digest beside, and no larger."""
        spec = self.storage.spec
        table = re.escape(f"{spec.lake_bucket}/warehouse/{spec.table.replace('.', '/')}")
        is_near = re.match(rf"s3a?://{table}(_[0-9a-f]{{8}}-[^/]+)?/.*\.parquet$", file.path)
        return bool(is_near) and file.rows <= _MOST

    def put_digest(self, file: DataFile, hashes: Hashes) -> None:
        """Put a data file's digest beside it."""
        subject = self.subject(file)
        self.storage.put(self.storage.key(subject.address), pack(_ordered([hashes]), subject))

    def seem_known(self, wanted: _Array, file: DataFile) -> _Array | None:
        """Return the hashes that a data file seems to have; None without a sound digest."""
        subject = self.subject(file)
        try:
            packed = self.storage.object(subject.address)
            return wanted[unpack(packed, subject).seem_present(wanted)]
        except (Untrusted, Permanent):
            return None

    def make_digests(self, spark: SparkSession, files: Sequence[DataFile]) -> None:
        """Make the digests of data files in Spark's tasks, as far as Arrow can read their keys."""
        work = partial(_make_in_task, self)
        spark.sparkContext.parallelize(files, min(len(files), _TASKS)).foreachPartition(work)

    def keys(self, files: Sequence[DataFile], select: Select) -> pa.Table:
        """Return the different selected keys in data files. Raises Unreadable."""

        def of_file(file: DataFile) -> list[pa.Table]:
            return [select(each) for each in self.columns.read(self.storage, file)]

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return _different([table for each in threads.map(of_file, files) for table in each])


def _make_in_task(of_key: KeyFiles, files: Iterable[DataFile]) -> None:
    """Make digests; a data file that is gone or cannot be read gets none, and Spark says why."""
    for file in files:
        try:
            of_key.put_digest(file, of_key.hashes(file))
        except (Unreadable, Permanent):
            continue


@dataclass(frozen=True)
class Suspects:
    """The data files that may have some of the looked up keys, with the hashes of these keys.

    Nothing is known of those in `unread`, which have no digest.
    """

    hashes: _Array
    seen: tuple[DataFile, ...]
    unread: tuple[DataFile, ...]

    @property
    def paths(self) -> frozenset[str]:
        """Return the addresses of all these data files."""
        return frozenset(file.path for file in (*self.seen, *self.unread))


@dataclass(frozen=True)
class OwnKeys:
    """The keys in a run's own data files; `found` has the hashes in each of `files`."""

    of_key: KeyFiles
    files: tuple[DataFile, ...]
    found: tuple[Hashes, ...]

    @classmethod
    def read(cls, of_key: KeyFiles, files: Sequence[DataFile]) -> "OwnKeys":
        """Read the keys in a run's data files. Raises Unreadable."""
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return cls(of_key, tuple(files), tuple(threads.map(of_key.hashes, files)))

    @cached_property
    def counted(self) -> Keys | None:
        """Return the counts of keys; None where equal hashes may be of different keys."""
        parts = [hashes for hashes in self.found if hashes.parts]
        return arrow_keys.count(reduce(add, parts)) if parts else Keys(0, 0, 0)

    def put_digests(self) -> None:
        """Put a digest beside each data file."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            deque(threads.map(self.of_key.put_digest, self.files, self.found), maxlen=0)

    def suspects(self, spark: SparkSession, files: Sequence[DataFile]) -> Suspects:
        """Return those of other data files that may have one of the keys.

        Missing digests are made first, except by a re-audit, which writes nothing.
        """
        wanted, near = _ordered(self.found), list(filter(self.of_key.may_have_digest, files))
        known = dict(self._seem_known(wanted, near))
        missing = [file for file in near if known[file] is None]
        if missing and not self.of_key.storage.spec.reaudit_base:
            self.of_key.make_digests(spark, missing)
            known |= self._seem_known(wanted, missing)
        seen = {file: hashes for file, hashes in known.items() if hashes is not None}
        return Suspects(
            np.unique(np.concatenate([np.zeros(0, np.uint64), *seen.values()])),
            tuple(file for file, hashes in seen.items() if len(hashes)),
            tuple(file for file in files if file not in seen),
        )

    def _seem_known(
        self, wanted: _Array, files: Sequence[DataFile]
    ) -> Iterator[tuple[DataFile, _Array | None]]:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            yield from zip(
                files, threads.map(partial(self.of_key.seem_known, wanted), files), strict=True
            )

    def count_in(self, suspects: Suspects) -> int:
        """Return how many different keys the suspects have, all of whose rows are live.

        Raises Unreadable where Spark must count them.
        """
        if suspects.unread or sum(file.rows for file in suspects.seen) > _MOST:
            raise Unreadable("without digests, or with too many rows")
        of_key, wanted = self.of_key, suspects.hashes
        own = of_key.keys(
            self.files, lambda each: arrow_keys.with_hashes(each, wanted, of_key.hash_rows)
        )
        # Values are found faster than hashed, and most data files have many times more of them.
        others = of_key.keys(suspects.seen, lambda each: arrow_keys.with_values(each, own))
        return own.num_rows + others.num_rows - _different([own, others]).num_rows


def _ordered(hashes: Iterable[Hashes]) -> _Array:
    """Return all different hashes in ascending order."""
    parts = [part for each in hashes for part in each.parts]
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))


def _different(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the different rows of tables."""
    some = [table for table in tables if table.num_rows]
    if not some:
        return pa.table({})
    every = pa.concat_tables(some)
    return every.group_by(every.column_names, use_threads=False).aggregate([])
