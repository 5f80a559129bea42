"""The JSON Schema of contracts for editors, made from the rules by which contracts are read.

It completes and checks keys, types and choices while a contract is written (draft 7, which editors
know best). Rules across several keys, patterns, SQL and names are left to `contract check`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from lakegate.contract.checks import LIBRARY, Severity
from lakegate.contract.columns import LOGICAL_TYPES, Column, default_type
from lakegate.contract.editor_words import WORDS
from lakegate.contract.expectations import Operator, Unit
from lakegate.contract.model import API_VERSIONS
from lakegate.contract.reading import fields, layout, quality, settings, values
from lakegate.contract.reading.custom import CHECKS, COMPARISONS, DRIFTING
from lakegate.contract.reading.properties import ELEMENTS, TYPE_FORMATS, option_keys
from lakegate.contract.reading.provenance import Origin
from lakegate.contract.reading.relationships import RELATIONSHIP_KNOWN
from lakegate.contract.reading.service_levels import LEVELS, UNITS
from lakegate.contract.reading.write_mode import WRITE_MODES
from lakegate.ecma_patterns import PATTERNS, UNCHECKED
from lakegate.landing import BATCHES

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
NAMES: Schema = {"type": "array", "items": TEXT, "minItems": 1}
ANYTHING: Schema = {}
_FORMATS: Mapping[str, Collection[str]] = {**TYPE_FORMATS, "string": (*PATTERNS, *UNCHECKED)}
_NESTED = {"object": "struct<>", "array": "array<>", "map": "map<>", "vector": "array<>"}


def contract_schema() -> Schema:
    """Return the schema of every contract that can be valid."""
    known: dict[str, Schema] = {
        "kind": {"const": "DataContract"},
        "apiVersion": {"enum": [*API_VERSIONS]},
        "id": NAME,
        "version": NAME,
        "schema": {**_list(_table()), "minItems": 1, "maxItems": 1},
        "support": _list(_object(_of(fields.SUPPORT_KNOWN, {}), fields.SUPPORT_IGNORED)),
        "customProperties": _ref("settings"),
        "slaProperties": _list({"allOf": [_duration(name) for name in LEVELS]}),
    }
    needed = ("kind", "apiVersion", "id", "version", "schema")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "lakegate-contract",
        "description": "A contract of the Open Data Contract Standard, as far as Lakegate reads it",
        **_object(_of(fields.ROOT_KNOWN, known), fields.ROOT_IGNORED, needed),
        "definitions": {
            "settings": _options(_settings()),
            "property": _property(),
            "column": {"allOf": [_ref("property"), {"required": ["name"]}]},
            "rule": _rule(),
            "operators": _object(_operators()),
        },
    }


def _object(
    known: Mapping[str, Schema], ignored: Collection[str] = (), needed: Collection[str] = ()
) -> Schema:
    """Return the schema of a mapping with known keys; `ignored` ones may hold anything."""
    described = {name: _described(name, schema) for name, schema in known.items()}
    return {
        "type": "object",
        "properties": {**described, **dict.fromkeys(ignored, ANYTHING)},
        "required": [*needed],
        "additionalProperties": False,
    }


def _of(names: Collection[str], known: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of known names; one without a schema of its own may hold anything."""
    return {name: known.get(name, ANYTHING) for name in names}


def _described(name: str, schema: Schema) -> Schema:
    return {"description": WORDS[name], **schema} if name in WORDS else schema


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _choice(choices: Collection[str]) -> Schema:
    return {"enum": [str(choice) for choice in choices]}


def _when(key: str, value: str, then: Schema) -> Schema:
    """Return a schema that demands `then` of a mapping whose key has the value."""
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


def _options(known: Mapping[str, Schema], *, others: bool = True) -> Schema:
    """Return the schema of `customProperties` with known names, and with `others` if allowed."""
    names = {"enum": [*known], "enumDescriptions": [WORDS.get(name, "") for name in known]}
    given = {"property": {"anyOf": [names, NAME]} if others else names, "value": ANYTHING}
    whens = [
        _when(
            "property",
            name,
            {
                "properties": {"value": _described(name, schema)},
                "required": [] if None in schema.get("enum", ()) else ["value"],
            },
        )
        for name, schema in known.items()
    ]
    item = _object(given, ("id", "description", "vendor"), ["property"])
    return _list({**item, "allOf": whens})


def _settings() -> dict[str, Schema]:
    """Return the values of Lakegate's settings."""
    prefix = {"type": "string", "pattern": f"^{BATCHES}"}
    percent = {**POSITIVE, "maximum": 100}
    limits = {"maxRows": COUNT, "maxPercent": percent, "unreadable": FLAG}
    known = {
        **dict.fromkeys(("landingPrefix", "latestBy"), NAME),
        "format": _choice(settings.FORMATS),
        "options": _object(_of(settings.CSV_OPTIONS, _reading())),
        "allowSamples": FLAG,
        "onDuplicate": _choice(settings.ON_DUPLICATE),
        "onNewVersion": _choice(settings.ON_NEW_VERSION),
        "isolation": _choice(settings.ISOLATION),
        "write": _choice(settings.WRITE),
        "writeMode": _choice(WRITE_MODES),
        "deleteWhen": _object({"column": NAME, "value": SCALAR}, (), ["column", "value"]),
        "compaction": _choice(settings.COMPACTION),
        "batches": {"anyOf": [{"const": "allowed"}, _list(prefix)]},
        "quarantine": {
            **_object(limits),
            "anyOf": [{"required": ["maxRows"]}, {"required": ["maxPercent"]}],
        },
        "extraColumns": _choice(settings.EXTRA_COLUMNS),
        "missingColumns": {"enum": [*settings.MISSING_COLUMNS, None]},  # YAML reads null so
        "transform": NAME,
        "sortOrder": _list(TEXT),
        "tableProperties": _object(_of(layout.TABLE_PROPERTIES, _table_properties())),
        "provenance": {"anyOf": [{"const": "all"}, _object(dict.fromkeys(map(str, Origin), NAME))]},
        "droppedColumns": _list(TEXT),
    }
    return _of(settings.SETTINGS, known)


def _reading() -> dict[str, Schema]:
    character = {"type": "string", "minLength": 1, "maxLength": 2}  # \t is written as two
    return {
        **dict.fromkeys(("delimiter", "quote", "escape"), character),
        **dict.fromkeys(("nullValue", "emptyValue"), TEXT),
        "maxCompressionRatio": {**COUNT, "minimum": 1},
        "header": {"enum": [True, False, "true", "false"]},
        "encoding": {"anyOf": [_choice(settings.ENCODINGS), TEXT]},  # in any case
    }


def _table_properties() -> dict[str, Schema]:
    sizes = {
        name: {"type": "integer", "minimum": least, "maximum": most}
        for name, (least, most) in layout.SIZES.items()
    }
    return {**sizes, layout.CODEC: _choice(layout.CODECS)}


def _table() -> Schema:
    """Return the schema of the one table that a contract describes."""
    known = {
        "name": NAME,
        "physicalName": NAME,
        "logicalType": {"const": "object"},
        "properties": {**_list(_ref("column")), "minItems": 1},
        "quality": _list(_ref("rule")),
        "customProperties": _ref("settings"),
        "relationships": _list(_relationship("from")),
    }
    return {
        **_object(_of(fields.OBJECT_KNOWN, known), fields.OBJECT_IGNORED, ["properties"]),
        "anyOf": [{"required": ["name"]}, {"required": ["physicalName"]}],
    }


def _property() -> Schema:
    """Return the schema of a column, or of what lies within one."""
    known = {
        **dict.fromkeys(("name", "physicalName", "physicalType"), NAME),
        **dict.fromkeys(("required", "unique", "primaryKey", "partitioned"), FLAG),
        "logicalType": _choice(LOGICAL_TYPES),
        "logicalTypeOptions": {"type": "object", "properties": _facets()},
        "classification": TEXT,
        "semanticType": {"type": "string", "not": {"const": "measure"}},
        "enum": _list({"type": "object", "properties": {"value": SCALAR}, "required": ["value"]}),
        "quality": _list(_ref("rule")),
        "properties": _list(_ref("column")),
        "items": _ref("property"),
        "map": {
            "type": "object",
            "properties": {"key": _ref("property"), "value": _ref("property")},
            "required": ["key", "value"],
        },
        "customProperties": _options(_of(values.OF_PROPERTY, _rule_options())),
        "relationships": _list(_relationship()),
    }
    schema = _object(
        _of(fields.PROPERTY_KNOWN, known),
        (*fields.PROPERTY_IGNORED, "partitionKeyPosition"),
        ["logicalType"],
    )
    return {**schema, "allOf": [_when("logicalType", t, _typed(t)) for t in LOGICAL_TYPES]}


def _typed(logical: str) -> Schema:
    """Return what a logical type demands of its property."""
    column = Column("", _NESTED.get(logical) or default_type(logical), logical)
    parts = {"object": "properties", "array": "items", "map": "map"}
    foreign = [part for owner, part in parts.items() if owner != logical]
    options = {"propertyNames": _choice(option_keys(column))}
    if formats := _FORMATS.get(logical):
        options["properties"] = {"format": _choice(formats)}
    return {
        "properties": {"logicalTypeOptions": options, **dict.fromkeys(foreign, False)},
        "required": [parts[logical]] if logical in parts else [],
    }


def _facets() -> dict[str, Schema]:
    """Return the values of `logicalTypeOptions`, of all types."""
    lengths = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    return {
        **dict.fromkeys(lengths, COUNT),
        **dict.fromkeys(bounds, SCALAR),
        **dict.fromkeys(("uniqueItems", "timezone"), FLAG),
        **dict.fromkeys(("pattern", "format", "defaultTimezone"), TEXT),
        "multipleOf": POSITIVE,
        "required": _list(TEXT),
        "dimensions": {**COUNT, "minimum": 1},
        "elementType": _choice(ELEMENTS),
    }


def _rule() -> Schema:
    """Return the schema of a rule under `quality`, by its type."""
    known = {
        **dict.fromkeys(("id", "name"), TEXT),
        "type": _choice(quality.KINDS),
        "severity": _choice((*Severity,)),
        "unit": _choice((Unit.ROWS, Unit.PERCENT)),
        "metric": _choice(LIBRARY),
        "arguments": {"type": "object"},
        "query": NAME,
        "engine": {"const": "lakegate"},
        "implementation": _implementation(),
        "customProperties": _options(_of(values.OF_RULE, _rule_options()), others=False),
        **_operators(),
    }
    kinds = {
        "sql": {**_keys(quality.OF_SQL, ["query"]), **_one_operator()},
        "custom": _keys(quality.OF_CUSTOM, ["engine", "implementation"]),
        "text": {},
    }
    return {
        **_object(known, fields.RULE_IGNORED),
        "allOf": [_when("type", name, kind) for name, kind in kinds.items()],
        "if": {"properties": {"type": {"enum": [*kinds]}}, "required": ["type"]},
        "else": {**_keys(fields.RULE_KNOWN, ["metric"]), **_one_operator()},
    }


def _keys(known: Collection[str], needed: Collection[str]) -> Schema:
    return {"propertyNames": _choice((*known, *fields.RULE_IGNORED)), "required": [*needed]}


def _operators() -> dict[str, Schema]:
    ends = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    value = {"type": ["number", "boolean"]}  # a query may answer true or false
    return {
        str(operator): ends if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else value
        for operator in Operator
    }


def _one_operator() -> Schema:
    return {"oneOf": [{"required": [str(operator)]} for operator in Operator]}


def _implementation() -> Schema:
    """Return the schema of a rule that the standard has no metric for, by its check."""
    known = {
        "check": _choice(CHECKS),
        "unit": _choice((Unit.ROWS, Unit.PERCENT)),
        **dict.fromkeys(("expression", "column", "other"), NAME),
        "operator": _choice(COMPARISONS),
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "properties": NAMES,
        "format": _choice(("json", "csv")),
        "sums": _list(TEXT),
        "of": _choice(DRIFTING),
        "k": POSITIVE,
        **_operators(),
    }
    always = ("check", "unit", *Operator)
    whens = [
        _when("check", name, {"propertyNames": _choice((*always, *keys))})
        for name, (keys, _) in CHECKS.items()
    ]
    return {**_object(known, (), ["check"]), "allOf": whens}


def _rule_options() -> dict[str, Schema]:
    """Return the values of the options of a rule, a property or a relationship."""
    window = {"windowDays": {**COUNT, "minimum": 1}, "windowColumn": NAME}
    return {
        "scope": {"anyOf": [_choice(("file", "table")), _object(window, (), [*window])]},
        "severity": _choice((*Severity,)),
        "where": NAME,
        "onBadRow": _choice(("fail", "quarantine")),
        "unit": _choice((Unit.ROWS, Unit.PERCENT)),
        "partitionTransform": TEXT,
        "formerName": NAME,
        "failUnless": _ref("operators"),
        "warnUnless": _ref("operators"),
    }


def _relationship(*more: str) -> Schema:
    target = {"anyOf": [TEXT, NAMES]}
    known = {
        "id": TEXT,
        "type": {"const": "foreignKey"},
        **dict.fromkeys(("to", "from"), target),
        "customProperties": _options(_of(values.OF_RELATIONSHIP, _rule_options())),
    }
    return _object(_of((*RELATIONSHIP_KNOWN, *more), known), (), ["to", *more])


def _duration(name: str) -> Schema:
    value = {"value": POSITIVE, "unit": _choice(UNITS)}
    return _when("property", name, {"properties": value, "required": ["value"]})
