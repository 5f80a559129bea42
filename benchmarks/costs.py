"""Ingest files in a warm Spark, in turn with other work, and compare the costs."""

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lakegate.audit.report import AuditReport, Step, Verdict
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject, ingestion_id, report_key
from spark_jobs import main as job
from spark_jobs.groups.group import ingest_group
from spark_jobs.lake.storage import Storage
from spark_jobs.spark.session import session_settings
from spark_jobs.spark.step_metrics import Meter
from tests.services import Services, fresh_session, services, warm_spark

_NOBODY = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "", "", "", "", "", "", "", "")

Work = Callable[[], object]
Reader = Callable[[SparkSession, str], DataFrame]  # of the file at an address


def _parquet(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.parquet(path)


@dataclass(frozen=True)
class Bench:
    """The services and the warm Spark that all runs share; `attempts` numbers the ingestions."""

    running: Services
    spark: SparkSession
    attempts: "count[int]" = field(default_factory=lambda: count(1))

    def ingest(
        self,
        landed: LandedObject,
        table: str,
        version: str,
        verdict: Verdict = Verdict.PASSED,
    ) -> tuple[JobSpec, AuditReport]:
        """Ingest a file up to its report, under that version of the contract; the branch stays."""
        spec = self.running.spec(landed, version, table, next(self.attempts))
        fresh_session(self.spark)
        job.main(spec.to_argument())
        report = Storage(spec, self.running.s3, None).finished_report()
        if report is None or report.verdict is not verdict:
            raise RuntimeError(f"the benchmark's file is not {verdict}: {report}")
        return spec, report

    def publish(self, landed: LandedObject, table: str, version: str) -> None:
        """Ingest a file and publish it."""
        _, report = self.ingest(landed, table, version)
        catalog, base = self.running.catalog, report.base_hash
        catalog.merge(report.branch, report.audited_hash, base, "Publish", {"bench": "1"})
        catalog.delete_branch(report.branch)

    def ingest_together(
        self, landed: Sequence[LandedObject], like: JobSpec
    ) -> tuple[AuditReport, ...]:
        """Ingest files as one group of a shared run; return the reports of those that passed.

        `like` is any job spec of the table.
        """
        attempt = next(self.attempts)
        storages = [Storage(_alike(like, each, attempt), self.running.s3, None) for each in landed]
        return ingest_group(self.spark, storages, self.running.tokens["job"])

    def publish_together(self, landed: Sequence[LandedObject], like: JobSpec) -> None:
        """Ingest files as one group of a shared run, and publish them."""
        reports = self.ingest_together(landed, like)
        if len(reports) != len(landed):
            raise RuntimeError(f"only {len(reports)} of {len(landed)} files passed together")
        catalog, first = self.running.catalog, reports[0]
        found = {"bench": "1"}
        catalog.merge(first.branch, first.audited_hash, first.base_hash, "Publish", found)
        catalog.delete_branch(first.branch)

    def append(self, landed: LandedObject, table: str, read: Reader = _parquet) -> None:
        """Append the same file to main by Spark alone."""
        file = read(self.on("main"), f"s3a://{landed.bucket}/{landed.key}")
        file.writeTo(f"lake.{table}").append()

    def on(self, branch: str) -> SparkSession:
        """Return a session whose catalog is a branch, with the publisher's rights."""
        session = fresh_session(self.spark)
        spec = replace(_NOBODY, branch=branch, nessie_uri=self.running.nessie_uri)
        for name, value in session_settings(spec, self.running.tokens["publisher"]).items():
            session.conf.set(name, value)
        return session

    def cost(self, work: Work) -> Step:
        """Return the cost of some work, with nothing cached by an earlier one."""
        self.spark.catalog.clearCache()
        meter = Meter(self.spark)
        with meter.step("work"):
            work()
        return meter.steps[0]

    def compared(self, each: Mapping[str, Work], runs: int) -> dict[str, object]:
        """Return the costs of all, and how many times the cost of each other one the last has.

        They run in turn, so that noise meets all alike; the first turn is a warm-up.
        """
        turns = [{n: self.cost(work) for n, work in each.items()} for _ in range(runs + 1)][1:]
        *others, last = each
        costs = {name: shown(name, [turn[name] for turn in turns]) for name in each}
        ratios = {name: ratio([(turn[last], turn[name]) for turn in turns]) for name in others}
        for name, found in ratios.items():
            print(f"{last} / {name}: {found:.3f}", flush=True)
        return {"costs": costs, "ratios": ratios}


def _alike(like: JobSpec, landed: LandedObject, attempt: int) -> JobSpec:
    """Return the job spec of another file of the same table, without a branch."""
    id_ = ingestion_id(landed)
    return replace(
        like,
        landed=landed,
        ingestion=id_,
        attempt=attempt,
        report_key=report_key(like.table, id_, attempt),
        branch="",
        base_hash="",
    )


@contextmanager
def bench() -> Iterator[Bench]:
    """Yield a bench with services of its own."""
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        yield Bench(running, warm_spark(running))


def ratio(pairs: Sequence[tuple[Step, Step]]) -> float:
    """Return the median of the pairs' ratios of seconds."""
    return statistics.median(one.seconds / other.seconds for one, other in pairs)


def shown(name: str, steps: Sequence[Step]) -> dict[str, object]:
    """Print and return the median of the seconds, and the other costs."""
    seconds, last = statistics.median(step.seconds for step in steps), steps[-1]
    print(
        f"{name:>20}: {seconds:6.2f} s, {last.jobs:3} jobs, {last.rows:>12,} rows and "
        f"{last.bytes / 1e6:6.1f} MB read, {last.shuffled / 1e6:6.1f} MB shuffled",
        flush=True,
    )
    return {"seconds": seconds, "runs": [asdict(step) for step in steps]}
