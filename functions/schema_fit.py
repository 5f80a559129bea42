"""Whether a table's newer schema reads files that were written with an older one. Pure."""

from pyiceberg.exceptions import ResolveError
from pyiceberg.schema import Schema, promote
from pyiceberg.types import NestedField


def reads_as_written(written: Schema, current: Schema) -> bool:
    """Whether every value in the older files is there, under its name, in the newer schema.

    Each field id must be there with the same name and the same or a wider type (Iceberg
    specification, "Schema evolution"), and no column that the files lack may be required.
    """
    by_id = {field.field_id: field for field in current.fields}
    kept = all(_kept(field, by_id.get(field.field_id)) for field in written.fields)
    known = {field.field_id for field in written.fields}
    return kept and not any(f.required for f in current.fields if f.field_id not in known)


def _kept(written: NestedField, current: NestedField | None) -> bool:
    if current is None or current.name != written.name:
        return False
    if current.field_type == written.field_type:
        return True
    try:
        return promote(written.field_type, current.field_type) == current.field_type
    except ResolveError:
        return False
