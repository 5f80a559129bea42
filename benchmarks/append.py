"""Compare a plain Spark append with the complete ingestion of the same file.

`python -m benchmarks.append [--rows N …] [--runs N]`: in one warm Spark, alternating, into one
table: Spark's own append of a Parquet file to main, and the complete ingestion of that file:
branch, job (read, append, audit of five checks, report), merge, branch deleted.
"""

import argparse
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakegate.jobspec import JobSpec
from lakegate.landing import LandedObject
from spark_jobs import main as job
from spark_jobs.spark.session import session_settings
from spark_jobs.storage import Storage
from tests.services import Services, fresh_session, services, warm_spark

_TABLE = "bench.readings"
_RESULT = Path("build/bench-append.json")
_CONTRACT = f"""
kind: DataContract
apiVersion: v3.1.0
id: bench
version: 1.0.0
status: active
schema:
  - name: {_TABLE}
    logicalType: object
    quality: [{{metric: rowCount, mustBeBetween: [1, 10000000]}}]
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: sensor, logicalType: string, logicalTypeOptions: {{pattern: "^s[0-9]+$"}}}}
      - name: value
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: 0, maximum: 1000}}
      - name: kind
        logicalType: string
        quality:
          - {{metric: invalidValues, arguments: {{validValues: [a, b, c]}}, mustBe: 0}}
"""


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        spark = warm_spark(running)
        results = [_compare(running, spark, rows, options.runs) for rows in options.rows]
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {_RESULT}")


def _compare(running: Services, spark: SparkSession, rows: int, runs: int) -> dict[str, object]:
    body = _file(rows)
    landed = running.land(f"bench/readings/{rows}.parquet", body)
    attempts = iter(range(1, 10_000))
    plain, whole = _plain(running, spark, landed), _whole(running, spark, landed)
    whole(next(attempts))  # makes the table, and warms up
    plain(0)
    pairs = [(plain(0), whole(next(attempts))) for _ in range(runs)]
    result = {
        "rows": rows,
        "bytes": len(body),
        "runs": runs,
        "plain_seconds": statistics.median(p for p, _ in pairs),
        "whole_seconds": statistics.median(w for _, w in pairs),
        "ratio": statistics.median(w / p for p, w in pairs),
        "ratios": [round(w / p, 3) for p, w in pairs],
    }
    print(
        f"{rows:>10,} rows: plain append {result['plain_seconds']:.2f} s, "
        f"whole ingestion {result['whole_seconds']:.2f} s, ratio {result['ratio']:.3f}",
        flush=True,
    )
    return result


def _plain(running: Services, spark: SparkSession, landed: LandedObject) -> Callable[[int], float]:
    """Return a function that times Spark's own append of the landed file to main."""
    spec = replace(_ON_MAIN, nessie_uri=running.nessie_uri)

    def run(_: int) -> float:
        begin = time.perf_counter()
        session = fresh_session(spark)
        for name, value in session_settings(spec, running.tokens["publisher"]).items():
            session.conf.set(name, value)
        file = session.read.parquet(f"s3a://{landed.bucket}/{landed.key}")
        file.writeTo(f"lake.{_TABLE}").append()
        return time.perf_counter() - begin

    return run


def _whole(running: Services, spark: SparkSession, landed: LandedObject) -> Callable[[int], float]:
    """Return a function that times the complete ingestion of the landed file."""
    version, catalog = running.put_contract(_TABLE, _CONTRACT), running.catalog

    def run(attempt: int) -> float:
        begin = time.perf_counter()
        spec = running.spec(landed, version, _TABLE, attempt)
        fresh_session(spark)
        code = job.main(spec.to_argument())
        report = Storage.connect(spec).finished_report()
        if code != 0 or report is None:
            raise SystemExit(f"the ingestion did not pass: {report}")
        catalog.merge(spec.branch, report.audited_hash, spec.base_hash, "publish", {})
        catalog.delete_branch(spec.branch)
        return time.perf_counter() - begin

    return run


def _file(rows: int) -> bytes:
    random = np.random.default_rng(1)
    columns = {
        "id": np.arange(rows),
        "sensor": [f"s{i}" for i in range(rows)],
        "value": random.random(rows) * 1000,
        "kind": random.choice(["a", "b", "c"], rows),
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


_ON_MAIN = JobSpec("", 1, LandedObject("", "", "", "", 0), "", "main", "", "", "", "", "", "", "")

if __name__ == "__main__":
    main()
