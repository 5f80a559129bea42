"""Parquet, ORC and Avro: files that say themselves what their columns are."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from spark_jobs.files.source import BAD_ROW, Source, opened, unread
from spark_jobs.files.text_lines import literal
from spark_jobs.schema.compare import compare
from spark_jobs.schema.types import columns_of, landed
from spark_jobs.spark.jvm import java, java_session


@dataclass(frozen=True)
class Odd:
    """A column that Spark reads as something else than it is, in Spark SQL.

    `value` is what it is; `broken`, never null, tells a value that the type has no place for.
    """

    value: str
    broken: str


def typed(
    spark: SparkSession,
    schema: T.StructType,
    read: Callable[[], DataFrame],
    odd: Mapping[str, Odd],
    promised: int,
    contract: Contract,
) -> Source:
    """A file's rows with the contract's columns; `read` gives them as Spark reads the schema.

    A time without a zone is UTC's where the contract wants an instant, whatever zone this machine
    or session is in.
    """
    as_read = compare(columns_of(schema), contract)
    if any(finding.code == "DUPLICATE_COLUMN" for finding in as_read.findings):
        return unread(spark, as_read)  # Spark would not even begin
    true = _without_zones(_true(read(), odd), contract)
    columns = true.drop(BAD_ROW).schema
    landing = compare(columns_of(columns), contract)
    if landing.findings:
        return unread(spark, landing)
    values = landed(columns, landing.columns)
    return opened(true.select(*values, BAD_ROW), landing, promised)


def _true(rows: DataFrame, odd: Mapping[str, Odd]) -> DataFrame:
    """The columns for what they are, and which value of a row has no place, as `name: value`."""
    values = [
        f"{odd[name].value if name in odd else quoted(name)} AS {quoted(name)}"
        for name in rows.columns
    ]
    broken = {
        name: (column.broken, f"CAST({quoted(name)} AS STRING)") for name, column in odd.items()
    }
    for field in rows.schema:  # damage that no checksum tells of
        if not_text := _not_text(quoted(field.name), field.dataType):
            shown = f"make_valid_utf8(CAST({quoted(field.name)} AS STRING))"
            broken[field.name] = not_text, shown
    cases = [
        f"WHEN {condition} THEN concat({literal(name + ': ')}, {shown})"
        for name, (condition, shown) in broken.items()
    ]
    bad = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
    return rows.selectExpr(*values, f"{bad} AS {BAD_ROW}")


def _not_text(value: str, type_: T.DataType, depth: int = 0) -> str:
    """Return the condition that a text in the value is no UTF-8, never null; "" for no text."""
    each = f"x{depth}"
    if isinstance(type_, T.StringType):
        return f"coalesce(NOT is_valid_utf8({value}), false)"
    if isinstance(type_, T.StructType):
        fields = (_not_text(f"{value}.{quoted(f.name)}", f.dataType, depth) for f in type_)
        return " OR ".join(filter(None, fields))
    if isinstance(type_, T.ArrayType):
        inner = _not_text(each, type_.elementType, depth + 1)
        return f"coalesce(exists({value}, {each} -> {inner}), false)" if inner else ""
    if isinstance(type_, T.MapType):
        keys = _not_text(f"map_keys({value})", T.ArrayType(type_.keyType), depth)
        values = _not_text(f"map_values({value})", T.ArrayType(type_.valueType), depth)
        return " OR ".join(filter(None, (keys, values)))
    return ""


def _without_zones(rows: DataFrame, contract: Contract) -> DataFrame:
    instants = {column.name.lower() for column in contract.columns if column.type == "timestamp"}
    zoneless = [
        name for name, type_ in rows.dtypes if type_ == "timestamp_ntz" and name.lower() in instants
    ]
    if not zoneless:
        return rows
    return rows.withColumns({name: F.col(quoted(name)).cast("timestamp") for name in zoneless})


# What files say of themselves, read through the libraries that Spark itself uses.


def parquet_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.parquet.hadoop.ParquetFileReader`: its caller closes it."""
    hadoop = java_session(spark).sessionState().newHadoopConf()
    location = java(spark).org.apache.hadoop.fs.Path(path)
    parquet = java(spark).org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(location, hadoop)
    return parquet.ParquetFileReader.open(file)


def spark_schema(spark: SparkSession, parquet_schema: Any) -> StructType:
    """A Parquet schema (`MessageType`) as Spark's."""
    package = java(spark).org.apache.spark.sql.execution.datasources.parquet
    conf = java_session(spark).sessionState().conf()
    converted = package.ParquetToSparkSchemaConverter(conf).convert(parquet_schema)
    return StructType.fromJson(json.loads(converted.json()))


def orc_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.orc.Reader`: its caller closes it."""
    orc = java(spark).org.apache.orc.OrcFile
    options = orc.readerOptions(java_session(spark).sessionState().newHadoopConf())
    return orc.createReader(java(spark).org.apache.hadoop.fs.Path(path), options)


def orc_schema(spark: SparkSession, orc_type: Any) -> StructType:
    """An ORC schema (`TypeDescription`) as Spark's."""
    utils = java(spark).org.apache.spark.sql.execution.datasources.orc.OrcUtils
    return StructType.fromJson(json.loads(utils.toCatalystSchema(orc_type).json()))


def time_zone(spark: SparkSession) -> str:
    """The time zone of the JVM, such as Etc/UTC."""
    return str(java(spark).java.util.TimeZone.getDefault().getID())
