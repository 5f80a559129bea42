"""Ingest the files that a shared run has taken: together where they pass, else one by one."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf

from lakegate.audit.report import AuditReport
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, branch_name, run_name
from lakegate.job.shared_run import SharedRun
from lakegate.tokens import end
from spark_jobs.groups.begun import Begun
from spark_jobs.lake.nessie_branch import MAIN, Branch, BranchExists
from spark_jobs.lake.storage import Storage
from spark_jobs.spark.unforeseen import explained

MARKER = ".trying"  # of the key of a marker, beside the report
_THREADS = 8  # requests at a time


@dataclass(frozen=True)
class Means:
    """What a shared run works with; `serving.connect` gives it S3, Nessie and Spark.

    `lake` opens the buckets for a file, and `branch` a branch by Nessie's address, its name and the
    token. `token` reads the job's token. `together` ingests a group and returns the reports of the
    files that passed cleanly; `alone` ingests one file on its branch until it has its report.
    `in_order` ingests the first files of a turn, as if one after the other, but for those that it
    refuses: they are to be ingested alone.
    """

    lake: Callable[[JobSpec], Storage]
    branch: Callable[[str, str, str], Branch]
    token: Callable[[JobSpec], str]
    together: Callable[[Sequence[Storage], str], Sequence[AuditReport]]
    in_order: Callable[[Sequence[Storage], str], Begun]
    alone: Callable[[JobSpec, Storage, str], AuditReport]


@dataclass
class TakenFiles:
    """The files of one shared run, its token and its means. Every method raises LakegateError."""

    run: SharedRun
    means: Means
    token: str = field(default="", repr=False)

    def seconds_left(self) -> float:
        """Return for how many seconds the token lasts, which is read anew."""
        self.token = self.means.token(self._spec_of_run())
        ends = end(self.token)
        return (ends - datetime.now(UTC)).total_seconds() if ends else inf

    def reported(self, specs: Sequence[JobSpec]) -> frozenset[str]:
        """Return the names of the attempts that have a report, by one request for each."""
        with ThreadPoolExecutor(_THREADS) as threads:
            sizes = threads.map(lambda spec: self.means.lake(spec).stored(spec.report_key), specs)
            return frozenset(spec.name for spec, size in zip(specs, sizes, strict=True) if size)

    def is_marked(self, spec: JobSpec) -> bool:
        """Return if a run died while it ingested the file alone."""
        return self.means.lake(spec).stored(spec.report_key + MARKER) > 0

    def mark(self, spec: JobSpec) -> None:
        """Note that this run begins to ingest the file alone."""
        self.means.lake(spec).put(spec.report_key + MARKER, self.run.name.encode())

    def unmark(self, spec: JobSpec) -> None:
        """Note that the run survived. The job may not delete, so the marker becomes empty."""
        self.means.lake(spec).put(spec.report_key + MARKER, b"")

    def ingest_together(self, specs: Sequence[JobSpec]) -> frozenset[str]:
        """Ingest the files; return the names of the attempts that passed cleanly."""
        reports = self.means.together([self.means.lake(spec) for spec in specs], self.token)
        return _names(reports)

    def ingest_in_order(self, specs: Sequence[JobSpec]) -> frozenset[str]:
        """Ingest a turn's first files; return the names of the attempts that have a report now."""
        begun = self.means.in_order([self.means.lake(spec) for spec in specs], self.token)
        for storage in begun.refused:
            self.ingest_alone(storage.spec)
        return _names(begun.reports) | {storage.spec.name for storage in begun.refused}

    def ingest_alone(self, spec: JobSpec) -> None:
        """Ingest one file on a branch of its own, until its report exists.

        The branch of an earlier try is used again, at main's newest commit. Raises anything but
        LakegateError only once Spark itself has ended.
        """
        with explained("the file cannot be ingested", None):
            self._ingest(spec)

    def _ingest(self, spec: JobSpec) -> None:
        name = branch_name(spec.table, spec.landed.key, spec.ingestion, spec.attempt)
        branch = self.means.branch(spec.nessie_uri, name, self.token)
        try:
            base = branch.create()
        except BranchExists:
            if self.reported([spec]):  # which names this branch as it is
                return
            base = branch.reset_to_main()
        ready = replace(spec, branch=name, base_hash=base)
        self.means.alone(ready, self.means.lake(ready), self.token)

    def _spec_of_run(self) -> JobSpec:
        """Return the job spec of no file: only its access to Nessie counts."""
        run, nothing = self.run, LandedObject("", "", "", "", 0)
        places = (run.lake_bucket, "", "", "", run.nessie_uri, run.token_secret)
        return JobSpec("", 1, nothing, "", MAIN, "", *places)


def _names(reports: Iterable[AuditReport]) -> frozenset[str]:
    return frozenset(run_name(each.ingestion, each.attempt) for each in reports)
