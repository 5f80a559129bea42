"""Read CloudFormation templates with their short forms and write them out in full.

CloudFormation refuses YAML's anchors, with which template.yaml avoids repetitions.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Template = dict[str, Any]
_PLAIN = ("Ref", "Condition")
_VERSION = "AWSTemplateFormatVersion"
RETAINED = ("Retain", "RetainExceptOnCreate")
_POLICY = "AWS::S3::BucketPolicy"
# The properties that name what keeps data, by type.
NAMED_BY = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Logs::LogGroup": "LogGroupName",
}
# Properties that start something elsewhere, with which a resource could not stay alone.
_STARTS = {"AWS::S3::Bucket": ("NotificationConfiguration",)}
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


class _Loader(yaml.CSafeLoader):
    """A YAML loader for `!Ref`, `!GetAtt` and CloudFormation's other short forms.

    It uses libyaml, which takes a sixth of the time: a deployment reads templates several times.
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
    """Return the template in a file, with anchors resolved and short forms written out."""
    return parse(file.read_text())


def parse(text: str) -> Template:
    """Return the template in a text, JSON or YAML."""
    template: Template = yaml.load(text, _Loader)  # noqa: S506  a SafeLoader
    return template


def defaults(*templates: Template) -> dict[str, str]:
    """Return the defaults of the templates' parameters."""
    every = [each for template in templates for each in template.get("Parameters", {}).items()]
    return {name: str(parameter["Default"]) for name, parameter in every if "Default" in parameter}


def broken_rules(template: Template, parameters: Mapping[str, str]) -> list[str]:
    """Return the descriptions of the template's rules that the parameters break."""
    known = {**defaults(template), **parameters}
    return [
        assertion["AssertDescription"]
        for rule in template.get("Rules", {}).values()
        if _holds(rule["RuleCondition"], known)
        for assertion in rule["Assertions"]
        if not _holds(assertion["Assert"], known)
    ]


def _holds(condition: Any, known: Mapping[str, str]) -> bool:
    """Return whether a condition on parameters and literals holds."""
    match condition:
        case {"Fn::Equals": [{"Ref": str(name)}, str(literal)]}:
            return known.get(name, "") == literal
        case {"Fn::Not": [inner]}:
            return not _holds(inner, known)
        case {"Fn::Or": list(inner)}:
            return any(_holds(each, known) for each in inner)
        case {"Fn::And": list(inner)}:
            return all(_holds(each, known) for each in inner)
        case {"Fn::Contains": [list(literals), {"Ref": str(name)}]}:
            return known.get(name, "") in literals
    raise ValueError(f"a rule has a condition that is not supported: {condition}")


def unfit(template: Template, chosen: Mapping[str, str]) -> list[str]:
    """Return which of the chosen values CloudFormation, or a function, would refuse, and why."""
    known = template["Parameters"]
    return [
        f"{name} is {value!r}: it must be {wanted}"
        for name, value in chosen.items()
        if name in known and (wanted := _wanted(known[name], value))
    ]


def _wanted(parameter: Mapping[str, Any], value: str) -> str:
    """Return in words what a parameter's constraints want instead of the value, "" if it fits."""
    low, high = parameter.get("MinValue", 0), parameter.get("MaxValue", math.inf)
    allowed, pattern = parameter.get("AllowedValues", ()), parameter.get("AllowedPattern", ".*")
    # CloudFormation would take fractions, the functions do not.
    is_whole = re.fullmatch("[0-9]+", value) is not None
    if parameter["Type"] == "Number" and not (is_whole and low <= int(value) <= high):
        most = f" and {high} at most" if high < math.inf else ""
        return f"a whole number, {low} at least{most}"
    if allowed and value not in map(str, allowed):
        return f"one of {', '.join(map(str, allowed))}"
    if re.fullmatch(pattern, value, re.DOTALL):
        return ""
    return str(parameter.get("ConstraintDescription", f"of the form {pattern}"))


def with_code(template: Mapping[str, Any], address: str | Mapping[str, Any]) -> Template:
    """Return the template with its functions' code in S3 instead of `build/`.

    The address is `s3://…`, or SAM's `Bucket` and `Key`.
    """
    shared = template["Globals"]["Function"]
    return {**template, "Globals": {"Function": {**shared, "CodeUri": address}}}


def body(template: Mapping[str, Any]) -> str:
    """Return the template as a text that is as short as possible: its length is limited."""
    return json.dumps(template, separators=(",", ":"), default=str)


def reduced(template: Template) -> Template:
    """Return the part of a template that outlives a deployment: retained resources and their needs.

    A retained bucket keeps its policy. Notifications of new objects are removed.
    """
    every = template["Resources"]
    stay = {name for name, resource in every.items() if resource.get("DeletionPolicy") in RETAINED}
    stay |= {n for n, r in every.items() if r["Type"] == _POLICY and stay & set(references(r))}
    lone = {name: _lone(resource) for name, resource in every.items()}
    while more := {r for name in stay for r in references(lone[name]) if r in every} - stay:
        stay |= more
    left = {name: lone[name] for name in every if name in stay}
    return _with_resources(template, left)


def alone(template: Template, names: Collection[str]) -> Template:
    """Return the template with these resources alone, without what they start.

    They refer to no other resource.
    """
    every = template["Resources"]
    return _with_resources(template, {name: _lone(every[name]) for name in every if name in names})


def references(node: Any) -> Iterator[str]:
    """Yield the names of resources, parameters and conditions that a value refers to."""
    match node:
        case {"Ref": str(name)} | {"Condition": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::GetAtt": str(path)}:
            yield path.partition(".")[0]
        case {"Fn::If": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from _PLACEHOLDER.findall(text)
        case {"Fn::Sub": [str(text), dict(own)]}:
            yield from (name for name in _PLACEHOLDER.findall(text) if name not in own)
    within = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in within:
        yield from references(each)


def _lone(resource: Mapping[str, Any]) -> Template:
    """Return the resource without its dependencies and without what it starts."""
    properties = resource.get("Properties", {})
    starts = _STARTS.get(resource["Type"], ())
    kept = {name: value for name, value in properties.items() if name not in starts}
    rest = {name: value for name, value in resource.items() if name != "DependsOn"}
    return {**rest, "Properties": kept}


def _with_resources(template: Template, resources: Template) -> Template:
    """Return the template with these resources alone and what they and its conditions need."""
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
