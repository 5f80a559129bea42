"""Slack's messages, fetched from the local stand-in and made readable on a terminal."""

import html
import re
import time
from collections.abc import Mapping
from typing import Any

import requests
from rich.panel import Panel
from rich.text import Text

from lakegate.errors import LakegateError, Transient

_MARKS = re.compile(
    r"```(?P<block>.*?)```|`(?P<code>[^`]+)`|\*(?P<bold>[^*\n]+)\*|(?P<cross>:x:)", re.DOTALL
)
_PATIENCE, _PAUSE = 30, 0.2  # seconds
_STYLES = {"block": "cyan", "code": "cyan", "bold": "bold", "cross": "red"}


def message_about(address: str, ingestion: str) -> Mapping[str, Any]:
    """The newest message that the stand-in at `address` got about an ingestion.

    What was told a moment ago may still be in the queue of alerts, so it is waited for. Raises
    LakegateError NO_MESSAGE when none comes.
    """
    deadline = time.monotonic() + _PATIENCE
    while not (about := [m for m in _messages(address) if ingestion in str(m.get("blocks"))]):
        if time.monotonic() > deadline:
            message = f"Slack got no message about the ingestion {ingestion}"
            raise LakegateError("NO_MESSAGE", message)
        time.sleep(_PAUSE)
    return dict(about[-1])


def _messages(address: str) -> list[Mapping[str, Any]]:
    try:
        answer = requests.get(f"{address}/messages", timeout=10)
        answer.raise_for_status()
        return list(answer.json())
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the Slack stand-in: {error}") from error


def panel(message: Mapping[str, Any]) -> Panel:
    """A message as its channel shows it, near enough."""
    blocks = [_block(block) for block in message["blocks"]]
    title = Text(f"Slack {message['channel']}", "bold")
    body = Text("\n").join(blocks)
    return Panel.fit(body, title=title, title_align="left", border_style="magenta")


def _block(block: Mapping[str, Any]) -> Text:
    words = block["text"]["text"]
    if block["type"] == "header":
        return Text(f"{words}\n", "bold")
    made, end = Text(), 0
    for found in _MARKS.finditer(words):
        made.append(html.unescape(words[end : found.start()]))
        kind = str(found.lastgroup)
        made.append("✗" if kind == "cross" else html.unescape(found[kind]), _STYLES[kind])
        end = found.end()
    return made.append(html.unescape(words[end:]) + "\n")
