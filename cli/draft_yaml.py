"""The YAML of a draft: as a person would write it, and read back as exactly what was meant."""

import re
from decimal import Decimal
from textwrap import indent
from typing import Any

import yaml

_WIDE = 100
_LONGEST = 40
_PLAIN_NAME = re.compile(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z][A-Za-z0-9_]*")


class Quoted(str):
    """A text that is written in quotes, so that it is text to every reader of YAML."""

    __slots__ = ()


def dumped(value: Any, depth: int = 0) -> str:
    """A list or a mapping as YAML, so many spaces from the left."""
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
    """A column's name, in quotes where it could be mistaken for something else."""
    return column if _PLAIN_NAME.fullmatch(column) else Quoted(column)


def comment(value: object) -> str:
    """A value in a comment: on one line, and not too long."""
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
    whole = value == value.to_integral_value()
    tag, text = ("int", f"{value:.0f}") if whole else ("float", f"{value:f}")
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


_Dumper.add_representer(Quoted, _quoted)
_Dumper.add_representer(Decimal, _number)
