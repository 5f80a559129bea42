"""Put data files into the branch's table, in one commit that names the ingestion."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.append import INGESTION, Opened, Target
from spark_jobs.errors import explain
from spark_jobs.spark import iceberg
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

    Returns them in order (`org.apache.iceberg.DataFile`), and the commit's hash. Raises Transient
    when the catalog refuses the commit or another writer committed on the branch, Permanent
    COUNT_MISMATCH when the commit has other files or rows.
    """
    if overwrites and not files:
        return [], branch.own_commit(opened.at)
    table = opened.table  # which shows its own commit afterwards
    made = [data_file(spark, where, file) for file in files]
    update = table.newReplacePartitions() if overwrites else table.newAppend()
    for each in made:
        update = update.addFile(each) if overwrites else update.appendFile(each)
    try:
        update.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file's rows cannot be committed") from error
    _require_all(table, files)
    return made, branch.own_commit(opened.at)  # last, so that no other commit is overlooked


def _require_all(table: Any, files: Sequence[Written]) -> None:
    """Raise Permanent COUNT_MISMATCH unless a table's newest commit added these files."""
    summary = iceberg.summary(table)
    added = [int(summary.get(name, 0)) for name in ("added-data-files", "added-records")]
    if added != [len(files), sum(file.rows for file in files)]:
        message = (
            f"the commit has {added[0]:,} data files of {added[1]:,} rows: others were written"
        )
        raise Permanent("COUNT_MISMATCH", message)
