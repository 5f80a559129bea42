"""`lakegate page`: serve the quality page, on this machine only or to a team."""

import logging
import os
from typing import Annotated

import typer

from access.deployment.choice import Choice
from cli.console.spinner import SPINNER


def page(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 8501,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
    team: Annotated[
        bool, typer.Option("--team", help="Serve whom a proxy names (docs/page.md).")
    ] = False,
    host: Annotated[
        str, typer.Option(help="With --team: the address of this machine to serve at.")
    ] = "127.0.0.1",
) -> None:
    """Serve the quality page: ingestions, failed checks and tables."""
    # a second to import, which no other command waits for
    from dashboard.serve.serving import serve, serve_team
    from dashboard.serve.team_door import proxy_of

    SPINNER.stop()
    logging.disable(logging.NOTSET)  # an error of the page is told in its log only
    proxy = proxy_of(os.environ) if team else None  # opening the local stack clears variables
    if proxy:
        serve_team(Choice.of(context.obj), proxy, host, port)
    else:
        serve(Choice.of(context.obj), port, open_browser=open_)
