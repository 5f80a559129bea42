"""CloudFormation's templates: read with their short forms, written as CloudFormation takes them.

CloudFormation itself refuses YAML's anchors, which template.yaml saves itself repetitions with.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Template = dict[str, Any]
_PLAIN = ("Ref", "Condition")


class _Loader(yaml.SafeLoader):
    """Knows `!Ref`, `!GetAtt` and the other short forms of CloudFormation's functions."""


def _long_form(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in _PLAIN else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def read(file: Path) -> Template:
    """The template in a file, its anchors resolved and its short forms written out."""
    found: Template = yaml.load(file.read_text(), _Loader)  # noqa: S506  a SafeLoader
    return found


def with_code(template: Mapping[str, Any], address: str) -> Template:
    """The template with its functions' code at an address (s3://) instead of in `build/`."""
    shared = template["Globals"]["Function"]
    return {**template, "Globals": {"Function": {**shared, "CodeUri": address}}}


def body(template: Mapping[str, Any]) -> str:
    """The template as text, as short as can be: there is a limit to it."""
    return json.dumps(template, separators=(",", ":"), default=str)
