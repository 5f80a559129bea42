"""`lakegate page`: serve the quality page on this machine only."""

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from access.deployment.choice import Choice
from cli.console.spinner import SPINNER

if TYPE_CHECKING:
    pass


def page(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 8501,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Serve the quality page: ingestions, failed checks and tables."""
    # a second to import, which no other command waits for
    from dashboard.serve.serving import serve

    SPINNER.stop()
    logging.disable(logging.NOTSET)  # an error of the page is told in its log only
    serve(Choice.of(context.obj), port, open_browser=open_)
