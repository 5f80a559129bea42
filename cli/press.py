"""`lakegate slack press`: somebody presses a button in the local Slack."""

from typing import Annotated, Any

import requests
import typer

from cli import view
from cli.slack import message_about
from functions.people.buttons import LABELS, REASON, Verb
from infra.local import stack
from lakegate.errors import LakegateError, Transient
from reading.deployment import find, home
from reading.identity import identified

_SECONDS = 120  # the local Slack tells the app more than once, and a busy machine is slow

slack = typer.Typer(no_args_is_help=True, help="Play people in the local Slack.")


@slack.callback()
def people() -> None:
    """Play people in the local Slack."""


@slack.command()
def press(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", help="An id, or its beginning.")],
    button: Annotated[Verb, typer.Argument(help="Which button of its alert.")],
    person: Annotated[str, typer.Option("--as", help="Who presses it; ada may.")] = "ada",
    reason: Annotated[str, typer.Option(help="What they write into the form.")] = "",
) -> None:
    """Press a button of a failed file's newest alert, and fill in the form where one opens."""
    if context.obj:
        raise LakegateError("NOT_LOCAL", "only in the local Slack can people be played")
    ingestion = identified(find().world().ledger, identity)
    if not ingestion.has_failed:
        raise LakegateError("NO_BUTTONS", f"{ingestion.name} did not fail: no alert is about it")
    address = stack.read(home()).slack
    asked = {"ts": _alert(address, ingestion.id), "button": LABELS[button], "as": person}
    before = _ask(address, "_person", {"as": person})
    _require_ok(_ask(address, "_press", asked))
    after = _ask(address, "_person", {"as": person})
    for form in after["forms"][len(before["forms"]) :]:
        wanted = {"view": form["id"], "values": {REASON: reason}, "as": person}
        wrong = _require_ok(_ask(address, "_submit", wanted))["response"].get("errors", {})
        if wrong:
            raise LakegateError("NOT_SUBMITTED", f"{wrong[REASON]} (--reason TEXT)")
    for words in after["told"][len(before["told"]) :]:
        view.out().print(words, markup=False, soft_wrap=True)


def _alert(address: str, ingestion: str) -> str:
    """The time of the newest message with buttons for an ingestion. Raises LakegateError."""
    message_about(address, ingestion)  # which may still be on its way
    messages = _ask(address, "messages", None)
    times = [m["ts"] for m in messages if ingestion in str(m["blocks"]) and _has_buttons(m)]
    if not times:
        message = "no alert about it has buttons: it is settled"
        raise LakegateError("NO_BUTTONS", message)
    return str(times[-1])


def _has_buttons(message: dict[str, Any]) -> bool:
    return any(block["type"] == "actions" for block in message["blocks"])


def _ask(address: str, what: str, asked: dict[str, Any] | None) -> Any:
    """What the local Slack answers. Raises Transient SLACK_UNAVAILABLE."""
    url = f"{address}/{what}"
    try:
        if what in ("messages", "_person"):
            return requests.get(url, asked, timeout=_SECONDS).json()
        return requests.post(url, json=asked, timeout=_SECONDS).json()
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the local Slack: {error}") from error


def _require_ok(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer["ok"]:
        message = f"Slack shows that it did not work ({answer['error']}): press again"
        raise LakegateError("NOT_PRESSED", message)
    return answer
