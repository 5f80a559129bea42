"""A staged file as rows with the contract's columns, whatever its format.

Every cell that cannot be read as the contract says marks its row: `BAD_ROW` then holds the row as
it stands in the file, and null in every good row.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakegate.contract import Column, Contract
from lakegate.errors import Permanent
from spark_jobs import parquet, sniff
from spark_jobs.conform import landed
from spark_jobs.names import quoted
from spark_jobs.schema import Finding, Landing, compare

BAD_ROW = "_lakegate_bad_row"


@dataclass(frozen=True)
class Source:
    """A file, opened.

    `findings` say what is wrong with its columns; only without any can `rows` be read: the
    `columns` in their order, and `BAD_ROW`. `promised_rows` is what the file itself says it holds,
    None where its format does not say. `changes` say what the contract's policy made of columns
    that are not quite the contract's. `source_rows` is how many rows went into the contract's
    transform.
    """

    rows: DataFrame
    findings: tuple[Finding, ...]
    promised_rows: int | None
    columns: tuple[Column, ...] = ()
    changes: tuple[str, ...] = ()
    source_rows: int = 0


class Bytes(Protocol):
    """A file's bytes, a few of them at a time."""

    def head(self, length: int) -> bytes:
        """The first `length` bytes."""

    def tail(self, length: int) -> bytes:
        """The last `length` bytes."""


def open_source(spark: SparkSession, path: str, contract: Contract, file: Bytes) -> Source:
    """Open the file at `path`, whose bytes are `file`.

    Raises Permanent when it is not a file of the contract's format, or a damaged one.
    """
    if contract.format == "parquet":
        return _parquet(spark, path, contract, file)
    head = sniff.text_head(file.head(sniff.HEAD), gzipped=path.endswith(".gz"))
    sniff.check_text(contract.format, head)
    read = {"csv": _csv, "json": _json}[contract.format]
    return read(spark, path, contract, head)


def _parquet(spark: SparkSession, path: str, contract: Contract, file: Bytes) -> Source:
    try:
        footer = parquet.read_footer(spark, path)
    except Permanent:
        sniff.check_parquet(file.head(sniff.HEAD), file.tail(4))
        raise
    landing = compare(footer.columns, contract)
    if landing.findings:
        return _unread(spark, landing)
    good = F.lit(None).cast("string").alias(BAD_ROW)
    in_file = spark.read.schema(footer.schema).parquet(path)
    rows = in_file.select(*landed(in_file.schema, landing.columns), good)
    return _opened(rows, landing, footer.rows)


def _csv(spark: SparkSession, path: str, contract: Contract, head: bytes) -> Source:
    options = contract.options
    has_header = options.get("header", "true").lower() == "true"
    in_file = sniff.csv_header(head, options) if has_header else _names(contract)
    landing = compare([(name, "") for name in in_file], contract)
    if landing.findings:
        return _unread(spark, landing)
    strings = [T.StructField(name, T.StringType()) for name in (*in_file, BAD_ROW)]
    rows = (
        spark.read.schema(T.StructType(strings))
        .options(**_CSV | dict(options) | {"header": str(has_header).lower()})
        .csv(path)
    )
    there = {name.lower() for name in in_file}
    absent = {
        c.name: F.lit(None).cast("string") for c in landing.columns if c.name.lower() not in there
    }
    return _opened(_cast(rows.withColumns(absent), landing.columns), landing)


def _json(spark: SparkSession, path: str, contract: Contract, head: bytes) -> Source:
    in_file = sniff.json_keys(head)
    optional = [c.name for c in contract.columns if not c.required and c.name not in in_file]
    landing = compare([(name, "") for name in (*in_file, *optional)], contract)
    if landing.findings:
        return _unread(spark, landing)
    schema = ", ".join(f"{quoted(c.name)} {c.type}" for c in landing.columns)
    rows = (
        spark.read.schema(f"{schema}, {BAD_ROW} string")
        .options(**_PERMISSIVE | dict(contract.options))
        .json(path)
    )
    return _opened(rows, landing)


def _opened(rows: DataFrame, landing: Landing, promised_rows: int | None = None) -> Source:
    return Source(rows, (), promised_rows, landing.columns, landing.changes)


def _unread(spark: SparkSession, landing: Landing) -> Source:
    return Source(spark.createDataFrame([], T.StructType([])), landing.findings, None)


_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_ROW}
_CSV = {**_PERMISSIVE, "multiLine": "true", "enforceSchema": "true"}


def _cast(rows: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """Texts as the contract's types; a text that does not fit marks its row."""
    bad_cells = [_named(c).isNotNull() & _value(c).isNull() for c in columns if c.type != "string"]
    bad = reduce(lambda a, b: a | b, bad_cells, F.col(BAD_ROW).isNotNull())
    line = F.concat_ws(",", *[F.coalesce(_named(c), F.lit("")) for c in columns])
    raw = F.when(bad, F.coalesce(F.col(BAD_ROW), line))
    return rows.select(*[_value(c).alias(c.name) for c in columns], raw.alias(BAD_ROW))


def _value(column: Column) -> Expression:
    return _named(column) if column.type == "string" else _named(column).try_cast(column.type)


def _named(column: Column) -> Expression:
    return F.col(quoted(column.name))


def _names(contract: Contract) -> tuple[str, ...]:
    return tuple(column.name for column in contract.columns)
