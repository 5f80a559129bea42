"""`lakegate page`: the quality page, served on this machine alone."""

from typing import Annotated

import typer

from reading.deployment import Choice


def page(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where to serve it.")] = 8501,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it in a browser as well.")
    ] = True,
) -> None:
    """Serve the quality page: what landed, what failed and why, and what is in the tables."""
    from dashboard.serving import serve  # a second to import, which no other command waits for

    serve(Choice.of(context.obj), port, open_browser=open_)
