"""Put data files into the branch's table, in one commit that names the ingestion."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.spark import iceberg
from spark_jobs.spark.errors import explain
from spark_jobs.spark.jvm import JavaError, java_class
from spark_jobs.write.append import INGESTION, Opened, Target
from spark_jobs.write.description import Written, scan_task
from spark_jobs.write.layout import Layout

_SCAN_TASKS = "org.apache.iceberg.ScanTaskParser"


def data_files(spark: SparkSession, where: Layout, files: Sequence[Written]) -> list[Any]:
    """Return written files as the table has them (`org.apache.iceberg.DataFile`), in order."""
    parser = java_class(spark, _SCAN_TASKS)
    return [parser.fromJson(scan_task(file, where), True).file() for file in files]


def commit(
    opened: Opened,
    files: Sequence[Any],
    rows: int,
    ingestion: str,
    branch: Target,
    *,
    overwrites: bool = False,
) -> str:
    """Append `data_files` in one commit that names the ingestion, or overwrite their partitions.

    They have so many `rows`. Returns the commit's hash. Raises Transient when the catalog refuses
    or loses the commit or another writer committed on the branch, Permanent COUNT_MISMATCH when the
    commit has other files or rows.
    """
    if overwrites and not files:
        return branch.own_commit(opened.at)
    table = opened.table  # which shows its own commit afterwards
    update = table.newReplacePartitions() if overwrites else table.newAppend()
    for each in files:
        update = update.addFile(each) if overwrites else update.appendFile(each)
    try:
        update.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file's rows cannot be committed") from error
    _require_added(table, len(files), rows)
    return branch.made_commit(opened.at)  # last, so that no other commit is overlooked


def _require_added(table: Any, files: int, rows: int) -> None:
    """Raise Permanent COUNT_MISMATCH unless a table's newest commit added so many."""
    summary = iceberg.summary(table)
    added = [int(summary.get(name, 0)) for name in ("added-data-files", "added-records")]
    if added != [files, rows]:
        message = f"the commit has {added[0]:,} data files of {added[1]:,} rows, not all that exist"
        raise Permanent("COUNT_MISMATCH", message)
