"""Text for people: numbers of things, and foreign text made safe for a terminal, a log or a chat.

Escape sequences recolour, hide and answer (ECMA-48); direction marks show a name in another order
than it has (Unicode Standard Annex #9); half a surrogate pair cannot be written at all.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

_ACTING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f"
_MOST = 20  # names in a sentence
_HALVES = "\ud800-\udfff"
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f{_ACTING}{_HALVES}]")
_UNSEEN_OR_BREAK = re.compile(f"[\x00-\x1f{_ACTING}{_HALVES}]")
_IN_JSON = re.compile(f"[{_ACTING}{_HALVES}]")


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things: `1 file`, `2,300 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def few(names: Iterable[str]) -> str:
    """Return names for a sentence, of very many the first: `a, b, c and 4,997 more`; or `none`."""
    every = list(names)
    more = f" and {len(every) - _MOST:,} more" if len(every) > _MOST else ""
    return f"{', '.join(every[:_MOST])}{more}" or "none"


def visible(text: str) -> str:
    """Return the text with a mark for each acting character; line ends and tabs stay."""
    return _UNSEEN.sub(_mark, text)


def one_line(text: str) -> str:
    """Return the same on one line: a name with a line end in it cannot start a line of its own."""
    return _UNSEEN_OR_BREAK.sub(_mark, text)


def escaped_json(text: str) -> str:
    """Return an equal JSON text with such characters written as escapes."""
    return _IN_JSON.sub(_escape, text)


def _mark(match: re.Match[str]) -> str:
    """Return Unicode's picture of a control character, else the replacement character."""
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def load_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for every invalid text, including those nested too deeply for Python, for
    which the standard library raises RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
