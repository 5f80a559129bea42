"""What a run leaves for the tables of history: data files that the publisher enters into them.

The job may not write main's tables. It writes Parquet under their place in the lake, and names the
files in its report.
"""

import json
import secrets
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.history import QUARANTINE, RESULTS, HistoryTable, of_run, results, run_id
from lakegate.report import AuditReport, DataFile
from spark_jobs import data_files, jvm
from spark_jobs.failures import explain
from spark_jobs.storage import Storage


def with_results(spark: SparkSession, storage: Storage, report: AuditReport) -> AuditReport:
    """The report, with the file that holds its own rows in RESULTS, written now.

    Raises Transient when it cannot be written.
    """
    key = f"{_prefix(RESULTS, storage)}.parquet"
    rows = list(results(report))
    try:
        body = data_files.parquet(spark, RESULTS.file_schema, json.dumps(rows), report.started_at)
    except jvm.JavaError as error:
        raise explain(error, "the run's results cannot be written") from error
    storage.put(key, body)
    file = DataFile(storage.address(key), len(rows), len(body))
    return replace(report, records=(*report.records, file))


def quarantined(
    storage: Storage, rows: DataFrame, started_at: str, table: Any
) -> tuple[DataFile, ...]:
    """Write rows that are kept out of `table`: `row` as text and `reasons`, ids of checks.

    Raises LakegateError as `explain` has it.
    """
    spec = storage.spec
    same = {**of_run(spec.ingestion, spec.attempt, spec.table, spec.landed.uri)}
    columns = [F.lit(value).alias(name) for name, value in same.items()]
    moment = F.lit(started_at).cast("timestamp").alias("run_ts")
    made = rows.select(*columns, moment, "row", "reasons")
    folder = storage.address(_prefix(QUARANTINE, storage))
    try:
        return tuple(data_files.write(made, QUARANTINE.file_schema, folder, table))
    except jvm.JavaError as error:
        raise explain(error, "the rows for quarantine cannot be written") from error


def _prefix(table: HistoryTable, storage: Storage) -> str:
    """How the keys of this try's files begin, by which they are known to be the run's."""
    spec = storage.spec
    run = run_id(spec.ingestion, spec.attempt)
    address = f"{table.files(spec.lake_bucket)}{run}-{secrets.token_hex(4)}"
    return address.removeprefix(storage.address(""))
