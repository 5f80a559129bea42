"""Measure the check of a key that must be unique in the whole table.

`python -m benchmarks.keys [--rows N] [--runs N] [--only PART]`: a file of 20,002 rows, two of whose
keys the table has, is audited; for comparison the whole table is grouped. Both run in turn in a
warm Spark. `--only random` measures one case, as with 40,000,000 rows, which take some minutes.
"""

import argparse
from dataclasses import dataclass
from functools import partial

import duckdb
from pyspark.sql import functions as F

from benchmarks.costs import Bench, bench, ratio, shown
from benchmarks.results import parquet, written
from lakegate.audit.report import AuditReport
from lakegate.job.landing import LandedObject

_BATCH, _FILES = 20_000, 8
_LOGICAL = {"bigint": "integer", "string": "string"}
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
    """A table whose row number `id` has `key`, and a file with the keys `new`, in SQL.

    The file has a row for each id from `first` on, and `clashes` with the table's own keys.
    """

    name: str
    table: str
    type: str
    key: str
    new: str
    first: int
    clashes: int = 2


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the tables")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    parser.add_argument("--only", default="", help="a part of the cases' names")
    options = parser.parse_args()
    rows, half = options.rows, options.rows // 2
    integer = ("bigint", "2 * id", "2 * id + 1")
    text = ("string", "md5(CAST(id AS string))", "md5(CAST(-id - 1 AS string))")
    cases = [
        Case("above all keys", "bench.above", *integer, rows, 0),
        Case("within one file's keys", "bench.within", *integer, half),
        Case("random keys", "bench.random", *text, half),
    ]
    with bench() as started:
        figures = {
            case.name: _compared(started, case, rows, options.runs)
            for case in cases
            if options.only in case.name
        }
    written("bench-keys", {"rows": rows, **figures})


def _compared(bench: Bench, case: Case, rows: int, runs: int) -> dict[str, object]:
    """Compare the audit of the case's file with a group-by, in turn, after a warm-up."""
    _fill(bench, case, rows)
    landed, version = _land(bench, case), bench.running.put_contract(case.table, _contract(case))
    pairs = []
    for _ in range(runs + 1):
        _, report = bench.ingest(landed, case.table, version)
        audit = next(step for step in report.steps if step.name == "audit")
        pairs.append((audit, bench.cost(partial(_group, bench, case, report))))
    found = ratio(pairs[1:])
    print(f"{case.name}: {found:.2f} of a group-by; tier {report.checks[-1].tier}")
    audits, plain = zip(*pairs[1:], strict=True)
    return {"ratio": found, "audit": shown("audit", audits), "plain": shown("plain", plain)}


def _fill(bench: Bench, case: Case, rows: int) -> None:
    """Make the case's table, in files that follow each other by id: DuckDB makes the rows."""
    session = bench.on("main")
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.bench")
    session.sql(f"CREATE TABLE lake.{case.table} (key {case.type}, rest string) USING iceberg")
    table = bench.running.at("main").load_table(case.table)
    step = rows // _FILES
    for begin in range(0, rows, step):
        ids = f"range({begin}, {begin + step}) ids(id)"
        with duckdb.connect() as database:
            made = database.sql(f"SELECT {case.key} AS key, CAST(id AS string) AS rest FROM {ids}")
            table.append(made.to_arrow_table())


def _land(bench: Bench, case: Case) -> LandedObject:
    """Land a file of new keys and of those that clash."""
    ids = bench.spark.range(case.first, case.first + _BATCH).select(F.expr(case.new))
    known = bench.spark.range(case.first, case.first + case.clashes)
    values = [row[0] for row in ids.union(known.select(F.expr(case.key))).collect()]
    body = parquet({"key": values, "rest": ["x"] * len(values)})
    return bench.running.land(f"{case.table.replace('.', '/')}/file", body)


def _contract(case: Case) -> str:
    text = _CONTRACT.replace("TABLE", case.table).replace("TYPE", _LOGICAL[case.type])
    return text.replace("CLASHES", str(case.clashes))


def _group(bench: Bench, case: Case, report: AuditReport) -> None:
    """Group the whole table, with the file's rows in it, by the key."""
    table = bench.on(report.branch).table(f"lake.{case.table}")
    found = table.groupBy("key").count().where("count > 1").count()
    if found != case.clashes:
        raise RuntimeError(f"{found} keys are repeated, not {case.clashes}")


if __name__ == "__main__":
    main()
