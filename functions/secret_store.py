"""Secrets Manager."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import Transient


def secret(client: Any, name: str) -> str:
    """The text of the secret `name`; `client` is boto3's `secretsmanager` client.

    Raises Transient SECRET_UNAVAILABLE: the message names the secret, never what it holds.
    """
    try:
        return str(client.get_secret_value(SecretId=name)["SecretString"])
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read the secret {name!r}: {error}"
        raise Transient("SECRET_UNAVAILABLE", message) from error
