"""Text of others, made to be seen only: no character in it acts on a terminal, a log or a chat.

Escape sequences recolour, hide and answer (ECMA-48); marks of direction show a name in another
order than it has (Unicode Standard Annex #9); half a surrogate pair cannot be written at all.
"""

import json
import re
from typing import Any

_ACTING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f"
_HALVES = "\ud800-\udfff"
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f{_ACTING}{_HALVES}]")
_UNSEEN_OR_BREAK = re.compile(f"[\x00-\x1f{_ACTING}{_HALVES}]")
_IN_JSON = re.compile(f"[{_ACTING}{_HALVES}]")


def visible(text: str) -> str:
    """The text with a mark for each character that would act; line ends and tabs stay."""
    return _UNSEEN.sub(_mark, text)


def one_line(text: str) -> str:
    """The same on one line: a name with a line end in it can put on no line of its own."""
    return _UNSEEN_OR_BREAK.sub(_mark, text)


def escaped_json(text: str) -> str:
    """A JSON text that stands for the same values, with such characters written as escapes."""
    return _IN_JSON.sub(_escape, text)


def _mark(found: re.Match[str]) -> str:
    """Unicode's picture of a control character, else the sign for what cannot be shown."""
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


# JSON that others wrote.


def load_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises ValueError for every text that is none, those too deeply nested for Python included,
    which the standard library tells by RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
