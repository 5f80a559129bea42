"""Find how the data files of a table are written. What is found can be sent to Spark's tasks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from lakegate.contract.reading.layout import SortKey
from lakegate.contract.reading.partitions import Partition
from spark_jobs.files.arrow.places import Place, fields
from spark_jobs.files.arrow.values import FLOATING, is_plain
from spark_jobs.spark import iceberg
from spark_jobs.spark.jvm import items_of, java_class, texts_of
from spark_jobs.spark.table_layout import order_of

_ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_METRICS = "org.apache.iceberg.MetricsConfig"
_CODEC, _LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
_LEVELS = {"zstd": 22, "gzip": 9, "brotli": 11}
_ROW_GROUP, _TARGET, _SMALLEST = 128 << 20, 512 << 20, 1 << 20  # bytes
_NAME = "name"


@dataclass(frozen=True)
class Field:
    """A table's column: its field id, its type in Iceberg, and how its metrics are kept.

    `mode` is Iceberg's: none, counts, truncate(n) or full.
    """

    id: int
    type: str
    mode: str


@dataclass(frozen=True)
class PartitionField(Partition):
    """A part of a partition: the transformed value of a column, under a field id of its own."""

    id: int


@dataclass(frozen=True)
class Spec:
    """A partition spec of a table, and `written` as Iceberg writes it in JSON."""

    id: int = 0
    fields: tuple[PartitionField, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """A sort order of a table, by its id; 0 is that of no order."""

    id: int = 0
    keys: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How the files of a table are written.

    `ids` are the field ids of the contract's columns, and of those within them, by their places
    (`files.places`). `fields` are those of which Iceberg keeps metrics, `schema` is the table's as
    Iceberg writes it in JSON. A new data file is in `folder`, has rows of one partition of the
    `spec`, and is sorted by `order`. `level` is that of the compression `codec`, None for its usual
    one. A row group has about `row_group` bytes, a file about `target` ones. `obstacle` is the
    reason why Spark must write the table's files, "" without one.
    """

    ids: Mapping[str, int]
    fields: Mapping[str, Field]
    folder: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    spec: Spec = Spec()
    order: Order = Order()
    codec: str = "zstd"
    level: int | None = None
    row_group: int = _ROW_GROUP
    target: int = _TARGET
    obstacle: str = ""


def layout_of(spark: SparkSession, table: Any, contract: Contract) -> Layout:
    """Return the layout of the branch's table, which has the contract's columns."""
    schema, properties = iceberg.written_schema(spark, table), texts_of(table.properties())
    there = {each.path.lower(): each for each in _in_struct(schema)}
    wanted = fields(contract.table_columns)
    fitting = {place.path: there[place.path.lower()] for place in wanted if _fits(place, there)}
    leaves = [each.path for each in wanted if each.is_leaf and each.path in fitting]
    others = [place.path for place in wanted if place.path not in fitting]
    metrics = java_class(spark, _METRICS).forTable(table)
    spec = _spec(spark, table)
    order = Order(table.sortOrder().orderId(), tuple(order_of(table)))
    codec = properties.get(_CODEC, "zstd").lower()
    return Layout(
        ids={path: each.id for path, each in fitting.items()},
        fields={path: _field(fitting[path], metrics) for path in leaves},
        folder=str(table.locationProvider().newDataLocation(_NAME)).removesuffix(_NAME),
        schema=schema,
        spec=spec,
        order=order,
        codec=codec,
        level=_level(codec, properties),
        row_group=_size(properties, "write.parquet.row-group-size-bytes", _ROW_GROUP),
        target=_size(properties, "write.target-file-size-bytes", _TARGET),
        obstacle=_obstacle(codec, properties, spec, order, others, contract),
    )


def _spec(spark: SparkSession, table: Any) -> Spec:
    spec, schema = table.spec(), table.schema()
    fields = [
        PartitionField(
            str(schema.findColumnName(each.sourceId())),
            str(each.transform().toString()),
            each.fieldId(),
        )
        for each in items_of(spec.fields())
    ]
    parser = java_class(spark, "org.apache.iceberg.PartitionSpecParser")
    return Spec(spec.specId(), tuple(fields), json.loads(str(parser.toJson(spec))))


@dataclass(frozen=True)
class _TableField:
    """A field of the table: its place in a Parquet file, its name and its type in Iceberg.

    The type has no spaces, and is "" for a nested one.
    """

    path: str
    id: int
    name: str
    type: str


def _in_struct(struct: Mapping[str, Any], path: str = "", name: str = "") -> Iterator[_TableField]:
    for each in struct["fields"]:
        own = each["name"]
        yield from _nested_columns(each["id"], path + own, name + own, each["type"])


def _nested_columns(id_: int, path: str, name: str, type_: Any) -> Iterator[_TableField]:
    written = type_.replace(" ", "") if isinstance(type_, str) else ""
    yield _TableField(path, id_, name, written)
    match type_:
        case {"type": "struct"}:
            yield from _in_struct(type_, f"{path}.", f"{name}.")
        case {"type": "list", "element-id": item, "element": inner}:
            yield from _nested_columns(item, f"{path}.list.element", f"{name}.element", inner)
        case {"type": "map"}:
            for part in ("key", "value"):
                where = f"{path}.key_value.{part}", f"{name}.{part}"
                yield from _nested_columns(type_[f"{part}-id"], *where, type_[part])


def _field(column: _TableField, metrics: Any) -> Field:
    return Field(column.id, column.type, str(metrics.columnMode(column.name).toString()))


def _fits(place: Place, there: Mapping[str, _TableField]) -> bool:
    """Return if the table has a field at the place, of the same type."""
    column = there.get(place.path.lower())
    if column is None or not isinstance(place.type, str):
        return column is not None and not column.type
    return column.type == _ICEBERG_TYPES.get(place.type, place.type)


def _size(properties: Mapping[str, str], name: str, usual: int) -> int:
    """Return a size in bytes, as Iceberg has it without a sound property."""
    text = properties.get(name, "")
    return max(int(text), _SMALLEST) if text.isdecimal() else usual


def _level(codec: str, properties: Mapping[str, str]) -> int | None:
    """Return the level of the compression, as far as its codec has one; None for its usual one."""
    most = _LEVELS.get(codec)
    level = properties.get(_LEVEL, "")
    return min(int(level), most) if most and level.isdecimal() else None


def _obstacle(
    codec: str,
    properties: Mapping[str, str],
    spec: Spec,
    order: Order,
    others: Sequence[str],
    contract: Contract,
) -> str:
    sources = (*(each.column for each in spec.fields), *(key.column for key in order.keys))
    odd = [name for name in sources if not _is_ordered(name, contract)]
    reasons = {
        f"the table is partitioned or sorted by {', '.join(odd)}": bool(odd),
        "the table is not written as Parquet": (
            properties.get("write.format.default", "parquet").lower() != "parquet"
        ),
        f"the table is compressed as {codec}": codec not in CODECS,
        "the table is encrypted": "encryption.key-id" in properties,
        f"the table has another type for {', '.join(others)}": bool(others),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _is_ordered(name: str, contract: Contract) -> bool:
    """Return if Arrow compares a column's values as Iceberg does, which orders NaN and zeros."""
    every = (*contract.table_columns, *contract.nested)
    types = {column.name: column.type for column in every if is_plain(column)}
    return types.get(name, "double") not in FLOATING


# Iceberg's names of compressions, and Arrow's.
CODECS = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "uncompressed": "none",
}
