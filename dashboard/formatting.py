"""Format numbers, times and names for people."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from lakegate.text import one_line, visible

_FENCE = re.compile("`+")
_SIZES = ("bytes", "KB", "MB", "GB", "TB")


def code(text: str) -> str:
    """Return foreign text as inline code of Markdown, unchanged and on one line.

    Inline code has no links, images, formulas, emoji or colours (CommonMark 0.31, section 6.1). The
    fence is longer than any in the text.
    """
    shown = one_line(text).replace("\t", " ") or " "
    fence = "`" * (1 + max(map(len, _FENCE.findall(shown)), default=0))
    return f"{fence} {shown} {fence}" if len(fence) > 1 or shown != shown.strip() else f"`{shown}`"


def harmless(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return foreign rows for a table, without acting characters in names and values."""
    return [
        {visible(name): visible(value) if isinstance(value, str) else value for name, value in each}
        for each in map(Mapping.items, rows)
    ]


def tables(names: Iterable[str]) -> str:
    """Return the tables of an ingestion on one line: `shop.orders, shop.returns`; `no table`."""
    return one_line(", ".join(names)) or "no table"


def moment(time: str) -> str:
    """Return a time of the ledger: `22 Nov 2026, 01:40:12 UTC`; "" for none."""
    return f"{datetime.fromisoformat(time):%-d %b %Y, %H:%M:%S} UTC" if time else ""


def ago(time: str, now: str) -> str:
    """Return the time since then, roughly: `3 min ago`."""
    if not time:
        return "at an unknown time"
    past = (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds()
    return f"{duration(max(0.0, past), parts=1)} ago" if past >= 1 else "just now"


def duration(seconds: float, parts: int = 2) -> str:
    """Return a duration as `0.4 s`, `3 min 12 s`, `2 d 4 h`: its largest `parts` units."""
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(whole.seconds, 3600)
    minutes, left = divmod(rest, 60)
    units = [(whole.days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    while units[0][0] == 0:
        units.pop(0)
    return " ".join(f"{many:,} {unit}" for many, unit in units[:parts] if many)


def size(number: float) -> str:
    """Return a number of bytes: `88.2 MB` (of 1,000 KB each)."""
    unit = 0
    while number >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:,.0f} {_SIZES[unit]}" if unit == 0 else f"{number:,.1f} {_SIZES[unit]}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things: `1 file`, `2,300 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# The addresses of the views, to which alerts link as well.

INGESTION, BRANCH, TABLE = "ingestion", "branch", "table"


def ingestion(id_: str, label: str, icon: str | None = None) -> None:
    """Return a link to an ingestion; `label` is Markdown, with foreign names in `code`."""
    st.page_link(_page(INGESTION), label=label, icon=icon, query_params={"id": id_})


def branch(id_: str, label: str, icon: str | None = None) -> None:
    """Return a link to the comparison of an ingestion's branch with main."""
    st.page_link(_page(BRANCH), label=label, icon=icon, query_params={"id": id_})


def table(name: str, label: str, icon: str | None = None) -> None:
    """Return a link to a table."""
    st.page_link(_page(TABLE), label=label, icon=icon, query_params={"name": name})


def _page(path: str) -> StreamlitPage:
    """Return a page as links need it: its address alone."""
    return st.Page(lambda: None, title=path, url_path=path)
