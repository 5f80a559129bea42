"""A landed file as rows with the contract's columns, whatever its format.

Every cell that cannot be read as the contract says marks its row: `BAD_ROW` then holds the row as
it stands in the file, and null in every good row.
"""

from pyspark.sql import SparkSession

from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs import sniff
from spark_jobs.formats.avro import read_avro
from spark_jobs.formats.csv_text import read_csv
from spark_jobs.formats.inflate import Unpacked, check_gzip
from spark_jobs.formats.json_text import is_array, read_json
from spark_jobs.formats.lines import BY_BYTES, check_lines
from spark_jobs.formats.orc import read_orc
from spark_jobs.formats.parquet import read_parquet
from spark_jobs.formats.promises import check_array, check_line
from spark_jobs.formats.source import BAD_ROW, Bytes, LocalFile, Source

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
