"""The JSON Schema of contracts for editors: the standard's own, with what Lakegate narrows or adds.

Rules across several keys, patterns, SQL and names are left to `contract check`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from access.contract.editor_words import WORDS
from access.contract.standard_schema import standard_schema
from lakegate.contract.checks import LIBRARY, Severity
from lakegate.contract.columns import JSON
from lakegate.contract.expectations import Operator, Unit
from lakegate.contract.model import API_VERSIONS
from lakegate.contract.reading import options, settings, table_properties
from lakegate.contract.reading.other_columns import Origin
from lakegate.contract.reading.properties import ELEMENTS, TYPE_FORMATS
from lakegate.contract.reading.quality.custom import CHECKS, COMPARISONS, DRIFTING, ENGINE
from lakegate.contract.reading.service_levels import LEVELS, UNITS
from lakegate.contract.reading.write_mode import WRITE_MODES
from lakegate.ecma_patterns import PATTERNS, UNCHECKED
from lakegate.job.landing import BATCHES

Schema = dict[str, Any]
_ANY: Schema = {}
_NAME: Schema = {"type": "string", "minLength": 1}
_NAMES: Schema = {"type": "array", "items": _NAME}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_FLAG: Schema = {"type": "boolean"}
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_EXPECTED: Schema = {"$ref": "#/$defs/DataQualityOperators"}
_SEVERITY: Schema = {"enum": [*Severity]}
_UNIT: Schema = {"enum": [Unit.ROWS, Unit.PERCENT]}
_FORMATS: Mapping[str, Collection[str]] = {**TYPE_FORMATS, "string": (*PATTERNS, *UNCHECKED)}


def contract_schema() -> Schema:
    """Return the schema of every contract that can be valid."""
    schema = _narrowed(standard_schema(), _own())
    schema["$defs"]["CustomProperty"]["properties"]["value"] = _ANY  # whose words hide a setting's
    return schema


def _narrowed(standard: Schema, own: Schema) -> Schema:
    """Return a schema of the standard with what Lakegate says of the same value."""
    both = dict(standard)
    for key, value in own.items():
        there = standard.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            both[key] = _narrowed(there, value)
        else:
            both[key] = [*(there or ()), *value] if key in ("allOf", "required") else value
    return both


def _own() -> Schema:
    """Return what Lakegate says of contracts, by the standard's definitions."""
    custom = {"customProperties": _options(settings.SETTINGS)}
    known: dict[str, Schema] = {"apiVersion": {"enum": [*API_VERSIONS]}, "schema": {"minItems": 1}}
    rule = {
        "severity": _SEVERITY,
        "unit": _UNIT,
        "metric": {"enum": [*LIBRARY]},
        "customProperties": _options(options.OF_RULE),
    }
    own = _when("engine", ENGINE, _object({"implementation": _implementation()}))
    definitions = {
        "SchemaObject": _object(custom, "properties"),
        "SchemaBaseProperty": _property(),
        "DataQuality": _object(rule),
        "DataQualityLibrary": {"properties": {"rule": False}},
        "DataQualityCustom": own,
        "RelationshipBase": _object({"customProperties": _options(options.OF_RELATIONSHIP)}),
        "ServiceLevelAgreementProperty": {"allOf": [_duration(level) for level in LEVELS]},
    }
    root = _object(known | custom, "schema")
    return {"title": "lakegate-contract", **root, "$defs": definitions}


def _object(known: Mapping[str, Schema], *needed: str, closed: bool = False) -> Schema:
    """Return the schema of a mapping, with Lakegate's words for its keys."""
    words = {key: {"description": WORDS[key]} if key in WORDS else {} for key in known}
    properties = {key: words[key] | schema for key, schema in known.items()}
    limits = {"type": "object", "additionalProperties": False} if closed else {}
    return {"properties": properties, "required": [*needed], **limits}


def _when(key: str, value: str, then: Schema) -> Schema:
    """Return a schema that demands `then` of a mapping whose key has the value."""
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


def _options(names: Collection[str]) -> Schema:
    """Return the schema of `customProperties` with known names, and others."""
    values_of = _object(_values())["properties"]
    known = {"enum": [*names], "enumDescriptions": [WORDS[name] for name in names]}
    given = {"property": {"anyOf": [known, _NAME]}}
    whens = [_when("property", name, _object({"value": values_of[name]})) for name in names]
    return {"items": {"properties": given, "allOf": whens}}


def _values() -> dict[str, Schema]:
    """Return the values of Lakegate's settings and options."""
    names = ("landingPrefix", "latestBy", "transform", "where", "partitionTransform", "formerName")
    limits = {"maxRows": _COUNT, "maxPercent": {**_POSITIVE, "maximum": 100}, "unreadable": _FLAG}
    window = {"windowDays": {**_COUNT, "minimum": 1}, "windowColumn": _NAME}
    deletion = {"column": _NAME, "value": _SCALAR}
    prefixes = {"type": "array", "items": {"type": "string", "pattern": f"^{BATCHES}"}}
    choices = {**settings.CHOICES, "writeMode": WRITE_MODES, "onBadRow": ("fail", "quarantine")}
    stored = {
        **dict.fromkeys(table_properties.TABLE_PROPERTIES, _COUNT),
        table_properties.CODEC: {"enum": [*table_properties.CODECS]},
    }
    return {
        **{name: {"enum": [*those]} for name, those in choices.items()},
        **dict.fromkeys(names, _NAME),
        **dict.fromkeys(("sortOrder", "droppedColumns"), _NAMES),
        **dict.fromkeys(("failUnless", "warnUnless"), _EXPECTED),
        "severity": _SEVERITY,
        "unit": _UNIT,
        "allowSamples": _FLAG,
        "options": _object(dict.fromkeys(settings.CSV_OPTIONS, _SCALAR), closed=True),
        "deleteWhen": _object(deletion, *deletion, closed=True),
        "batches": {"anyOf": [{"const": "allowed"}, prefixes]},
        "quarantine": {
            **_object(limits, closed=True),
            "anyOf": [{"required": ["maxRows"]}, {"required": ["maxPercent"]}],
        },
        "missingColumns": {"enum": [*choices["missingColumns"], None]},  # YAML reads null so
        "tableProperties": _object(stored, closed=True),
        "provenance": {
            "anyOf": [{"const": "all"}, _object(dict.fromkeys(Origin, _NAME), closed=True)]
        },
        "scope": {"anyOf": [{"enum": ["file", "table"]}, _object(window, *window, closed=True)]},
    }


def _property() -> Schema:
    """Return what Lakegate demands of a column, or of what lies within one."""
    narrowed = ("physicalName", "unique", "primaryKey", "classification")
    known = {
        **dict.fromkeys(narrowed, _ANY),
        "semanticType": {"not": {"const": "measure"}},
        "customProperties": _options(options.OF_PROPERTY),
    }
    demands: dict[str, Schema] = {
        "object": {"anyOf": [_needs("properties"), _json()]},
        "array": {"required": ["items"]},
        "vector": _limit("elementType", ELEMENTS),
        **{name: _limit("format", formats) for name, formats in _FORMATS.items()},
    }
    whens = [_when("logicalType", *demand) for demand in demands.items()]
    either = [_needs("logicalType"), _needs("physicalType")]
    return {**_object(known), "anyOf": either, "allOf": whens}


def _json() -> Schema:
    return _object({"physicalType": {"enum": [*JSON, *map(str.upper, JSON)]}}, "physicalType")


def _needs(key: str) -> Schema:
    return {"required": [key]}


def _limit(option: str, choices: Collection[str]) -> Schema:
    limits = {"properties": {option: {"enum": [*choices]}}}
    return {"properties": {"logicalTypeOptions": limits}}


def _implementation() -> Schema:
    """Return the schema of a rule that the standard has no metric for, by its check."""
    known: dict[str, Schema] = {
        **dict.fromkeys(("expression", "column", "other"), _NAME),
        **dict.fromkeys(("properties", "sums"), _NAMES),
        **dict.fromkeys(map(str, Operator), _ANY),
        "check": {"enum": [*CHECKS]},
        "unit": _UNIT,
        "operator": {"enum": [*COMPARISONS]},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "of": {"enum": [*DRIFTING]},
        "k": _POSITIVE,
    }
    always = ("check", "unit", *Operator)
    whens = [
        _when("check", name, {"propertyNames": {"enum": [*always, *keys]}})
        for name, (keys, _) in CHECKS.items()
    ]
    return {**_object(known, "check"), "allOf": whens}


def _duration(level: str) -> Schema:
    return _when("property", level, _object({"value": _POSITIVE, "unit": {"enum": [*UNITS]}}))
