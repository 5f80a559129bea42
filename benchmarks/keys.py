"""Measure the check of a key that must be unique in the whole table.

`python -m benchmarks.keys [--rows N] [--runs N]`: a file of 20,002 rows, two of whose keys the
table has, is audited; for comparison the whole table is grouped. Both run in turn in a warm Spark.
"""

import argparse
import io
import json
import statistics
import tempfile
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject
from lakegate.report import AuditReport, Step
from spark_jobs import main as job
from spark_jobs.spark.session import session_settings
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.storage import Storage
from tests.services import Services, fresh_session, services, warm_spark

_RESULT = Path("build/bench-keys.json")
_BATCH, _FILES = 20_000, 8
_LOGICAL = {"bigint": "integer", "string": "string"}
_NOBODY = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "", "", "", "", "", "", "", "")
_CONTRACT = """
kind: DataContract
apiVersion: v3.1.0
id: keys
version: 1.0.0
schema:
  - name: TABLE
    properties:
      - name: key
        logicalType: TYPE
        quality:
          - metric: duplicateValues
            mustBe: CLASHES
            customProperties: [{property: scope, value: table}]
      - {name: rest, logicalType: string}
"""


@dataclass(frozen=True)
class Case:
    """A table whose row number `id` has `key`, and a file with the keys `new`, in Spark SQL.

    The file has a row for each id from `first` on, and `clashes` with the table's own keys.
    """

    name: str
    table: str
    type: str
    key: str
    new: str
    first: int
    clashes: int = 2


@dataclass(frozen=True)
class Bench:
    """The services, the warm Spark, and a number for each file."""

    running: Services
    spark: SparkSession
    numbers: "count[int]"

    def on(self, branch: str) -> SparkSession:
        """Return a session whose catalog is a branch, with the publisher's rights."""
        session = fresh_session(self.spark)
        spec = replace(_NOBODY, branch=branch, nessie_uri=self.running.nessie_uri)
        for name, value in session_settings(spec, self.running.tokens["publisher"]).items():
            session.conf.set(name, value)
        return session

    def fill(self, case: Case, rows: int) -> None:
        """Make the case's table, in files that follow each other by id."""
        session = self.on("main")
        session.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
        session.sql(f"CREATE TABLE lake.{case.table} (key {case.type}, rest string) USING iceberg")
        rest = F.sha2(F.col("id").cast("string"), 256).alias("rest")
        made = session.range(0, rows, 1, _FILES).select(F.expr(case.key).alias("key"), rest)
        made.writeTo(f"lake.{case.table}").option("distribution-mode", "none").append()

    def land(self, case: Case) -> LandedObject:
        """Land a file of new keys and of those that clash."""
        ids = self.spark.range(case.first, case.first + _BATCH).select(F.expr(case.new))
        known = self.spark.range(case.first, case.first + case.clashes)
        values = [row[0] for row in ids.union(known.select(F.expr(case.key))).collect()]
        file = io.BytesIO()
        pq.write_table(pa.table({"key": values, "rest": ["x"] * len(values)}), file)
        return self.running.land(f"{case.table.replace('.', '/')}/file", file.getvalue())

    def audit(self, case: Case, landed: LandedObject) -> AuditReport:
        """Ingest a file up to its report; the branch stays."""
        text = _CONTRACT.replace("TABLE", case.table).replace("TYPE", _LOGICAL[case.type])
        text = text.replace("CLASHES", str(case.clashes))
        version = self.running.put_contract(case.table, text)
        spec = self.running.spec(landed, version, case.table, next(self.numbers))
        fresh_session(self.spark)
        job.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        if report is None or report.failed:
            raise RuntimeError(f"the benchmark's own file is not audited right: {report}")
        return report


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the tables")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    options = parser.parse_args()
    rows, half = options.rows, options.rows // 2
    integer = ("bigint", "2 * id", "2 * id + 1")
    text = ("string", "md5(string(id))", "md5(string(-id - 1))")
    cases = [
        Case("above all keys", "bench.above", *integer, rows, 0),
        Case("within one file's keys", "bench.within", *integer, half),
        Case("random keys", "bench.random", *text, half),
    ]
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        bench = Bench(running, warm_spark(running), count(1))
        result = {case.name: _compared(bench, case, rows, options.runs) for case in cases}
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {_RESULT}")


def _compared(bench: Bench, case: Case, rows: int, runs: int) -> dict[str, object]:
    """Compare the audit of the case's file with a group-by, in turn, after a warm-up."""
    bench.fill(case, rows)
    landed = bench.land(case)
    audits, plain = [], []
    for turn in range(runs + 1):
        report = bench.audit(case, landed)
        spent = _plainly(bench, case, report)
        if turn:
            audits.append(next(step for step in report.steps if step.name == "audit"))
            plain.append(spent)
    ratio = statistics.median(a.seconds / p.seconds for a, p in zip(audits, plain, strict=True))
    print(f"{case.name}: {ratio:.2f} of a group-by; tier {report.checks[-1].tier}")
    for name, steps in (("audit", audits), ("plain", plain)):
        seconds, last = statistics.median(step.seconds for step in steps), steps[-1]
        print(
            f"  {name}: {seconds:.2f} s, {last.jobs} jobs, {last.rows:,} rows and "
            f"{last.bytes / 1e6:.1f} MB read, {last.shuffled / 1e6:.1f} MB shuffled",
            flush=True,
        )
    return {"ratio": ratio, "audit": [*map(asdict, audits)], "plain": [*map(asdict, plain)]}


def _plainly(bench: Bench, case: Case, report: AuditReport) -> Step:
    """Group the whole table, with the file's rows in it, by the key."""
    table = bench.on(report.branch).table(f"lake.{case.table}")
    meter = Meter(bench.spark)
    with meter.step("plain"):
        found = table.groupBy("key").count().where("count > 1").count()
    if found != case.clashes:
        raise RuntimeError(f"{found} keys are repeated, not {case.clashes}")
    return meter.steps[0]


if __name__ == "__main__":
    main()
