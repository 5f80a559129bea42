"""Arguments and options that several commands share."""

import sys
from typing import Annotated

import typer

Id = Annotated[str, typer.Argument(metavar="ID", help="An ingestion id, or its first characters.")]
By = Annotated[str, typer.Option(help="Your name, recorded.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait, and show each step.")]
Seconds = Annotated[float, typer.Option("--timeout", help="Seconds to wait.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person at a terminal, unless `yes`. Raises Abort without consent."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
