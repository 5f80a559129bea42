"""Have Arrow audit the files of a group, write those that pass cleanly, and commit these together.

A file's rows are in memory until Arrow's verdict is known: so a file that does not pass costs no
write, and a group of which none passes has no branch. What of them only SQL can tell about stays in
memory for one query (group_sql).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lakegate.audit.drift import Baselines
from lakegate.audit.report import CheckResult, DataFile, Status, Verdict
from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.groups import group_sql
from spark_jobs.groups.group_commit import Entered, Group, GroupTable
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass.examined import Examined, require_all
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.spark import jvm
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.spark.unforeseen import explained
from spark_jobs.write.commit import data_files
from spark_jobs.write.description import Written
from spark_jobs.write.files import DataFiles, Rows
from spark_jobs.write.layout import Layout

# At most 4 x 128 MiB of decoded rows are in memory at once, and half as much for SQL.
_THREADS = min(4, 2 + (os.cpu_count() or 1))  # some of which wait for S3
_MOST_DECODED = 128 << 20  # bytes of a file's rows; a larger one is ingested alone, by parts
_MOST_LEFT = 256 << 20  # bytes of the rows of a part that SQL reads; the files after it go alone
_PART = 32 << 20  # landed bytes
LayoutOf = Callable[[], Layout]
_NO_ROWS = pa.table({})
_Done = TypeVar("_Done")


@dataclass(frozen=True, eq=False)
class Audited:
    """A file of which Arrow has answered all checks that it can; it passed, or is refused.

    `left` are its rows with the columns that the other checks may read, and `more` their measures.
    Its rows are in data files (`files`), or, in a turn, in memory (`rows`) as the table has them.
    """

    storage: Storage
    found: Examined
    left: pa.Table = field(default_factory=lambda: _NO_ROWS)
    files: tuple[Written, ...] = ()
    rows: pa.Table = field(default_factory=lambda: _NO_ROWS)
    is_refused: bool = False
    more: Mapping[str, Measured] = field(default_factory=dict)

    @property
    def ingestion(self) -> str:
        """Return the file's ingestion."""
        return self.storage.spec.ingestion

    def judged(self, judge: "Judge") -> "Judged":
        """Return the results of its checks, as far as they were measured."""
        return judge.judged(self.found.rows, {**self.found.measured, **self.more})

    def entered(self, judge: "Judge", **entered: Any) -> Entered:
        """Return it as one that passed cleanly, with what is known since its rows have entered."""
        examined, results = self.found, self.judged(judge).results
        return Entered(self.storage, examined.rows.read, results, examined.changes, **entered)


class _Room:
    """Room for so many bytes of rows in memory. Raises MustRewrite for more."""

    def __init__(self, most: int) -> None:
        self._left, self._lock = most, Lock()

    def take(self, rows: pa.Table) -> pa.Table:
        """Return the rows, which are in memory from now on."""
        with self._lock:
            self._left -= rows.nbytes
            if self._left < 0:
                raise MustRewrite("its rows are too large for a group")
        return rows


@dataclass
class _Held:
    """Rows in memory, in their order."""

    rows: list[Rows] = field(default_factory=list)
    room: _Room = field(default_factory=partial(_Room, _MOST_DECODED))

    def write(self, rows: Iterable[Rows]) -> list[Written]:
        """Keep the rows."""
        for each in rows:
            self.room.take(each.table)
            self.rows.append(each)
        return []

    def keep(self, rows: Unparseable) -> tuple[DataFile, ...]:
        """Keep none: a file with such rows is ingested alone."""
        return ()


def write_together(
    spark: SparkSession, files: Sequence[Storage], contract: Contract, token: str
) -> Group | None:
    """Return the group of the files that passed cleanly, None if none did. Raises LakegateError."""
    meter, table = Meter(spark), Table(spark, files[0], contract, token)
    judge = Judge(contract, cache(files[0].baselines))
    with meter.step("audit"):
        audited = [each for part in _parts(files) for each in _clean(table, judge, part)]
        passed = [each for each in audited if each.judged(judge).is_clean]
    if not passed:
        return None
    with meter.step("append"):
        entered, audited_hash = table.committed(passed, judge)
    return Group(table.open(), audited_hash, meter, entered)


def _parts(files: Sequence[Storage]) -> Iterator[list[Storage]]:
    """Yield files whose rows may be in memory at once, one at least."""
    part: list[Storage] = []
    for file in files:
        if part and sum(each.size for each in (*part, file)) > _PART:
            yield part
            part = []
        part.append(file)
    yield part


def _clean(table: "Table", judge: "Judge", files: Sequence[Storage]) -> list[Audited]:
    """Return the files that passed by Arrow, without their rows, and what SQL measured of them."""
    passed = answered(table, sort_out(files, judge, table.layout))
    return [replace(each, left=_NO_ROWS) for each in passed]


def sort_out(files: Sequence[Storage], judge: "Judge", layout: LayoutOf) -> list[Audited]:
    """Audit the files; write and return those that pass cleanly as data files of a table.

    The `layout` is asked for once one passed. Raises LakegateError.
    """
    audit = partial(_audited, judge, layout, _Room(_MOST_LEFT))
    with ThreadPoolExecutor(_THREADS) as threads:
        audited = list(threads.map(partial(unless_alone, judge, audit), files))
    return [each for each in audited if each]


def unless_alone(
    judge: "Judge", examine: Callable[[Storage], _Done | None], storage: Storage
) -> _Done | None:
    """Return what is found in a file; None for one that alone says why not. Raises Transient."""
    explaining = explained("the file cannot be examined", judge.contract)
    with suppress(Permanent), explaining, suppress(MustRewrite):
        return examine(storage)
    return None


def _audited(judge: "Judge", layout: LayoutOf, room: _Room, storage: Storage) -> Audited | None:
    """Return a file that passed, None for any other."""
    examined, rows = read(storage, judge.contract)
    if not judge.judged(examined.rows, examined.measured).is_clean:
        return None
    files = DataFiles(storage, layout(), judge.contract, storage.spec)
    left = room.take(rows_for_sql(judge.contract, examined, map(files.with_origins, rows)))
    written = files.write(rows)
    require_all(examined, written)
    return Audited(storage, examined, left, tuple(written))


def read(storage: Storage, contract: Contract) -> tuple[Examined, list[Rows]]:
    """Return what Arrow finds in a file, and its rows. Raises as `Prepared.examined`."""
    held, limits = _Held(), storage.spec.limits
    file = prepared(storage, contract, limits, most_here=_MOST_DECODED, threads=1)
    return file.examined(held), held.rows


def rows_for_sql(contract: Contract, examined: Examined, rows: Iterable[Rows]) -> pa.Table:
    """Return what SQL is to read of a file's rows, none if Arrow has answered all checks."""
    checks = _unanswered(contract, examined)
    if not checks:
        return _NO_ROWS
    return group_sql.left_for_sql((each.table for each in rows), checks, contract)


def _unanswered(contract: Contract, examined: Examined) -> list[Check]:
    """Return the checks that SQL answers: all but those of the table's keys (keyed)."""
    left = [check for check in contract.checks if check.id not in examined.measured]
    return [check for check in left if not check.is_key_of_table]


def answered(table: "Table", clean: Sequence[Audited]) -> list[Audited]:
    """Return the files with the measures that Arrow did not give, but none on which a check fails.

    Such a file is found by halves. Raises LakegateError.
    """
    try:
        more = table.measured(clean)
    except jvm.JavaError:
        half = len(clean) // 2
        parts = (clean[:half], clean[half:]) if half else ()
        return [each for part in parts for each in answered(table, part)]
    return [replace(each, more=more.get(each.ingestion, {})) for each in clean]


@dataclass(frozen=True)
class Judged:
    """The results of checks of a file, their verdict, and if its report needs no row of it."""

    results: tuple[CheckResult, ...]
    verdict: Verdict
    is_plain: bool

    @property
    def is_clean(self) -> bool:
        """Return if the file passed cleanly: every check holds, or warns of something else."""
        return self.verdict is Verdict.PASSED and self.is_plain


@dataclass(frozen=True)
class Judge:
    """What decides if a file passes cleanly; `baselines` are read once."""

    contract: Contract
    baselines: Callable[[], Baselines]

    def judged(self, rows: RowCounts, measured: Mapping[str, Measured]) -> Judged:
        """Return the results of the checks with a measure, and what they say of the file."""
        known = tuple(check for check in self.contract.checks if check.id in measured)
        asked = replace(self.contract, checks=known)
        results = verdict.judge(asked, rows, measured)
        results = tiers.compare_with_history(results, asked, measured, self.baselines)
        outcome, _ = verdict.verdict(results)
        return Judged(results, outcome, not _is_odd(rows, results, known, measured))


def _is_odd(
    rows: RowCounts,
    results: Sequence[CheckResult],
    checks: Sequence[Check],
    measured: Mapping[str, Measured],
) -> bool:
    """Return if the report of a file needs a row of it.

    It has an unparseable row or one to quarantine, a key twice, or a check warns of rows.
    """
    of_rows = [each for each in results if each.status is Status.WARN and each.metric in OF_ROWS]
    named = [c.id for c in checks if c.quarantine or c.metric is Metric.DUPLICATE]
    return bool(rows.bad or of_rows or any(measured[id_].value for id_ in named))


class Table:
    """The table of a group on a branch of its own, which is made once a file passed."""

    def __init__(self, spark: SparkSession, like: Storage, contract: Contract, token: str) -> None:
        self._of = spark, like.spec, contract, token
        self._lock = Lock()
        self._opened: GroupTable | Exception | None = None

    def layout(self) -> Layout:
        """Return how the table's files are written."""
        return self.open().layout

    def open(self) -> GroupTable:
        """Return the table on its branch. Raises LakegateError."""
        with self._lock:
            if isinstance(self._opened, Exception):  # once for all files, as once is enough
                raise self._opened
            if self._opened is None:
                try:
                    self._opened = GroupTable.open(*self._of)
                except Exception as error:
                    self._opened = error
                    raise
            return self._opened

    def measured(self, clean: Sequence[Audited]) -> Mapping[str, Mapping[str, Measured]]:
        """Return the measures of the checks that Arrow did not answer, by ingestion.

        One query reads all files. Raises Permanent where the contract's own SQL is refused or the
        query makes no progress, and one of `JavaError` where a check fails on a row.
        """
        _, spec, contract, _ = self._of
        checks = {c.id: c for each in clean for c in _unanswered(contract, each.found)}
        if not checks:
            return {}
        asked = replace(contract, checks=tuple(checks.values()))
        session = self.open().spark
        with cancel_when_stalled(session, spec.limits.longest_stall):
            return group_sql.measured(session, asked, {c.ingestion: c.left for c in clean})

    def committed(self, passed: Sequence[Audited], judge: Judge) -> tuple[list[Entered], str]:
        """Commit all data files; return the files with them, and the commit's hash."""
        table = self.open()
        entered = [
            each.entered(judge, files=tuple(data_files(table.spark, table.layout, each.files)))
            for each in passed
        ]
        made = [file for each in entered for file in each.files]
        rows = sum(each.found.found.rows for each in passed)
        return entered, table.commit(made, rows)
