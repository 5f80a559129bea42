"""Open a landed file of any format as rows with the contract's columns.

`BAD_ROW` is null in good rows. In a row with a cell that cannot be parsed, it holds the row as it
stands in the file.
"""

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.columnar.avro import read_avro
from spark_jobs.files.columnar.orc import read_orc
from spark_jobs.files.columnar.parquet import read_parquet
from spark_jobs.files.limits import check_array, check_line
from spark_jobs.files.source import BAD_ROW, Bytes, Source, refused_source
from spark_jobs.files.text import sniff
from spark_jobs.files.text.csv import read_csv
from spark_jobs.files.text.json import is_array, read_json
from spark_jobs.files.text.text_lines import BY_BYTES, Unpacked, check_gzip, check_lines
from spark_jobs.schema.compare import Comparison, compare, of_any_columns
from spark_jobs.schema.diagnosis import Finding
from spark_jobs.schema.rows import landed, struct_of
from spark_jobs.spark import jvm, sql_parser
from spark_jobs.spark.errors import Quoting, explain, masked

_TEXTS = ("csv", "tsv", "json")
_BINARY = {"parquet": read_parquet, "orc": read_orc, "avro": read_avro}


def open_source(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits = DEFAULTS
) -> Source:
    """Open the file at `path`, whose bytes are `file`.

    Raises Permanent when it is empty, damaged, beyond the limits, or not of the contract's format.
    """
    if file.size == 0:
        raise Permanent("EMPTY_OBJECT", "the file is empty")
    if contract.format in _TEXTS:
        return _open_text(spark, path, contract, file, limits)
    try:
        return _BINARY[contract.format](spark, path, contract, file, limits)
    except Permanent:
        head, tail = file.range(0, sniff.HEAD), file.range(max(file.size - 4, 0), 4)
        sniff.check_binary(contract.format, head, tail)
        raise


def _open_text(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    gzipped, text = path.endswith(".gz"), Unpacked(file.size)
    if gzipped:
        text = check_gzip(file, int(contract.options["maxCompressionRatio"]), limits)
    head = sniff.text_head(file.range(0, sniff.HEAD), gzipped=gzipped)
    if not head:
        raise Permanent("EMPTY_OBJECT", "the file is empty: it is gzip of 0 bytes")
    encoding = contract.options.get("encoding", "UTF-8")
    sniff.check_text(contract.format, head, encoding)
    if contract.format == "json" and is_array(head):
        check_array(text.size, limits)
    elif gzipped:
        check_line(text.longest_line, limits)
    elif encoding in BY_BYTES:
        check_lines(spark, path, text.size, limits)
    if contract.format == "json":
        return read_json(spark, path, contract, head, limits)
    return read_csv(spark, path, contract, file, head, limits)


# A contract's transform is one SELECT. It reads the landed file as the view `file`, with all of the
# file's columns (texts in text formats) and without unparseable rows. These still count as bad
# rows.

_VIEW = "file"
_LONGEST = 1000


def open_file(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits = DEFAULTS
) -> Source:
    """Open the file at `path`, through the contract's transform if it has one.

    Raises Permanent when it is damaged, or not of the contract's format.
    """
    if not contract.transform:
        return open_source(spark, path, contract, file, limits)
    source = open_source(spark, path, of_any_columns(contract), file, limits)
    return source if source.findings else _transformed(spark, source, contract)


def _transformed(spark: SparkSession, source: Source, contract: Contract) -> Source:
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
    found = result.select(*landed(result.schema, comparison.columns), good)
    if bad:
        empty = landed(T.StructType([]), comparison.columns)
        found = found.union(source.rows.where(is_bad).select(*empty, _bad_row_column()))
    return Source(found, (), None, comparison.columns, comparison.changes, rows)


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
    counts = Observation("file")
    every, bad = F.count(F.lit(1)).alias("rows"), F.count(BAD_ROW).alias("bad")
    try:
        observed = source.rows.observe(counts, every, bad)
        observed.write.format("noop").mode("overwrite").save()
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    rows, bad_rows = int(counts.get["rows"]), int(counts.get["bad"])
    source.require_declared(rows)
    return rows, bad_rows


def _bad_row_column() -> Expression:
    """Return `BAD_ROW`, written so that Spark reads all columns: it cannot read this one alone."""
    return F.when(F.length(F.to_json(F.struct("*"))) >= 0, F.col(BAD_ROW))
