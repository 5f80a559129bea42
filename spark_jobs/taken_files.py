"""Ingest the files that a shared run has taken: together where they pass, else one by one."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any

from pyspark.sql import SparkSession

from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject, branch_name, run_name
from lakegate.shared_run import SharedRun
from lakegate.tokens import end
from spark_jobs.attempt import carry_out, wait_for_token
from spark_jobs.aws import client
from spark_jobs.group import ingest_group
from spark_jobs.nessie_branch import MAIN, Branch, BranchExists
from spark_jobs.spark.session import another_session
from spark_jobs.storage import Storage
from spark_jobs.unforeseen import explained

_MARKER = ".trying"
_THREADS = 8  # requests at a time


@dataclass
class TakenFiles:
    """The buckets, the Spark and the token of one shared run; `s3` and `secrets` are of boto3."""

    run: SharedRun
    spark: SparkSession
    s3: Any
    secrets: Any
    token: str = field(default="", repr=False)

    @classmethod
    def connect(cls, run: SharedRun) -> "TakenFiles":
        """Return the files of a run, with clients of its region."""
        spark = SparkSession.builder.appName(f"lakegate {run.name}").getOrCreate()
        return cls(run, spark, client("s3"), client("secretsmanager"))

    def seconds_left(self) -> float:
        """Return for how many seconds the token lasts, which is read anew. Raises LakegateError."""
        spec = self._spec_of_run()
        self.token = wait_for_token(spec, self._storage(spec).nessie_token)
        ends = end(self.token)
        return (ends - datetime.now(UTC)).total_seconds() if ends else inf

    def reported(self, specs: Sequence[JobSpec]) -> frozenset[str]:
        """Return the names of the attempts that have a report, by one request for each.

        Raises LakegateError.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            sizes = threads.map(lambda spec: self._storage(spec).stored(spec.report_key), specs)
            found = [spec for spec, size in zip(specs, sizes, strict=True) if size]
        return frozenset(run_name(spec.ingestion, spec.attempt) for spec in found)

    def is_marked(self, spec: JobSpec) -> bool:
        """Return if a run died while it ingested the file alone. Raises LakegateError."""
        return self._storage(spec).stored(spec.report_key + _MARKER) > 0

    def mark(self, spec: JobSpec) -> None:
        """Note that this run begins to ingest the file alone. Raises LakegateError."""
        self._storage(spec).put(spec.report_key + _MARKER, self.run.name.encode())

    def unmark(self, spec: JobSpec) -> None:
        """Note that the run survived. The job may not delete, so the marker becomes empty.

        Raises LakegateError.
        """
        self._storage(spec).put(spec.report_key + _MARKER, b"")

    def ingest_together(self, specs: Sequence[JobSpec]) -> frozenset[str]:
        """Ingest the files; return the names of the attempts that passed cleanly.

        Raises LakegateError.
        """
        storages = [self._storage(spec) for spec in specs]
        reports = ingest_group(self.spark, storages, self.token)
        return frozenset(run_name(report.ingestion, report.attempt) for report in reports)

    def ingest_alone(self, spec: JobSpec) -> None:
        """Ingest one file on a branch of its own, until its report exists.

        The branch of an earlier try is used again, at main's newest commit. Raises LakegateError,
        and anything else only once Spark itself has ended.
        """
        with explained("the file cannot be ingested", None):
            self._ingest(spec)

    def _ingest(self, spec: JobSpec) -> None:
        name = branch_name(spec.table, spec.landed.key, spec.ingestion, spec.attempt)
        branch = Branch(spec.nessie_uri, name, self.token)
        try:
            base = branch.create()
        except BranchExists:
            if self.reported([spec]):  # which names this branch as it is
                return
            base = branch.reset_to_main()
        ready = replace(spec, branch=name, base_hash=base)
        session = partial(another_session, self.spark)
        carry_out(ready, self._storage(ready), self.token, session)

    def _storage(self, spec: JobSpec) -> Storage:
        return Storage(spec, self.s3, self.secrets)

    def _spec_of_run(self) -> JobSpec:
        """Return the job spec of no file: only its access to Nessie counts."""
        run, nothing = self.run, LandedObject("", "", "", "", 0)
        places = (run.lake_bucket, "", "", "", run.nessie_uri, run.token_secret)
        return JobSpec("", 1, nothing, "", MAIN, "", *places)
