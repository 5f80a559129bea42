"""Numbers, times and names as people read them."""

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
    """Text of others as Markdown that shows it as it is, on one line, in the font of code.

    In inline code nothing is looked for: no link, no image, no formula, no emoji, no colour
    (CommonMark 0.31, section 6.1). The fence is longer than any that the text has.
    """
    shown = one_line(text).replace("\t", " ") or " "
    fence = "`" * (1 + max(map(len, _FENCE.findall(shown)), default=0))
    return f"{fence} {shown} {fence}" if len(fence) > 1 or shown != shown.strip() else f"`{shown}`"


def harmless(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of others as a table shows them: no character in a name or a value acts."""
    return [
        {visible(name): visible(value) if isinstance(value, str) else value for name, value in each}
        for each in map(Mapping.items, rows)
    ]


def tables(names: Iterable[str]) -> str:
    """The tables of an ingestion on one line: `shop.orders, shop.returns`; `no table`."""
    return one_line(", ".join(names)) or "no table"


def moment(time: str) -> str:
    """A time of the ledger: `22 Nov 2026, 01:40:12 UTC`; "" for none."""
    return f"{datetime.fromisoformat(time):%-d %b %Y, %H:%M:%S} UTC" if time else ""


def ago(time: str, now: str) -> str:
    """How long ago a time was, roughly: `3 min ago`."""
    if not time:
        return "at an unknown time"
    past = (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds()
    return f"{duration(max(0.0, past), parts=1)} ago" if past >= 1 else "just now"


def duration(seconds: float, parts: int = 2) -> str:
    """Some time as `0.4 s`, `3 min 12 s`, `2 d 4 h`: the largest `parts` units of it."""
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
    """A number of bytes: `88.2 MB` (of 1,000 KB each)."""
    unit = 0
    while number >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:,.0f} {_SIZES[unit]}" if unit == 0 else f"{number:,.1f} {_SIZES[unit]}"


def count(number: int, one: str, many: str = "") -> str:
    """A number of things: `1 file`, `2,300 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# The addresses of the page's parts, which alerts lead to as well.

INGESTION, BRANCH, TABLE = "ingestion", "branch", "table"


def ingestion(id_: str, label: str, icon: str | None = None) -> None:
    """A link to an ingestion; `label` is Markdown, names of others in it as `words.code` has it."""
    st.page_link(_page(INGESTION), label=label, icon=icon, query_params={"id": id_})


def branch(id_: str, label: str, icon: str | None = None) -> None:
    """A link to the comparison of an ingestion's branch with main."""
    st.page_link(_page(BRANCH), label=label, icon=icon, query_params={"id": id_})


def table(name: str, label: str, icon: str | None = None) -> None:
    """A link to a table."""
    st.page_link(_page(TABLE), label=label, icon=icon, query_params={"name": name})


def _page(path: str) -> StreamlitPage:
    """A page as links need it: its address alone."""
    return st.Page(lambda: None, title=path, url_path=path)
