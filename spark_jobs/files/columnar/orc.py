"""Read ORC through the library that Spark itself uses."""

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.files.columnar import common as columnar
from spark_jobs.files.columnar import footers
from spark_jobs.files.columnar.common import typed_source
from spark_jobs.files.limits import check_columns, check_rows
from spark_jobs.files.source import Bytes, Source
from spark_jobs.files.text.cells import Cell
from spark_jobs.files.text.text_lines import measure
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import Quoting, explain

_INSTANT = "timestamp with local time zone"
_GREGORIAN = "1582-10-15"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def read_orc(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """Read the ORC file at `path`.

    Raises Permanent CORRUPT_FILE, UNREADABLE_TYPE or a limit's code; Transient when storage does
    not respond.
    """
    try:
        with closing(footers.orc_reader(spark, path)) as reader:
            check_columns(reader.getSchema().getMaximumId(), limits)
            check_rows(reader.getNumberOfRows(), limits)
            described = str(reader.getSchema().toString())
            if _INSTANT in described or "uniontype<" in described:
                message = f"Spark cannot read ORC columns of the types {_INSTANT} and uniontype"
                named = f"{message}: the file has {described[:300]}"
                raise Quoting("UNREADABLE_TYPE", message, named)
            schema = footers.orc_schema(spark, reader.getSchema())
            declared_rows, totals = reader.getNumberOfRows(), _totals(reader)
    except jvm.JavaError as error:
        raise explain(error, "the ORC footer cannot be read", "CORRUPT_FILE") from error
    zone = columnar.time_zone(spark)
    converted = {f.name: cell for f in schema if (cell := _converted(f, zone))}
    read = partial(spark.read.schema(schema).orc, path)
    source = typed_source(spark, schema, read, converted, declared_rows, contract)
    if not source.findings:
        _require_totals(read(), totals)
    return source


def _totals(reader: Any) -> dict[str, int]:
    """Return the aggregates that the file's statistics declare: Spark SQL and the expected value.

    These are numbers of values, sums of integers and lengths of texts, of top-level columns only.
    """
    totals: dict[str, int] = {}
    statistics, columns = reader.getStatistics(), reader.getSchema()
    for name, type_ in zip(columns.getFieldNames(), columns.getChildren(), strict=True):
        stated, column = statistics[type_.getId()], quoted(str(name))
        totals[f"count({column})"] = int(stated.getNumberOfValues())
        category = str(type_.getCategory().getName())
        if category in _INTEGERS and stated.isSumDefined():
            totals[f"coalesce(try_sum(CAST({column} AS DECIMAL(38,0))), 0)"] = int(stated.getSum())
        elif category == "string":
            totals[f"coalesce(sum(octet_length({column})), 0)"] = int(stated.getSum())
    return totals


def _require_totals(rows: DataFrame, totals: Mapping[str, int]) -> None:
    """Compare the rows with the file's statistics, because an ORC file has no checksums.

    This takes a pass over the file before anything is written. Raises Permanent CORRUPT_FILE.
    """
    names = {f"t{n}": sql for n, sql in enumerate(totals)}
    measured = measure(rows, names)
    for name, sql in names.items():
        if int(measured[name]) != totals[sql]:
            message = "the ORC file is damaged: its values differ from its statistics"
            in_full = f"{message}: {sql} is {measured[name]}, but {totals[sql]} by its statistics"
            raise Quoting("CORRUPT_FILE", message, in_full)


def _converted(field: T.StructField, zone: str) -> Cell | None:
    """Return how to convert a column with dates or times; None for other columns.

    ORC's `timestamp` is a local time, which Spark reads in the zone of this machine. Days before 15
    October 1582 are refused: writers use different calendars for them and do not say which.
    """
    name = quoted(field.name)
    broken = columnar.unfit(name, field.dataType, _is_older)
    if isinstance(field.dataType, T.TimestampType):
        return Cell(f"CAST(from_utc_timestamp({name}, '{zone}') AS TIMESTAMP_NTZ)", broken)
    return Cell(name, broken) if broken else None


def _is_older(value: str, type_: T.DataType) -> str:
    if isinstance(type_, T.DateType):
        return f"{value} < DATE'{_GREGORIAN}'"
    return f"{value} < TIMESTAMP'{_GREGORIAN}'" if isinstance(type_, T.TimestampType) else ""
