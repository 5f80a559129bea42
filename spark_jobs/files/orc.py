"""ORC, read through the library that Spark itself uses."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.errors import Quoting, explain
from spark_jobs.files import columnar
from spark_jobs.files.columnar import Odd, typed
from spark_jobs.files.limits import check_columns, check_rows
from spark_jobs.files.source import Bytes, Source
from spark_jobs.files.text_lines import measure
from spark_jobs.spark import jvm

_INSTANT = "timestamp with local time zone"
_GREGORIAN = "1582-10-15"
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def read_orc(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """The rows of the ORC file at `path`.

    Raises Permanent CORRUPT_FILE or UNREADABLE_TYPE, or where it is beyond the limits; Transient
    when storage does not answer.
    """
    try:
        reader = columnar.orc_reader(spark, path)
        try:
            check_columns(reader.getSchema().getMaximumId(), limits)
            check_rows(reader.getNumberOfRows(), limits)
            described = str(reader.getSchema().toString())
            if _INSTANT in described or "uniontype<" in described:
                message = f"Spark reads no ORC columns of the types {_INSTANT} and uniontype"
                named = f"{message}: the file has {described[:300]}"
                raise Quoting("UNREADABLE_TYPE", message, named)
            schema = columnar.orc_schema(spark, reader.getSchema())
            promised, totals = reader.getNumberOfRows(), _totals(reader)
        finally:
            reader.close()
    except jvm.JavaError as error:
        raise explain(error, "the ORC footer cannot be read", "CORRUPT_FILE") from error
    zone = columnar.time_zone(spark)
    odd = {f.name: found for f in schema if (found := _odd(f, zone))}
    read = partial(spark.read.schema(schema).orc, path)
    source = typed(spark, schema, read, odd, promised, contract)
    if not source.findings:
        _require(read(), totals)
    return source


def _totals(reader: Any) -> dict[str, int]:
    """What the file's statistics say of its columns: Spark SQL aggregates, and what they must be.

    Numbers of values, sums of whole numbers, bytes of text. Of nested columns nothing is asked.
    """
    totals: dict[str, int] = {}
    statistics, columns = reader.getStatistics(), reader.getSchema()
    for name, type_ in zip(columns.getFieldNames(), columns.getChildren(), strict=True):
        found, column = statistics[type_.getId()], quoted(str(name))
        totals[f"count({column})"] = int(found.getNumberOfValues())
        category = str(type_.getCategory().getName())
        if category in _WHOLE and found.isSumDefined():
            totals[f"coalesce(try_sum(CAST({column} AS DECIMAL(38,0))), 0)"] = int(found.getSum())
        elif category == "string":
            totals[f"coalesce(sum(octet_length({column})), 0)"] = int(found.getSum())
    return totals


def _require(rows: DataFrame, totals: Mapping[str, int]) -> None:
    """That what is read is what the file's statistics say: an ORC file has no checksums.

    A pass of its own over the file, before anything is written. Raises Permanent CORRUPT_FILE.
    """
    names = {f"t{n}": sql for n, sql in enumerate(totals)}
    found = measure(rows, names)
    for name, sql in names.items():
        if int(found[name]) != totals[sql]:
            damaged = "the ORC file is damaged"
            shown = f"{sql} is {found[name]} as it is read, but {totals[sql]} by its statistics"
            plain = f"{damaged}: what is read is not what its statistics say"
            raise Quoting("CORRUPT_FILE", plain, f"{damaged}: {shown}")


def _odd(field: T.StructField, zone: str) -> Odd | None:
    """A column of days or times.

    ORC's `timestamp` is a wall clock's time, which Spark reads as if the clock were in the zone of
    this machine. Days before 15 October 1582 are counted by one calendar or by the other, depending
    on the writer, and it is not said by which: they are refused.
    """
    name = quoted(field.name)
    if isinstance(field.dataType, T.DateType):
        return Odd(name, f"coalesce({name} < DATE'{_GREGORIAN}', false)")
    if isinstance(field.dataType, T.TimestampType):
        wall = f"CAST(from_utc_timestamp({name}, '{zone}') AS TIMESTAMP_NTZ)"
        return Odd(wall, f"coalesce({name} < TIMESTAMP'{_GREGORIAN}', false)")
    return None
