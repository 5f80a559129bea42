"""Make a landed Parquet file a data file of the branch's table, without writing its pages again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakegate.contract.model import Contract
from spark_jobs.append import INGESTION, Opened, Target, committed
from spark_jobs.audit.arrow_values import ColumnStatistics
from spark_jobs.data_file import Field, scan_task
from spark_jobs.errors import explain
from spark_jobs.files.places import Place, fields
from spark_jobs.spark import iceberg
from spark_jobs.spark.jvm import JavaError, java_class, texts_of

_ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_METRICS = "org.apache.iceberg.MetricsConfig"
_SCAN_TASKS = "org.apache.iceberg.ScanTaskParser"


@dataclass(frozen=True)
class Layout:
    """How the files of a table are written.

    `ids` are the field ids of the contract's columns, and of those within them, by their places
    (`files.places`). `fields` are those of which Iceberg keeps metrics. `obstacle` is the reason
    why no file can be registered, "" without one.
    """

    ids: Mapping[str, int]
    fields: Mapping[str, Field]
    spec_id: int
    obstacle: str = ""


def layout(spark: SparkSession, table: Any, contract: Contract) -> Layout:
    """Return the layout of the branch's table, which has the contract's columns."""
    metrics = java_class(spark, _METRICS).forTable(table)
    there = {each.path.lower(): each for each in _in_struct(iceberg.written_schema(spark, table))}
    wanted = fields(contract)
    found = {place.path: there[place.path.lower()] for place in wanted if _fits(place, there)}
    kept = {
        place.path: Field(
            found[place.path].id,
            found[place.path].type,
            str(metrics.columnMode(found[place.path].name).toString()),
        )
        for place in wanted
        if place.path in found and place.is_leaf
    }
    others = [place.path for place in wanted if place.path not in found]
    spec = table.spec()
    ids = {path: each.id for path, each in found.items()}
    return Layout(ids, kept, spec.specId(), _obstacle(table, spec, others))


@dataclass(frozen=True)
class _Found:
    """A field of the table: its place in a Parquet file, its name and its type in Iceberg.

    The type has no spaces, and is "" for a nested one.
    """

    path: str
    id: int
    name: str
    type: str


def _in_struct(struct: Mapping[str, Any], path: str = "", name: str = "") -> Iterator[_Found]:
    for each in struct["fields"]:
        own = each["name"]
        yield from _within(each["id"], path + own, name + own, each["type"])


def _within(id_: int, path: str, name: str, type_: Any) -> Iterator[_Found]:
    written = type_.replace(" ", "") if isinstance(type_, str) else ""
    yield _Found(path, id_, name, written)
    match type_:
        case {"type": "struct"}:
            yield from _in_struct(type_, f"{path}.", f"{name}.")
        case {"type": "list", "element-id": item, "element": inner}:
            yield from _within(item, f"{path}.list.element", f"{name}.element", inner)
        case {"type": "map"}:
            for part in ("key", "value"):
                where = f"{path}.key_value.{part}", f"{name}.{part}"
                yield from _within(type_[f"{part}-id"], *where, type_[part])


def _fits(place: Place, there: Mapping[str, _Found]) -> bool:
    """Return if the table has a field at the place, of the same type."""
    found = there.get(place.path.lower())
    if found is None or not isinstance(place.type, str):
        return found is not None and not found.type
    return found.type == _ICEBERG_TYPES.get(place.type, place.type)


def _obstacle(table: Any, spec: Any, others: Sequence[str]) -> str:
    properties = texts_of(table.properties())
    reasons = {
        "the table is partitioned": not spec.fields().isEmpty(),
        "the table has a sort order": not table.sortOrder().isUnsorted(),
        "the table is not written as Parquet": (
            properties.get("write.format.default", "parquet").lower() != "parquet"
        ),
        "the table is encrypted": "encryption.key-id" in properties,
        f"the table has another type for {', '.join(others)}": bool(others),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def new_location(table: Any, name: str) -> str:
    """Return the address of a new data file, where the table keeps its files."""
    return str(table.locationProvider().newDataLocation(name))


def data_file(
    spark: SparkSession,
    where: Layout,
    location: str,
    size: int,
    rows: int,
    columns: Mapping[str, ColumnStatistics],
    metadata: Any,
) -> Any:
    """Return a file as a table's `org.apache.iceberg.DataFile`.

    `metadata` is the file's (`pyarrow.parquet.FileMetaData`).
    """
    task = scan_task(location, size, rows, where.fields, columns, metadata, where.spec_id)
    return java_class(spark, _SCAN_TASKS).fromJson(task, True).file()


def register(
    opened: Opened, files: Sequence[Any], ingestion: str, branch: Target
) -> tuple[tuple[Any, ...], str]:
    """Append data files in one commit that names the ingestion.

    Returns them as the commit has them, and the commit's hash. Raises as `append.committed`, and
    Transient when the catalog refuses the commit.
    """
    append = opened.table.newAppend()  # after which the table shows its own commit
    for file in files:
        append = append.appendFile(file)
    try:
        append.set(INGESTION, ingestion).commit()
    except JavaError as error:
        raise explain(error, "the file cannot be registered") from error
    return committed(opened, branch)
