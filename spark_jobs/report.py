"""The report of a run: what it was told, and what it found."""

import json
import secrets
import uuid
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.audit_tables import QUARANTINE, RESULTS, HistoryTable, of_run, results, run_id
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, DataFile, Reason, Verdict
from spark_jobs.errors import explain
from spark_jobs.spark import jvm
from spark_jobs.spark.iceberg import described
from spark_jobs.spark.jvm import java_class
from spark_jobs.spark.step_metrics import Meter, now
from spark_jobs.storage import Storage


def errored(spec: JobSpec, error: Permanent) -> AuditReport:
    """The report of a run that could not read or write its file."""
    reason = Reason(error.code, error.message)
    return report(spec, None, None, verdict=Verdict.ERRORED, reason=reason)


def report(
    spec: JobSpec, meter: Meter | None, contract: Contract | None, **found: Any
) -> AuditReport:
    """The report of a run, with what it `found`, if anything."""
    empty = AuditReport(
        ingestion=spec.ingestion,
        attempt=spec.attempt,
        verdict=Verdict.ERRORED,
        reason=None,
        table=spec.table,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash="",
        source=spec.landed,
        format=contract.format if contract else "",
        contract_id=contract.id if contract else "",
        contract_version=contract.version if contract else "",
        contract_sha256=contract.sha256 if contract else "",
        rows_written=0,
        transform=contract.transform if contract else "",
        checks=(),
        started_at=meter.started_at if meter else now(),
        finished_at=now(),
        steps=meter.steps if meter else (),
        engine={"spark": spark_version},
    )
    return replace(empty, **found)


# Data files that no table knows yet: somebody else enters them into theirs.
#
# They are written where they stay, and nothing is renamed or deleted: a job may do neither.

_ICEBERG = "org.apache.iceberg"
_JACKSON = "com.fasterxml.jackson.databind"


def parquet(spark: SparkSession, schema: str, rows: str, run_ts: str) -> bytes:
    """Rows as a Parquet file with Iceberg's field ids.

    `schema` is Iceberg's, `rows` a list of objects, both as JSON; all rows get the time `run_ts`.
    Whole numbers must be `long` in the schema.
    """
    known = partial(java_class, spark)
    columns = known(f"{_ICEBERG}.SchemaParser").fromJson(schema)
    row = known(f"{_ICEBERG}.data.GenericRecord").create(columns)
    row.setField("run_ts", known("java.time.OffsetDateTime").parse(run_ts))
    out = known(f"{_ICEBERG}.inmemory.InMemoryOutputFile")()
    factory = known(f"{_ICEBERG}.data.GenericAppenderFactory")(columns)
    appender = factory.newAppender(out, known(f"{_ICEBERG}.FileFormat").PARQUET)
    # In one go: each value handed over by itself would be a call of its own.
    mapper = known(f"{_JACKSON}.ObjectMapper")()
    mapper.configure(known(f"{_JACKSON}.DeserializationFeature").USE_LONG_FOR_INTS, True)
    for values in mapper.readValue(rows, known("java.lang.Class").forName("java.util.List")):
        appender.add(row.copy(values))
    appender.close()
    return bytes(out.toByteArray())


def write(rows: DataFrame, schema: str, folder: str, table: Any) -> list[DataFile]:
    """Write rows as Parquet files into a folder (s3://), with Iceberg's field ids.

    `schema` is Iceberg's, as JSON; it is written with the access that `table` has. As where Iceberg
    rewrites files: what is written for a table under a name in its cache is not committed to it.
    """
    known = partial(java_class, rows.sparkSession)
    name = uuid.uuid4().hex
    metadata = known(f"{_ICEBERG}.TableMetadataParser").fromJson(_metadata(schema, folder, name))
    places = known(f"{_ICEBERG}.LocationProviders").locationsFor(folder, metadata.properties())
    known_only = known(f"{_ICEBERG}.StaticTableOperations")(metadata, table.io(), places)
    nobodys = known(f"{_ICEBERG}.BaseTable")(known_only, name)
    cache = known(f"{_ICEBERG}.spark.SparkTableCache").get()
    staged = known(f"{_ICEBERG}.spark.FileRewriteCoordinator").get()
    cache.add(name, nobodys)
    try:
        rows.write.format("iceberg").mode("append").save(name)
        return [described(file) for file in staged.fetchNewFiles(nobodys, name)]
    finally:
        staged.clearRewrite(nobodys, name)
        cache.remove(name)


def _metadata(schema: str, folder: str, table: str) -> str:
    """A table that has such rows, and nothing in it (Iceberg specification, "Table Metadata")."""
    return json.dumps(
        {
            "format-version": 2,
            "table-uuid": str(uuid.UUID(table)),
            "location": folder,
            "last-sequence-number": 0,
            "last-updated-ms": 0,
            "last-column-id": 1000,
            "current-schema-id": 0,
            "schemas": [json.loads(schema)],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {"write.data.path": folder},
        }
    )


# What a run leaves for the tables of history: data files that the publisher enters into them.
#
# The job may not write main's tables. It writes Parquet under their place in the lake, and names
# the files in its report.


def with_results(spark: SparkSession, storage: Storage, report: AuditReport) -> AuditReport:
    """The report, with the file that holds its own rows in RESULTS, written now.

    Raises Transient when it cannot be written.
    """
    key = f"{_prefix(RESULTS, storage)}.parquet"
    rows = list(results(report))
    try:
        body = parquet(spark, RESULTS.file_schema, json.dumps(rows), report.started_at)
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
        return tuple(write(made, QUARANTINE.file_schema, folder, table))
    except jvm.JavaError as error:
        raise explain(error, "the rows for quarantine cannot be written") from error


def _prefix(table: HistoryTable, storage: Storage) -> str:
    """How the keys of this try's files begin, by which they are known to be the run's."""
    spec = storage.spec
    run = run_id(spec.ingestion, spec.attempt)
    address = f"{table.files(spec.lake_bucket)}{run}-{secrets.token_hex(4)}"
    return address.removeprefix(storage.address(""))
