"""A stub that records each delivery of an object; "flaky" fails once, "poison" always."""

import json
import os
from typing import Any

import boto3
from botocore.exceptions import ClientError


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    failed = [record["messageId"] for record in event["Records"] if not _deal_with(record)]
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _deal_with(record: dict[str, Any]) -> bool:
    delivery = record["attributes"]["ApproximateReceiveCount"]
    for upload in json.loads(record["body"]).get("Records", []):
        landed = upload["s3"]["object"]
        key = landed["key"]
        seen = {"version": landed["versionId"], "receipt": record["receiptHandle"]}
        _note(f"{key}#{delivery}", breach=_breach(), **seen)
        if "poison" in key or ("flaky" in key and delivery == "1"):
            return False
    return True


def _breach() -> str:
    """Return S3's answer to a write that the function's role must not make."""
    try:
        boto3.client("s3").put_object(Bucket=os.environ["LAKEGATE_LAKE_BUCKET"], Key="x", Body=b"")
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "allowed"


def _note(name: str, **seen: str) -> None:
    """Write the observation to the ledger, the only place that the role allows."""
    table = boto3.resource("dynamodb").Table(os.environ["LAKEGATE_LEDGER_TABLE"])
    table.put_item(Item={"id": name, "state": "noted", "landed_at": "now", **seen})
