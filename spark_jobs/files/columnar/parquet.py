"""Read Parquet through the library that Spark itself uses."""

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.files.arrow.consistency import check_parquet, parquet_footer
from spark_jobs.files.columnar import footers
from spark_jobs.files.columnar.common import narrowed, typed_source, widened
from spark_jobs.files.columnar.int96 import check_int96
from spark_jobs.files.columnar.levels import check_levels
from spark_jobs.files.columnar.old_lz4 import check_lz4
from spark_jobs.files.limits import check_columns
from spark_jobs.files.source import Bytes, Source
from spark_jobs.files.text.cells import Cell
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import Quoting, explain

# A schema as text has two spaces before each column, and more before what is nested in one.
_NANOSECONDS = re.compile(
    r"^  ( *)\w+ int64 (.+) \(TIMESTAMP\(NANOS,(true|false)\)\)", re.MULTILINE
)
_UNSIGNED = re.compile(r"^  \w+ int32 (.+) \(INTEGER\((8|16),false\)\)", re.MULTILINE)
_UNREADABLE = {  # what no table can have, and what to do
    re.compile(r"^ *\w+ int\w+ (.+) \(TIME\(", re.MULTILINE): (
        "times of day (TIME), which no table can have: write them as text, or with their date as a "
        "timestamp"
    ),
    re.compile(r"^ *\w+ \S+ (.+) \(DECIMAL\((?:39|[4-9]\d|\d{3,}),", re.MULTILINE): (
        "decimals of more than 38 digits, which no table can have: write them with fewer, or as "
        "text"
    ),
}
# Otherwise Spark accepts pages with wrong checksums.
_OPTIONS = {"parquet.page.verify-checksum.enabled": "true"}


@dataclass(frozen=True)
class Described:
    """A Parquet file's description in its footer, as far as Spark needs it to read the rows."""

    schema: T.StructType
    converted: Mapping[str, Cell]
    options: Mapping[str, str]
    rows: int


def read_parquet(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """Read the Parquet file at `path`.

    Raises Permanent CORRUPT_FILE, UNREADABLE_TYPE or a limit's code; Transient when storage does
    not respond.
    """
    footer = parquet_footer(file)
    check_parquet(footer, file.size, limits)
    described = describe(spark, path, limits)
    check_int96(file, footer)
    check_lz4(file, footer)
    reader = spark.read.schema(described.schema).options(**described.options)
    read = partial(reader.parquet, path)
    return typed_source(
        spark, described.schema, read, described.converted, described.rows, contract
    )


def describe(spark: SparkSession, path: str, limits: Limits) -> Described:
    """Return the description of the Parquet file at `path`. Raises as `read_parquet`."""
    try:
        with closing(footers.parquet_reader(spark, path)) as reader:
            described = reader.getFileMetaData()
            check_columns(described.getSchema().getColumns().size(), limits)
            text = str(described.getSchema())
            _refuse_unreadable(text)
            declared = footers.spark_schema(spark, described.getSchema())
            schema = widened(declared)
            converted = _nanoseconds(text) | _narrow(text, declared)
            options = _OPTIONS | _calendar(described)
            declared_rows = reader.getRecordCount()
            check_levels(reader)
    except jvm.JavaError as error:
        raise explain(error, "the Parquet file cannot be read", "CORRUPT_FILE") from error
    return Described(schema, converted, options, declared_rows)


def _nanoseconds(described: str) -> dict[str, Cell]:
    """Return the columns of times in nanoseconds, which Spark reads as integers here.

    Iceberg's and Spark's times have microseconds: a value with more digits is broken.
    """
    columns = _NANOSECONDS.findall(described)
    if nested := {name for deeper, name, _ in columns if deeper}:
        message = "nested times in nanoseconds cannot be read: write them in microseconds"
        in_full = f"{message} ({', '.join(sorted(nested))})"
        raise Quoting("UNREADABLE_TYPE", message, in_full)
    return {name: _converted(quoted(name), zoned=zoned == "true") for _, name, zoned in columns}


def _narrow(described: str, declared: T.StructType) -> dict[str, Cell]:
    """Return the columns with integers of 8 or 16 bits, which Spark reads with 32 bits here.

    Parquet stores 32 bits, and Spark would cut off what is too much.
    """
    unsigned = {name: 1 << int(bits) for name, bits in _UNSIGNED.findall(described)}
    cells = {}
    for field in declared:
        if widened(field.dataType) != field.dataType or field.name in unsigned:
            column = quoted(field.name)
            cell = narrowed(column, field.dataType)
            if end := unsigned.get(field.name):
                beyond = f"coalesce({column} NOT BETWEEN 0 AND {end - 1}, false)"
                cell = Cell(cell.value, beyond)
            cells[field.name] = cell
    return cells


def _refuse_unreadable(described: str) -> None:
    """Refuse a file with a type that no table has. Raises Permanent UNREADABLE_TYPE."""
    for columns, what in _UNREADABLE.items():
        if names := columns.findall(described):
            message = f"the Parquet file has {what}"
            raise Quoting("UNREADABLE_TYPE", message, f"{message} ({', '.join(sorted(names))})")


def _converted(column: str, *, zoned: bool) -> Cell:
    instant = f"timestamp_micros({column} div 1000)"
    value = instant if zoned else f"CAST({instant} AS TIMESTAMP_NTZ)"
    return Cell(value, f"coalesce({column} % 1000 <> 0, false)")


def _calendar(metadata: Any) -> dict[str, str]:
    """Return the options for days before 15 October 1582.

    Old writers (Hive, Impala, Spark 2) used the Julian calendar, all others the Gregorian. Where
    the file does not say which, Spark must fail instead of guessing.
    """
    written_by = metadata.getCreatedBy()
    by_spark = metadata.getKeyValueMetaData().containsKey("org.apache.spark.version")
    unknown = not written_by or str(written_by).startswith(("parquet-mr", "impala"))
    unsure = unknown and not by_spark
    mode = "EXCEPTION" if unsure else "CORRECTED"
    return {"datetimeRebaseMode": mode, "int96RebaseMode": mode}
