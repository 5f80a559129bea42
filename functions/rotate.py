"""Lambda: the schedule of tokens. Renews Nessie's tokens long before they expire."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.keyring import SecretKeyring
from functions.settings import RotateSettings
from functions.telemetry import logger, measured, metrics
from functions.wiring import CONFIG
from lakegate.nessie_tokens import NEEDED, ROLES, SIGNING_KEY, Keyring, keep
from lakegate.tokens import end


def rotate(keyring: Keyring, now: datetime) -> dict[str, float]:
    """Renew the tokens that are due; return the days that each role's token is still valid.

    Without a signing key the tokens belong to the owner's Nessie, and none is renewed. A token
    without an end is left out; a missing one has no day left, if Lakegate itself needs it.
    """
    held = keyring.read()
    tokens = keep(keyring, now).tokens if SIGNING_KEY in held else held
    renewed = [role for role in ROLES if tokens.get(role) != held.get(role)]
    logger.info("tokens", extra={"renewed": renewed, "has_key": SIGNING_KEY in held})
    return days_left(tokens, now)


def days_left(tokens: Mapping[str, str], now: datetime) -> dict[str, float]:
    """Return the days until each role's token ends."""
    wanted = (role for role in ROLES if role in tokens or role in NEEDED)
    ends = {role: end(tokens[role]) if role in tokens else now for role in wanted}
    return {role: (at - now) / timedelta(days=1) for role, at in ends.items() if at}


@logger.inject_lambda_context
@measured
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, float]:
    """Return the days left, by role, for a manual invocation."""
    stage = RotateSettings.of(os.environ).stage
    vault = boto3.client("secretsmanager", config=CONFIG)
    left = rotate(SecretKeyring(vault, stage, denied_is_absent=True), datetime.now(UTC))
    if left:
        metrics.add_metric("TokenDaysLeft", "Count", min(left.values()))
    return left
