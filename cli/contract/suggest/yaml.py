"""Write the YAML of a draft: readable, and parsed back to exactly the same values."""

import re
from decimal import Decimal
from textwrap import indent
from typing import Any

import yaml

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


def comment(value: object, longest: int = _LONGEST) -> str:
    """Return a value for a comment: on one line, shortened if long."""
    if isinstance(value, float):
        return f"{Decimal(repr(value)):,f}".removesuffix(".0")
    text = str(value)
    shown = text if len(text) <= longest else f"{text[:longest]}…"
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
