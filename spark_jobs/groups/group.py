"""Ingest a group of small files of one table together: one audit, one commit.

A group is a fast path for files that pass cleanly. Every other file has no report here: its caller
ingests it alone, so that it is reported as if there were no group.

    fetch the small files
    → have Arrow audit and write those that it can, and commit them together (group_arrow)
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

from pyspark.sql import SparkSession

from lakegate.audit.report import AuditReport
from lakegate.contract.sharing import comes_in_turns, why_alone
from lakegate.errors import Permanent
from lakegate.text import one_line
from spark_jobs.groups.group_arrow import write_together
from spark_jobs.lake.storage import Storage, held

_THREADS = 8
_LARGEST = 64 << 20  # bytes of any file in a group
_HELD = 128 << 20  # bytes of a group that the driver holds


def ingest_group(
    spark: SparkSession, storages: Sequence[Storage], token: str
) -> tuple[AuditReport, ...]:
    """Ingest files of one table and contract together; return the reports of those that passed.

    The reports are in the lake bucket. Raises Transient when a retry may help.
    """
    unique = {each.spec.ingestion: each for each in storages}
    files = _fetched([each for each in unique.values() if 0 < each.size <= _LARGEST])
    if not files:
        return ()
    table = files[0].spec.table
    try:
        contract = files[0].contract()
        if why_alone(contract) or comes_in_turns(contract):
            return ()
        group = write_together(spark, files, contract, token)
        return tuple(group.store()) if group else ()
    except Permanent as error:  # each file alone tells why
        print(one_line(f"{len(files)} files of {table} are ingested alone: {error.message}"))
        return ()


def _fetched(storages: Sequence[Storage]) -> list[Storage]:
    """Return the files, the smallest with their bytes; without those that are gone."""
    by_size = sorted(storages, key=lambda each: each.size)
    ends = accumulate(each.size for each in by_size)
    small = {each.spec.ingestion for each, end in zip(by_size, ends, strict=True) if end <= _HELD}
    with ThreadPoolExecutor(_THREADS) as threads:
        fetched = threads.map(lambda each: _file(each, hold=each.spec.ingestion in small), storages)
        return [file for files in fetched for file in files]


def _file(storage: Storage, *, hold: bool) -> list[Storage]:
    try:
        return [held(storage) if hold else storage]
    except Permanent:
        return []
