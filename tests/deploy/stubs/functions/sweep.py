"""A stub of sweep that records each run."""

import os
from typing import Any

import boto3

RELEASE = "first"


def handler(event: dict[str, Any], context: object) -> None:
    print("I am the sweep")
    _note(f"sweep:{RELEASE}")


def _note(name: str, **seen: str) -> None:
    """Write the observation to the ledger, the only place that the role allows."""
    table = boto3.resource("dynamodb").Table(os.environ["LAKEGATE_LEDGER_TABLE"])
    table.put_item(Item={"id": name, "state": "noted", "landed_at": "now", **seen})
