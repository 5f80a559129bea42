"""Write the rows of a run that stay out of its table, for the table of quarantined rows."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.audit.audit_tables import QUARANTINE, run_values
from lakegate.audit.report import READABLE, DataFile
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from spark_jobs.audit import check_sql
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.files.source import BAD_ROW
from spark_jobs.files.text.text_lines import LINE
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import explain
from spark_jobs.spark.iceberg import data_file
from spark_jobs.spark.jvm import java_class
from spark_jobs.write.history_files import arrow_schema, new_prefix

_ICEBERG = "org.apache.iceberg"


@dataclass(frozen=True)
class Quarantine:
    """The files of a run, begun at `started_at` (ISO 8601), with the rows that stay out."""

    storage: Storage
    started_at: str

    def write(self, rows: DataFrame, table: Any) -> tuple[DataFile, ...]:
        """Write rows that stay out of `table`: `row` as text, and `reasons`, the ids of checks.

        Raises LakegateError as `explain` returns it.
        """
        columns = [F.lit(value).alias(name) for name, value in self._run_values.items()]
        moment = F.lit(self.started_at).cast("timestamp").alias("run_ts")
        made = rows.select(*columns, moment, "row", "reasons")
        folder = self.storage.address(new_prefix(QUARANTINE, self.storage))
        try:
            return tuple(_write_files(made, QUARANTINE.file_schema, folder, table))
        except jvm.JavaError as error:
            raise explain(error, "the rows for quarantine cannot be written") from error

    def write_unparseable(self, rows: Unparseable) -> DataFile:
        """Write unparseable rows, each as it stands in its file; return the file.

        Raises LakegateError where it cannot be put.
        """
        moment = datetime.fromisoformat(self.started_at)
        same = {**self._run_values, "run_ts": moment, "reasons": [READABLE]}
        schema = arrow_schema(QUARANTINE)
        options = {"compression": "zstd", "store_schema": False, "use_dictionary": list(same)}
        address = self.storage.address(f"{new_prefix(QUARANTINE, self.storage)}.parquet")
        with self.storage.new_object(address) as sink:
            with pq.ParquetWriter(sink, schema, **options) as writer:
                for texts in (each[LINE] for each in rows):
                    writer.write_table(_with_same(texts, same, schema))
            size = sink.tell()
        return DataFile(address, sum(map(len, rows)), size)

    @property
    def _run_values(self) -> Mapping[str, Any]:
        spec = self.storage.spec
        return run_values(spec.ingestion, spec.attempt, spec.table, spec.landed.uri)


def _with_same(texts: Any, same: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return rows of texts, each with the same values beside it."""
    columns = [
        texts if name == "row" else pa.repeat(pa.scalar(same[name], type_), len(texts))
        for name, type_ in zip(schema.names, schema.types, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _write_files(rows: DataFrame, schema: str, folder: str, table: Any) -> list[DataFile]:
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


def quarantine_condition(contract: Contract, *, nulled: bool = False) -> str:
    """Return the condition for rows to quarantine, in Spark SQL; "" where none can be.

    Unparseable rows are quarantined unless such cells become null (`nulled`).
    """
    return " OR ".join(reason for _, reason in _reasons(contract, nulled=nulled))


def quarantined_rows(rows: DataFrame, contract: Contract, *, nulled: bool = False) -> DataFrame:
    """Return the rows to quarantine: `row`, as JSON or as it stands in the file, and `reasons`.

    `reasons` are the ids of the checks that a row breaks.
    """
    reasons_of = _reasons(contract, nulled=nulled)
    named = [f"CASE WHEN {test} THEN {check_sql.string(id_)} END" for id_, test in reasons_of]
    reasons = f"array_compact(array({', '.join(named)}))"
    columns = F.struct(*[F.col(quoted(column.name)) for column in contract.columns])
    row = F.coalesce(F.col(BAD_ROW), F.to_json(columns))
    broken = rows.where(F.expr(quarantine_condition(contract, nulled=nulled)))
    return broken.select(row.alias("row"), F.expr(reasons).alias("reasons"))


def _reasons(contract: Contract, *, nulled: bool) -> list[tuple[str, str]]:
    """Return the checks that quarantine rows: the id of each, and its condition."""
    bad = [] if nulled else [(READABLE, f"{quoted(BAD_ROW)} IS NOT NULL")]
    checks = [check for check in contract.checks if check.quarantine]
    return [*bad, *((check.id, check_sql.counts_row(check, contract)) for check in checks)]
