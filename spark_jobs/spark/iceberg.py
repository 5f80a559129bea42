"""Read Iceberg's tables, files and statistics through its Java classes."""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakegate.audit.report import DataFile
from lakegate.contract.columns import quoted
from spark_jobs.spark.jvm import (
    JavaError,
    causes,
    gateway,
    items_of,
    java,
    java_class,
    java_session,
    texts_of,
)
from spark_jobs.spark.session import CATALOG

_CONVERSIONS = "org.apache.iceberg.types.Conversions"
_EXPRESSIONS = "org.apache.iceberg.expressions.Expressions"
_COMPARISONS = {
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}
_named: list[tuple[str, Any]] = []  # the sets of scans, each with its table


def find_iceberg_table(spark: SparkSession, name: str) -> Any | None:
    """Return the table (`org.apache.iceberg.Table`) with a name in Spark SQL, or None."""
    session = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    load = java_class(spark, "org.apache.iceberg.spark.Spark3Util").loadIcebergTable
    session.setActiveSession(java_session(spark))  # whose catalogs Iceberg is to look in
    try:
        return load(java_session(spark), name)
    except JavaError as error:
        if "NoSuchTableException" in causes(error)[0]:
            return None
        raise


def schema_of(spark: SparkSession, table: Any) -> StructType:
    """Return an Iceberg table's schema as Spark's."""
    convert = java_class(spark, "org.apache.iceberg.spark.SparkSchemaUtil").convert
    return StructType.fromJson(json.loads(convert(table.schema()).json()))


def written_schema(spark: SparkSession, table: Any) -> dict[str, Any]:
    """Return an Iceberg table's schema as Iceberg writes it in JSON."""
    written = java_class(spark, "org.apache.iceberg.SchemaParser").toJson(table.schema())
    return dict(json.loads(written))


def added_files(table: Any) -> list[Any]:
    """Return the data files (`org.apache.iceberg.DataFile`) that the current snapshot added."""
    snapshot = table.currentSnapshot()
    return list(items_of(snapshot.addedDataFiles(table.io()))) if snapshot else []


def gained_files(
    spark: SparkSession, table: Any, older: Any | None, where: Any | None = None
) -> list[Any]:
    """Return the data files (`org.apache.iceberg.DataFile`) that a table gained.

    `older` is the table's earlier state, if there was one. `where` is an Iceberg expression that
    excludes files by their statistics. Only manifests that
    differ are read, so the cost grows with the change.
    """
    now, before = _manifests(table), _manifests(older) if older is not None else {}
    new = [now[path] for path in now.keys() - before.keys()]
    old = [before[path] for path in before.keys() - now.keys()]
    had = {file.location() for manifest in old for file in _files(spark, table, manifest)}
    files = [file for manifest in new for file in _files(spark, table, manifest, where)]
    return [file for file in files if file.location() not in had]


def snapshot_id(table: Any | None) -> int | None:
    """Return the id of a table's current snapshot; None without a snapshot or a table."""
    snapshot = table.currentSnapshot() if table is not None else None
    return snapshot.snapshotId() if snapshot is not None else None


def data_file(file: Any) -> DataFile:
    """Return a data file as the report names it."""
    return DataFile(str(file.location()), file.recordCount(), file.fileSizeInBytes())


def summary(table: Any) -> dict[str, str]:
    """Return the summary of a table's current snapshot; empty without a snapshot."""
    snapshot = table.currentSnapshot()
    return {} if snapshot is None else texts_of(snapshot.summary())


def has_deletes(table: Any) -> bool:
    """Return if rows of a table were deleted without rewriting their data files."""
    snapshot = table.currentSnapshot()
    return snapshot is not None and not snapshot.deleteManifests(table.io()).isEmpty()


def expression(spark: SparkSession, name: str, condition: str) -> Any:
    """Return a Spark SQL condition on the named table as an Iceberg expression."""
    convert = java(spark).org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = convert.collectResolvedSparkExpression(java_session(spark), name, condition)
    return convert.convertToIcebergExpression(resolved)


def all_bounds(spark: SparkSession, bounds: Sequence[tuple[str, str, int | str]]) -> Any:
    """Return the Iceberg expression that all bounds hold: a column, a sign such as <=, a value.

    Texts become decimals, dates and timestamps where a column has such a type.
    """
    expressions = java_class(spark, _EXPRESSIONS)
    each = [getattr(expressions, _COMPARISONS[sign])(name, end) for name, sign, end in bounds]
    return reduce(getattr(expressions, "and"), each)


def planned_scans(table: Any, where: Any | None = None) -> list[Any]:
    """Return a scan (`org.apache.iceberg.FileScanTask`) of each data file, with its deletes.

    `where` is an Iceberg expression that excludes files by their statistics.
    """
    with closing(_planned(table, where)) as files:
        return list(files.iterator())


def _planned(table: Any, where: Any | None) -> Any:
    scan = table.newScan()
    return (scan if where is None else scan.filter(where).caseSensitive(False)).planFiles()


def scans_of(spark: SparkSession, table: Any, files: Sequence[Any]) -> list[Any]:
    """Return a scan (`org.apache.iceberg.FileScanTask`) of each data file, without deletes."""
    iceberg = java(spark).org.apache.iceberg
    schema = iceberg.SchemaParser.toJson(table.schema())
    all_rows = iceberg.expressions.ResidualEvaluator.unpartitioned(
        iceberg.expressions.Expressions.alwaysTrue()
    )
    none = gateway(spark).new_array(iceberg.DeleteFile, 0)
    specs = {file.specId() for file in files}
    written = {id_: iceberg.PartitionSpecParser.toJson(table.specs().get(id_)) for id_ in specs}
    return [
        iceberg.BaseFileScanTask(file, none, schema, written[file.specId()], all_rows)
        for file in files
    ]


def rows_in(spark: SparkSession, table: Any, scans: Sequence[Any]) -> DataFrame:
    """Return the live rows that scans of an Iceberg table find.

    Iceberg's own rewriting of files reads them like this: as a set of scans under a name.
    """
    iceberg = java(spark).org.apache.iceberg
    name = uuid.uuid4().hex
    tasks = java(spark).java.util.ArrayList()
    for scan in scans:
        tasks.add(scan)
    iceberg.spark.SparkTableCache.get().add(name, table)
    iceberg.spark.ScanTaskSetManager.get().stageTasks(table, name, tasks)
    _named.append((name, table))
    return spark.read.format("iceberg").option("scan-task-set-id", name).load(name)


def forget_rows(spark: SparkSession) -> None:
    """Forget the scans of all `rows_in` so far, which Iceberg keeps: no one may read these rows."""
    iceberg = java(spark).org.apache.iceberg.spark
    while _named:
        name, table = _named.pop()
        iceberg.ScanTaskSetManager.get().removeTasks(table, name)
        iceberg.SparkTableCache.get().remove(name)


def bounds(spark: SparkSession, table: Any, column: str, files: Sequence[Any]) -> tuple[Any, Any]:
    """Return the bounds of a column in data files by their statistics; None where unknown.

    Dates are days and timestamps microseconds since 1970. Bounds of texts may be truncated.
    """
    field = table.schema().caseInsensitiveFindField(column)
    id_, convert = field.fieldId(), java_class(spark, _CONVERSIONS).fromByteBuffer
    having = [f for f in files if (f.nullValueCounts() or {}).get(id_) != f.recordCount()]
    pairs = [[(f.lowerBounds() or {}).get(id_), (f.upperBounds() or {}).get(id_)] for f in having]
    if not pairs or any(bound is None for both in pairs for bound in both):
        return None, None
    typed = [[_comparable(convert(field.type(), bound)) for bound in both] for both in pairs]
    return min(low for low, _ in typed), max(high for _, high in typed)


def _comparable(bound: Any) -> Any:
    """Return an Iceberg value as Python's; a text is a Java object."""
    return bound if isinstance(bound, int | float | Decimal) else str(bound.toString())


def may_contain(table: Any, where: Any) -> bool:
    """Return if a row of a table may meet an Iceberg expression, by statistics."""
    with closing(_planned(table, where)) as files:
        return bool(files.iterator().hasNext())


def _manifests(table: Any) -> dict[str, Any]:
    snapshot = table.currentSnapshot()
    manifests = items_of(snapshot.dataManifests(table.io())) if snapshot else ()
    return {str(manifest.path()): manifest for manifest in manifests}


def _files(
    spark: SparkSession, table: Any, manifest: Any, where: Any | None = None
) -> Iterator[Any]:
    read = java_class(spark, "org.apache.iceberg.ManifestFiles").read
    with closing(read(manifest, table.io(), table.specs()).caseSensitive(False)) as reader:
        yield from items_of(reader.filterRows(where) if where is not None else reader)


def table_name(table: str, catalog: str = CATALOG) -> str:
    """Return the table's name in Spark SQL, by default in the catalog of the run's branch."""
    return ".".join(quoted(part) for part in (catalog, *table.split(".")))
