"""Find how the rows of one published file can be removed from its table.

Rows that name their ingestion are deleted by that, wherever they were rewritten to. Other rows are
removed with the data files that were published for them, by metadata alone.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.audit.report import AuditReport
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.contract.reading.other_columns import Origin
from lakegate.errors import Permanent
from lakegate.job.change import Change
from spark_jobs.audit.check_sql import string
from spark_jobs.spark.jvm import JavaError, java_class
from spark_jobs.write.append import INGESTION

_MISSING = "Missing required files to delete"  # Iceberg's ManifestFilterManager
_SCATTERED = (
    "data files of the retracted file are no longer in the table: its rows were replaced, deleted, "
    "or rewritten into other files by a change or a compaction. Delete what is left by `lakegate "
    "change`. For later files declare `provenance: {ingestion: ingestion_id}` in the contract's "
    "customProperties, or `compaction: never`"
)


@dataclass(frozen=True)
class Removal:
    """Data files to remove from a table, by their addresses."""

    paths: tuple[str, ...]

    def execute(self, spark: SparkSession, table: Any, ingestion: str) -> None:
        """Remove them in one commit that names the change's ingestion.

        Raises Permanent ROWS_SCATTERED if the table has not all of them, else one of `JavaError`.
        """
        delete = table.newDelete().validateFilesExist()
        delete.set(INGESTION, ingestion)
        for path in self.paths:
            delete.deleteFile(_characters(spark, path))
        try:
            delete.commit()
        except JavaError as error:
            if _MISSING in str(error):
                raise Permanent("ROWS_SCATTERED", _SCATTERED) from error
            raise


def _characters(spark: SparkSession, text: str) -> Any:
    """Return a text as another CharSequence than a String.

    Iceberg's `SnapshotProducer` has a `deleteFile(String)`, too, which deletes the file itself.
    """
    return java_class(spark, "java.lang.StringBuilder")(text)


def statement_for(change: Change, contract: Contract, rows: DataFrame) -> str:
    """Return the DELETE that removes the file's rows; "" where rows do not name their ingestion.

    `rows` are those of the table.
    """
    name = contract.provenance.names.get(Origin.INGESTION, "")
    there = {column.lower() for column in rows.columns}
    if name.lower() not in there:
        return ""
    if rows.where(F.col(quoted(name)) == change.retracts).limit(1).isEmpty():
        return ""
    return f"DELETE FROM {change.table} WHERE {quoted(name)} = {string(change.retracts)}"


def removal_of(change: Change, report: AuditReport) -> Removal:
    """Return the data files of the retracted file, which `report` names.

    Raises Permanent FOREIGN_REPORT for a report about another file, or without data files.
    """
    if (report.ingestion, report.table) != (change.retracts, change.table):
        raise Permanent("FOREIGN_REPORT", f"{report.key} is not about {change.retracts}")
    if not report.files:
        raise Permanent("FOREIGN_REPORT", f"{report.key} names no data files")
    return Removal(tuple(file.path for file in report.files))
