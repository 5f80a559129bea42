"""Have Spark audit and append the files of a group in one commit, a data file for each of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from spark_jobs import provenance
from spark_jobs.append import append
from spark_jobs.files.source import BAD_ROW, FILE
from spark_jobs.group_audit import SETTINGS, Audited, audit_together
from spark_jobs.group_commit import Entered, Group, GroupTable, spec_like
from spark_jobs.spark.session import another_session
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Replaced, Storage

_THREADS = 8
_TASK = "_lakegate_task"  # the number of the Spark task that writes a row
_PARTITION = re.compile(r"(\d+)-\d+-.*\.parquet")  # Iceberg's OutputFileFactory


@dataclass(frozen=True)
class _Member:
    """A file of the group, at an address that is pinned to the landed version."""

    storage: Storage
    pin: AbstractContextManager[str]
    path: str


def append_together(
    spark: SparkSession, storages: Sequence[Storage], contract: Contract, token: str
) -> Iterator[Group]:
    """Yield the group of those files that passed, if any did. Raises LakegateError."""
    left = list(storages)
    while len(left) > 1:
        members = _pinned(left)
        try:
            groups = _appended(spark, members, contract, token)
        finally:
            replaced = _released(members)
        if not replaced:
            yield from groups
            return
        left = [each for each in left if each.spec.ingestion not in replaced]


def _pinned(storages: Sequence[Storage]) -> list[_Member]:
    with ThreadPoolExecutor(_THREADS) as threads:
        return [member for found in threads.map(_member, storages) for member in found]


def _member(storage: Storage) -> list[_Member]:
    """Return the file at a pinned address; nothing for one that is gone."""
    try:
        pin = storage.pinned()
        return [_Member(storage, pin, pin.__enter__())]
    except Permanent:
        return []


def _released(members: Sequence[_Member]) -> frozenset[str]:
    """Return the ingestions of the files that were replaced since they were pinned."""
    with ThreadPoolExecutor(_THREADS) as threads:
        return frozenset(filter(None, threads.map(_replaced, members)))


def _replaced(member: _Member) -> str:
    try:
        member.pin.__exit__(None, None, None)
    except Replaced:
        return member.storage.spec.ingestion
    return ""


def _appended(
    spark: SparkSession, members: Sequence[_Member], contract: Contract, token: str
) -> list[Group]:
    if not members:
        return []
    spec = spec_like(members[0].storage.spec)
    session = another_session(spark, spec, token)
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    try:
        with cancel_when_stalled(session, spec.limits.longest_stall):
            return _passed(session, spec, members, contract, token)
    finally:
        session.catalog.clearCache()


def _passed(
    session: SparkSession,
    spec: JobSpec,
    members: Sequence[_Member],
    contract: Contract,
    token: str,
) -> list[Group]:
    meter = Meter(session)
    files = {member.path: member.storage for member in members}
    with meter.step("audit"):
        baselines = members[0].storage.baselines
        audited = audit_together(session, files, contract, spec.limits, baselines)
    if not audited.passed:
        return []
    with meter.step("append"):
        table = GroupTable.open(session, spec, contract, token)
        specs = {path: storage.spec for path, storage in files.items()}
        made, audited_hash = _append(table, audited, contract, specs)
    entered = [
        Entered(member.storage, audited.passed[member.path], (made[member.path],))
        for member in members
        if member.path in audited.passed
    ]
    return [Group(table, contract, audited_hash, meter, entered, {"write": "written by Spark"})]


def _append(
    table: GroupTable, audited: Audited, contract: Contract, specs: Mapping[str, JobSpec]
) -> tuple[dict[str, Any], str]:
    """Append the rows of the files that passed in one commit.

    Returns the data file of each landed file's address, and the commit's hash. Raises Permanent,
    Transient.
    """
    tasks = Observation("tasks")
    rows = audited.rows.where(F.col(FILE).isin(*audited.passed))
    rows = provenance.of_files(rows, contract.provenance, specs)
    rows = rows.withColumn(_TASK, F.spark_partition_id())
    rows = rows.observe(tasks, F.collect_set(F.struct(_TASK, FILE)).alias("pairs"))
    rows_only = rows.drop(BAD_ROW, FILE, _TASK)
    made, audited_hash = append(rows_only, table.opened, contract, table.name, table.branch)
    files = _by_landed_file(made, tasks.get["pairs"])
    _require_same_rows(files, audited)
    return files, audited_hash


def _by_landed_file(made: Sequence[Any], pairs: Sequence[Any]) -> dict[str, Any]:
    """Return the data file of each landed one. Raises Permanent unless each has exactly one."""
    file_of = {pair[_TASK]: pair[FILE] for pair in pairs}
    landed = [file_of[_task(file)] for file in made if _task(file) in file_of]
    if not len(set(landed)) == len(made) == len(pairs) == len(file_of):
        message = f"{len(made):,} data files were written for {len(pairs):,} landed files"
        raise Permanent("COUNT_MISMATCH", message)
    return dict(zip(landed, made, strict=True))


def _task(file: Any) -> int:
    """Return the number of the Spark task that wrote a data file, -1 for another name."""
    found = _PARTITION.fullmatch(str(file.location()).rpartition("/")[2])
    return int(found[1]) if found else -1


def _require_same_rows(files: Mapping[str, Any], audited: Audited) -> None:
    held = {path: file.recordCount() for path, file in files.items()}
    if held != {path: found.rows for path, found in audited.passed.items()}:
        raise Permanent("COUNT_MISMATCH", "the data files hold other rows than were audited")
