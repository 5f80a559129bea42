"""Asks the checkup function, which sees and does what only goes from inside the network."""

import json
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import LakegateError

# For the client: as long as the function may take, and asked once, for a second try would only
# take as long again.
PATIENT = Config(read_timeout=130, retries={"total_max_attempts": 1})


def seed(client: Any, function: str) -> dict[str, Any]:
    """Have the function give main its first commit and its tables; returns what it had to do.

    `client` is boto3's `lambda` client. Raises LakegateError CHECKUP_FAILED.
    """
    return dict(ask(client, function, {"do": "seed"}))


def ask(client: Any, function: str, request: dict[str, Any]) -> Any:
    """The function's answer. Raises LakegateError CHECKUP_FAILED, with the reason."""
    try:
        answer = client.invoke(FunctionName=function, Payload=json.dumps(request).encode())
        told = json.loads(answer["Payload"].read())
    except (ClientError, BotoCoreError, ValueError) as error:
        message = f"the function {function} cannot be invoked: {error}"
        raise LakegateError("CHECKUP_FAILED", message) from error
    if "FunctionError" in answer:
        reason = told.get("errorMessage", told) if isinstance(told, dict) else told
        raise LakegateError("CHECKUP_FAILED", f"the function {function} failed: {reason}")
    return told
