"""Plan the indexes of tables: CloudFormation creates or deletes one of a table in an update.

CloudFormation, "AWS::DynamoDB::Table".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from infra.stack_spec import StackSpec, unchanged
from infra.template import Template

TABLE = "AWS::DynamoDB::Table"
_INDEXES = "GlobalSecondaryIndexes"
SETTLED = {
    "operation": "DescribeTable",
    "delay": 5,
    "maxAttempts": 720,
    "acceptors": [
        {
            "state": "success",
            "matcher": "path",
            "argument": f"length(Table.{_INDEXES}[?IndexStatus && IndexStatus!='ACTIVE'] || `[]`)",
            "expected": 0,
        }
    ],
}


@dataclass(frozen=True)
class _Index:
    """An index of the table with this logical id; `attributes` are those of the table."""

    table: str
    described: Mapping[str, Any]
    attributes: Sequence[Mapping[str, str]]


def steps(deployed: Template, wanted: StackSpec) -> list[StackSpec]:
    """Return the stacks to deploy before the wanted one, each with one index more or less.

    The new indexes come first, while all else stays: the functions must find theirs at any time.
    Then comes all else, and last the old indexes go.
    """
    new = accumulate(_missing(deployed, wanted.template), _add_index, initial=deployed)
    old = accumulate(_missing(wanted.template, deployed), _add_index, initial=wanted.template)
    return [
        *(unchanged(wanted.stack, each) for each in [*new][1:]),
        *(replace(wanted, template=each) for each in [*old][:0:-1]),
    ]


def _missing(here: Template, there: Template) -> Iterator[_Index]:
    """Yield the indexes that a table has there, and not here."""
    for name, table in there["Resources"].items():
        same = here["Resources"].get(name, {})
        if table["Type"] == same.get("Type") == TABLE:
            known = {each["IndexName"] for each in same["Properties"].get(_INDEXES, [])}
            for each in table["Properties"].get(_INDEXES, []):
                if each["IndexName"] not in known:
                    yield _Index(name, each, table["Properties"]["AttributeDefinitions"])


def _add_index(template: Template, index: _Index) -> Template:
    """Return the template with one index more; a table has no attribute but its keys."""
    table = template["Resources"][index.table]
    properties = table["Properties"]
    attributes = {
        each["AttributeName"]: each
        for each in (*properties["AttributeDefinitions"], *index.attributes)
    }
    indexes = [*properties.get(_INDEXES, []), index.described]
    keys = [*properties["KeySchema"], *(key for each in indexes for key in each["KeySchema"])]
    names = {key["AttributeName"] for key in keys}
    changed = {
        **properties,
        _INDEXES: indexes,
        "AttributeDefinitions": [each for name, each in attributes.items() if name in names],
    }
    resources = {**template["Resources"], index.table: {**table, "Properties": changed}}
    return {**template, "Resources": resources}
