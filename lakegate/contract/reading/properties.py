"""Read the columns that a contract's properties declare, nested ones included."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakegate.contract.columns import (
    ITEM,
    JSON,
    KEY,
    LOGICAL_TYPES,
    VALUE,
    Column,
    declared_type,
    default_type,
    folded,
    is_known,
    logical_of,
    quoted,
)
from lakegate.contract.reading.options import OF_PROPERTY, Options, read_options
from lakegate.contract.reading.settings import read_pattern, read_zone
from lakegate.contract.text.fields import Field

_MAX_NAME = 255  # bytes, as in AWS Glue
NESTED = ("object", "array", "map", "vector")
_CONTAINERS = {
    "object": ("struct", "object", "row", "record", *JSON),
    "map": ("map",),
    **dict.fromkeys(("array", "vector"), ("array", "list")),
}
ELEMENTS = {"float32": "float", "float64": "double"}
_OPEN_CLASSES = ("", "public", "internal")
# fmt: off
_KNOWN = (
    "name", "physicalName", "logicalType", "physicalType", "logicalTypeOptions", "required",
    "unique", "primaryKey", "classification", "semanticType", "enum", "quality",
    "properties", "items", "map", "customProperties", "relationships", "partitioned",
)
_IGNORED = (
    "id", "description", "businessName", "deprecated", "synonyms", "authoritativeDefinitions",
    "tags", "partitionKeyPosition", "primaryKeyPosition",
    "encryptedName", "examples", "transformSourceObjects", "transformLogic",
    "transformDescription", "criticalDataElement",
)
_RESERVED = (
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
    "_last_updated_sequence_number", "_corrupt_record", "_place", "_times",
)
# fmt: on
TYPE_FORMATS: Mapping[str, Mapping[str, str]] = {
    "integer": {
        **dict.fromkeys(("i8", "i16", "i32", "u8", "u16"), "int"),
        **dict.fromkeys(("i64", "u32"), "bigint"),
        "u64": "decimal(20,0)",
    },
    "number": {"f32": "float", "f64": "double"},
}


@dataclass(frozen=True)
class Property:
    """A property of the contract, and its column.

    `length` is the most characters that its physical type allows, such as 2 for `VARCHAR(2)`.
    `within` are the properties of an object's fields, an array's items, a map's keys and values.
    """

    field: Field
    name: str
    column: Column
    options: Options
    length: int | None = None
    within: "tuple[Property, ...]" = ()

    def walk(self) -> "Iterator[Property]":
        """Yield the property and all that lie within it, in the contract's order."""
        yield self
        for inner in self.within:
            yield from inner.walk()


@dataclass(frozen=True)
class _Place:
    """A property's place: the path to its parent, as steps and as text."""

    path: tuple[str, ...] = ()
    words: str = ""
    sensitive: bool = False

    def field(self, name: str) -> "_Place":
        words = f"{self.words}.{name}" if self.words else name
        return _Place((*self.path, name), words, self.sensitive)

    def step(self, step: str) -> "_Place":
        return _Place((*self.path, step), self.words + step, self.sensitive)


def read_properties(fields: Field) -> list[Property]:
    """Return the properties of a schema object; their names are checked against each other."""
    properties = list(_properties(fields, _Place()))
    if not properties:
        fields.refuse("has no columns")
    _refuse_two_ways(properties)
    return properties


def _refuse_two_ways(properties: list[Property]) -> None:
    """Refuse a column `a.b` beside a field b of a column `a`: they would have one name."""
    top = {folded(entry.column.name): entry for entry in properties}
    for inner in (inner for entry in properties for part in entry.within for inner in part.walk()):
        if other := top.get(folded(inner.column.name)):
            reason = f"{other.column.name!r} is also what lies within another column, in line"
            other.field.refuse(f"{reason} {inner.field.node.line}: rename one of them")


def _properties(fields: Field, place: _Place) -> Iterator[Property]:
    lines: dict[str, int] = {}
    for field in fields.items():
        name = _name(field, top=not place.path)
        same = folded(name)
        if name and same in lines:
            field.refuse(
                f"the column {name!r} is declared twice, first in line {lines[same]}"
                " (upper and lower case are the same)"
            )
        lines.setdefault(same, field.node.line)
        yield _property(field, place.field(name))


def _property(field: Field, place: _Place) -> Property:
    field.limit_keys(_KNOWN, _IGNORED)
    if field.text("semanticType") == "measure":
        field.refuse("a measure is not a column of the data", "semanticType")
    logical = _logical_type(field)
    open_ = field.text("classification").lower() in _OPEN_CLASSES
    place = _Place(place.path, place.words, place.sensitive or not open_)
    _refuse_foreign_parts(field, logical)
    if len(place.path) > 1 and field.at("primaryKey").node.value is True:
        reason = "lies within another column: only whole columns are a key, so say required: true"
        field.refuse(reason, "primaryKey")
    if logical in NESTED:
        type_, within, length = *_nested(field, logical, place), None
    else:
        (type_, length), within = _type(field, logical) if logical else ("", None), ()
    column = Column(
        name=place.words,
        type=type_,
        logical_type=logical,
        required=field.flag("required") or field.flag("primaryKey"),
        sensitive=place.sensitive,
        description=field.text("description"),
        path=place.path if len(place.path) > 1 else (),
        written=read_pattern(field.at("logicalTypeOptions"), logical, type_),
        zone=read_zone(field.at("logicalTypeOptions"), logical, type_),
        fields=tuple(p.column.path[-1] for p in within) if logical == "object" else (),
        line=field.node.line,
    )
    options = read_options(field, OF_PROPERTY)
    return Property(field, field.text("name"), column, options, length, within)


def _logical_type(field: Field) -> str:
    """Return the logicalType, or that of the physicalType alone.

    A physical one in its place gets the advice where it belongs. A date with a physical type of
    timestamps is one, as before v3.1.0 the standard had no other. JSON without properties is text.
    """
    given, physical = field.at("logicalType").node.value, field.at("physicalType").node.text
    if isinstance(given, str) and given not in LOGICAL_TYPES and (near := logical_of(given)):
        more = "" if default_type(near) == given else f" and physicalType: {given}"
        reason = f"{given!r} is a physical type: write logicalType: {near}{more}"
        field.refuse(reason, "logicalType")
        return ""
    if not field.has("logicalType") and (implied := logical_of(physical)):
        return implied
    logical = field.choice("logicalType", LOGICAL_TYPES)
    if logical == "date" and logical_of(physical) == "timestamp":
        return "timestamp"
    if logical == "object" and physical.lower() in JSON and not field.has("properties"):
        return "string"
    return logical


def _nested(field: Field, logical: str, place: _Place) -> tuple[str, tuple[Property, ...]]:
    """Return the Spark SQL type of a nested column, and the properties within."""
    if field.has("physicalType"):
        _refuse_other_container(field, logical)
    match logical:
        case "object":
            inner = tuple(_properties(field.at("properties"), place))
            if not inner:
                field.refuse("an object needs properties", "properties")
            fields = ",".join(f"{quoted(p.column.path[-1])}:{p.column.type}" for p in inner)
            return f"struct<{fields}>", inner
        case "map":
            parts = field.at("map")
            key = _property(parts.at("key"), place.step(KEY))
            value = _property(parts.at("value"), place.step(VALUE))
            return f"map<{key.column.type},{value.column.type}>", (key, value)
        case "vector":
            options = field.at("logicalTypeOptions")
            element = options.choice("elementType", tuple(ELEMENTS), default="float32")
            return f"array<{ELEMENTS.get(element, 'float')}>", ()
        case _:
            item = _property(field.at("items"), place.step(ITEM))
            return f"array<{item.column.type}>", (item,)


def _refuse_foreign_parts(field: Field, logical: str) -> None:
    for key, owner in (("properties", "object"), ("items", "array"), ("map", "map")):
        if logical and logical != owner and field.has(key):
            field.refuse(f"belongs to logicalType {owner}", key)


def _refuse_other_container(field: Field, logical: str) -> None:
    given = field.text("physicalType").strip().lower()
    own = _CONTAINERS[logical]
    others = [name for names in _CONTAINERS.values() if names is not own for name in names]
    if not given.startswith(own) and (is_known(given) or given.startswith(tuple(others))):
        field.refuse(f"{given} is not a type for a column of logicalType {logical}", "physicalType")


def _name(field: Field, *, top: bool) -> str:
    name = field.required_text("name")
    key = "physicalName" if field.has("physicalName") else "name"
    name = field.required_text(key) if key == "physicalName" else name
    if name and (problem := name_problem(name, top=top)):
        field.refuse(problem, key)
    return name


def name_problem(name: str, *, top: bool) -> str:
    """Return why a name is invalid for a column, or (not `top`) a nested one; "" if it is valid."""
    if not (name.strip() and name.isprintable() and len(name.encode()) <= _MAX_NAME):
        return f"{name!r} cannot name a column: give up to 255 bytes of visible characters"
    if top and name.lower() in _RESERVED:
        return f"{name!r} is a name that Iceberg, Spark or reports use for themselves"
    return ""


def _type(field: Field, logical: str) -> tuple[str, int | None]:
    """Return the column's type, and the length in characters that it allows."""
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
    """Return the type that the options of a logical type imply, "" if they imply none."""
    if logical == "timestamp" and options.has("timezone"):
        return "timestamp" if options.flag("timezone") else "timestamp_ntz"
    if logical in TYPE_FORMATS and options.has("format"):
        return TYPE_FORMATS[logical].get(options.choice("format", TYPE_FORMATS[logical]), "")
    return ""
