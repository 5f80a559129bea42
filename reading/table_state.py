"""What the metadata of a table says of it; no data file is read."""

from dataclasses import dataclass

from pyiceberg.table import Table


@dataclass(frozen=True)
class Column:
    """A column of a table's schema; `type` as Iceberg writes it."""

    name: str
    type: str
    required: bool
    about: str


@dataclass(frozen=True)
class TableState:
    """A table at one commit: `size` is its data files' in bytes, as their writers counted."""

    columns: tuple[Column, ...]
    rows: int
    files: int
    size: int
    partitioned_by: tuple[str, ...]
    location: str


def table_state(table: Table) -> TableState:
    """The state of a table that the catalog gave."""
    snapshot = table.current_snapshot()
    told = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    schema = table.schema()
    return TableState(
        columns=tuple(
            Column(field.name, str(field.field_type), field.required, field.doc or "")
            for field in schema.fields
        ),
        rows=int(told.get("total-records", 0)) - int(told.get("total-position-deletes", 0)),
        files=int(told.get("total-data-files", 0)),
        size=int(told.get("total-files-size", 0)),
        partitioned_by=tuple(
            f"{each.transform} of {schema.find_column_name(each.source_id)}"
            for each in table.spec().fields
        ),
        location=table.location(),
    )
