"""`lakegate change`: one statement on a table, audited before anybody sees what it does."""

import getpass
from typing import Annotated

import typer

from access.deployment import find
from cli import terminal
from cli.drop import exit_code, explain, showing
from cli.follow import Sight, ended, follow
from functions.adapters.all import Adapters
from functions.pipeline.intake import ask
from lakegate.change import Change
from lakegate.landing import ID_PART, ingestion_id


def change(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The table, as in nyc.flights.")],
    sql: Annotated[str, typer.Option(help="One DELETE, UPDATE or MERGE on it, in Spark SQL.")],
    message: Annotated[str, typer.Option(help="Why: it stands in main's log.")] = "",
    by: Annotated[str, typer.Option(help="Who asks for it, if not you.")] = "",
    token: Annotated[
        str, typer.Option(help="That of an earlier try: it is carried on, and not made twice.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Show the way to the end state.")] = False,
    seconds: Annotated[float, typer.Option("--timeout", help="How long to wait.")] = 900,
) -> None:
    """Change a table on a branch, audit the whole of it there, and publish it if it passes.

    The change is made once, however often the command is given with one token. With --wait the
    exit code tells the end, as that of `lakegate drop` does.
    """
    adapters = find(context.obj).adapters()
    asked = Change(table, sql, token or adapters.token(), by or getpass.getuser(), message)
    landed = asked.landed(adapters.lake.bucket)
    id_ = ingestion_id(landed)
    terminal.out().print(f"{id_}  change of {table}, token {asked.token}", soft_wrap=True)
    ingestion = ask(adapters, asked)
    if wait:
        _follow(adapters, Sight(ingestion), seconds)
    terminal.out().print(f"`lakegate show {id_[:ID_PART]}` tells how it goes")


def _follow(adapters: Adapters, sight: Sight, seconds: float) -> None:
    with showing(terminal.err()) as show:
        sights = follow(adapters, [sight], ended, seconds, show)
    explain(terminal.err(), sights)
    raise typer.Exit(exit_code(sights))
