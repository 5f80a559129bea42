"""Measure the audit: twelve checks on a million rows, compared with other libraries.

`python -m benchmarks.audit [--rows N] [--runs N]`: in one warm Spark, alternating, over the same
Iceberg table: the audit of all twelve in a pass of its own, Great Expectations, cuallee; then a
complete ingestion and a plain append; then the ingestion of one file into a small table and into a
large one.
"""

import argparse
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import rivals
from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject
from lakegate.report import AuditReport, Verdict
from spark_jobs import main as job
from spark_jobs.audit import tiers
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg, step_metrics
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import open_session, session_settings
from spark_jobs.storage import Storage
from tests.services import Services, fresh_session, services, warm_spark

_RESULT = Path("build/bench-audit.json")
_CONTRACT = f"""
kind: DataContract
apiVersion: v3.1.0
id: bench
version: 1.0.0
status: active
customProperties: [{{property: landingPrefix, value: bench/}}]
schema:
  - name: TABLE
    logicalType: object
    quality:
      - {{metric: rowCount, mustBeBetween: [1, {rivals.MOST_ROWS}]}}
      - {{metric: duplicateValues, arguments: {{properties: [shop, receipt]}}, mustBe: 0}}
    properties:
      - {{name: id, logicalType: integer, required: true, unique: true}}
      - name: email
        logicalType: string
        required: true
        unique: true
        logicalTypeOptions: {{pattern: "{rivals.EMAIL}"}}
      - name: status
        logicalType: string
        required: true
        quality:
          - metric: invalidValues
            arguments: {{validValues: [{", ".join(rivals.STATUSES)}]}}
            mustBe: 0
      - {{name: amount, logicalType: number, logicalTypeOptions: {{minimum: 0, maximum: 1000}}}}
      - {{name: pieces, logicalType: integer, logicalTypeOptions: {{minimum: 1, maximum: 100}}}}
      - {{name: code, logicalType: string, logicalTypeOptions: {{pattern: "{rivals.CODE}"}}}}
      - {{name: shop, logicalType: integer}}
      - {{name: receipt, logicalType: integer}}
"""
_TABLE, _FEW, _MANY = "bench.orders", "bench.few", "bench.many"


@dataclass(frozen=True)
class Cost:
    """The cost of one run: seconds, Spark jobs, rows read, bytes read, bytes shuffled."""

    seconds: float
    jobs: int
    rows: int
    read: int
    shuffled: int


@dataclass(frozen=True)
class Bench:
    """The services and the warm Spark that all runs share."""

    running: Services
    spark: SparkSession
    attempts: "count[int]"

    def ingest(self, landed: LandedObject, table: str) -> tuple[JobSpec, AuditReport]:
        """Ingest a file up to its report; the branch stays."""
        version = self.running.put_contract(table, _CONTRACT.replace("TABLE", table))
        spec = self.running.spec(landed, version, table, next(self.attempts))
        fresh_session(self.spark)
        job.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        if report is None or report.verdict is not Verdict.PASSED:
            raise RuntimeError(f"the benchmark's file was not published: {report}")
        return spec, report

    def publish(self, landed: LandedObject, table: str) -> None:
        """Ingest a file and publish it."""
        _, report = self.ingest(landed, table)
        self.running.catalog.merge(
            report.branch, report.audited_hash, report.base_hash, "Publish", {"bench": "1"}
        )
        self.running.catalog.delete_branch(report.branch)

    def append(self, landed: LandedObject, table: str) -> None:
        """Append the same file to main by Spark alone."""
        session = self.on_main()
        session.read.parquet(f"s3a://{landed.bucket}/{landed.key}").writeTo(
            f"lake.{table}"
        ).append()

    def on_main(self) -> SparkSession:
        """Return a session whose catalog is main."""
        session = fresh_session(self.spark)
        spec = replace(_NOBODY, nessie_uri=self.running.nessie_uri)
        for name, value in session_settings(spec, self.running.tokens["publisher"]).items():
            session.conf.set(name, value)
        return session

    def cost(self, run: Callable[[], object]) -> Cost:
        """Return the cost of one run, with nothing cached by an earlier one."""
        self.spark.catalog.clearCache()
        before, begin = (
            step_metrics.work_since(self.spark, step_metrics.Work()),
            time.perf_counter(),
        )
        run()
        seconds = time.perf_counter() - begin
        done = step_metrics.work_since(self.spark, before)
        return Cost(
            seconds,
            done.jobs - before.jobs,
            done.rows - before.rows,
            done.bytes - before.bytes,
            done.shuffled - before.shuffled,
        )


_NOBODY = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "main", "", "", "", "", "", "", "")


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="rows of the large table")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        bench = Bench(running, warm_spark(running), count(1))
        landed = running.land("bench/orders.parquet", _file(options.rows))
        result = {
            "rows": options.rows,
            "audit": _beside_others(bench, landed, options.runs),
            "ingestion": _beside_append(bench, landed, options.runs),
            "growth": _growth(bench, options.large, options.runs),
        }
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {_RESULT}")


def _beside_others(bench: Bench, landed: LandedObject, runs: int) -> dict[str, object]:
    """Run all twelve checks over the new rows, none of them counted during the append."""
    spec, _ = bench.ingest(landed, _TABLE)
    storage = Storage.connect(spec)
    spark = open_session(spec, token := storage.nessie_token())
    table = iceberg.find_iceberg_table(spark, table_name(_TABLE))
    files, contract = tuple(iceberg.added_files(table)), storage.contract()

    def ours() -> None:
        measured = tiers.measure(Run(spark, spec, token, contract, table, files), {})
        held = [c.expect.met(measured[c.id].value, measured[c.id].rows) for c in contract.checks]
        if held != [True] * 12:
            raise RuntimeError(f"a check of the benchmark failed: {measured}")

    def theirs(rival: Callable[..., int]) -> Callable[[], None]:
        def run() -> None:
            held = rival(spark.table(table_name(_TABLE)))
            if held != 12:
                raise RuntimeError(f"only {held} checks of the benchmark passed")

        return run

    each = {
        "Lakegate": ours,
        "Great Expectations": theirs(rivals.great_expectations),
        "cuallee": theirs(rivals.cuallee),
    }
    costs = _alternating(bench, each, runs)
    seconds = {name: statistics.median(c.seconds for c in found) for name, found in costs.items()}
    others = min(seconds["Great Expectations"], seconds["cuallee"])
    print(f"faster of the others / Lakegate: {others / seconds['Lakegate']:.2f}")
    return {"costs": {n: _summary(n, found) for n, found in costs.items()}, "seconds": seconds}


def _beside_append(bench: Bench, landed: LandedObject, runs: int) -> dict[str, object]:
    each = {
        "plain append": lambda: bench.append(landed, _TABLE),
        "whole ingestion": lambda: bench.publish(landed, _TABLE),
    }
    bench.publish(landed, _TABLE)  # makes the table
    costs = _alternating(bench, each, runs)
    plain, whole = costs.values()
    ratios = [w.seconds / p.seconds for p, w in zip(plain, whole, strict=True)]
    print(f"whole ingestion / plain append: {statistics.median(ratios):.2f}")
    shown = {name: _summary(name, found) for name, found in costs.items()}
    return {"costs": shown, "ratio": statistics.median(ratios)}


def _growth(bench: Bench, large: int, runs: int) -> dict[str, object]:
    """Ingest a file of 10,000 rows into a table of as many and into a large one."""
    landed = bench.running.land("bench/small.parquet", _file(10_000))
    for table, rows in ((_FEW, 10_000), (_MANY, large)):
        bench.publish(bench.running.land(f"bench/{table}.parquet", _file(10_000)), table)
        _fill(bench, table, rows)
    each = {
        "into the small table": lambda: bench.ingest(landed, _FEW),
        "into the large table": lambda: bench.ingest(landed, _MANY),
    }
    costs = _alternating(bench, each, runs)
    few, many = costs.values()
    ratios = [m.seconds / f.seconds for f, m in zip(few, many, strict=True)]
    print(f"large / small: {statistics.median(ratios):.2f}")
    shown = {name: _summary(name, found) for name, found in costs.items()}
    return {"costs": shown, "ratio": statistics.median(ratios), "large": large}


def _fill(bench: Bench, table: str, rows: int) -> None:
    session = bench.on_main()
    copies = max(1, rows // 10_000)
    grown = session.table(f"lake.{table}").crossJoin(session.range(copies).select())
    grown.repartition(2).writeTo(f"lake.{table}").append()


def _alternating(
    bench: Bench, each: Mapping[str, Callable[[], object]], runs: int
) -> dict[str, list[Cost]]:
    """Return the costs of all, in turn, so that noise meets all alike; the first is a warm-up."""
    costs: dict[str, list[Cost]] = {name: [] for name in each}
    for turn in range(runs + 1):
        for name, run in each.items():
            cost = bench.cost(run)
            if turn:
                costs[name].append(cost)
    return costs


def _summary(name: str, costs: Sequence[Cost]) -> dict[str, float]:
    seconds = statistics.median(cost.seconds for cost in costs)
    last = costs[-1]
    print(
        f"{name:>20}: {seconds:6.2f} s, {last.jobs:3} jobs, {last.rows:>12,} rows and "
        f"{last.read / 1e6:6.1f} MB read, {last.shuffled / 1e6:6.1f} MB shuffled",
        flush=True,
    )
    return {
        "seconds": seconds,
        "jobs": last.jobs,
        "rows": last.rows,
        "read": last.read,
        "shuffled": last.shuffled,
    }


def _file(rows: int) -> bytes:
    """Return a Parquet file that passes all twelve checks."""
    random = np.random.default_rng(rows)
    ids = np.arange(rows)
    columns = {
        "id": random.permutation(ids),
        "email": [f"u{n}@example.org" for n in random.permutation(ids)],
        "status": np.array(rivals.STATUSES)[random.integers(0, 4, rows)],
        "amount": random.uniform(0, 1000, rows),
        "pieces": random.integers(1, 101, rows),
        "code": [f"AB-{n}" for n in random.integers(0, 10_000, rows)],
        "shop": ids % 1000,
        "receipt": ids // 1000,
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


if __name__ == "__main__":
    main()
