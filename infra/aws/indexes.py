"""New indexes of DynamoDB's tables, one an update: more DynamoDB does not make at a time."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.template import Template

_TABLE = "AWS::DynamoDB::Table"
_INDEXES = "GlobalSecondaryIndexes"


def steps(deployed: Template, wanted: Template) -> list[Template]:
    """The templates to deploy before the wanted one: the deployed one with one index more each.

    None where a table has but one new index, which can come with all else that is wanted.
    """
    found = []
    for name, table in wanted["Resources"].items():
        old = deployed["Resources"].get(name, {})
        if table["Type"] == old.get("Type") == _TABLE:
            for properties in _between(old["Properties"], table["Properties"]):
                resources = {**deployed["Resources"], name: {**old, "Properties": properties}}
                deployed = {**deployed, "Resources": resources}
                found.append(deployed)
    return found


def _between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The table's properties as its new indexes come, all but the last."""
    indexes = list(old.get(_INDEXES, []))
    known = {index["IndexName"] for index in indexes}
    for index in [each for each in new.get(_INDEXES, []) if each["IndexName"] not in known][:-1]:
        indexes = [*indexes, index]
        keys = [*old["KeySchema"], *(key for each in indexes for key in each["KeySchema"])]
        names = {key["AttributeName"] for key in keys}
        # DynamoDB refuses an attribute that is no key.
        attributes = [a for a in new["AttributeDefinitions"] if a["AttributeName"] in names]
        yield {**old, _INDEXES: indexes, "AttributeDefinitions": attributes}
