"""Call functions inside the network: the checkup, and the sweep for the publisher's token."""

import json
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import LakegateError

# For the client: it waits as long as any function may run, and does not retry.
PATIENT = Config(read_timeout=930, tcp_keepalive=True, retries={"total_max_attempts": 1})


def seed(client: Any, function: str) -> dict[str, Any]:
    """Give main its first commit and its tables; return what the function had to do.

    `client` is boto3's `lambda` client. Raises LakegateError CHECKUP_FAILED.
    """
    return dict(ask(client, function, {"do": "seed"}))


def ask(client: Any, function: str, request: dict[str, Any]) -> Any:
    """Return the function's answer. Raises LakegateError CHECKUP_FAILED with the reason."""
    try:
        answer = client.invoke(FunctionName=function, Payload=json.dumps(request).encode())
        result = json.loads(answer["Payload"].read())
    except (ClientError, BotoCoreError, ValueError) as error:
        message = f"the function {function} cannot be invoked: {error}"
        raise LakegateError("CHECKUP_FAILED", message) from error
    if "FunctionError" in answer:
        reason = result.get("errorMessage", result) if isinstance(result, dict) else result
        raise LakegateError("CHECKUP_FAILED", f"the function {function} failed: {reason}")
    return result
