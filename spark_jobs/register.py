"""Make a landed Parquet file a data file of the branch's table, without writing its pages again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from spark_jobs.append import INGESTION, Opened, Target, committed
from spark_jobs.audit.arrow_values import ColumnStatistics
from spark_jobs.data_file import Field, scan_task
from spark_jobs.errors import explain
from spark_jobs.spark import iceberg
from spark_jobs.spark.jvm import JavaError, java_class, texts_of

_ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_METRICS = "org.apache.iceberg.MetricsConfig"
_SCAN_TASKS = "org.apache.iceberg.ScanTaskParser"


@dataclass(frozen=True)
class Layout:
    """How the files of a table are written.

    `fields` are the contract's columns in it, by the contract's names. `obstacle` is the reason why
    no file can be registered, "" without one.
    """

    fields: Mapping[str, Field]
    spec_id: int
    obstacle: str = ""

    @property
    def ids(self) -> dict[str, int]:
        """Return the columns' field ids."""
        return {name: field.id for name, field in self.fields.items()}


def layout(spark: SparkSession, table: Any, contract: Contract) -> Layout:
    """Return the layout of the branch's table, which has the contract's columns."""
    metrics = java_class(spark, _METRICS).forTable(table)
    schema = iceberg.written_schema(spark, table)
    there = {field["name"].lower(): field for field in schema["fields"]}
    fields = {}
    for column in contract.columns:
        found = there[column.name.lower()]
        mode = str(metrics.columnMode(found["name"]).toString())
        fields[column.name] = Field(found["id"], _written(found["type"]), mode)
    spec = table.spec()
    return Layout(fields, spec.specId(), _obstacle(table, spec, fields, contract))


def _written(type_: Any) -> str:
    """Return a type as Iceberg writes it in JSON, without spaces; "" for a nested one."""
    return type_.replace(" ", "") if isinstance(type_, str) else ""


def _obstacle(table: Any, spec: Any, fields: Mapping[str, Field], contract: Contract) -> str:
    properties = texts_of(table.properties())
    others = [
        column.name
        for column in contract.columns
        if fields[column.name].type != _ICEBERG_TYPES.get(column.type, column.type)
    ]
    reasons = {
        "the table is partitioned": not spec.fields().isEmpty(),
        "the table has a sort order": not table.sortOrder().isUnsorted(),
        "the table is not written as Parquet": (
            properties.get("write.format.default", "parquet").lower() != "parquet"
        ),
        "the table is encrypted": "encryption.key-id" in properties,
        f"the table has another type for {', '.join(others)}": bool(others),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def new_location(table: Any, name: str) -> str:
    """Return the address of a new data file, where the table keeps its files."""
    return str(table.locationProvider().newDataLocation(name))


def data_file(
    spark: SparkSession,
    where: Layout,
    location: str,
    size: int,
    rows: int,
    columns: Mapping[str, ColumnStatistics],
    metadata: Any,
) -> Any:
    """Return a file as a table's `org.apache.iceberg.DataFile`.

    `metadata` is the file's (`pyarrow.parquet.FileMetaData`).
    """
    task = scan_task(location, size, rows, where.fields, columns, metadata, where.spec_id)
    return java_class(spark, _SCAN_TASKS).fromJson(task, True).file()


def register(
    opened: Opened, files: Sequence[Any], ingestion: str, branch: Target
) -> tuple[tuple[Any, ...], str]:
    """Append data files in one commit that names the ingestion.

    Returns them as the commit has them, and the commit's hash. Raises as `append.committed`, and
    Transient when the catalog refuses the commit.
    """
    append = opened.table.newAppend()  # after which the table shows its own commit
    for file in files:
        append = append.appendFile(file)
    try:
        append.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file cannot be registered") from error
    return committed(opened, branch)
