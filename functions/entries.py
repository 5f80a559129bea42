"""Data files that jobs wrote for the tables of history, as pyiceberg enters them."""

from datetime import datetime

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType, StringType, TimestamptzType

from lakegate.errors import Permanent
from lakegate.history import PUBLISHED, Entry, HistoryTable

_PARTITION = 1000  # where Iceberg's partition fields begin
_TYPES: dict[str, PrimitiveType] = {"table_name": StringType(), "run_ts": TimestamptzType()}


def opened(catalog: RestCatalog, table: HistoryTable, lake_bucket: str) -> Table:
    """The table, made where there is none. Raises Permanent where another one has its name."""
    wanted = Schema.model_validate_json(table.schema)
    try:
        found = catalog.load_table(table.name)
    except NoSuchTableError:
        catalog.create_namespace_if_not_exists(table.name.partition(".")[0])
        found = catalog.create_table(
            table.name,
            wanted,
            location=table.location(lake_bucket),
            partition_spec=_by_published(wanted),
            properties=_properties(wanted),
        )
    ids = {field.name: field.field_id for field in found.schema().fields}
    own = found.spec() == _by_published(wanted)
    if not own or any(ids.get(f.name, f.field_id) != f.field_id for f in wanted.fields):
        message = f"{table.name} on main is not the table that Lakegate makes: drop or rename it"
        raise Permanent("TABLE_MISMATCH", message)
    return found


def data_file(table: Table, entry: Entry) -> DataFile:
    """The file as it stands in a manifest.

    It has bounds for what all of its rows have in common, so that readers can leave it out.
    """
    schema = table.schema()
    bounds = {}
    for name, value in entry.same.items():
        exact = datetime.fromisoformat(value) if name == "run_ts" else value
        bounds[schema.find_field(name).field_id] = to_bytes(_TYPES[name], exact)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=entry.file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(entry.published),
        record_count=entry.file.rows,
        file_size_in_bytes=entry.file.bytes,
        lower_bounds=bounds,
        upper_bounds=bounds,
    )
    file.spec_id = table.spec().spec_id
    return file


def _by_published(schema: Schema) -> PartitionSpec:
    source = schema.find_field(PUBLISHED).field_id
    return PartitionSpec(PartitionField(source, _PARTITION, IdentityTransform(), PUBLISHED))


def _properties(schema: Schema) -> dict[str, str]:
    return {
        "format-version": "2",
        "commit.manifest-merge.enabled": "true",
        # Files that Spark wrote have no field ids: their columns are found by name.
        "schema.name-mapping.default": create_mapping_from_schema(schema).model_dump_json(),
    }
