"""`lakegate rotate`: create new tokens for Nessie, and a new key after a leak."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import boto3
import typer

from access.deployment.checkout import checkout, home
from access.deployment.choice import nessie_address
from cli.console import terminal
from cli.console.terminal import progress_printer
from cli.local.stack import Tell, continue_in_project
from functions.adapters.keyring import SecretKeyring
from infra.aws.facts import Facts
from infra.aws.secrets import give_key
from infra.cloudformation import Stacks
from infra.local import stack_file
from infra.stage import Stage, checked_name
from lakegate import nessie_tokens
from lakegate.errors import LakegateError, Transient
from lakegate.nessie_tokens import Keys

_NEW_TOKENS = (
    "Running work continues: old tokens stay valid until they expire. Functions read the new ones"
    " when the old are refused, job runs when they start."
)
_NEW_KEY = (
    "The old tokens are invalid. A function that still has one gets a 401 and reads the new one; a"
    " job run that has one fails and is retried; messages wait in their queues. Nothing is lost."
    " Give the new tokens to all other clients, for example the reader's."
)
_OWN_NESSIE = (
    "Nessie is your own. Restart it with the setting below (`quarkus.oidc.public-key`): until then"
    " it refuses the new tokens and accepts the leaked ones."
)
_FOREIGN = (
    "Lakegate has no signing key for stage {0}, so it did not create its tokens.\n"
    "Put new tokens into the secrets {1}. If Nessie is Lakegate's, `lakegate deploy` creates a key."
)
_UNREACHED = "Nessie is not reachable from here. Check the tokens with `lakegate doctor`."


@dataclass(frozen=True)
class Rotated:
    """The new keys; `own_nessie` means that the user must set the public key in Nessie."""

    keys: Keys
    nessie: str
    own_nessie: bool = False


def rotate(
    context: typer.Context,
    new_key: Annotated[
        bool,
        typer.Option(
            "--key", help="Also create a new key, after a leak: all old tokens become invalid."
        ),
    ] = False,
    days: Annotated[
        int, typer.Option(help="Days until the tokens expire.", min=1, max=365)
    ] = nessie_tokens.LIFE.days,
) -> None:
    """Create and store new tokens for Nessie; safe to repeat after an interruption."""
    continue_in_project(context.obj)
    tell, life = progress_printer(), timedelta(days=days)
    name = context.obj or (os.environ.get("LAKEGATE_LEDGER_TABLE") and _stage_here())
    done = _rotate_stage(name, tell, life, new_key) if name else _rotate_stack(tell, life, new_key)
    terminal.out().print(
        f"New tokens for {', '.join(nessie_tokens.ROLES)}, until {done.keys.until:%Y-%m-%d}."
    )
    terminal.out().print(_NEW_KEY if new_key else _NEW_TOKENS)
    if new_key and done.own_nessie:
        terminal.out().print(_OWN_NESSIE)
        terminal.raw(f"{done.keys.public_key}\n")
        return
    terminal.out().print(_verified(done))


def _rotate_stack(tell: Tell, life: timedelta, new_key: bool) -> Rotated:
    from infra.local import stack  # it imports Flask and more, which help does not need

    made = stack.rotate(home(), checkout(), tell, life, new_key=new_key)
    return Rotated(made, stack_file.read(home()).nessie)


def _rotate_stage(name: str, tell: Tell, life: timedelta, new_key: bool) -> Rotated:
    stage = Stage(checked_name(name), account="", region="")
    facts = Facts(boto3.client("ssm"), stage).read(["nessie-uri"])
    if "nessie-uri" not in facts:
        missing = stage.parameter("nessie-uri")
        message = f"stage {name} is not deployed here: there is no SSM parameter {missing}"
        raise LakegateError("NO_DEPLOYMENT", message)
    keyring = SecretKeyring(boto3.client("secretsmanager"), name)
    if nessie_tokens.SIGNING_KEY not in keyring.read():
        raise LakegateError("FOREIGN_TOKENS", _FOREIGN.format(name, stage.token_secret("…")))
    tell("new key and tokens" if new_key else "new tokens")
    made = nessie_tokens.rotate(keyring, datetime.now(UTC), life, new_key=new_key)
    stacks = Stacks(boto3.client("cloudformation"), tell)
    given = give_key(stacks, stage.platform_stack, made.public_key)
    outputs = stacks.outputs(stage.stack) if stacks.exists(stage.stack) else {}
    function = outputs.get("OnNessieRequestFunctionName", "")
    return Rotated(made, nessie_address(facts["nessie-uri"], function), own_nessie=not given)


def _stage_here() -> str:
    """Return the stage that the environment names. Raises LakegateError."""
    if name := os.environ.get("LAKEGATE_STAGE"):
        return name
    raise LakegateError(
        "MISSING_SETTING", "the stage is unknown\nName it: `lakegate --stage STAGE rotate`"
    )


def _verified(done: Rotated) -> str:
    """Say whether Nessie accepts the new tokens. Raises LakegateError TOKEN_REFUSED."""
    from functions.health.nessie_checks import NessieProbe  # a second, which help does not need

    ask = NessieProbe(done.nessie).token_status
    try:
        statuses = {role: ask(token).reading for role, token in done.keys.tokens.items()}
    except Transient:
        return _UNREACHED
    if any(status >= 500 for status in statuses.values()):  # also of the function in between
        return _UNREACHED
    if refused := [role for role, status in statuses.items() if status != 200]:
        message = f"Nessie refuses the new tokens of {', '.join(refused)}: it has a different key"
        raise LakegateError(
            "TOKEN_REFUSED", f"{message}\nGive it a new key with `lakegate rotate --key`."
        )
    return "Nessie accepts each of them."
