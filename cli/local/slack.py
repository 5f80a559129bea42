"""`lakegate slack`: show the local Slack's messages, and press their buttons."""

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.table import Table

from access.deployment.checkout import home
from access.deployment.choice import find
from access.ingestions.identify import identified
from cli.console import json_output, terminal
from cli.console.options import AsJson, Id
from cli.local.slack_messages import about, ask, message_about, messages, panel, with_replies
from functions.model.messages.action import Verb
from functions.notifications.slack_buttons import BUTTONS, OF_ALL, PREFIX, REASON
from infra.local import stack_file
from lakegate.errors import LakegateError

slack = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Show the local Slack's messages, and press buttons.",
)


@slack.command("list")
def list_command(
    context: typer.Context,
    channel: Annotated[str, typer.Option(help="Only messages in this channel.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Most messages.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the messages in the local Slack's channels, newest first, with their replies."""
    every = messages(_local(context.obj))
    chosen = newest(every, channel)[:limit]
    if as_json:
        typer.echo(json_output.text([dict(message) for message in chosen]))
    elif chosen:
        terminal.out().print(listed(chosen, every))
    else:
        terminal.err().print("No messages")


def newest(every: Sequence[Mapping[str, Any]], channel: str) -> list[Mapping[str, Any]]:
    """Return the first messages of threads, newest first, of one channel unless it is ""."""
    firsts = [m for m in every if not m.get("thread_ts") and channel in ("", m["channel"])]
    return firsts[::-1]


def listed(chosen: Iterable[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]) -> Table:
    """Return messages, one per line, with the number of replies among `every` message."""
    replies = Counter(message.get("thread_ts") for message in every)
    made = terminal.table("time", "channel", "message", "replies", right=["replies"])
    for message in chosen:
        at = f"{datetime.fromtimestamp(float(message['ts'])).astimezone():%Y-%m-%d %H:%M:%S}"
        many = replies[message["ts"]]
        text = html.unescape(message["text"])
        made.add_row(at, message["channel"], text, f"{many:,}" if many else "")
    return made


@slack.command("show")
def show_command(context: typer.Context, identity: Id) -> None:
    """Show the local Slack's messages about an ingestion, as its channel does."""
    address = _local(context.obj)
    ingestion = identified(find().adapters().ledger, identity)
    for each in panels(messages(address), ingestion.id):
        terminal.out().print(each)


def panels(every: list[Mapping[str, Any]], ingestion: str) -> list[Panel]:
    """Return the messages about an ingestion, oldest first; the first ones of threads have replies.

    Raises LakegateError NO_MESSAGE.
    """
    chosen = about(every, ingestion)
    if not chosen:
        message = f"no Slack message is about ingestion {ingestion}\nA good file causes none."
        raise LakegateError("NO_MESSAGE", message)
    return [panel(with_replies(message, every)) for message in chosen]


def _local(stage: str) -> str:
    """Return the address of the local Slack. Raises LakegateError NOT_LOCAL for a stage."""
    if stage:
        message = "only the local Slack can be read and its buttons pressed\nLeave out --stage."
        raise LakegateError("NOT_LOCAL", message)
    return stack_file.read(home()).slack


@slack.command()
def press(
    context: typer.Context,
    identity: Id,
    button: Annotated[Verb, typer.Argument(help="Button of its alert.")],
    person: Annotated[
        str, typer.Option("--as", help="Slack user who presses it; ada has permission.")
    ] = "ada",
    reason: Annotated[str, typer.Option(help="Text for the form.")] = "",
    everyone: Annotated[
        bool, typer.Option("--all", help="For all files of its thread; once asked, say yes.")
    ] = False,
) -> None:
    """Press a button of a failed file's newest alert; fill in the form if one opens."""
    address = _local(context.obj)
    ingestion = identified(find().adapters().ledger, identity)
    if not ingestion.has_failed:
        raise LakegateError("NO_BUTTONS", f"{ingestion.name} did not fail, so it has no alert")
    message_about(address, ingestion.id)  # waits for it
    at, label = newest_button(messages(address), ingestion.id, button, everyone=everyone)
    asked = {"ts": at, "button": label, "as": person}
    before = ask(address, "_person", {"as": person})
    _require_ok(ask(address, "_press", asked))
    after = ask(address, "_person", {"as": person})
    for form in after["forms"][len(before["forms"]) :]:
        wanted = {"view": form["id"], "values": {REASON: reason}, "as": person}
        wrong = _require_ok(ask(address, "_submit", wanted))["response"].get("errors", {})
        if wrong:
            raise LakegateError("NOT_SUBMITTED", f"{wrong[REASON]} (--reason TEXT)")
    if label.endswith("…"):
        hint = f"It asks in the thread, as `lakegate slack show {identity}` shows: press again"
        terminal.err().print(f"{hint} to say yes.", style="dim", soft_wrap=True)
    for words in after["private"][len(before["private"]) :]:
        terminal.out().print(words, markup=False, soft_wrap=True)


def newest_button(
    every: list[Mapping[str, Any]], ingestion: str, verb: Verb, *, everyone: bool
) -> tuple[str, str]:
    """Return the time of the newest message with an ingestion's button, and the button's label.

    With `everyone` it is a button for all files of its thread, or the yes to the question that
    such a button has caused. Raises LakegateError NO_BUTTONS.
    """
    threads = {_thread(message) for message in about(every, ingestion)}
    found = [
        (str(message["ts"]), str(button["text"]["text"]))
        for message in every
        if _thread(message) in threads
        for button in _buttons(message, OF_ALL if everyone else (BUTTONS,))
        if button["action_id"] == f"{PREFIX}{verb}" and (everyone or ingestion in button["value"])
    ]
    if not found:
        message = "its alert has no such button, or none any more: what is resolved has none"
        raise LakegateError("NO_BUTTONS", message)
    return found[-1]


def _thread(message: Mapping[str, Any]) -> str:
    return str(message.get("thread_ts") or message["ts"])


def _buttons(message: Mapping[str, Any], ids: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for block in message["blocks"]:
        yield from block["elements"] if block.get("block_id") in ids else ()


def _require_ok(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer["ok"]:
        message = f"the local Slack answered {answer['error']}\nPress the button again."
        raise LakegateError("NOT_PRESSED", message)
    return answer
