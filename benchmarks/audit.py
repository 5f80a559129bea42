"""Measure the audit: twelve checks on a million rows, compared with other libraries.

`python -m benchmarks.audit [--rows N] [--runs N]`: in one warm Spark, in turn, over the same rows:
Great Expectations, cuallee, the audit by Spark in a pass of its own, the audit by Arrow; then a
complete ingestion and a plain append; then the ingestion of one file into a small table and into a
large one.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import great_expectations as gx
import numpy as np
from cuallee import Check, CheckLevel
from pyspark.sql import DataFrame

from benchmarks.costs import Bench, Work, bench
from benchmarks.results import parquet, written
from lakegate.job.landing import LandedObject
from spark_jobs.audit import tiers
from spark_jobs.audit.run import Measured, Run
from spark_jobs.lake.storage import Storage
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import open_session

_STATUSES = ("NEW", "PAID", "SHIPPED", "DONE")
_EMAIL, _CODE = "^[^@ ]+@[^@ ]+$", "^[A-Z]{2}-[0-9]+$"
_MOST_ROWS = 10_000_000
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
      - {{metric: rowCount, mustBeBetween: [1, {_MOST_ROWS}]}}
      - {{metric: duplicateValues, arguments: {{properties: [shop, receipt]}}, mustBe: 0}}
    properties:
      - {{name: id, logicalType: integer, required: true, unique: true}}
      - name: email
        logicalType: string
        required: true
        unique: true
        logicalTypeOptions: {{pattern: "{_EMAIL}"}}
      - name: status
        logicalType: string
        required: true
        quality:
          - metric: invalidValues
            arguments: {{validValues: [{", ".join(_STATUSES)}]}}
            mustBe: 0
      - {{name: amount, logicalType: number, logicalTypeOptions: {{minimum: 0, maximum: 1000}}}}
      - {{name: pieces, logicalType: integer, logicalTypeOptions: {{minimum: 1, maximum: 100}}}}
      - {{name: code, logicalType: string, logicalTypeOptions: {{pattern: "{_CODE}"}}}}
      - {{name: shop, logicalType: integer}}
      - {{name: receipt, logicalType: integer}}
"""
_TABLE, _FEW, _MANY = "bench.orders", "bench.few", "bench.many"


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="rows of the large table")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    options = parser.parse_args()
    with bench() as started:
        landed = started.running.land("bench/orders.parquet", _file(options.rows))
        result = {
            "rows": options.rows,
            "audit": _beside_others(started, landed, options.runs),
            "ingestion": _beside_append(started, landed, options.runs),
            "growth": _growth(started, options.large, options.runs),
            "large": options.large,
        }
    written("bench-audit", result)


def _contract(bench: Bench, table: str) -> str:
    """Put the table's contract into the lake and return its version."""
    return bench.running.put_contract(table, _CONTRACT.replace("TABLE", table))


def _beside_others(bench: Bench, landed: LandedObject, runs: int) -> dict[str, object]:
    """Run all twelve checks over the rows, none of them counted during an append.

    Lakegate's own way requests the landed file and decodes it; the others read the table's file.
    """
    spec, _ = bench.ingest(landed, _TABLE, _contract(bench, _TABLE))
    storage = Storage.connect(spec)
    spark = open_session(spec, token := storage.nessie_token())
    table = iceberg.find_iceberg_table(spark, table_name(_TABLE))
    files, contract = tuple(iceberg.added_files(table)), storage.contract()

    def by_arrow() -> Mapping[str, Measured]:
        return prepared(storage, contract, spec.limits).examined().measured

    def by_spark() -> Mapping[str, Measured]:
        return tiers.measure(Run(spark, spec, token, contract, table, files), {})

    def held(measure: Callable[[], Mapping[str, Measured]]) -> None:
        measured = measure()
        met = [c.expect.met(measured[c.id].value, measured[c.id].rows) for c in contract.checks]
        if met != [True] * 12:
            raise RuntimeError(f"a check of the benchmark failed: {measured}")

    def theirs(rival: Callable[[DataFrame], int]) -> None:
        held = rival(spark.table(table_name(_TABLE)))
        if held != 12:
            raise RuntimeError(f"only {held} checks of the benchmark passed")

    each: dict[str, Work] = {
        "Great Expectations": partial(theirs, _great_expectations),
        "cuallee": partial(theirs, _cuallee),
        "Lakegate in Spark": partial(held, by_spark),
        "Lakegate": partial(held, by_arrow),
    }
    return bench.compared(each, runs)


def _beside_append(bench: Bench, landed: LandedObject, runs: int) -> dict[str, object]:
    publish = partial(bench.publish, landed, _TABLE, _contract(bench, _TABLE))
    publish()  # makes the table
    plain = partial(bench.append, landed, _TABLE)
    return bench.compared({"plain append": plain, "whole ingestion": publish}, runs)


def _growth(bench: Bench, large: int, runs: int) -> dict[str, object]:
    """Ingest a file of 10,000 rows into a table of as many and into a large one."""
    landed = bench.running.land("bench/small.parquet", _file(10_000))
    versions = {table: _contract(bench, table) for table in (_FEW, _MANY)}
    for table, rows in ((_FEW, 10_000), (_MANY, large)):
        bench.publish(landed, table, versions[table])
        _fill(bench, table, rows)
    each = {
        "into the small table": partial(bench.ingest, landed, _FEW, versions[_FEW]),
        "into the large table": partial(bench.ingest, landed, _MANY, versions[_MANY]),
    }
    return bench.compared(each, runs)


def _fill(bench: Bench, table: str, rows: int) -> None:
    session = bench.on("main")
    copies = max(1, rows // 10_000)
    grown = session.table(f"lake.{table}").crossJoin(session.range(copies).select())
    grown.repartition(2).writeTo(f"lake.{table}").append()


def _file(rows: int) -> bytes:
    """Return a Parquet file that passes all twelve checks."""
    random = np.random.default_rng(rows)
    ids = np.arange(rows)
    return parquet(
        {
            "id": random.permutation(ids),
            "email": [f"u{n}@example.org" for n in random.permutation(ids)],
            "status": np.array(_STATUSES)[random.integers(0, 4, rows)],
            "amount": random.uniform(0, 1000, rows),
            "pieces": random.integers(1, 101, rows),
            "code": [f"AB-{n}" for n in random.integers(0, 10_000, rows)],
            "shop": ids % 1000,
            "receipt": ids // 1000,
        }
    )


def _great_expectations(rows: DataFrame) -> int:
    """Return how many of the twelve checks hold."""
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("bench").add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows})
    e = gx.expectations
    suite = gx.ExpectationSuite(
        name="twelve",
        expectations=[
            *(e.ExpectColumnValuesToNotBeNull(column=name) for name in ("id", "email", "status")),
            e.ExpectColumnValuesToBeInSet(column="status", value_set=list(_STATUSES)),
            e.ExpectColumnValuesToBeBetween(column="amount", min_value=0, max_value=1000),
            e.ExpectColumnValuesToBeBetween(column="pieces", min_value=1, max_value=100),
            e.ExpectColumnValuesToMatchRegex(column="email", regex=_EMAIL),
            e.ExpectColumnValuesToMatchRegex(column="code", regex=_CODE),
            e.ExpectColumnValuesToBeUnique(column="id"),
            e.ExpectColumnValuesToBeUnique(column="email"),
            e.ExpectCompoundColumnsToBeUnique(column_list=["shop", "receipt"]),
            e.ExpectTableRowCountToBeBetween(min_value=1, max_value=_MOST_ROWS),
        ],
    )
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return sum(each.success for each in result.results)


def _cuallee(rows: DataFrame) -> int:
    """Return how many of the twelve checks hold."""
    check = Check(CheckLevel.ERROR, "twelve")
    for name in ("id", "email", "status"):
        check.is_complete(name)
    check.is_contained_in("status", _STATUSES)
    check.is_between("amount", (0.0, 1000.0)).is_between("pieces", (1, 100))
    check.has_pattern("email", _EMAIL).has_pattern("code", _CODE)
    check.is_unique("id").is_unique("email").are_unique(("shop", "receipt"))
    held = check.validate(rows).where("status = 'PASS'").count()
    return held + int(1 <= rows.count() <= _MOST_ROWS)


if __name__ == "__main__":
    main()
