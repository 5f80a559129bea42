"""Give a table the rows that it had at an earlier commit, or that another writer's branch gave it.

Data files that only one of two states has are exchanged. Those that it loses are removed by
metadata; the rows of those that it gains are read by the columns of now, and written again. The
files themselves are not listed: upkeep may be about to delete old ones, and others wrote those of a
branch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.changes.compact import data_files, exact_text, reading
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.write.append import INGESTION


@dataclass(frozen=True)
class Exchange:
    """Data files by which two states of a table differ, each as a scan (`FileScanTask`).

    The table loses the rows of those in `lost`, and gains the rows of those in `gained`.
    """

    lost: Sequence[Any]
    gained: Sequence[Any]

    @classmethod
    def restoring(cls, then: Any, now: Any) -> "Exchange":
        """Return what makes `now` the table `then` was.

        Raises Permanent where they are two tables of one name, or delete files hide rows.
        """
        _require_same(then, now, "its older rows are another's")
        had, has = data_files(then), data_files(now)
        return cls(_ordered(has, has.keys() - had.keys()), _ordered(had, had.keys() - has.keys()))

    @classmethod
    def taking_over(cls, spark: SparkSession, begun: Any, ended: Any, now: Any) -> "Exchange":
        """Return what does to the table `now` what made the table `ended` of `begun`.

        Raises Permanent where that changed more than rows, or rows that are not there any more.
        """
        _require_same(begun, now, "what the branch changed is another's")
        _require_same(begun, ended, "the branch has another one of the name")
        if reading(spark, begun) != reading(spark, ended):
            message = "the branch changed columns, layout or properties of the table: only rows are"
            raise Permanent("TABLE_CHANGED", f"{message} taken over, so write these alone")
        had, have, has = (data_files(table) for table in (begun, ended, now))
        lost, gained = had.keys() - have.keys(), have.keys() - had.keys() - has.keys()
        if gone := lost - has.keys():
            message = (
                f"main no longer has {len(gone):,} of the data files whose rows the branch changed:"
                " both changed them, so write the changes again on a new branch off main"
            )
            raise Permanent("TABLE_MOVED", message)
        _require_own_folder(now, gained)
        return cls(_ordered(has, lost), _ordered(have, gained))

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
        if not self.gained:
            return []
        table = iceberg.find_iceberg_table(spark, name)
        iceberg.rows_in(spark, table, self.gained).writeTo(name).append()
        return iceberg.added_files(iceberg.find_iceberg_table(spark, name))

    def moved(self, spark: SparkSession, table: Any) -> tuple[int, int]:
        """Return how many rows the table gains and loses; equal rows of both are neither."""
        sides = [(self.gained, 1), (self.lost, -1)]
        texts = [_texts(iceberg.rows_in(spark, table, s), sign) for s, sign in sides if s]
        if not texts:
            return 0, 0
        each = reduce(DataFrame.union, texts).groupBy("text").agg(F.sum("times").alias("times"))
        gained, lost = (F.sum(F.greatest(F.col("times") * sign, F.lit(0))) for sign in (1, -1))
        ((added, removed),) = each.agg(gained, lost).collect()
        return added or 0, removed or 0


def _ordered(scans: Mapping[str, Any], paths: Iterable[str]) -> list[Any]:
    return [scans[path] for path in sorted(paths)]


def _require_same(one: Any, other: Any, consequence: str) -> None:
    if str(one.uuid().toString()) != str(other.uuid().toString()):
        message = f"the table was dropped and made again since: {consequence}"
        raise Permanent("TABLE_REPLACED", message)


def _require_own_folder(table: Any, paths: Iterable[str]) -> None:
    """Raise Permanent FOREIGN_FILES for data files elsewhere.

    The job may read them, so whoever lists them would get rows that they may not read.
    """
    folder = f"{str(table.location()).rstrip('/')}/"
    if foreign := sorted(path for path in paths if not path.startswith(folder)):
        message = f"the branch lists {foreign[0]}, which is outside the table's folder {folder}"
        raise Permanent("FOREIGN_FILES", message)


def _texts(rows: DataFrame, times: int) -> DataFrame:
    return rows.select(F.sha2(exact_text(), 256).alias("text"), F.lit(times).alias("times"))
