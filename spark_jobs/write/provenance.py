"""Fill the columns that say where a row comes from, in the pass that writes the rows.

All values follow from the landed object, so that a replay, a second try and a rebase have the same.
A row's number is its place in the file, from 1; rows that are quarantined count.
"""

from itertools import accumulate

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from lakegate.contract.reading.other_columns import Origin, Provenance
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.spark.errors import explain
from spark_jobs.spark.jvm import JavaError

# `monotonically_increasing_id` is a partition's number, and below it a row's number in it from 0.
_BITS = 33
_IN_PARTITION = (1 << _BITS) - 1


def one_file_rows(rows: DataFrame, provenance: Provenance, spec: JobSpec) -> DataFrame:
    """Return all rows of one file, in its order, with the columns of provenance.

    To number the rows of a file that several tasks read, each task's rows are counted first. Raises
    Permanent CORRUPT_FILE when they cannot be read.
    """
    if not provenance:
        return rows
    values: dict[Origin, Expression] = {o: F.lit(value) for o, value in values_of(spec).items()}
    if Origin.ROW in provenance.names:
        values[Origin.ROW] = _number(rows)
    columns = zip(provenance.names, provenance.columns, strict=True)
    return rows.withColumns({c.name: values[origin].cast(c.type) for origin, c in columns})


def values_of(spec: JobSpec) -> dict[Origin, str | None]:
    """Return what the rows of a landed object say of it, but for their numbers."""
    landed = spec.landed
    return {
        Origin.KEY: landed.key,
        Origin.VERSION: landed.version,
        Origin.INGESTION: spec.ingestion,
        Origin.LANDED_AT: landed.landed_at or None,
    }


def _number(rows: DataFrame) -> Expression:
    """Return a row's number in the file."""
    id_ = F.monotonically_increasing_id()
    in_partition = id_.bitwiseAND(F.lit(_IN_PARTITION)) + 1
    partitions = rows.rdd.getNumPartitions()
    if partitions < 2:
        return in_partition
    counts = _counts(rows)
    before = accumulate((counts.get(n, 0) for n in range(partitions)), initial=0)
    starts = F.array(*[F.lit(number).cast("bigint") for number in before])
    return F.element_at(starts, F.shiftright(id_, _BITS).cast("int") + 1) + in_partition


def _counts(rows: DataFrame) -> dict[int, int]:
    """Return how many rows each task reads, by the number of its partition."""
    partition = F.spark_partition_id().alias("partition")
    try:
        counted = rows.groupBy(partition).agg(F.count(F.lit(1)).alias("rows")).collect()
    except JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    return {row["partition"]: row["rows"] for row in counted}


def last_number(provenance: Provenance) -> Expression:
    """Return the measure of the last number of a file's rows, null where they have none."""
    name = provenance.names.get(Origin.ROW)
    return F.max(F.col(quoted(name)) if name else F.lit(None).cast("bigint"))


def require_each_number(provenance: Provenance, rows: int, last: int | None) -> None:
    """Raise Permanent COUNT_MISMATCH unless the last number of a file's rows is their count.

    It is another one if the file was read in other parts when its rows were counted.
    """
    if Origin.ROW in provenance.names and rows != (last or 0):
        message = f"{rows:,} rows were read, but they are numbered up to {last or 0:,}"
        raise Permanent("COUNT_MISMATCH", message)
