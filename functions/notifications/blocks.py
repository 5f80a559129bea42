"""Build Slack's Block Kit within its limits, from texts of any content.

Limits: 3,000 characters a section, 150 a header (Slack, "Block Kit reference"). Text from files,
keys and contracts is escaped, so that it neither links nor pings (Slack, "Formatting text for app
surfaces").
"""

import re

from functions.model.messages.alert import Alert, Block, Kind
from lakegate.text import one_line, visible

MOST_BLOCKS, SECTION, HEADER = 50, 3000, 150


def header(title: str) -> Block:
    """Return the title of a message, as plain text."""
    return {"type": "header", "text": {"type": "plain_text", "text": cut(one_line(title), HEADER)}}


def section(text: str) -> Block:
    """Return a paragraph of escaped text and our own markup."""
    # Verbatim, so that addresses and channel names in it do not become links.
    return {"type": "section", "text": _words(text)}


def context(text: str) -> Block:
    """Return a paragraph as `section` does, in small letters."""
    return {"type": "context", "elements": [_words(text)]}


def escaped(text: str) -> str:
    """Return text that neither links nor pings, nor opens a code block."""
    harmless = visible(text).replace("```", "'''").replace("&", "&amp;")
    return harmless.replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str) -> str:
    """Return escaped text that ends no code block, cut to half a section."""
    return _begun(escaped(text.replace("`", "'")), SECTION // 2)


def code(text: str) -> str:
    """Return the text on one line, as code."""
    return f"`{plain(one_line(text))}`"


def link(address: str, words: str) -> str:
    """Return a link of our own."""
    return f"<{address}|{escaped(words)}>"


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, with an open code block closed."""
    if len(text) <= limit:
        return text
    kept = _begun(text, limit - 4)
    return kept + "…" + ("```" if kept.count("```") % 2 else "")


def notice(title: str, words: str, about: str, cause: str) -> Alert:
    """Return an alert about no ingestion: a title above escaped words, or our own markup."""
    blocks = (section(f"*{title}*\n{words}"),)
    return Alert(title, blocks, about=about, kind=Kind.NOTICE, cause=cause)


def _begun(text: str, length: int) -> str:
    """Return the first characters of escaped text, without half of an escaped one at the end."""
    return re.sub("&[a-z]{0,3}$", "", text[:length]) if len(text) > length else text


def _words(text: str) -> Block:
    return {"type": "mrkdwn", "text": cut(text, SECTION), "verbatim": True}
