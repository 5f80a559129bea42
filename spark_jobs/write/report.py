"""Build the audit report, and write the data files that belong to it."""

import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import __version__ as spark_version
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.audit_tables import QUARANTINE, RESULTS, HistoryTable, of_run, results, run_id
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.refusals import RightMissing
from lakegate.report import READABLE, AuditReport, DataFile, Reason, Verdict
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.files.text.text_lines import LINE
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import explain
from spark_jobs.spark.iceberg import data_file
from spark_jobs.spark.jvm import java_class
from spark_jobs.spark.step_metrics import Meter, now


def errored(spec: JobSpec, error: Permanent | RightMissing) -> AuditReport:
    """Return the report of a run that could not read or write its file."""
    reason = Reason(error.code, error.message)
    return report(spec, None, None, verdict=Verdict.ERRORED, reason=reason)


def report(
    spec: JobSpec, meter: Meter | None, contract: Contract | None, **found: Any
) -> AuditReport:
    """Return the report of a run with the fields `found`."""
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


# Data files without a table: the publisher registers them later. The job writes them in their final
# place, because it may neither rename nor delete.

_ICEBERG = "org.apache.iceberg"
_ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}


def parquet_bytes(table: HistoryTable, rows: Sequence[Mapping[str, Any]], run_ts: str) -> bytes:
    """Return rows as a Parquet file with Iceberg's field ids; all rows get the time `run_ts`."""
    moment = {"run_ts": datetime.fromisoformat(run_ts)}
    made = pa.Table.from_pylist([{**row, **moment} for row in rows], _arrow_schema(table))
    out = BytesIO()
    pq.write_table(made, out, compression="zstd", store_schema=False)
    return out.getvalue()


def write_files(rows: DataFrame, schema: str, folder: str, table: Any) -> list[DataFile]:
    """Write rows as Parquet files into a folder (s3://), with Iceberg's field ids.

    `schema` is Iceberg's schema as JSON. The files are written with the access that `table` has.
    Iceberg does the same when it rewrites files: a write to a name in its table cache is not
    committed.
    """
    load = partial(java_class, rows.sparkSession)
    name = uuid.uuid4().hex
    metadata = load(f"{_ICEBERG}.TableMetadataParser").fromJson(_metadata(schema, folder, name))
    locations = load(f"{_ICEBERG}.LocationProviders").locationsFor(folder, metadata.properties())
    operations = load(f"{_ICEBERG}.StaticTableOperations")(metadata, table.io(), locations)
    staging = load(f"{_ICEBERG}.BaseTable")(operations, name)
    cache = load(f"{_ICEBERG}.spark.SparkTableCache").get()
    coordinator = load(f"{_ICEBERG}.spark.FileRewriteCoordinator").get()
    cache.add(name, staging)
    try:
        rows.write.format("iceberg").mode("append").save(name)
        return [data_file(file) for file in coordinator.fetchNewFiles(staging, name)]
    finally:
        coordinator.clearRewrite(staging, name)
        cache.remove(name)


def _metadata(schema: str, folder: str, table: str) -> str:
    """Return the metadata of an empty table with this schema (Iceberg specification)."""
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


# Files for the audit history: the job may not write main's tables, so it writes Parquet under their
# place in the lake and names the files in its report. The publisher registers them.


def with_results(storage: Storage, report: AuditReport) -> AuditReport:
    """Write the report's rows for RESULTS to a file; return the report with that file.

    Raises Transient when it cannot be written.
    """
    key = f"{_prefix(RESULTS, storage)}.parquet"
    rows = list(results(report))
    body = parquet_bytes(RESULTS, rows, report.started_at)
    storage.put(key, body)
    file = DataFile(storage.address(key), len(rows), len(body))
    return replace(report, records=(*report.records, file))


def write_quarantine(
    storage: Storage, rows: DataFrame | Unparseable, started_at: str, table: Any
) -> tuple[DataFile, ...]:
    """Write rows that stay out of `table`: `row` as text, and `reasons`, the ids of checks.

    Raises LakegateError as `explain` returns it.
    """
    spec = storage.spec
    same = {**of_run(spec.ingestion, spec.attempt, spec.table, spec.landed.uri)}
    if isinstance(rows, list):
        moment = {"run_ts": datetime.fromisoformat(started_at)}
        return (_put_unreadable(storage, rows, {**same, **moment, "reasons": [READABLE]}),)
    columns = [F.lit(value).alias(name) for name, value in same.items()]
    moment_column = F.lit(started_at).cast("timestamp").alias("run_ts")
    made = rows.select(*columns, moment_column, "row", "reasons")
    folder = storage.address(_prefix(QUARANTINE, storage))
    try:
        return tuple(write_files(made, QUARANTINE.file_schema, folder, table))
    except jvm.JavaError as error:
        raise explain(error, "the rows for quarantine cannot be written") from error


def _put_unreadable(storage: Storage, rows: Unparseable, same: Mapping[str, Any]) -> DataFile:
    """Write the texts of unparseable rows to a file, each with the same values beside it."""
    schema, out = _arrow_schema(QUARANTINE), BytesIO()
    options = {"compression": "zstd", "store_schema": False, "use_dictionary": list(same)}
    with pq.ParquetWriter(out, schema, **options) as writer:
        for texts in (each[LINE] for each in rows):
            columns = [
                texts if name == "row" else pa.repeat(pa.scalar(same[name], type_), len(texts))
                for name, type_ in zip(schema.names, schema.types, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))
    body, key = out.getvalue(), f"{_prefix(QUARANTINE, storage)}.parquet"
    storage.put(key, body)
    return DataFile(storage.address(key), sum(map(len, rows)), len(body))


def _arrow_schema(table: HistoryTable) -> pa.Schema:
    """Return the types of an audit table's data files, with Iceberg's field ids."""
    return pa.schema(
        _arrow_field(each["name"], each["type"], each["id"])
        for each in json.loads(table.file_schema)["fields"]
    )


def _arrow_field(name: str, type_: Any, number: int) -> pa.Field:
    made = _ARROW[type_] if isinstance(type_, str) else _arrow_list(type_)
    return pa.field(name, made, metadata={"PARQUET:field_id": str(number)})


def _arrow_list(type_: Mapping[str, Any]) -> pa.DataType:
    return pa.list_(_arrow_field("element", type_["element"], type_["element-id"]))


def _prefix(table: HistoryTable, storage: Storage) -> str:
    """Return the prefix of the keys of this try's files, which names the run."""
    spec = storage.spec
    run = run_id(spec.ingestion, spec.attempt)
    address = f"{table.files(spec.lake_bucket)}{run}-{secrets.token_hex(4)}"
    return address.removeprefix(storage.address(""))
