"""The page's script, which Streamlit runs for each view."""

import json
import sys
from collections.abc import Callable
from typing import Any

import streamlit as st

from access.deployment.choice import Choice
from dashboard import formatting
from dashboard.charts import BLUE
from dashboard.compare import comparison_page
from dashboard.serve import watching
from dashboard.serve.errors import errors_shown
from dashboard.serve.session import Opened, opened, person
from dashboard.views import inbox as inbox_page
from dashboard.views import ingestion as ingestion_page
from dashboard.views import overview as overview_page
from dashboard.views import table as table_page
from lakegate.errors import LakegateError
from lakegate.text import visible

# Streamlit shows the focus of a link by a grey that few people see.
_FOCUS = f"""<style>
:is(a, button, summary):focus-visible {{outline: 2px solid {BLUE} !important; outline-offset: 1px}}
</style>"""
Show = Callable[[Opened], None]


def main(choice: Choice) -> None:
    """Show the page in the address, of the chosen deployment."""
    st.set_page_config(page_title=f"Lakegate: {choice.name}", layout="wide")

    def page(show: Show, title: str, path: str, **how: Any) -> st.Page:
        def run() -> None:
            watching.begin()
            st.html(_FOCUS)
            with errors_shown():
                who = visible(" · ".join(filter(None, (choice.name, person()))))
                st.text(who, width="stretch", text_alignment="right")
                try:
                    deployment = opened(choice)
                except LakegateError:
                    st.title(title, anchor=False)  # each view has one heading, this one too
                    raise
                show(deployment)

        return st.Page(run, title=title, url_path=path, **how)

    pages = [
        page(inbox_page.show, "Inbox", "inbox", default=True),
        page(ingestion_page.show, "Ingestions", formatting.INGESTION),
        page(table_page.show, "Tables", formatting.TABLE),
        page(overview_page.show, "Overview", "overview"),
        # Of one ingestion, which links to it.
        page(comparison_page.show, "Comparison", formatting.BRANCH, visibility="hidden"),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main(Choice(**json.loads(sys.argv[1])))
