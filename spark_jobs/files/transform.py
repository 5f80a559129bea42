"""A contract's transform: one SELECT over the landed file, which it reads as the view `file`.

It has all of the file's columns (texts in text formats), and no unparseable rows: these still count
as bad rows.
"""

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from spark_jobs.files.source import BAD_ROW, Source, refused_source
from spark_jobs.schema.compare import Comparison, compare
from spark_jobs.schema.diagnosis import Finding
from spark_jobs.schema.rows import landed, struct_of
from spark_jobs.spark import jvm, sql_parser
from spark_jobs.spark.errors import Quoting, masked
from spark_jobs.spark.observed import observed

_VIEW = "file"
_LONGEST = 1000


def transformed(spark: SparkSession, source: Source, contract: Contract) -> Source:
    """Return the rows that the contract's SELECT makes of a file's."""
    is_bad = F.col(BAD_ROW).isNotNull()
    try:
        result = _run_transform(spark, source.rows.where(~is_bad).drop(BAD_ROW), contract.transform)
    except Permanent as error:
        why = Finding(error.code, _VIEW, masked(error, contract).message)
        return refused_source(spark, Comparison((), (why,)))
    comparison = compare(struct_of(result.schema).fields, contract)
    if comparison.findings:
        return refused_source(spark, comparison)
    rows, bad = _count_rows(source)
    good = F.lit(None).cast("string").alias(BAD_ROW)
    selected = result.select(*landed(result.schema, comparison.columns), good)
    if bad:
        empty = landed(T.StructType([]), comparison.columns)
        selected = selected.union(source.rows.where(is_bad).select(*empty, _bad_row_column()))
    return Source(selected, (), None, comparison.columns, comparison.changes, rows)


def _run_transform(spark: SparkSession, rows: DataFrame, sql: str) -> DataFrame:
    """Run the SELECT over the rows. Raises Permanent BAD_TRANSFORM if it cannot run."""
    rows.createOrReplaceTempView(_VIEW)
    try:
        read = sql_parser.tables_read(spark, sql)
        known = {(part.lower(),) for part in (_VIEW, *read.parts)}
        others = [each for each in read.tables if tuple(map(str.lower, each.name)) not in known]
        if others:
            message = f"the transform may read only the view file, not {others[0]}"
            raise Permanent("BAD_TRANSFORM", message)
        return spark.sql(sql)
    except jvm.JavaError as error:
        said = str(error).split("\n== SQL", 1)[0].split(";\n", 1)[0].strip()
        what = "the transform does not fit the file"
        plain = f"{what}: {jvm.error_condition(error)}"
        raise Quoting("BAD_TRANSFORM", plain, f"{what}: {said[:_LONGEST]}") from error
    finally:
        spark.catalog.dropTempView(_VIEW)


def _count_rows(source: Source) -> tuple[int, int]:
    """Return the number of the file's rows and of its bad rows, from one pass over all of it.

    Raises Permanent CORRUPT_FILE if the file declares another number of rows.
    """
    every, bad = F.count(F.lit(1)).alias("rows"), F.count(BAD_ROW).alias("bad")
    counted = observed(source.rows, every, bad)
    source.require_declared(counted["rows"])
    return counted["rows"], counted["bad"]


def _bad_row_column() -> Expression:
    """Return `BAD_ROW`, written so that Spark reads all columns: it cannot read this one alone."""
    return F.when(F.length(F.to_json(F.struct("*"))) >= 0, F.col(BAD_ROW))
