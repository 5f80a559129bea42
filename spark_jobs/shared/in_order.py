"""Ingest files of one table in the order in which they landed: one audit, one merge, one commit.

A turn takes the files from the first on, as long as each passes cleanly or is refused: a refused
one changes nothing for the others. The first file that passes, but of which the report must show
more, or that only Spark can read, ends it.

    decode and audit the files by Arrow, and by one query what only SQL can answer
    → merge the rows of those that passed, as if one file came after the other (merged)
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.contract.sharing import comes_in_turns
from lakegate.errors import Permanent
from lakegate.report import AuditReport, Verdict
from lakegate.shared_run import MOST_BYTES, MOST_FILES
from lakegate.text import one_line
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.lake.storage import Storage, held
from spark_jobs.one_pass.examined import WAY
from spark_jobs.shared import merged
from spark_jobs.shared.group_arrow import Clean, Judge, Table, answered, read, rows_for_sql
from spark_jobs.shared.group_commit import Entered, Group, Passed
from spark_jobs.shared.taken_files import Begun
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.spark.unforeseen import explained
from spark_jobs.write.files import Rows
from spark_jobs.write.origins import with_origins
from spark_jobs.write.provenance import values_of

_NONE = pa.table({})
_AT_ONCE = 4  # files that are decoded at the same time
_HELD = 256 << 20  # bytes of rows that are in memory, but for those of the last files


def ingest_in_order(spark: SparkSession, storages: Sequence[Storage], token: str) -> Begun:
    """Ingest the first files of a turn, which are of one ordered table and in their order.

    The reports are in the lake bucket. Raises Transient when a retry may help.
    """
    try:
        with explained("the files cannot be ingested together", None):
            return _together(spark, _alike(storages), token)
    except Permanent as error:  # alone the first one tells why
        table = storages[0].spec.table
        print(one_line(f"a file of {table} is ingested alone: {error.message}"))
        return Begun()


def _alike(storages: Sequence[Storage]) -> list[Storage]:
    """Return the first files with one contract, as many as a turn takes; one at least."""
    kind, landed = storages[0].spec.kind, 0
    found: dict[str, Storage] = {}
    for each in storages:
        landed += each.size
        if found and (each.spec.kind != kind or landed > MOST_BYTES or len(found) == MOST_FILES):
            break
        found.setdefault(each.spec.ingestion, each)
    return list(found.values())


@dataclass(frozen=True)
class _Read:
    """A file that Arrow has read: its rows as the table has them, or that it is refused."""

    file: Clean
    rows: pa.Table
    is_refused: bool


@dataclass(frozen=True)
class _Judged:
    """A file of the turn and its rows; `passed` is None if it was refused."""

    storage: Storage
    rows: pa.Table
    passed: Passed | None


def _together(spark: SparkSession, files: Sequence[Storage], token: str) -> Begun:
    contract = files[0].contract()
    if not comes_in_turns(contract) or files[0].spec.null_unreadable:
        return Begun()
    meter, table = Meter(spark), Table(spark, files[0], contract, token)
    judge = Judge(contract, cache(files[0].baselines))
    with meter.step("audit"):
        turn = list(_judged(table, judge, list(_examined(files, judge))))
    clean = [(each, each.passed) for each in turn if each.passed]
    reports = _merged(table, contract, meter, clean) if clean else []
    return Begun(tuple(reports), tuple(each.storage for each in turn if not each.passed))


def _examined(files: Sequence[Storage], judge: Judge) -> Iterator[_Read]:
    """Yield the files until one must be alone, or many rows are in memory. Raises Transient."""
    size = 0
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for start in range(0, len(files), _AT_ONCE):
            for each in list(threads.map(partial(_read, judge), files[start : start + _AT_ONCE])):
                if each is None:
                    return
                yield each
                size += each.rows.nbytes
            if size > _HELD:
                return


def _read(judge: Judge, storage: Storage) -> _Read | None:
    """Return a file that Arrow may let pass cleanly, or refuses for certain; None for any other."""
    explaining = explained("the file cannot be examined", judge.contract)
    with suppress(Permanent), explaining, suppress(MustRewrite):  # alone it tells why
        return _found(judge, storage)
    return None


def _found(judge: Judge, storage: Storage) -> _Read | None:
    """Return a file as `_read` does. Raises Permanent, and MustRewrite if Spark is to read it."""
    contract = judge.contract
    found, parts = read(held(storage), contract)
    judged = judge.judged(found.rows, found.measured)
    if judged.verdict is not Verdict.PASSED:
        return _Read(Clean(storage, found, (), _NONE), _NONE, is_refused=True)
    rows = _as_in_table(storage, contract, parts)
    if not judged.is_plain or not merged.has_sound_keys(rows, contract.write_mode):
        return None
    left = rows_for_sql(contract, found, [Rows(rows)])
    return _Read(Clean(storage, found, (), left), rows, is_refused=False)


def _as_in_table(storage: Storage, contract: Contract, parts: Sequence[Rows]) -> pa.Table:
    values, schema = values_of(storage.spec), schema_of(contract.table_columns)
    tables = [with_origins(each.table, contract.provenance, values) for each in parts]
    return pa.concat_tables([each.select(schema.names).cast(schema) for each in tables])


def _judged(table: Table, judge: Judge, files: Sequence[_Read]) -> Iterator[_Judged]:
    """Yield the files with the results of all checks, until one must be alone."""
    asked = answered(table, [each.file for each in files if not each.is_refused])
    more = {file.ingestion: measured for file, measured in asked}
    for each in files:
        found = each.file.found
        if each.is_refused:
            yield _Judged(each.file.storage, _NONE, None)
        elif each.file.ingestion not in more:  # a check fails on a row
            return
        else:
            outcome = judge.judged(found.rows, {**found.measured, **more[each.file.ingestion]})
            passed = Passed(found.rows.read, outcome.results, found.changes)
            if outcome.is_clean:
                yield _Judged(each.file.storage, each.rows, passed)
            elif outcome.verdict is Verdict.PASSED:
                return
            else:
                yield _Judged(each.file.storage, _NONE, None)


def _merged(
    table: Table, contract: Contract, meter: Meter, clean: Sequence[tuple[_Judged, Passed]]
) -> list[AuditReport]:
    """Merge the files that passed; return their reports, which are in the lake bucket."""
    with meter.step("merge"):
        session, opened, _ = table.open()
        rows = [each.rows for each, _ in clean]
        audited_hash, effects = merged.merge(session, opened, contract, rows)
    entered = [
        Entered(each.storage, passed, effect=effect)
        for (each, passed), effect in zip(clean, effects, strict=True)
    ]
    return Group(opened, contract, audited_hash, meter, entered, {"write": WAY}).store()
