"""A landed file as rows with the contract's columns, whatever its format.

Every cell that cannot be read as the contract says marks its row: `BAD_ROW` then holds the row as
it stands in the file, and null in every good row.
"""

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.errors import Quoting, explain, told
from spark_jobs.files import sniff
from spark_jobs.files.avro import read_avro
from spark_jobs.files.csv import read_csv
from spark_jobs.files.json import is_array, read_json
from spark_jobs.files.limits import check_array, check_line
from spark_jobs.files.orc import read_orc
from spark_jobs.files.parquet import read_parquet
from spark_jobs.files.source import BAD_ROW, Bytes, LocalFile, Source
from spark_jobs.files.text_lines import BY_BYTES, Unpacked, check_gzip, check_lines
from spark_jobs.schema.compare import Finding, compare, of_any_columns
from spark_jobs.schema.types import columns_of, landed
from spark_jobs.spark import jvm, sql_parser

__all__ = ["BAD_ROW", "Bytes", "LocalFile", "Source", "open_source"]

_TEXT = {"csv": read_csv, "tsv": read_csv, "json": read_json}
_BINARY = {"parquet": read_parquet, "orc": read_orc, "avro": read_avro}


def open_source(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits = DEFAULTS
) -> Source:
    """Open the file at `path`, whose bytes are `file`.

    Raises Permanent when it is not a file of the contract's format, a damaged one, one beyond the
    limits, or one without a single byte.
    """
    if file.size == 0:
        raise Permanent("EMPTY_OBJECT", "the file is empty: it has not one byte")
    if contract.format in _TEXT:
        return _text(spark, path, contract, file, limits)
    try:
        return _BINARY[contract.format](spark, path, contract, file, limits)
    except Permanent:
        sniff.check_binary(contract.format, file.head(sniff.HEAD), file.tail(4))
        raise


def _text(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    gzipped, text = path.endswith(".gz"), Unpacked(file.size)
    if gzipped:
        text = check_gzip(file, int(contract.options["maxCompressionRatio"]), limits)
    head = sniff.text_head(file.head(sniff.HEAD), gzipped=gzipped)
    if not head:
        raise Permanent("EMPTY_OBJECT", "the file is empty: gzip of not one byte")
    encoding = contract.options.get("encoding", "UTF-8")
    sniff.check_text(contract.format, head, encoding)
    if contract.format == "json" and is_array(head):
        check_array(text.size, limits)
    elif gzipped:
        check_line(text.longest_line, limits)
    elif encoding in BY_BYTES:
        check_lines(spark, path, text.size, limits)
    return _TEXT[contract.format](spark, path, contract, file, head, limits)


# A contract's transform: one SELECT over the landed file, whose result is judged as a file is.
#
# It sees the file as `file`: every column that is there, of the file's own type, or text where
# the format has no types. Rows that cannot be read do not reach it, and count as bad as in any
# file.

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
        read = sql_parser.tables_read(spark, sql)
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
