"""What a run leaves for the tables of history: data files that the publisher enters into them.

The job may not write main's tables. It writes Parquet under their place in the lake, and names the
files in its report.
"""

import json
import secrets
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.history import QUARANTINE, RESULTS, HistoryTable, of_run, results, run_id
from lakegate.report import AuditReport, DataFile
from spark_jobs import iceberg, jvm
from spark_jobs.failures import explain
from spark_jobs.formats import footers
from spark_jobs.storage import Storage

_NO_MARKER = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


def with_results(spark: SparkSession, storage: Storage, report: AuditReport) -> AuditReport:
    """The report, with the file that holds its own rows in RESULTS, written now.

    Raises Transient when it cannot be written.
    """
    key = f"{_prefix(RESULTS, storage)}.parquet"
    rows = list(results(report))
    try:
        body = iceberg.parquet(spark, RESULTS.file_schema, json.dumps(rows), report.started_at)
    except jvm.JavaError as error:
        raise explain(error, "the run's results cannot be written") from error
    storage.put(key, body)
    file = DataFile(storage.address(key), len(rows), len(body))
    return replace(report, records=(*report.records, file))


def quarantined(storage: Storage, rows: DataFrame, started_at: str) -> tuple[DataFile, ...]:
    """Write rows that are kept out of the table: `row` as text and `reasons`, ids of checks.

    Raises LakegateError as `explain` has it.
    """
    spec = storage.spec
    folder = _prefix(QUARANTINE, storage)
    same = {**of_run(spec.ingestion, spec.attempt, spec.table, spec.landed.uri)}
    columns = [F.lit(value).alias(name) for name, value in same.items()]
    moment = F.lit(started_at).cast("timestamp").alias("run_ts")
    made = rows.select(*columns, moment, "row", "reasons")
    try:
        made.write.options(**_NO_MARKER).parquet(f"s3a://{spec.lake_bucket}/{folder}")
        found = [_described(rows.sparkSession, storage, *each) for each in storage.sizes(folder)]
    except jvm.JavaError as error:
        raise explain(error, "the rows for quarantine cannot be written") from error
    return tuple(file for file in found if file.rows)


def _described(spark: SparkSession, storage: Storage, key: str, size: int) -> DataFile:
    reader = footers.parquet_reader(spark, f"s3a://{storage.spec.lake_bucket}/{key}")
    try:
        return DataFile(storage.address(key), reader.getRecordCount(), size)
    finally:
        reader.close()


def _prefix(table: HistoryTable, storage: Storage) -> str:
    """How the keys of this try's files begin, by which they are known to be the run's."""
    spec = storage.spec
    run = run_id(spec.ingestion, spec.attempt)
    address = f"{table.files(spec.lake_bucket)}{run}-{secrets.token_hex(4)}"
    return address.removeprefix(storage.address(""))
