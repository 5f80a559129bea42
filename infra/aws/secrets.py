"""Tokens for a Nessie that Lakegate did not deploy, and the key of one that it did."""

from datetime import datetime

from infra.cloudformation import Stacks
from infra.stage import Stage
from lakegate.errors import LakegateError
from lakegate.nessie_tokens import NEEDED, SIGNING_KEY, Keyring, keep


def for_own_nessie(keyring: Keyring, stage: Stage, now: datetime) -> None:
    """Make tokens for a Nessie that Lakegate did not deploy, if its signing key is known.

    Raises LakegateError NO_TOKENS with the commands that store what is missing.
    """
    held = keyring.read()
    if SIGNING_KEY in held:
        keep(keyring, now)
        return
    missing = [stage.token_secret(role) for role in NEEDED if role not in held]
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
        same = {"UsePreviousTemplate": True}
        plan = stacks.plan(platform, same, {**dict.fromkeys(deployed), _PARAMETER: public_key})
        if plan:
            stacks.carry_out(plan)
    return True
