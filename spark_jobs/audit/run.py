"""What the audit of one run looks at, and what it measures."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.expectations import Number
from lakegate.contract.model import Contract
from lakegate.jobspec import JobSpec
from lakegate.report import Tier
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name


@dataclass(frozen=True)
class Measured:
    """A check's number, with the number of rows that it is a share of, and what answered.

    `problem` says why it could not be measured, which blocks; `skipped` why it was not asked.
    `note` is what else there is to say of it.
    """

    value: Number | None
    rows: int
    tier: Tier
    problem: str = ""
    skipped: str = ""
    note: str = ""


@dataclass(frozen=True)
class Run:
    """One run after its append: `table` is the branch's (`org.apache.iceberg.Table`).

    `files` are the data files that the run added (`org.apache.iceberg.DataFile`), by the commit
    `audited_hash`. `token` is the job's, for Nessie.
    """

    spark: SparkSession
    spec: JobSpec
    token: str = field(repr=False)
    contract: Contract
    table: Any
    files: tuple[Any, ...]
    audited_hash: str = ""

    @property
    def written(self) -> int:
        """How many rows the run added."""
        return sum(file.recordCount() for file in self.files)

    @cached_property
    def rows(self) -> DataFrame:
        """The rows that the run added, read from its data files, with `_file` and `_pos`."""
        if not self.files:
            return self.spark.table(table_name(self.contract.table)).limit(0)
        return iceberg.rows_of(self.spark, self.table, self.files)
