"""CloudFormation's templates: read with their short forms, written as CloudFormation takes them.

CloudFormation itself refuses YAML's anchors, which template.yaml saves itself repetitions with.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Template = dict[str, Any]
_PLAIN = ("Ref", "Condition")
_VERSION = "AWSTemplateFormatVersion"
RETAINED = ("Retain", "RetainExceptOnCreate")
_POLICY = "AWS::S3::BucketPolicy"
# What a resource sets off elsewhere, so that it could not stay alone.
_STARTS = {"AWS::S3::Bucket": ("NotificationConfiguration",)}
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


class _Loader(yaml.CSafeLoader):
    """Knows `!Ref`, `!GetAtt` and the other short forms of CloudFormation's functions.

    By libyaml: a deployment reads templates several times, each in a sixth of the time.
    """


def _long_form(loader: yaml.CSafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
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
    return parse(file.read_text())


def parse(text: str) -> Template:
    """The template in a text, JSON or YAML."""
    found: Template = yaml.load(text, _Loader)  # noqa: S506  a SafeLoader
    return found


def with_code(template: Mapping[str, Any], address: str) -> Template:
    """The template with its functions' code at an address (s3://) instead of in `build/`."""
    shared = template["Globals"]["Function"]
    return {**template, "Globals": {"Function": {**shared, "CodeUri": address}}}


def body(template: Mapping[str, Any]) -> str:
    """The template as text, as short as can be: there is a limit to it."""
    return json.dumps(template, separators=(",", ":"), default=str)


def reduced(template: Template) -> Template:
    """What of a template outlives a deployment: what is retained, and what that refers to.

    A policy of a bucket that stays goes on guarding it. What notifies of new objects is gone.
    """
    every = template["Resources"]
    stay = {name for name, resource in every.items() if resource.get("DeletionPolicy") in RETAINED}
    stay |= {n for n, r in every.items() if r["Type"] == _POLICY and stay & set(references(r))}
    lone = {name: _lone(resource) for name, resource in every.items()}
    while more := {r for name in stay for r in references(lone[name]) if r in every} - stay:
        stay |= more
    left = {name: lone[name] for name in every if name in stay}
    return _with_resources(template, left)


def references(node: Any) -> Iterator[str]:
    """The names of resources, parameters and conditions that something refers to."""
    match node:
        case {"Ref": str(name)} | {"Condition": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::GetAtt": str(path)}:
            yield path.partition(".")[0]
        case {"Fn::If": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)} | {"Fn::Sub": [str(text), _]}:
            yield from _PLACEHOLDER.findall(text)
    within = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in within:
        yield from references(each)


def _lone(resource: Mapping[str, Any]) -> Template:
    """The resource without what it only waits for, and without what it starts."""
    properties = resource.get("Properties", {})
    starts = _STARTS.get(resource["Type"], ())
    kept = {name: value for name, value in properties.items() if name not in starts}
    rest = {name: value for name, value in resource.items() if name != "DependsOn"}
    return {**rest, "Properties": kept}


def _with_resources(template: Template, resources: Template) -> Template:
    """The template with these resources alone, and only what they and its conditions need."""
    conditions = template.get("Conditions", {})
    needed = set(references([resources, conditions]))
    gone = set(template["Resources"]) - set(resources)
    parts = {
        "Parameters": {n: p for n, p in template.get("Parameters", {}).items() if n in needed},
        "Mappings": template.get("Mappings", {}),
        "Conditions": conditions,
        "Resources": resources,
        "Outputs": {
            name: output
            for name, output in template.get("Outputs", {}).items()
            if not gone & set(references(output))
        },
    }
    return {_VERSION: template[_VERSION]} | {name: part for name, part in parts.items() if part}
