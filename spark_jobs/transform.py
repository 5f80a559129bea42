"""A contract's transform: one SELECT over the landed file, whose result is judged as a file is.

It sees the file as `file`: every column that is there, of the file's own type, or text where the
format has no types. Rows that cannot be read do not reach it, and count as bad as in any file.
"""

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs import jvm, parsing
from spark_jobs.conform import columns_of, landed
from spark_jobs.failures import explain
from spark_jobs.quoting import Quoting, told
from spark_jobs.read import BAD_ROW, Bytes, Source, open_source
from spark_jobs.schema import Finding, compare, of_any_columns

_VIEW = "file"
_LONGEST = 1000


def open_file(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits = DEFAULTS
) -> Source:
    """Open the file at `path`, through the contract's transform if it has one.

    Raises Permanent when it is not a file of the contract's format, or a damaged one.
    """
    if not contract.transform:
        return open_source(spark, path, contract, file, limits)
    source = open_source(spark, path, of_any_columns(contract), file, limits)
    return source if source.findings else _transformed(spark, source, contract)


def _transformed(spark: SparkSession, source: Source, contract: Contract) -> Source:
    is_bad = F.col(BAD_ROW).isNotNull()
    try:
        result = _selected(spark, source.rows.where(~is_bad).drop(BAD_ROW), contract.transform)
    except Permanent as error:
        return _refused(spark, Finding(error.code, _VIEW, told(error, contract).message))
    landing = compare(columns_of(result.schema), contract)
    if landing.findings:
        return _refused(spark, *landing.findings)
    rows, bad = _counted(source)
    good = F.lit(None).cast("string").alias(BAD_ROW)
    found = result.select(*landed(result.schema, landing.columns), good)
    if bad:
        empty = landed(T.StructType([]), landing.columns)
        found = found.union(source.rows.where(is_bad).select(*empty, _bad_row()))
    return Source(found, (), None, landing.columns, landing.changes, rows)


def _selected(spark: SparkSession, rows: DataFrame, sql: str) -> DataFrame:
    """What the SELECT makes of the rows. Raises Permanent BAD_TRANSFORM where it cannot be run."""
    rows.createOrReplaceTempView(_VIEW)
    try:
        read = parsing.tables_read(spark, sql)
        known = {(part.lower(),) for part in (_VIEW, *read.parts)}
        others = [each for each in read.tables if tuple(map(str.lower, each.name)) not in known]
        if others:
            raise Permanent("BAD_TRANSFORM", f"the transform can only read file, not {others[0]}")
        return spark.sql(sql)
    except jvm.JavaError as error:
        said = str(error).split("\n== SQL", 1)[0].split(";\n", 1)[0].strip()
        what = "the transform does not fit the file"
        plain = f"{what}: {jvm.refusal(error)}"
        raise Quoting("BAD_TRANSFORM", plain, f"{what}: {said[:_LONGEST]}") from error
    finally:
        spark.catalog.dropTempView(_VIEW)


def _counted(source: Source) -> tuple[int, int]:
    """How many rows the file has, and how many of them are bad; all of it is read, once.

    Raises Permanent CORRUPT_FILE where the file holds another number of rows than it says.
    """
    seen = Observation("file")
    every, bad = F.count(F.lit(1)).alias("rows"), F.count(BAD_ROW).alias("bad")
    try:
        watched = source.rows.observe(seen, every, bad)
        watched.write.format("noop").mode("overwrite").save()
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    rows, bad_rows = int(seen.get["rows"]), int(seen.get["bad"])
    if source.promised_rows not in (None, rows):
        message = f"the file promises {source.promised_rows:,} rows; {rows:,} can be read"
        raise Permanent("CORRUPT_FILE", message)
    return rows, bad_rows


def _bad_row() -> Expression:
    """`BAD_ROW`, said so that the whole row is read: Spark refuses to read nothing but that."""
    return F.when(F.length(F.to_json(F.struct("*"))) >= 0, F.col(BAD_ROW))


def _refused(spark: SparkSession, *findings: Finding) -> Source:
    return Source(spark.createDataFrame([], T.StructType([])), findings, None)
