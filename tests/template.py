"""The template, as tests and benchmarks read it."""

from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[1]
_TEMPLATE = _ROOT / "template.yaml"
_PLATFORM = _ROOT / "infra" / "platform.yml"


class _Yaml(yaml.SafeLoader):
    """Reads CloudFormation's YAML, without resolving what refers to something."""


_Yaml.add_multi_constructor("!", lambda loader, tag, node: tag)


def ledger_table(dynamodb: Any, name: str) -> Any:
    """A new table with the keys and indexes of the template's ledger (boto3's Table)."""
    properties = resource("LedgerTable")
    keys = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return dynamodb.create_table(TableName=name, **{key: properties[key] for key in keys})


def resource(name: str) -> dict[str, Any]:
    """A resource's properties as they are written."""
    described = _Yaml(_TEMPLATE.read_text()).get_single_data()
    return dict(described["Resources"][name]["Properties"])


def defaults() -> dict[str, Any]:
    """What the parameters of the two templates are where nobody sets them."""
    parameters = (each["Parameters"] for each in _both())
    return {name: told.get("Default") for each in parameters for name, told in each.items()}


def resources(kind: str) -> list[dict[str, Any]]:
    """The properties of all resources of a kind that both templates make under any condition."""
    found = (each for described in _both() for each in described["Resources"].values())
    return [
        each["Properties"] for each in found if each["Type"] == kind and "Condition" not in each
    ]


def _both() -> list[dict[str, Any]]:
    return [_Yaml(path.read_text()).get_single_data() for path in (_PLATFORM, _TEMPLATE)]


def text() -> str:
    """The template as it stands."""
    return _TEMPLATE.read_text()
