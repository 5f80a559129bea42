"""Read Avro with Spark's module spark-avro, and count the rows by the file's blocks."""

from typing import BinaryIO

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files.columnar.common import typed_source
from spark_jobs.files.limits import check_columns, check_rows
from spark_jobs.files.source import Bytes, Source
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import Quoting, explain

_MAGIC = b"Obj\x01"
_SYNC = 16
_CHUNK = 1 << 20


def read_avro(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """Read the Avro file at `path`.

    Raises Permanent CORRUPT_FILE, a limit's code, or NO_AVRO if Spark lacks its module for Avro;
    Transient when storage does not respond.
    """
    with file.open() as stream:
        count = count_rows(stream)
    check_rows(count, limits)
    # Spark must go by content, because the key need not end in .avro.
    reader = spark.read.format("avro").option("ignoreExtension", "true")
    try:
        rows = reader.load(path)
    except AnalysisException as error:
        if error.getCondition() == "COLUMN_ALREADY_EXISTS":
            message = "the file has a column more than once"
            raise Quoting("DUPLICATE_COLUMN", message, error.getMessage() or message) from error
        message = "Spark lacks spark-avro: add its jar to the application's spark.jars"
        raise Permanent("NO_AVRO", message) from error
    except jvm.JavaError as error:
        raise explain(error, "the Avro schema cannot be read", "CORRUPT_FILE") from error
    check_columns(len(rows.columns), limits)
    return typed_source(spark, rows.schema, lambda: rows, {}, count, contract)


def count_rows(file: BinaryIO) -> int:
    """Count the rows of an Avro file by its blocks (Avro 1.12, "Object Container Files").

    Raises Permanent CORRUPT_FILE if a block does not end with the sync marker.
    """
    if _exactly(file, 4) != _MAGIC:
        raise _damaged("it does not begin as Avro does")
    while entries := _long(file):  # of the header's map
        if entries < 0:
            _long(file)
        for _ in range(2 * abs(entries)):
            _skip(file, _long(file))
    sync = _exactly(file, _SYNC)
    rows = 0
    while first := file.read(1):
        count = _long(file, first)
        _skip(file, _long(file))
        if count < 0 or _exactly(file, _SYNC) != sync:
            raise _damaged(f"the block after {rows:,} rows does not end with the sync marker")
        rows += count
    return rows


def _long(file: BinaryIO, first: bytes = b"") -> int:
    """Read a number in variable-length zig-zag coding; `first` is a byte that was read before."""
    value = shift = 0
    while shift < 70:
        byte = (first or _exactly(file, 1))[0]
        first = b""
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise _damaged("a number has no end")


def _skip(file: BinaryIO, length: int) -> None:
    if length < 0:
        raise _damaged("a length is negative")
    while length:
        length -= len(_exactly(file, min(length, _CHUNK)))


def _exactly(file: BinaryIO, length: int) -> bytes:
    read = b""
    while len(read) < length:
        more = file.read(length - len(read))
        if not more:
            raise Permanent("TRUNCATED_FILE", "the Avro file is truncated: it ends within a block")
        read += more
    return read


def _damaged(how: str) -> Permanent:
    return Permanent("CORRUPT_FILE", f"the Avro file is damaged: {how}")
