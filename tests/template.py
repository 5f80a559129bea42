"""The template, as tests and benchmarks read it."""

from pathlib import Path
from typing import Any

import yaml

_TEMPLATE = Path(__file__).parents[1] / "template.yaml"


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
