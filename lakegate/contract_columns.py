"""The columns that a contract's properties declare."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakegate.columns import LOGICAL_TYPES, Column, declared_type, default_type
from lakegate.contract_fields import Field
from lakegate.contract_keys import PROPERTY_IGNORED, PROPERTY_KNOWN, PROPERTY_REFUSED

_MAX_NAME = 255
_NESTED = ("object", "array", "map", "vector")
_OPEN_CLASSES = ("", "public", "internal")
_UTC = ("", "UTC", "Etc/UTC")
# fmt: off
_RESERVED = (
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
    "_last_updated_sequence_number", "_corrupt_record",
)
# fmt: on
_FORMATS: Mapping[str, Mapping[str, str]] = {
    "integer": {"i32": "int", "i64": "bigint"},
    "number": {"f32": "float", "f64": "double"},
}


@dataclass(frozen=True)
class Property:
    """A property of the contract, and the column that it means.

    `length` is the most characters that its physical type allows, such as 2 for `VARCHAR(2)`.
    """

    field: Field
    name: str
    column: Column
    length: int | None


def read_properties(fields: Field) -> list[Property]:
    """The properties of a schema object, with its columns' names checked against each other."""
    properties = [_property(field) for field in fields.items()]
    if not properties:
        fields.refuse("has no columns")
    lines: dict[str, int] = {}
    for found in properties:
        name = found.column.name.lower()
        if name and name in lines:
            found.field.refuse(
                f"the column {found.column.name!r} is declared twice, first in line {lines[name]}"
                " (upper and lower case are the same)"
            )
        lines.setdefault(name, found.field.node.line)
    return properties


def _property(field: Field) -> Property:
    field.limit_keys(PROPERTY_KNOWN, PROPERTY_IGNORED, PROPERTY_REFUSED)
    if field.text("semanticType") == "measure":
        field.refuse("a measure is no column of the data", "semanticType")
    logical = _logical_type(field)
    type_, length = _type(field, logical) if logical else ("", None)
    column = Column(
        name=_name(field),
        type=type_,
        logical_type=logical,
        required=field.flag("required") or field.flag("primaryKey"),
        sensitive=field.text("classification").lower() not in _OPEN_CLASSES,
        description=field.text("description"),
    )
    return Property(field, field.text("name"), column, length)


def _name(field: Field) -> str:
    name = field.required_text("name")
    key = "physicalName" if field.has("physicalName") else "name"
    name = field.text(key, name)
    if name and not (name.strip() and name.isprintable() and len(name) <= _MAX_NAME):
        field.refuse(f"{name!r} cannot name a column: give up to 255 visible characters", key)
    if name.lower() in _RESERVED:
        field.refuse(f"{name!r} is a name that Iceberg and Spark use for themselves", key)
    return name


def _logical_type(field: Field) -> str:
    """One of LOGICAL_TYPES, or "" when it had to be refused."""
    if field.text("logicalType") in _NESTED:
        field.refuse("nested columns are not supported yet", "logicalType")
        return ""
    return field.choice("logicalType", LOGICAL_TYPES)


def _type(field: Field, logical: str) -> tuple[str, int | None]:
    """The column's type, and the length in characters that it allows."""
    by_option = _type_by_option(field.at("logicalTypeOptions"), logical)
    if not field.has("physicalType"):
        return by_option or default_type(logical), None
    try:
        declared, length = declared_type(field.text("physicalType"), logical)
    except ValueError as reason:
        field.refuse(str(reason), "physicalType")
        return default_type(logical), None
    if by_option and by_option != declared:
        other = f"means {declared}, but the logicalTypeOptions mean {by_option}"
        field.refuse(other, "physicalType")
    return declared, length


def _type_by_option(options: Field, logical: str) -> str:
    """The type that the options of a logical type ask for, "" where they leave it open."""
    if options.text("defaultTimezone") not in _UTC:
        options.refuse("only UTC is supported", "defaultTimezone")
    if logical == "timestamp" and options.has("timezone"):
        return "timestamp" if options.flag("timezone") else "timestamp_ntz"
    if logical in _FORMATS and options.has("format"):
        return _FORMATS[logical].get(options.choice("format", _FORMATS[logical]), "")
    return ""
