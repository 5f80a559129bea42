"""The addresses of the page's parts, which alerts lead to as well."""

import streamlit as st
from streamlit.navigation.page import StreamlitPage

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
