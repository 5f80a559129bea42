"""A reader of the template for tests and benchmarks."""

from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[1]
_TEMPLATE = _ROOT / "template.yaml"
_PLATFORM = _ROOT / "infra" / "platform.yml"


class _Yaml(yaml.SafeLoader):
    """A loader of CloudFormation's YAML that does not resolve references."""


_Yaml.add_multi_constructor("!", lambda loader, tag, node: tag)


def ledger_table(dynamodb: Any, name: str) -> Any:
    """Create a table with the keys and indexes of the template's ledger (boto3's Table)."""
    properties = resource("LedgerTable")
    keys = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return dynamodb.create_table(TableName=name, **{key: properties[key] for key in keys})


def resource(name: str) -> dict[str, Any]:
    """Return a resource's properties as written."""
    described = _Yaml(_TEMPLATE.read_text()).get_single_data()
    return dict(described["Resources"][name]["Properties"])


def defaults() -> dict[str, Any]:
    """Return the defaults of the two templates' parameters."""
    parameters = (each["Parameters"] for each in _both())
    return {name: declared.get("Default") for each in parameters for name, declared in each.items()}


def resources(kind: str) -> list[dict[str, Any]]:
    """Return the properties of the resources of a type that both templates make by default."""
    found = (each for described in _both() for each in described["Resources"].values())
    by_default = (None, "Postgres")
    return [
        each["Properties"]
        for each in found
        if each["Type"] == kind and each.get("Condition") in by_default
    ]


def _both() -> list[dict[str, Any]]:
    return [_Yaml(path.read_text()).get_single_data() for path in (_PLATFORM, _TEMPLATE)]


def text() -> str:
    """Return the template's text."""
    return _TEMPLATE.read_text()
