"""Discard an ingestion by the function `expire`, with the rights of CleanUpRole.

The function has the publisher's token, which deletes branches; the caller needs none. The role may
be taken by people who discard, and invokes this function alone.
"""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import Ingestion
from functions.operations.decisions.failed import Outcome
from functions.wiring import assumed
from infra import checkup
from lakegate.errors import LakegateError


def discard(client: Any, function: str, ledger: Ledger, seen: Ingestion, by: str) -> Outcome:
    """Return the outcome, with the ingestion as the ledger has it afterwards.

    `client` is of `client_of`. Raises LakegateError as `failed.discard` does, so MOVED_ON too if
    it had another attempt than was `seen`, and CHECKUP_FAILED if the function cannot be invoked.
    """
    asked = {"do": "discard", "ingestion": seen.id, "by": by, "attempt": seen.attempt}
    answer = checkup.ask(client, function, asked)
    if "code" in answer:
        raise LakegateError(answer["code"], answer["message"])
    return Outcome(ledger.get(seen.id), answer["left"])


def client_of(role: str) -> Any:
    """Return Lambda's client with the rights of the role, an ARN.

    Raises LakegateError NO_CLEAN_UP_ROLE if the caller may not take it.
    """
    try:
        return assumed(role).client("lambda", config=checkup.PATIENT)
    except (ClientError, BotoCoreError) as error:
        message = (
            f"you cannot take the role {role}: {error}\n"
            "Ask for TrustedPrincipal in the stage's file, and `sts:AssumeRole`;"
            " or discard by Slack's button."
        )
        raise LakegateError("NO_CLEAN_UP_ROLE", message) from error
