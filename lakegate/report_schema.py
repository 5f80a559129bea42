"""The JSON Schema of audit reports, made from the classes that write and read them."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from enum import EnumType
from typing import Any

from lakegate.report import SCHEMA, AuditReport

_PLAIN = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    types.NoneType: {"type": "null"},
}


def report_schema() -> dict[str, Any]:
    """Return the schema of every report (JSON Schema, draft 2020-12).

    Fields of newer releases are allowed; fields with a default may be missing, as in older reports.
    """
    # A batch has parts: reports without `schema`.
    return {**schema_of(AuditReport, SCHEMA), "$defs": {"part": _object(AuditReport)}}


def schema_of(class_: Any, name: str) -> dict[str, Any]:
    """Return the schema of documents with a dataclass's fields that name this schema."""
    made = _object(class_)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **made,
        "properties": {"schema": {"const": name}, **made["properties"]},
        "required": ["schema", *made["required"]],
    }


def _object(class_: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(class_)
    fields = dataclasses.fields(class_)
    return {
        "description": " ".join((class_.__doc__ or "").split()),
        "type": "object",
        "properties": {field.name: _type(hints[field.name]) for field in fields},
        "required": [field.name for field in fields if _is_needed(field)],
    }


def _is_needed(field: "dataclasses.Field[Any]") -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _type(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, EnumType):
        return {"enum": [member.value for member in hint]}  # type: ignore[var-annotated]
    if dataclasses.is_dataclass(hint):
        return {"$ref": "#/$defs/part"} if hint is AuditReport else _object(hint)
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type(inner[0])}
    if typing.get_origin(hint) is Mapping:
        return {"type": "object", "additionalProperties": _type(inner[1])}
    return {"anyOf": [_type(each) for each in inner]}


if __name__ == "__main__":
    print(json.dumps(report_schema(), indent=2))
