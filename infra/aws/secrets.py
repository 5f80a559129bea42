"""Secrets Manager, as who deploys writes it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.keys import NAMES
from lakegate.errors import LakegateError


class SecretKeyring:
    """A stage's keyring: the secrets `lakegate/<stage>/nessie/…`."""

    def __init__(self, client: Any, stage: str) -> None:
        """`client` is boto3's `secretsmanager` client."""
        self._client = client
        self._folder = f"lakegate/{stage}/nessie"

    def read(self) -> Mapping[str, str]:
        """See Keyring.read. Raises LakegateError SECRET_UNAVAILABLE."""
        found = {name: _get(self._client, f"{self._folder}/{name}") for name in NAMES}
        return {name: text for name, text in found.items() if text}

    def write(self, name: str, text: str) -> None:
        """See Keyring.write. Raises LakegateError SECRET_UNAVAILABLE."""
        put(self._client, f"{self._folder}/{name}", text)


def put(client: Any, name: str, text: str) -> None:
    """Have the secret `name` hold a text; it is made, or called back from its deletion.

    Raises LakegateError SECRET_UNAVAILABLE: the message names the secret, never what it holds.
    """
    there = client.exceptions.ResourceExistsException, client.exceptions.InvalidRequestException
    with _translated(name):
        try:
            client.create_secret(Name=name, SecretString=text)
        except there:
            if client.describe_secret(SecretId=name).get("DeletedDate"):  # as it is for days
                client.restore_secret(SecretId=name)
            client.put_secret_value(SecretId=name, SecretString=text)


def _get(client: Any, name: str) -> str:
    """What a secret holds, "" where there is none or it is being deleted."""
    absent = client.exceptions.ResourceNotFoundException, client.exceptions.InvalidRequestException
    with _translated(name):
        try:
            return str(client.get_secret_value(SecretId=name)["SecretString"])
        except absent:
            return ""


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read or write the secret {name}: {error}"
        raise LakegateError("SECRET_UNAVAILABLE", message) from error
