"""Read the local Slack's messages, and render them as their channel does."""

import html
import time
from collections.abc import Iterable, Mapping
from typing import Any

from rich.panel import Panel
from rich.text import Text

from functions.notifications.email import MARKS, SIGNS
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
    while not (chosen := about(every := messages(address), ingestion)):
        if time.monotonic() > deadline:
            message = f"no Slack message about ingestion {ingestion} arrived"
            raise LakegateError("NO_MESSAGE", message)
        time.sleep(_PAUSE)
    return with_replies(chosen[-1], every)


def with_replies(
    message: Mapping[str, Any], every: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    return {**message, "replies": [m for m in every if m.get("thread_ts") == message["ts"]]}


def about(every: list[Mapping[str, Any]], ingestion: str) -> list[Mapping[str, Any]]:
    return [message for message in every if ingestion in str(message.get("blocks"))]


def messages(address: str) -> list[Mapping[str, Any]]:
    return list(ask(address, "messages", {}))


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
    for match in MARKS.finditer(words):
        made.append(html.unescape(words[end : match.start()]))
        kind = str(match.lastgroup)
        style = _STYLES.get(match[0]) or _STYLES.get(kind, "")
        made.append(SIGNS.get(match[0]) or html.unescape(match[kind]), style)
        end = match.end()
    return made.append(html.unescape(words[end:]) + "\n")


_READ = ("messages", "_person")
_SECONDS = 120  # the local Slack retries requests to the app


def ask(address: str, what: str, payload: dict[str, Any]) -> Any:
    """Return the local Slack's answer. Raises Transient SLACK_UNAVAILABLE."""
    import requests  # it takes its time, which help does not need

    from infra.local import processes

    processes.call_directly()
    url = f"{address}/{what}"
    try:
        if what in _READ:
            answer = requests.get(url, payload, timeout=_SECONDS)
            answer.raise_for_status()
        else:
            answer = requests.post(url, json=payload, timeout=_SECONDS)
        return answer.json()
    except requests.ConnectionError as error:
        message = f"the local Slack at {address} is down: run `lakegate up`"
        raise Transient("SLACK_UNAVAILABLE", message) from error
    except (requests.RequestException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"the local Slack: {error}") from error
