"""Data files that no table knows yet: somebody else enters them into theirs.

They are written where they stay, and nothing is renamed or deleted: a job may do neither.
"""

import json
import uuid
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakegate.report import DataFile
from spark_jobs.iceberg import described
from spark_jobs.jvm import java_class

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
