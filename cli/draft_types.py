"""Choose the types of a drafted contract, and write it as YAML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from textwrap import indent
from typing import Any

import yaml

from cli.contract_hints import looks_like_money
from cli.sample import ColumnProfile
from lakegate.errors import LakegateError

# The YAML of a draft: readable, and parsed back to exactly the same values.

_WIDE = 100
_LONGEST = 40
_PLAIN_NAME = re.compile(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z][A-Za-z0-9_]*")


class Quoted(str):
    """A text that is written in quotes, so that every YAML parser reads text."""

    __slots__ = ()


def dumped(value: Any, depth: int = 0) -> str:
    """Return a list or a mapping as YAML, indented by `depth` spaces."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=_WIDE - depth,
    )
    return indent(text, " " * depth)


def name_of(column: str) -> str:
    """Return a column's name, quoted if YAML could read it as another type."""
    return column if _PLAIN_NAME.fullmatch(column) else Quoted(column)


def comment(value: object) -> str:
    """Return a value for a comment: on one line, shortened if long."""
    if isinstance(value, float):
        return f"{Decimal(repr(value)):,f}".removesuffix(".0")
    text = str(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return shown if shown.isprintable() and shown.strip() else repr(shown)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, value: Quoted) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style='"')


def _number(dumper: yaml.SafeDumper, value: Decimal) -> yaml.Node:
    is_integer = value == value.to_integral_value()
    tag, text = ("int", f"{value:.0f}") if is_integer else ("float", f"{value:f}")
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


_Dumper.add_representer(Quoted, _quoted)
_Dumper.add_representer(Decimal, _number)


_LARGEST = {"int": 2**31 - 1, "": 2**63 - 1}


@dataclass(frozen=True)
class Type:
    """A logicalType, its physicalType ("" for the default), and `more` keys of a nested one."""

    logical: str
    physical: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def declaration(self) -> dict[str, Any]:
        """Return the keys of a property that declare the type."""
        physical = {"physicalType": self.physical} if self.physical else {}
        return {"logicalType": self.logical, **physical, **self.more}

    @property
    def clock(self) -> str:
        """Return the suffix that makes a date midnight in this type."""
        if self.logical == "date":
            return ""
        return "T00:00:00" if self.physical else "T00:00:00Z"

    def holds(self, bound: Decimal) -> bool:
        """Return whether a column of the type can hold the number."""
        if self.physical.startswith("decimal"):
            digits, scale = map(int, self.physical[len("decimal(") : -1].split(","))
            return abs(bound) < Decimal(10) ** (digits - scale)
        return self.logical == "number" or abs(bound) <= _LARGEST[self.physical]


_SHAPES = {
    "boolean": Type("boolean"),
    "integer": Type("integer"),
    "decimal": Type("number"),
    "number": Type("number"),
    "date": Type("date"),
    "timestamp": Type("timestamp", "timestamp_ntz"),
    "instant": Type("timestamp"),
    "time": Type("time"),
}
_TYPES = {
    **dict.fromkeys(("VARCHAR", "JSON", '"NULL"'), Type("string")),
    "UUID": Type("string"),
    "BLOB": Type("string", "binary"),
    "BOOLEAN": Type("boolean"),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"), Type("integer", "int")
    ),
    **dict.fromkeys(("BIGINT", "UINTEGER"), Type("integer")),
    "UBIGINT": Type("integer", "decimal(20,0)"),
    **dict.fromkeys(("HUGEINT", "UHUGEINT"), Type("integer", "decimal(38,0)")),
    "FLOAT": Type("number", "float"),
    "DOUBLE": Type("number"),
    "DATE": Type("date"),
    "TIME": Type("time"),
    "TIMESTAMP WITH TIME ZONE": Type("timestamp"),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        Type("timestamp", "timestamp_ntz"),
    ),
}


def type_of(column: ColumnProfile) -> Type:
    """Return the type for a column. Raises LakegateError UNKNOWN_TYPE if contracts have none."""
    if column.type.startswith("DECIMAL"):
        return Type("number", column.type.lower())
    if column.parts:
        return _nested(column)
    if column.shape == "decimal" and looks_like_money(column.name):
        scale = max(column.scale, 2)
        return Type("number", f"decimal({max(column.digits + scale + 3, 12)},{scale})")
    found = _SHAPES.get(column.shape) or _TYPES.get(column.type)
    if found is None:
        message = f"{column.name} is {column.type}, a type that contracts do not support"
        raise LakegateError("UNKNOWN_TYPE", message)
    return found


def _nested(column: ColumnProfile) -> Type:
    parts = [(name_of(part.name), type_of(part).declaration) for part in column.parts]
    if column.type.endswith("]"):
        return Type("array", more={"items": parts[0][1]})
    if column.type.startswith("STRUCT("):
        return Type("object", more={"properties": [{"name": n, **type_} for n, type_ in parts]})
    return Type("map", more={"map": dict(parts)})
