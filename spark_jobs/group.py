"""Ingest a group of small files of one table together: one audit pass, one append, one commit.

A group is a fast path for files that pass cleanly. Every other file has no report here: its caller
ingests it alone, so that it is reported as if there were no group.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.model import Contract
from lakegate.contract.sharing import why_alone
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.landing import group_branch
from lakegate.report import AuditReport, Step, Verdict
from lakegate.text import one_line
from spark_jobs import append
from spark_jobs.files.source import BAD_ROW, FILE
from spark_jobs.group_audit import SETTINGS, Audited, audit_together
from spark_jobs.nessie_branch import Branch
from spark_jobs.report import report, with_results
from spark_jobs.spark import iceberg
from spark_jobs.spark.session import CATALOG, another_session, require_rest_catalog
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Held, Replaced, Storage

_THREADS = 8
_TASK = "_lakegate_task"  # the number of the Spark task that writes a row
_HELD, _LARGEST = 1 << 20, 64 << 20  # bytes of a file that the driver holds, and of any in a group
_PARTITION = re.compile(r"(\d+)-\d+-.*\.parquet")  # Iceberg's OutputFileFactory


@dataclass(frozen=True)
class Member:
    """A file of the group, at an address that is pinned to the landed version."""

    storage: Storage
    pin: AbstractContextManager[str]
    path: str

    @property
    def spec(self) -> JobSpec:
        """Return the file's job spec."""
        return self.storage.spec


@dataclass(frozen=True)
class _Written:
    """The group's commit on its branch; `files` are the data files by the landed one's address."""

    spec: JobSpec
    audited_hash: str
    files: Mapping[str, Any]
    changes: tuple[str, ...]


def ingest_group(
    spark: SparkSession, storages: Sequence[Storage], token: str
) -> tuple[AuditReport, ...]:
    """Ingest files of one table and contract together; return the reports of those that passed.

    The reports are in the lake bucket. Raises Transient when a retry may help.
    """
    left = list({each.spec.ingestion: each for each in storages}.values())
    while len(left) > 1:
        members = _pinned(left)
        try:
            reports = _ingest(spark, members, token)
        finally:
            replaced = _released(members)
        if not replaced:
            with ThreadPoolExecutor(_THREADS) as threads:
                return tuple(threads.map(lambda made: _stored(*made), reports))
        left = [each for each in left if each.spec.ingestion not in replaced]
    return ()


def _pinned(storages: Sequence[Storage]) -> list[Member]:
    small = [each for each in storages if 0 < each.size <= _LARGEST]
    with ThreadPoolExecutor(_THREADS) as threads:
        return [member for found in threads.map(_member, small) for member in found]


def _member(storage: Storage) -> list[Member]:
    """Return the file at a pinned address; nothing for one that is gone."""
    try:
        file = Held.fetch(storage) if storage.size <= _HELD else storage
        pin = file.pinned()
        return [Member(file, pin, pin.__enter__())]
    except Permanent:
        return []


def _released(members: Sequence[Member]) -> frozenset[str]:
    """Return the ingestions of the files that were replaced since they were pinned."""
    with ThreadPoolExecutor(_THREADS) as threads:
        return frozenset(filter(None, threads.map(_replaced, members)))


def _replaced(member: Member) -> str:
    try:
        member.pin.__exit__(None, None, None)
    except Replaced:
        return member.spec.ingestion
    return ""


def _ingest(
    spark: SparkSession, members: Sequence[Member], token: str
) -> list[tuple[Member, AuditReport]]:
    """Return each file that passed with its report, which is not in the lake bucket yet."""
    if not members:
        return []
    first = members[0].storage
    spec = replace(first.spec, branch=group_branch(first.spec.table, token_hex(8)))
    session = another_session(spark, spec, token)
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    try:
        contract = first.contract()
        if why_alone(contract):
            return []
        with cancel_when_stalled(session, spec.limits.longest_stall):
            return _passed(session, spec, members, contract, token)
    except Permanent as error:  # each file alone tells why
        print(one_line(f"{len(members)} files of {spec.table} are ingested alone: {error.message}"))
        return []
    finally:
        session.catalog.clearCache()


def _passed(
    session: SparkSession,
    spec: JobSpec,
    members: Sequence[Member],
    contract: Contract,
    token: str,
) -> list[tuple[Member, AuditReport]]:
    meter = Meter(session)
    files = {member.path: member.storage for member in members}
    with meter.step("audit"):
        audited = audit_together(
            session, files, contract, spec.limits, members[0].storage.baselines
        )
    if not audited.passed:
        return []
    with meter.step("append"):
        written = _append(session, spec, audited, contract, token)
    passed = [member for member in members if member.path in audited.passed]
    common = _Common(meter, contract, audited, written, tuple(m.spec.ingestion for m in passed))
    return [(member, common.report(member)) for member in passed]


# The append


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


# The reports


@dataclass(frozen=True)
class _Common:
    """What the reports of a group's files have in common."""

    meter: Meter
    contract: Contract
    audited: Audited
    written: _Written
    group: tuple[str, ...]

    def report(self, member: Member) -> AuditReport:
        """Return a file's report; its cost is its share of the group's."""
        passed, at = self.audited.passed[member.path], self.written.spec
        spec = replace(member.spec, branch=at.branch, base_hash=at.base_hash)
        return report(
            spec,
            self.meter,
            self.contract,
            verdict=Verdict.PASSED,
            checks=passed.results,
            audited_hash=self.written.audited_hash,
            rows_read=passed.rows,
            rows_written=passed.rows,
            files=(iceberg.data_file(self.written.files[member.path]),),
            schema_changes=self.written.changes,
            steps=tuple(_share(step, len(self.group)) for step in self.meter.steps),
            engine={"spark": spark_version},
            group=self.group,
        )


def _share(step: Step, files: int) -> Step:
    return Step(
        step.name,
        round(step.seconds / files, 4),
        step.jobs,
        step.rows // files,
        step.bytes // files,
        step.shuffled // files,
    )


def _stored(member: Member, made: AuditReport) -> AuditReport:
    return member.storage.put_report(with_results(member.storage, made))
