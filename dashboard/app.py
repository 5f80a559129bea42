"""The quality page's script, which Streamlit runs for each view: which page, and of what."""

import sys
from collections.abc import Callable

import streamlit as st

from dashboard import comparison_view, ingestion_view, links, overview_view, table_view
from dashboard.failing import told
from dashboard.opening import Opened, opened

Show = Callable[[Opened], None]


def main(stage: str) -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="Lakegate", layout="wide")

    def page(show: Show, title: str, path: str, *, first: bool = False) -> st.Page:
        def run() -> None:
            with told():
                show(opened(stage))

        return st.Page(run, title=title, url_path=path, default=first)

    pages = [
        page(overview_view.show, "Overview", "overview", first=True),
        page(ingestion_view.show, "Ingestion", links.INGESTION),
        page(comparison_view.show, "Branch and main", links.BRANCH),
        page(table_view.show, "Table", links.TABLE),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
