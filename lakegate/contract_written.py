"""How dates and times are written in a file of text cells: their pattern, and their time zone."""

import re
from zoneinfo import ZoneInfo

from lakegate.contract_fields import Field

_ISO = {"date": "yyyy-MM-dd", "timestamp": "yyyy-MM-dd'T'HH:mm:ss", "time": "HH:mm:ss"}
# Of DateTimeFormatter's letters those that Spark parses, and whose meaning no locale decides.
_KNOWN = re.compile(r"[yu]{1,6}|([MdHhms])\1?(?!\1)|S{1,6}(?!S)|a|[XxZ]{1,3}")
_QUOTED = re.compile(r"'[^']*'")
_PLAIN = re.compile(r"[^A-Za-z\[\]{}#']")
_PARTS = (_KNOWN, _QUOTED, _PLAIN)
_NEEDED = {"date": ("yu", "M", "d"), "timestamp": ("yu", "M", "d")}


def read_pattern(options: Field, logical: str) -> str:
    """The pattern of a column's dates or timestamps; "" where they are ISO 8601.

    A pattern is one of Java's DateTimeFormatter, as the standard has it (ODCS, logicalTypeOptions).
    """
    if logical not in _ISO:
        return ""
    given = options.text("format")
    instant = logical == "timestamp" and given.startswith(_ISO["date"] + "'T'")
    if given in ("", _ISO[logical]) or instant:
        return ""
    if logical == "time":
        options.refuse(f"times are read as {_ISO[logical]} alone", "format")
        return ""
    if strange := _strange(given):
        reason = "such as dd/MM/yyyy or yyyyMMdd HH:mm:ss, is made of y M d H h m s S a X and signs"
        options.refuse(f"{strange!r} is not supported in a pattern: one, {reason}", "format")
    elif missing := [letters[0] for letters in _NEEDED[logical] if not set(letters) & set(given)]:
        options.refuse(f"a {logical} needs {', '.join(missing)} in its pattern", "format")
    return given


def read_zone(options: Field, logical: str) -> str:
    """The time zone of a column's timestamps that have none; "" for UTC."""
    name = options.text("defaultTimezone") if logical in _ISO else ""
    if name in ("", "UTC", "Etc/UTC"):
        return ""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        options.refuse(f"{name!r} is no time zone, such as Europe/Berlin", "defaultTimezone")
        return ""
    if logical != "timestamp":
        options.refuse(f"belongs to timestamps: a {logical} is in no time zone", "defaultTimezone")
    return name


def _strange(pattern: str) -> str:
    """What of a pattern is not supported; "" where all is."""
    at = 0
    while at < len(pattern):
        found = next(filter(None, (each.match(pattern, at) for each in _PARTS)), None)
        if not found:
            return pattern[at:]
        at = found.end()
    return ""
