"""Ingest files of one table in the order in which they landed: one audit, one commit.

A turn takes the files from the first on, as long as each passes cleanly or is refused: a refused
one changes nothing for the others. The first file that passes, but of which the report must show
more, or that only Spark can read, ends it.

    decode and audit the files by Arrow, and by one query what only SQL can answer
    → merge the rows of those that passed, as if one file came after the other (merged)
    → or append them, as long as no key of the table is there twice (keyed)
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import SparkSession

from lakegate.audit.report import AuditReport, Verdict
from lakegate.contract.model import Contract
from lakegate.contract.sharing import comes_in_turns
from lakegate.errors import Permanent
from lakegate.job.shared_run import MOST_BYTES, MOST_FILES
from lakegate.text import one_line
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.groups import keyed, merged
from spark_jobs.groups.begun import Begun
from spark_jobs.groups.group_arrow import (
    Audited,
    Judge,
    Table,
    answered,
    read,
    rows_for_sql,
    unless_alone,
)
from spark_jobs.groups.group_commit import Group
from spark_jobs.lake.storage import Storage, held
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.spark.unforeseen import explained
from spark_jobs.write.files import Rows
from spark_jobs.write.origins import with_origins
from spark_jobs.write.provenance import values_of

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
    alike: dict[str, Storage] = {}
    for each in storages:
        landed += each.size
        if alike and (each.spec.kind != kind or landed > MOST_BYTES or len(alike) == MOST_FILES):
            break
        alike.setdefault(each.spec.ingestion, each)
    return list(alike.values())


def _together(spark: SparkSession, files: Sequence[Storage], token: str) -> Begun:
    contract = files[0].contract()
    if not comes_in_turns(contract) or files[0].spec.null_unreadable:
        return Begun()
    meter, table = Meter(spark), Table(spark, files[0], contract, token)
    judge = Judge(contract, cache(files[0].baselines))
    with meter.step("audit"):
        turn = list(_judged(table, judge, list(_examined(files, judge))))
    clean = [each for each in turn if not each.is_refused]
    enter = _merged if contract.write_mode.merges else _appended
    reports = enter(table, judge, meter, clean) if clean else []
    ends = turn.index(clean[len(reports)]) if len(reports) < len(clean) else len(turn)
    refused = (each.storage for each in turn[:ends] if each.is_refused)
    return Begun(tuple(reports), tuple(refused))


def _examined(files: Sequence[Storage], judge: Judge) -> Iterator[Audited]:
    """Yield the files until one must be alone, or many rows are in memory. Raises Transient."""
    size, examine = 0, partial(unless_alone, judge, partial(_read_by_arrow, judge))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for start in range(0, len(files), _AT_ONCE):
            for each in list(threads.map(examine, files[start : start + _AT_ONCE])):
                if each is None:
                    return
                yield each
                size += each.rows.nbytes
            if size > _HELD:
                return


def _read_by_arrow(judge: Judge, storage: Storage) -> Audited | None:
    """Return a file that Arrow may let pass cleanly, or refuses for certain; None for any other.

    Raises Permanent, and MustRewrite if Spark is to read it.
    """
    contract = judge.contract
    examined, parts = read(held(storage), contract)
    judged = judge.judged(examined.rows, examined.measured)
    if judged.verdict is not Verdict.PASSED:
        return Audited(storage, examined, is_refused=True)
    rows = _as_in_table(storage, contract, parts)
    if not judged.is_plain or not _has_sound_keys(rows, contract):
        return None
    left = rows_for_sql(contract, examined, [Rows(rows)])
    return Audited(storage, examined, left, rows=rows)


def _has_sound_keys(rows: pa.Table, contract: Contract) -> bool:
    mode = contract.write_mode
    return not mode.merges or merged.has_sound_keys(rows, mode)


def _as_in_table(storage: Storage, contract: Contract, parts: Sequence[Rows]) -> pa.Table:
    values, schema = values_of(storage.spec), schema_of(contract.table_columns)
    tables = [with_origins(each.table, contract.provenance, values) for each in parts]
    return pa.concat_tables([each.select(schema.names).cast(schema) for each in tables])


def _judged(table: Table, judge: Judge, files: Sequence[Audited]) -> Iterator[Audited]:
    """Yield the files with the results of all checks of their rows, until one must be alone."""
    asked = answered(table, [each for each in files if not each.is_refused])
    known = {each.ingestion: each for each in asked}
    for each in files:
        if each.is_refused:
            yield each
        elif each.ingestion not in known:  # a check fails on a row
            return
        else:
            outcome = known[each.ingestion].judged(judge)
            if outcome.is_clean:
                yield known[each.ingestion]
            elif outcome.verdict is Verdict.PASSED:
                return
            else:
                yield replace(each, is_refused=True)


def _merged(
    table: Table, judge: Judge, meter: Meter, clean: Sequence[Audited]
) -> list[AuditReport]:
    """Merge the files that passed; return their reports, which are in the lake bucket."""
    with meter.step("merge"):
        opened = table.open()
        audited_hash, effects = merged.merge(opened, [each.rows for each in clean])
    both = zip(clean, effects, strict=True)
    entered = [each.entered(judge, effect=effect) for each, effect in both]
    return Group(opened, audited_hash, meter, entered).store()


def _appended(
    table: Table, judge: Judge, meter: Meter, clean: Sequence[Audited]
) -> list[AuditReport]:
    """Append the first files that passed whose keys the table lacks; return their reports."""
    with meter.step("append"):
        opened = table.open()
        if opened.layout.obstacle:  # alone the first file tells it
            return []
        done = keyed.append(opened, clean)
    entered = [
        replace(each, more={**each.more, **keys}).entered(judge, files=tuple(made))
        for each, (made, keys) in zip(clean, done.files, strict=False)
    ]
    if not entered:
        return []
    return Group(opened, done.audited_hash, meter, entered).store()
