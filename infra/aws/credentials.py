"""Tokens for a Nessie that is not Lakegate's own."""

from datetime import datetime

from infra.keys import ROLES, SIGNING_KEY, Keyring, keep
from infra.stage import Stage
from lakegate.errors import LakegateError


def for_own_nessie(keyring: Keyring, stage: Stage, now: datetime) -> None:
    """Have tokens for a Nessie that somebody else set up: made only where its signing key is known.

    Raises LakegateError NO_TOKENS, with the commands that put what is missing.
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
        lines = ["a Nessie of your own has tokens of its own, and these are missing:", *commands]
        lines += ["or put its signing key (RSA, PEM), and Lakegate makes them:", key]
        raise LakegateError("NO_TOKENS", "\n".join(lines))
