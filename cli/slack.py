"""`lakegate slack`: show the local Slack's messages, and press their buttons."""

import html
import time
from collections.abc import Mapping
from typing import Annotated, Any

import requests
import typer
from rich.panel import Panel
from rich.text import Text

from access.deployment import find, home, identified
from cli import terminal
from cli.options import Id
from functions.notifications.email import MARKS, SIGNS
from functions.notifications.slack_buttons import LABELS, REASON, Verb
from infra.local import stack
from lakegate.errors import LakegateError, Transient

_PATIENCE, _PAUSE = 240, 0.2  # seconds
_STYLES = {
    "block": "cyan",
    "code": "cyan",
    "bold": "bold",
    "link": "underline",
    ":x:": "red",
    ":white_check_mark:": "green",
}


def message_about(address: str, ingestion: str) -> Mapping[str, Any]:
    """Return the newest message of the local Slack at `address` about an ingestion.

    Includes the `replies` in its thread. Waits, as the alert may still be in its queue. Raises
    LakegateError NO_MESSAGE if none arrives.
    """
    deadline = time.monotonic() + _PATIENCE
    while not (about := _about(every := _messages(address), ingestion)):
        if time.monotonic() > deadline:
            message = f"no Slack message about ingestion {ingestion} arrived"
            raise LakegateError("NO_MESSAGE", message)
        time.sleep(_PAUSE)
    replies = [m for m in every if m.get("thread_ts") == about[-1]["ts"]]
    return {**about[-1], "replies": replies}


def _about(every: list[Mapping[str, Any]], ingestion: str) -> list[Mapping[str, Any]]:
    return [message for message in every if ingestion in str(message.get("blocks"))]


def _messages(address: str) -> list[Mapping[str, Any]]:
    return list(_ask(address, "messages", {}))


def panel(message: Mapping[str, Any]) -> Panel:
    """Render a message like its channel does, with its thread's replies in short."""
    blocks = [_block(block) for block in message["blocks"]]
    replies = [Text(f"↳ {html.unescape(m['text'])}\n", "dim") for m in message.get("replies", [])]
    where = "thread in " if message.get("thread_ts") else ""
    title = Text(f"Slack {where}{message['channel']}", "bold")
    body = Text("\n").join([*blocks, *replies])
    return Panel.fit(body, title=title, title_align="left", border_style="magenta")


def _block(block: Mapping[str, Any]) -> Text:
    if block["type"] == "actions":
        buttons = (element["text"]["text"] for element in block["elements"])
        return Text("  ".join(f"[{words}]" for words in buttons) + "\n", "reverse")
    if block["type"] == "context":
        return Text("\n").join(_marked(element["text"]) for element in block["elements"])
    words = block["text"]["text"]
    return Text(f"{words}\n", "bold") if block["type"] == "header" else _marked(words)


def _marked(words: str) -> Text:
    made, end = Text(), 0
    for found in MARKS.finditer(words):
        made.append(html.unescape(words[end : found.start()]))
        kind = str(found.lastgroup)
        style = _STYLES.get(found[0]) or _STYLES.get(kind, "")
        made.append(SIGNS.get(found[0]) or html.unescape(found[kind]), style)
        end = found.end()
    return made.append(html.unescape(words[end:]) + "\n")


# `lakegate slack press`: press a button in the local Slack.

_READ = ("messages", "_person")
_SECONDS = 120  # the local Slack retries requests to the app

slack = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Press buttons in the local Slack.",
)


@slack.callback()
def group() -> None:
    """Press buttons in the local Slack."""


@slack.command()
def press(
    context: typer.Context,
    identity: Id,
    button: Annotated[Verb, typer.Argument(help="Button of its alert.")],
    person: Annotated[
        str, typer.Option("--as", help="Slack user who presses it; ada has permission.")
    ] = "ada",
    reason: Annotated[str, typer.Option(help="Text for the form.")] = "",
) -> None:
    """Press a button of a failed file's newest alert; fill in the form if one opens."""
    if context.obj:
        raise LakegateError(
            "NOT_LOCAL", "buttons can be pressed in the local Slack only\nLeave out --stage."
        )
    ingestion = identified(find().adapters().ledger, identity)
    if not ingestion.has_failed:
        raise LakegateError("NO_BUTTONS", f"{ingestion.name} did not fail, so it has no alert")
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
    for words in after["private"][len(before["private"]) :]:
        terminal.out().print(words, markup=False, soft_wrap=True)


def _alert(address: str, ingestion: str) -> str:
    """Return the time of the newest message with buttons for an ingestion. Raises LakegateError."""
    message_about(address, ingestion)  # waits for it
    messages = _messages(address)
    times = [m["ts"] for m in messages if ingestion in str(m["blocks"]) and _has_buttons(m)]
    if not times:
        message = "its alert has no buttons any more: it is resolved"
        raise LakegateError("NO_BUTTONS", message)
    return str(times[-1])


def _has_buttons(message: Mapping[str, Any]) -> bool:
    return any(block["type"] == "actions" for block in message["blocks"])


def _ask(address: str, what: str, payload: dict[str, Any]) -> Any:
    """Return the local Slack's answer. Raises Transient SLACK_UNAVAILABLE."""
    url = f"{address}/{what}"
    try:
        if what in _READ:
            answer = requests.get(url, payload, timeout=_SECONDS)
            answer.raise_for_status()
        else:
            answer = requests.post(url, json=payload, timeout=_SECONDS)
        return answer.json()
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the local Slack: {error}") from error


def _require_ok(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer["ok"]:
        message = f"the local Slack answered {answer['error']}\nPress the button again."
        raise LakegateError("NOT_PRESSED", message)
    return answer
