"""A stage's signing key and Nessie's tokens in Secrets Manager."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import LakegateError
from lakegate.nessie_tokens import NAMES

_ABSENT = ("ResourceNotFoundException", "InvalidRequestException")  # or it is being deleted
_DENIED = "AccessDeniedException"


class SecretKeyring:
    """A stage's keyring in the secrets `lakegate/<stage>/nessie/…`."""

    def __init__(
        self, client: Any, stage: str, key: str = "", *, denied_is_absent: bool = False
    ) -> None:
        """Use boto3's `secretsmanager` client; new secrets are encrypted by the KMS key, if any.

        Set `denied_is_absent` for a role whose policy names secrets with their random suffix:
        to such a role Secrets Manager denies a secret that does not exist.
        """
        self._client = client
        self._folder = f"lakegate/{stage}/nessie"
        self._key = {"KmsKeyId": key} if key else {}  # without one it is AWS's own
        self._absent = (*_ABSENT, _DENIED) if denied_is_absent else _ABSENT

    def read(self) -> Mapping[str, str]:
        """Return the stored texts by name. Raises LakegateError SECRET_UNAVAILABLE."""
        texts = {name: self._text(f"{self._folder}/{name}") for name in NAMES}
        return {name: text for name, text in texts.items() if text}

    def write(self, name: str, text: str) -> None:
        """Store a text; create or restore its secret if needed.

        Raises LakegateError SECRET_UNAVAILABLE: the message names the secret, never its text.
        """
        secret = f"{self._folder}/{name}"
        with _translated(secret):
            try:
                known = self._client.describe_secret(SecretId=secret)
            except self._client.exceptions.ResourceNotFoundException:
                self._client.create_secret(Name=secret, SecretString=text, **self._key)
                return
            if known.get("DeletedDate"):  # possible for days
                self._client.restore_secret(SecretId=secret)
            self._client.put_secret_value(SecretId=secret, SecretString=text)

    def encrypt_by_its_key(self) -> None:
        """Have the stored texts encrypted by the keyring's key, if it has one.

        Raises LakegateError SECRET_UNAVAILABLE.
        """
        for secret in (f"{self._folder}/{name}" for name in (self.read() if self._key else ())):
            with _translated(secret):
                known = self._client.describe_secret(SecretId=secret)
                if known.get("KmsKeyId") != self._key["KmsKeyId"]:
                    self._client.update_secret(SecretId=secret, **self._key)

    def _text(self, secret: str) -> str:
        """Return a secret's text, "" without one."""
        with _translated(secret):
            try:
                return str(self._client.get_secret_value(SecretId=secret)["SecretString"])
            except ClientError as error:
                if error.response["Error"]["Code"] in self._absent:
                    return ""
                raise


@contextmanager
def _translated(secret: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read or write the secret {secret}: {error}"
        raise LakegateError("SECRET_UNAVAILABLE", message) from error
