"""The page's script, which Streamlit runs for each view."""

import json
import sys
from collections.abc import Callable

import streamlit as st

from access.deployment import Choice
from dashboard import formatting, ingestion_page, overview_page, table_page
from dashboard.compare import comparison_page
from dashboard.formatting import code
from dashboard.session import Opened, errors_shown, opened

Show = Callable[[Opened], None]


def main(choice: Choice) -> None:
    """Show the page in the address, of the chosen deployment."""
    st.set_page_config(page_title=f"Lakegate: {choice.name}", layout="wide")

    def page(show: Show, title: str, path: str, *, first: bool = False) -> st.Page:
        def run() -> None:
            st.caption(code(choice.name), text_alignment="right")
            with errors_shown():
                show(opened(choice))

        return st.Page(run, title=title, url_path=path, default=first)

    pages = [
        page(overview_page.show, "Overview", "overview", first=True),
        page(ingestion_page.show, "Ingestion", formatting.INGESTION),
        page(comparison_page.show, "Branch and main", formatting.BRANCH),
        page(table_page.show, "Table", formatting.TABLE),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main(Choice(**json.loads(sys.argv[1])))
