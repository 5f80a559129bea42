"""The commit of a group on a branch of its own, and the reports of its files."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from lakegate.audit.report import AuditReport, CheckResult, Step, Verdict, to_lines
from lakegate.contract.model import Contract
from lakegate.job.change import Effect
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import group_branch, group_reports_key
from spark_jobs.audit.run import Run
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass.examined import WAY
from spark_jobs.spark import iceberg
from spark_jobs.spark.session import CATALOG, another_session, require_rest_catalog
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.write.append import Opened, open_table
from spark_jobs.write.commit import commit
from spark_jobs.write.history_files import with_results
from spark_jobs.write.layout import Layout, layout_of
from spark_jobs.write.report import report

_THREADS = 8


@dataclass(frozen=True)
class GroupTable:
    """The table that takes a group's files, opened on the group's branch by a session of its own.

    `spec` is that of one of the files, but for the branch.
    """

    spark: SparkSession
    spec: JobSpec
    contract: Contract
    branch: Branch
    opened: Opened
    layout: Layout

    @classmethod
    def open(
        cls, spark: SparkSession, like: JobSpec, contract: Contract, token: str
    ) -> "GroupTable":
        """Create a branch off main, and open or make the table on it. Raises LakegateError."""
        spec = replace(like, branch=group_branch(like.table, token_hex(8)))
        session = another_session(spark, spec, token)
        branch = Branch(spec.nessie_uri, spec.branch, token)
        spec = replace(spec, base_hash=branch.create())
        require_rest_catalog(session, CATALOG)
        opened = open_table(session, spec, branch, contract)
        layout = layout_of(session, opened.table, contract)
        return cls(session, spec, contract, branch, opened, layout)

    @property
    def name(self) -> str:
        """Return the name of the group's commit."""
        return self.spec.branch.rpartition("/")[2]

    @property
    def run(self) -> Run:
        """Return a run on the group's branch that has no files yet."""
        of = self.spark, self.spec, self.branch.token, self.contract
        return Run(*of, self.opened.table, (), main_at=self.opened.main_at)

    def commit(self, files: Sequence[Any], rows: int) -> str:
        """Append data files with so many rows in the group's commit; return its hash.

        Raises as `write.commit.commit`.
        """
        return commit(self.opened, files, rows, self.name, self.branch)


@dataclass(frozen=True)
class Entered:
    """A file that passed cleanly, whose rows are on the group's branch.

    `results` are those of its checks, and `changes` say how its columns differ. The rows are in
    data files (Iceberg's `DataFile`); those that were merged are in none of its own, and have an
    `effect`.
    """

    storage: Storage
    rows: int
    results: tuple[CheckResult, ...]
    changes: tuple[str, ...]
    files: tuple[Any, ...] = ()
    effect: Effect | None = None


@dataclass(frozen=True)
class Group:
    """The files of one commit."""

    table: GroupTable
    audited_hash: str
    meter: Meter
    files: Sequence[Entered]

    def store(self) -> list[AuditReport]:
        """Put each file's report and results into the lake bucket; return the reports.

        Then one object repeats them as they are stored, each under the key that it names itself.
        One that an earlier try stored, and that names another attempt, is left out.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            stored = list(threads.map(self._stored, self.files))
        if len(stored) > 1:
            key = group_reports_key(self.table.spec.table, self.table.spec.branch)
            own = {file.storage.spec.report_key for file in self.files}
            self.files[0].storage.put(key, to_lines(each for each in stored if each.key in own))
        return stored

    def _stored(self, file: Entered) -> AuditReport:
        storage = file.storage
        return storage.put_report(with_results(storage, self._report(file)))

    def _report(self, file: Entered) -> AuditReport:
        """Return a file's report; its cost is its share of the group's."""
        of = self.table.spec
        spec = replace(file.storage.spec, branch=of.branch, base_hash=of.base_hash)
        return report(
            spec,
            self.meter,
            self.table.contract,
            verdict=Verdict.PASSED,
            checks=file.results,
            audited_hash=self.audited_hash,
            rows_read=file.rows,
            rows_written=file.effect.added if file.effect else file.rows,
            files=tuple(map(iceberg.data_file, file.files)),
            effect=file.effect,
            schema_changes=(*file.changes, *self.table.opened.changes),
            steps=tuple(_share(step, len(self.files)) for step in self.meter.steps),
            engine={"spark": spark_version, "write": WAY},
            group=tuple(each.storage.spec.ingestion for each in self.files),
        )


def _share(step: Step, files: int) -> Step:
    whole = {name: getattr(step, name) // files for name in ("rows", "bytes", "shuffled")}
    return replace(step, seconds=round(step.seconds / files, 4), **whole)
