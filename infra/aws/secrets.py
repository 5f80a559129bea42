"""Write a deployment's secrets to Secrets Manager."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.cloudformation import Stacks
from infra.nessie_tokens import NAMES, ROLES, SIGNING_KEY, Keyring, keep
from infra.stage import Stage
from lakegate.errors import LakegateError


class SecretKeyring:
    """A stage's keyring in the secrets `lakegate/<stage>/nessie/…`."""

    def __init__(self, client: Any, stage: str) -> None:
        """Use boto3's `secretsmanager` client."""
        self._client = client
        self._folder = f"lakegate/{stage}/nessie"

    def read(self) -> Mapping[str, str]:
        """Return the stored texts by name. Raises LakegateError SECRET_UNAVAILABLE."""
        found = {name: _get(self._client, f"{self._folder}/{name}") for name in NAMES}
        return {name: text for name, text in found.items() if text}

    def write(self, name: str, text: str) -> None:
        """Store a text. Raises LakegateError SECRET_UNAVAILABLE."""
        put(self._client, f"{self._folder}/{name}", text)


def put(client: Any, name: str, text: str) -> None:
    """Put a text into the secret `name`; create or restore the secret if needed.

    Raises LakegateError SECRET_UNAVAILABLE: the message names the secret, never its text.
    """
    there = client.exceptions.ResourceExistsException, client.exceptions.InvalidRequestException
    with _translated(name):
        try:
            client.create_secret(Name=name, SecretString=text)
        except there:
            if client.describe_secret(SecretId=name).get("DeletedDate"):  # possible for days
                client.restore_secret(SecretId=name)
            client.put_secret_value(SecretId=name, SecretString=text)


def _get(client: Any, name: str) -> str:
    """Return a secret's text, "" if there is no secret or it is being deleted."""
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


# Tokens for a Nessie that Lakegate did not deploy.


def for_own_nessie(keyring: Keyring, stage: Stage, now: datetime) -> None:
    """Make tokens for a Nessie that Lakegate did not deploy, if its signing key is known.

    Raises LakegateError NO_TOKENS with the commands that store what is missing.
    """
    held = keyring.read()
    if SIGNING_KEY in held:
        keep(keyring, now)
        return
    missing = [stage.token_secret(role) for role in ROLES if role not in held]
    if missing:
        put = "    aws secretsmanager create-secret --secret-string … --name"
        commands = [f"{put} {name}" for name in missing]
        key = f"{put} {stage.token_secret(SIGNING_KEY)}"
        lines = ["your own Nessie needs tokens in these secrets; put them with:", *commands]
        lines += ["or put its signing key (RSA, PEM), and Lakegate makes the tokens:", key]
        raise LakegateError("NO_TOKENS", "\n".join(lines))


# The key that checks tokens is a parameter of the platform's stack.

_PARAMETER = "NessiePublicKey"


def give_key(stacks: Stacks, platform: str, public_key: str) -> bool:
    """Let the stack `platform` run Nessie with this key; its tasks are replaced one by one.

    Returns False if there is no such stack: Lakegate did not deploy Nessie. A stack that has the
    key does not change. Raises LakegateError DEPLOYMENT_FAILED.
    """
    if not stacks.exists(platform):
        return False
    deployed = stacks.parameters(platform)
    if deployed.get(_PARAMETER) != public_key:
        template = {"TemplateBody": json.dumps(stacks.template(platform), separators=(",", ":"))}
        plan = stacks.plan(platform, template, {**dict.fromkeys(deployed), _PARAMETER: public_key})
        if plan:
            stacks.carry_out(plan)
    return True
