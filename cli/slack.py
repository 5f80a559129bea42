"""Slack's messages, fetched from the local stand-in and made readable on a terminal."""

import html
import time
from collections.abc import Mapping
from typing import Any

import requests
from rich.panel import Panel
from rich.text import Text

from functions.people.plain_text import MARKS, SIGNS
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
    """The newest message that the stand-in at `address` got about an ingestion.

    With it come the `replies` in its thread. What was told a moment ago may still be in the queue
    of alerts, so it is waited for. Raises LakegateError NO_MESSAGE when none comes.
    """
    deadline = time.monotonic() + _PATIENCE
    while not (about := _about(every := _messages(address), ingestion)):
        if time.monotonic() > deadline:
            message = f"Slack got no message about the ingestion {ingestion}"
            raise LakegateError("NO_MESSAGE", message)
        time.sleep(_PAUSE)
    replies = [m for m in every if m.get("thread_ts") == about[-1]["ts"]]
    return {**about[-1], "replies": replies}


def _about(every: list[Mapping[str, Any]], ingestion: str) -> list[Mapping[str, Any]]:
    return [message for message in every if ingestion in str(message.get("blocks"))]


def _messages(address: str) -> list[Mapping[str, Any]]:
    try:
        answer = requests.get(f"{address}/messages", timeout=30)
        answer.raise_for_status()
        return list(answer.json())
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the Slack stand-in: {error}") from error


def panel(message: Mapping[str, Any]) -> Panel:
    """A message as its channel shows it, near enough, with what its thread says in short."""
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
