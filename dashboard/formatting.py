"""Format numbers, times and names for people."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from lakegate.audit.report import CheckResult
from lakegate.text import one_line, visible
from lakegate.times import duration, seconds

_MARKED = "rgba(213, 94, 0, 0.2)"  # legible on both backgrounds
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


def grid(rows: Iterable[Mapping[str, Any]], alt: str, marked: Collection[str] = ()) -> None:
    """Show foreign rows as a table of texts, without Markdown; the cells of some columns stand out.

    Their names have a mark too, as a colour alone tells nothing to some people. A null is
    `(empty)`, in the colour of other values, as it may be what is wrong.
    """
    texts = pd.DataFrame(harmless(rows), dtype=object)  # else a null makes integers rounded floats
    shown = texts.map(lambda value: "(empty)" if value is None else value)
    names = {name: f"✗ {name}" for name in map(visible, marked) if name in shown}
    styled = shown.rename(columns=names).style.set_properties(
        subset=list(names.values()), **{"background-color": _MARKED, "font-weight": "bold"}
    )
    st.dataframe(styled if names else shown, hide_index=True, alt=alt)


def tables(names: Iterable[str]) -> str:
    """Return the tables of an ingestion on one line: `shop.orders, shop.returns`; `no table`."""
    return one_line(", ".join(names)) or "no table"


def ago(time: str, now: str) -> str:
    """Return the time since then, roughly: `3 min ago`."""
    if not time:
        return "at an unknown time"
    past = seconds(time, now)
    return f"{duration(past, parts=1)} ago" if past >= 1 else "just now"


def size(number: float) -> str:
    """Return a number of bytes: `88.2 MB` (of 1,000 KB each)."""
    unit = 0
    while number >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:,.0f} {_SIZES[unit]}" if unit == 0 else f"{number:,.1f} {_SIZES[unit]}"


def result(check: CheckResult) -> None:
    """Show the expected and the found value of a check, and its message."""
    with st.container(horizontal=True):
        for name, text in (("expected", check.expected), ("found", check.found)):
            with st.container(width="content", gap=None):
                st.caption(name)
                st.text(visible(text))
    if check.message:
        st.text(visible(check.message))


# The addresses of the views, to which alerts link as well.
INGESTION, BRANCH, TABLE = "ingestion", "branch", "table"


def ingestion(id_: str, label: str, icon: str | None = None) -> None:
    """Show a link to an ingestion; `label` is Markdown, with foreign names in `code`."""
    _link(INGESTION, label, icon, id=id_)


def branch(id_: str, label: str, icon: str | None = None) -> None:
    """Show a link to the comparison of an ingestion's branch with main."""
    _link(BRANCH, label, icon, id=id_)


def table(name: str, label: str, icon: str | None = None) -> None:
    """Show a link to a table."""
    _link(TABLE, label, icon, name=name)


def _link(path: str, label: str, icon: str | None, **address: str) -> None:
    """Show a link with an address."""
    st.page_link(page(path), label=label, icon=icon, query_params=address)


def page(path: str) -> st.Page:
    """Return the page at an address, to link to."""
    return st.Page(lambda: None, title=path, url_path=path)
