"""Slack's messages, fetched from the local stand-in and made readable on a terminal."""

import html
import re
from collections.abc import Mapping
from typing import Any

import requests
from rich.panel import Panel
from rich.text import Text

from lakegate.errors import LakegateError, Transient

_MARKS = re.compile(
    r"```(?P<block>.*?)```|`(?P<code>[^`]+)`|\*(?P<bold>[^*\n]+)\*|(?P<cross>:x:)", re.DOTALL
)
_STYLES = {"block": "cyan", "code": "cyan", "bold": "bold", "cross": "red"}


def message_about(address: str, ingestion: str) -> Mapping[str, Any]:
    """The newest message that the stand-in at `address` got about an ingestion.

    Raises LakegateError NO_MESSAGE when there is none.
    """
    try:
        answer = requests.get(f"{address}/messages", timeout=10)
        answer.raise_for_status()
        messages = [m for m in answer.json() if ingestion in str(m.get("blocks"))]
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the Slack stand-in: {error}") from error
    if not messages:
        message = f"Slack got no message about the ingestion {ingestion}"
        raise LakegateError("NO_MESSAGE", message)
    return dict(messages[-1])


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
