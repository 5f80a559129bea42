"""Open a landed file of any format as rows with the contract's columns.

`BAD_ROW` is null in good rows. In a row with a cell that cannot be parsed, it holds the row as it
stands in the file.
"""

from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.columnar.avro import read_avro
from spark_jobs.files.columnar.orc import read_orc
from spark_jobs.files.columnar.parquet import read_parquet
from spark_jobs.files.limits import check_array, check_line
from spark_jobs.files.source import Bytes, Source
from spark_jobs.files.text import sniff
from spark_jobs.files.text.csv import read_csv
from spark_jobs.files.text.json import is_array, read_json
from spark_jobs.files.text.text_lines import BY_BYTES, Unpacked, check_gzip, check_lines
from spark_jobs.files.transform import transformed
from spark_jobs.schema.compare import any_columns

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


def open_file(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits = DEFAULTS
) -> Source:
    """Open the file at `path`, through the contract's transform if it has one.

    Raises Permanent when it is damaged, or not of the contract's format.
    """
    if not contract.transform:
        return open_source(spark, path, contract, file, limits)
    source = open_source(spark, path, any_columns(contract), file, limits)
    return source if source.findings else transformed(spark, source, contract)
