"""Give a table the rows that it had at an earlier commit.

Data files that it has now and had then stay. The others that it has are removed by metadata; the
rows of those that it had are read by the columns of now, and written again. The old files
themselves are not listed again: upkeep may be about to delete them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from spark_jobs.changes.compact import data_files, exact_text
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.write.append import INGESTION


@dataclass(frozen=True)
class Restoration:
    """Data files by which two states of a table differ, each as a scan (`FileScanTask`).

    It loses the rows of those in `lost`, and gains the rows of those in `regained`.
    """

    lost: Sequence[Any]
    regained: Sequence[Any]

    @classmethod
    def of(cls, then: Any, now: Any) -> "Restoration":
        """Return what makes `now` the table `then` was.

        Raises Permanent where they are two tables of one name, or delete files hide rows.
        """
        if str(then.uuid().toString()) != str(now.uuid().toString()):
            message = "the table was dropped and made again since: its older rows are another's"
            raise Permanent("TABLE_REPLACED", message)
        had, has = data_files(then), data_files(now)
        return cls(
            [has[path] for path in sorted(has.keys() - had.keys())],
            [had[path] for path in sorted(had.keys() - has.keys())],
        )

    def execute(self, spark: SparkSession, branch: Branch, spec: JobSpec) -> None:
        """Exchange the table's rows in one commit, which names the change's ingestion.

        They are appended first, in the table's layout and order; what is committed then is that
        append's data files, on the branch as it was before.
        """
        name = table_name(spec.table)
        new = self._appended(spark, name)
        branch.reset(spec.base_hash)
        table: Any = iceberg.find_iceberg_table(spark, name)
        overwrite = table.newOverwrite()
        overwrite.set(INGESTION, spec.ingestion)
        for scan in self.lost:
            overwrite.deleteFile(scan.file())
        for file in new:
            overwrite.addFile(file)
        overwrite.commit()

    def _appended(self, spark: SparkSession, name: str) -> list[Any]:
        if not self.regained:
            return []
        table = iceberg.find_iceberg_table(spark, name)
        iceberg.rows_in(spark, table, self.regained).writeTo(name).append()
        return iceberg.added_files(iceberg.find_iceberg_table(spark, name))

    def moved(self, spark: SparkSession, table: Any) -> tuple[int, int]:
        """Return how many rows the table gains and loses; equal rows of both are neither."""
        sides = [(self.regained, 1), (self.lost, -1)]
        found = [_texts(iceberg.rows_in(spark, table, s), sign) for s, sign in sides if s]
        if not found:
            return 0, 0
        each = reduce(DataFrame.union, found).groupBy("text").agg(F.sum("times").alias("times"))
        gained, lost = (F.sum(F.greatest(F.col("times") * sign, F.lit(0))) for sign in (1, -1))
        ((added, removed),) = each.agg(gained, lost).collect()
        return added or 0, removed or 0


def _texts(rows: DataFrame, times: int) -> DataFrame:
    return rows.select(F.sha2(exact_text(), 256).alias("text"), F.lit(times).alias("times"))
