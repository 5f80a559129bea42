"""Values of one audit: the run, its row counts, and what was measured."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakegate.audit.report import Tier
from lakegate.contract.expectations import Number
from lakegate.contract.model import Contract
from lakegate.job.jobspec import JobSpec
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name


@dataclass(frozen=True)
class Measured:
    """A check's measure, the tier that answered, and the rows that a percentage refers to.

    `problem` says why it could not be measured, which blocks publishing. `skipped` says why the
    check was not evaluated. `note` is an addition for the report.
    """

    value: Number | None
    rows: int
    tier: Tier
    problem: str = ""
    skipped: str = ""
    note: str = ""


@dataclass(frozen=True)
class RowCounts:
    """The rows of a file: all, those that cannot be parsed, and those that were quarantined.

    With `nulled` the unparseable rows are in the table, with null in each such cell.
    """

    read: int
    bad: int
    quarantined: int
    nulled: bool = False

    @property
    def written(self) -> int:
        """Return the number of rows that the append put into the table."""
        return self.read - self.quarantined


@dataclass(frozen=True)
class Run:
    """One run after its append; `table` is the branch's `org.apache.iceberg.Table`.

    `files` are the data files (`org.apache.iceberg.DataFile`) that the commit `audited_hash` added.
    `token` is the job's token for Nessie. Main's rows are those at the branch's commit `main_at`,
    "" for the one at which it began.
    """

    spark: SparkSession
    spec: JobSpec
    token: str = field(repr=False)
    contract: Contract
    table: Any
    files: tuple[Any, ...]
    audited_hash: str = ""
    main_at: str = ""

    @property
    def written(self) -> int:
        """Return the number of rows that the run added."""
        return sum(file.recordCount() for file in self.files)

    @cached_property
    def rows(self) -> DataFrame:
        """Return the rows that the run added, read from its data files, with `_file` and `_pos`."""
        if not self.files:
            return self.spark.table(table_name(self.contract.table)).limit(0)
        scans = iceberg.scans_of(self.spark, self.table, self.files)
        return iceberg.rows_in(self.spark, self.table, scans)
