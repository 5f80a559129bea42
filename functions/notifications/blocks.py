"""Slack's Block Kit, within its limits, and harmless whatever the text in it says.

Limits: 3,000 characters a section, 150 a header (Slack, "Block Kit reference"). Text from files,
keys and contracts is escaped, so that it neither links nor pings (Slack, "Formatting text for app
surfaces").
"""

from functions.model.alert import Block
from lakegate.text import one_line, visible

MOST_BLOCKS, SECTION, HEADER = 50, 3000, 150


def header(title: str) -> Block:
    """The title of a message, as plain text."""
    return {"type": "header", "text": {"type": "plain_text", "text": cut(one_line(title), HEADER)}}


def section(text: str) -> Block:
    """A paragraph of escaped text and marks of our own."""
    # Verbatim: what looks like an address or a channel in it becomes no link.
    return {"type": "section", "text": _words(text)}


def context(text: str) -> Block:
    """A paragraph as `section` makes it, in small letters."""
    return {"type": "context", "elements": [_words(text)]}


def escaped(text: str) -> str:
    """Text that neither links nor pings, nor opens a block of code around what follows it."""
    harmless = visible(text).replace("```", "'''").replace("&", "&amp;")
    return harmless.replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str) -> str:
    """Escaped text in which no code ends, cut to half a section."""
    return escaped(text.replace("`", "'"))[: SECTION // 2]


def code(text: str) -> str:
    """The text on one line, as code."""
    return f"`{plain(one_line(text))}`"


def link(address: str, words: str) -> str:
    """A link of our own."""
    return f"<{address}|{escaped(words)}>"


def cut(text: str, limit: int) -> str:
    """The text with at most that many characters; what was opened in it is closed."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 4]
    return kept + "…" + ("```" if kept.count("```") % 2 else "")


def _words(text: str) -> Block:
    return {"type": "mrkdwn", "text": cut(text, SECTION), "verbatim": True}
