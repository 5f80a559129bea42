"""Read files that declare the types of their columns: Parquet, ORC and Avro."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from spark_jobs.files.source import BAD_ROW, Source, readable_source, refused_source
from spark_jobs.files.text.cells import Cell, beyond_years
from spark_jobs.files.text.text_lines import literal
from spark_jobs.schema.compare import compare
from spark_jobs.schema.rows import landed, struct_of, type_of
from spark_jobs.spark.errors import TOO_MANY_DIGITS
from spark_jobs.spark.jvm import java

_DATES = (T.DateType, T.TimestampType, T.TimestampNTZType)
Leaf = Callable[[str, T.DataType], str]  # a condition on a value in SQL, "" for none
_NARROW: Mapping[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16}  # bits


def typed_source(
    spark: SparkSession,
    schema: T.StructType,
    read: Callable[[], DataFrame],
    converted: Mapping[str, Cell],
    declared_rows: int,
    contract: Contract,
) -> Source:
    """Return a file's rows with the contract's columns; `read` reads them with Spark's schema.

    Columns that Spark reads as another type are `converted`: a cell is broken if the type cannot
    hold its value. Where the contract has an instant, a time without a zone is in UTC, whatever the
    zone of the machine or session.
    """
    as_read = compare(struct_of(schema).fields, contract)
    if any(finding.code == "DUPLICATE_COLUMN" for finding in as_read.findings):
        return refused_source(spark, as_read)  # Spark would not even begin
    true = _without_zones(_converted_rows(read(), converted), contract)
    columns = true.drop(BAD_ROW).schema
    comparison = compare(struct_of(columns).fields, contract)
    if comparison.findings:
        return refused_source(spark, comparison)
    values = landed(columns, comparison.columns)
    return readable_source(true.select(*values, BAD_ROW), comparison, declared_rows)


def _converted_rows(rows: DataFrame, converted: Mapping[str, Cell]) -> DataFrame:
    """Convert the columns; `BAD_ROW` has a row's broken value as `name: value`, which becomes null.

    The conditions are computed once for all rows, and again only for bad ones.
    """
    broken = {name: [column.broken] for name, column in converted.items()}
    for field in rows.schema:
        if is_wrong := unfit(quoted(field.name), field.dataType):
            broken.setdefault(field.name, []).append(is_wrong)
    any_of = {name: " OR ".join(conditions) for name, conditions in broken.items()}
    cases = [
        f"WHEN {is_broken} THEN concat({literal(name + ': ')}, "
        f"make_valid_utf8(CAST({quoted(name)} AS STRING)))"
        for name, is_broken in any_of.items()
    ]
    bad = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
    values = [
        f"{_value(name, converted, any_of.get(name, 'false'))} AS {quoted(name)}"
        for name in rows.columns
    ]
    return rows.selectExpr("*", f"{bad} AS {BAD_ROW}").selectExpr(*values, BAD_ROW)


def _value(name: str, converted: Mapping[str, Cell], is_broken: str) -> str:
    value = converted[name].value if name in converted else quoted(name)
    return f"if({BAD_ROW} IS NOT NULL AND ({is_broken}), NULL, {value})"


def widened(type_: Any) -> Any:
    """Return a type with 32 bits for each integer of 8 or 16, but in the keys of maps."""
    match type_:
        case T.StructType():
            return T.StructType(
                [T.StructField(f.name, widened(f.dataType), f.nullable) for f in type_]
            )
        case T.ArrayType():
            return T.ArrayType(widened(type_.elementType), type_.containsNull)
        case T.MapType():
            return T.MapType(type_.keyType, widened(type_.valueType), type_.valueContainsNull)
    return T.IntegerType() if type(type_) in _NARROW else type_


def narrowed(value: str, type_: T.DataType) -> Cell:
    """Return a `widened` value as its own type; it is broken if this cannot hold it."""
    return Cell(f"try_cast({value} AS {type_of(type_)})", unfit(value, type_) or "false")


def unfit(value: str, type_: T.DataType, leaf: Leaf | None = None, depth: int = 0) -> str:
    """Return the condition that a value is no value of its type, never null; "" if all are.

    `leaf` returns it for a plain value, by default as each format has it.
    """
    leaf, each = leaf or _unfit_leaf, f"x{depth}"
    if isinstance(type_, T.StructType):
        fields = (unfit(f"{value}.{quoted(f.name)}", f.dataType, leaf, depth) for f in type_)
        return " OR ".join(filter(None, fields))
    if isinstance(type_, T.ArrayType):
        inner = unfit(each, type_.elementType, leaf, depth + 1)
        return f"coalesce(exists({value}, {each} -> {inner}), false)" if inner else ""
    if isinstance(type_, T.MapType):
        keys = unfit(f"map_keys({value})", T.ArrayType(type_.keyType), leaf, depth)
        values = unfit(f"map_values({value})", T.ArrayType(type_.valueType), leaf, depth)
        return " OR ".join(filter(None, (keys, values)))
    is_wrong = leaf(value, type_)
    return f"coalesce({is_wrong}, false)" if is_wrong else ""


def _unfit_leaf(value: str, type_: T.DataType) -> str:
    """Return the condition that a plain value is none of its type; "" if all are.

    A text may be no UTF-8, which is damage that no checksum reveals. A date may be in no year that
    others can read. A decimal of too many digits is an error: Spark's readers of rows refuse it.
    """
    if isinstance(type_, T.StringType):
        return f"NOT is_valid_utf8({value})"
    if isinstance(type_, _DATES):
        return beyond_years(value)
    if isinstance(type_, T.DecimalType):
        most = f"{'9' * type_.precision}E-{type_.scale}BD"
        too_many = f"{value} NOT BETWEEN -{most} AND {most}"  # abs would fail without a reason
        return f"if({too_many}, raise_error({literal(TOO_MANY_DIGITS)}), false)"
    if bits := _NARROW.get(type(type_)):
        end = 1 << (bits - 1)
        return f"{value} NOT BETWEEN {-end} AND {end - 1}"
    return ""


def _without_zones(rows: DataFrame, contract: Contract) -> DataFrame:
    instants = {column.name.lower() for column in contract.columns if column.type == "timestamp"}
    zoneless = [
        name for name, type_ in rows.dtypes if type_ == "timestamp_ntz" and name.lower() in instants
    ]
    if not zoneless:
        return rows
    return rows.withColumns({name: F.col(quoted(name)).cast("timestamp") for name in zoneless})


def time_zone(spark: SparkSession) -> str:
    """Return the time zone of the JVM, such as Etc/UTC."""
    return str(java(spark).java.util.TimeZone.getDefault().getID())
