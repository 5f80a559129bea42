"""The rows of a file that stay out of its table: unparseable ones, and those to quarantine.

Arrow finds them, and Spark tells of them as of a file that it has read itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.audit.report import DataFile
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from spark_jobs.audit import tier_scan
from spark_jobs.audit.arrow.tier_arrow import Divided
from spark_jobs.audit.bad_cells import MOST_NAMED
from spark_jobs.audit.run import Measured
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import Decoded, TextRows, Unparseable
from spark_jobs.files.source import BAD_ROW, PLACE, Placed, Source
from spark_jobs.files.text.text_lines import LINE

Numbers: TypeAlias = NDArray[np.int64]


@dataclass
class Apart:
    """The rows of a part of a file that stay out of its table.

    `broken` are those that a check quarantines, `texts` the unparseable ones, each as it stands in
    the file; with their order among the part's `rows` in `PLACE`. `bad` is the number of the
    unparseable ones, which may be in the files `kept` instead of `texts`. `first` are a few of them
    by their places in the part of a text, which has so many `units`, lines or items. Of the columns
    in `present` some row, good or bad, has a value; keys in it that are no columns are in some row.
    """

    rows: int = 0
    broken: list[pa.Table] = field(default_factory=list)
    bad: int = 0
    texts: Unparseable = field(default_factory=list)
    kept: tuple[DataFile, ...] = ()
    first: dict[int, str] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    units: int = 0

    def add(self, divided: Divided, numbers: Numbers) -> None:
        """Add the rows that a check quarantines, of those with these numbers in the part."""
        if len(divided.quarantined):
            places = pa.array(np.delete(numbers, divided.places))
            self.broken.append(divided.quarantined.append_column(PLACE, places))

    def add_text(self, block: Decoded) -> None:
        """Add the unparseable rows of a text's next block."""
        left = MOST_NAMED - len(self.first)
        pairs = zip(block.places[:left], block.bad[:left], strict=True)
        first = {int(place): text.as_py() for place, text in pairs}
        if len(block.bad):
            places = pa.array(block.ranks + self.rows)
            self.texts.append(pa.table({LINE: block.bad, PLACE: places}))
        self.rows += len(block.good) + len(block.bad)
        self.bad += len(block.bad)
        self.first |= {self.units + at: text for at, text in first.items()}
        self.present |= block.present
        self.units += block.units

    def __add__(self, after: "Apart") -> "Apart":
        moved = {self.units + place: text for place, text in after.first.items()}
        return Apart(
            self.rows + after.rows,
            self.broken + [_moved(each, self.rows) for each in after.broken],
            self.bad + after.bad,
            self.texts + [_moved(each, self.rows) for each in after.texts],
            self.kept + after.kept,
            {**self.first, **moved},
            self.present | after.present,
            self.units + after.units,
        )

    def require_at_most(self, most: int) -> None:
        """Raise MustRewrite if the rows have more than so many bytes."""
        if sum(each.nbytes for each in (*self.broken, *self.texts)) > most:
            raise MustRewrite("very many of its rows stay out of its table")


def _moved(rows: pa.Table, by: int) -> pa.Table:
    at = rows.column_names.index(PLACE)
    return rows.set_column(at, PLACE, pc.add(rows[PLACE], by))


@dataclass(frozen=True)
class RowsApart:
    """The rows of a file that stay out of its table, which has the contract's columns.

    `read` is how Spark's strict reader reads the unparseable ones; only a text has some.
    """

    contract: Contract
    part: Apart
    read: TextRows | None = None

    def source(self, spark: SparkSession) -> Source:
        """Return these rows as if a file had no others, without those that files keep."""
        parts = [*self._broken(spark), *self._strictly_read(spark)]
        rows = reduce(DataFrame.unionByName, parts).coalesce(1) if parts else spark.range(0)
        rows = rows.sortWithinPartitions(PLACE) if len(parts) > 1 else rows
        return Source(rows, (), None, placed=self._unreadable(spark))

    def measured(self, rows: DataFrame, count: int) -> Mapping[str, Measured]:
        """Return the measures of the checks that quarantine `rows`, of so many in the file.

        They also count unparseable rows, by the cells that Spark can read; Arrow counts all others.
        """
        if not self.part.texts:
            return {}
        checks = [check for check in self.contract.checks if check.quarantine]
        (row,) = rows.agg(*tier_scan.aggregates(checks, self.contract)).collect()
        return tier_scan.read(checks, row.asDict(), count)

    def _broken(self, spark: SparkSession) -> Iterator[DataFrame]:
        if self.part.broken:
            types = ", ".join(f"{quoted(c.name)} {c.type}" for c in self.contract.columns)
            rows = pa.concat_tables(self.part.broken)
            broken = spark.createDataFrame(rows, f"{types}, {PLACE} bigint")
            yield broken.withColumn(BAD_ROW, F.lit(None).cast("string"))

    def _strictly_read(self, spark: SparkSession) -> Iterator[DataFrame]:
        if self.read and self.part.texts:
            yield self.read.strictly(spark.createDataFrame(pa.concat_tables(self.part.texts)))[0]

    def _unreadable(self, spark: SparkSession) -> Placed | None:
        """Return the first unparseable rows, whose cells Spark's strict reader names."""
        if not (self.part.bad and self.read):
            return None
        read, first = self.read, dict(islice(self.part.first.items(), MOST_NAMED))
        rows = pa.table({LINE: list(first.values()), PLACE: list(first)})
        lines = spark.createDataFrame(rows).coalesce(1)  # all are taken by one job
        return Placed(lambda: read.strictly(lines), lambda: lines, read.unit, read.names)
