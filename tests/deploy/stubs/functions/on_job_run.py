"""A stub of on_job_run that records every job run in the ledger."""

import json
import os
from typing import Any

import boto3


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    for record in event["Records"]:
        run = json.loads(record["body"])["detail"]
        _note(f"{run['jobRunId']}:{run['state']}")
    return {"batchItemFailures": []}


def _note(name: str, **seen: str) -> None:
    """Write the observation to the ledger, the only place that the role allows."""
    table = boto3.resource("dynamodb").Table(os.environ["LAKEGATE_LEDGER_TABLE"])
    table.put_item(Item={"id": name, "state": "noted", "landed_at": "now", **seen})
