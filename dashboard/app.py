"""The quality page's script, which Streamlit runs for each view: which page, and of what."""

import json
import sys
from collections.abc import Callable

import streamlit as st

from dashboard import comparison_view, ingestion_view, links, overview_view, table_view
from dashboard.failing import told
from dashboard.opening import Opened, opened
from dashboard.words import code
from reading.deployment import Choice

Show = Callable[[Opened], None]


def main(choice: Choice) -> None:
    """Show the page that the address names, of the deployment that was chosen."""
    st.set_page_config(page_title=f"Lakegate: {choice.name}", layout="wide")

    def page(show: Show, title: str, path: str, *, first: bool = False) -> st.Page:
        def run() -> None:
            st.caption(code(choice.name), text_alignment="right")
            with told():
                show(opened(choice))

        return st.Page(run, title=title, url_path=path, default=first)

    pages = [
        page(overview_view.show, "Overview", "overview", first=True),
        page(ingestion_view.show, "Ingestion", links.INGESTION),
        page(comparison_view.show, "Branch and main", links.BRANCH),
        page(table_view.show, "Table", links.TABLE),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main(Choice(**json.loads(sys.argv[1])))
