"""Put data files into the branch's table, in one commit that names the ingestion."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.append import INGESTION, Opened, Target, committed
from spark_jobs.errors import explain
from spark_jobs.spark.jvm import JavaError, java_class
from spark_jobs.write.description import Written, scan_task
from spark_jobs.write.layout import Layout

_SCAN_TASKS = "org.apache.iceberg.ScanTaskParser"


def data_file(spark: SparkSession, where: Layout, file: Written) -> Any:
    """Return a written file as a table's `org.apache.iceberg.DataFile`."""
    task = scan_task(file, where)
    return java_class(spark, _SCAN_TASKS).fromJson(task, True).file()


def commit(
    spark: SparkSession,
    opened: Opened,
    where: Layout,
    files: Sequence[Written],
    ingestion: str,
    branch: Target,
    *,
    overwrites: bool = False,
) -> tuple[list[Any], str]:
    """Append the files in one commit that names the ingestion, or overwrite their partitions.

    Returns them in order as the commit has them (`org.apache.iceberg.DataFile`), and the commit's
    hash. Raises as `append.committed`, and Transient when the catalog refuses the commit.
    """
    if overwrites and not files:
        return [], branch.own_commit(opened.at)
    table = opened.table  # which shows its own commit afterwards
    update = table.newReplacePartitions() if overwrites else table.newAppend()
    for file in files:
        made = data_file(spark, where, file)
        update = update.addFile(made) if overwrites else update.appendFile(made)
    try:
        update.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file's rows cannot be committed") from error
    added, audited_hash = committed(opened, branch)
    by_location = {str(file.location()): file for file in added}
    if by_location.keys() != {file.location for file in files}:
        raise Permanent("COUNT_MISMATCH", "the commit has other files than were written")
    return [by_location[file.location] for file in files], audited_hash
