"""Have Spark audit and append the files of a group in one commit, a data file for each of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import group_branch
from spark_jobs import append
from spark_jobs.files.source import BAD_ROW, FILE
from spark_jobs.group_audit import SETTINGS, Audited, audit_together
from spark_jobs.group_report import Entered, Group
from spark_jobs.nessie_branch import Branch
from spark_jobs.spark.session import CATALOG, another_session, require_rest_catalog
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


@dataclass(frozen=True)
class _Written:
    """The group's commit on its branch; `files` are the data files by the landed one's address."""

    spec: JobSpec
    audited_hash: str
    files: Mapping[str, Any]
    changes: tuple[str, ...]


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
    first = members[0].storage.spec
    spec = replace(first, branch=group_branch(first.table, token_hex(8)))
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
        written = _append(session, spec, audited, contract, token)
    entered = [
        Entered(member.storage, audited.passed[member.path], written.files[member.path])
        for member in members
        if member.path in audited.passed
    ]
    of = written.spec, contract, written.audited_hash, written.changes
    return [Group(*of, meter, entered, {"write": "rewritten"})]


def _append(
    session: SparkSession, spec: JobSpec, audited: Audited, contract: Contract, token: str
) -> _Written:
    """Append the rows of the files that passed in one commit. Raises Permanent, Transient."""
    branch = Branch(spec.nessie_uri, spec.branch, token)
    spec = replace(spec, base_hash=branch.create())
    require_rest_catalog(session, CATALOG)
    opened = append.open_table(session, spec, branch, contract)
    tasks = Observation("tasks")
    rows = audited.rows.where(F.col(FILE).isin(*audited.passed))
    rows = rows.withColumn(_TASK, F.spark_partition_id())
    rows = rows.observe(tasks, F.collect_set(F.struct(_TASK, FILE)).alias("pairs"))
    name = spec.branch.rpartition("/")[2]
    made, audited_hash = append.append(
        rows.drop(BAD_ROW, FILE, _TASK), opened, contract, name, branch
    )
    files = _by_landed_file(made, tasks.get["pairs"])
    _require_same_rows(files, audited)
    return _Written(spec, audited_hash, files, opened.changes)


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
