"""`lakegate tables`: list the tables, and what the last upkeep found."""

from dataclasses import asdict

import typer
from rich.console import RenderableType

from access.deployment.choice import find
from access.tables.listed import ListedTable, listed
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.model.commits import MAIN
from functions.model.notes.upkeep_note import TableUpkeep
from lakegate.text import one_line


def tables(context: typer.Context, as_json: AsJson = False) -> None:
    """List the tables with a contract or on main, with their rows."""
    deployment = find(context.obj)
    entries = listed(deployment.adapters(), deployment.reader(MAIN))
    if as_json:
        typer.echo(json_output.text([asdict(each) for each in entries]))
    elif entries:
        terminal.out().print(rendered(entries))
    else:
        terminal.err().print("No table yet: `lakegate contract push` puts a contract in force")


def rendered(entries: list[ListedTable]) -> RenderableType:
    """Return the tables, one per line."""
    numbers = ("rows", "data files", "bytes", "small", "metadata", "dead")
    made = terminal.table("table", *numbers, "contract", "files under", "owner", right=numbers)
    for each in entries:
        sizes = ("-" if n is None else f"{n:,}" for n in (each.rows, each.files, each.size))
        words = (each.version or "none", each.prefix or "-", one_line(each.owner) or "-")
        made.add_row(each.table, *sizes, *_upkeep(each.upkeep), *words)
    looked = max((each.upkeep_at for each in entries), default="")
    made.caption = f"small files, metadata and dead bytes: as the upkeep of {looked} found"
    if not looked:
        made.caption = "small files, metadata and dead bytes: unknown before the first daily upkeep"
    return made


def _upkeep(upkeep: TableUpkeep | None) -> tuple[str, str, str]:
    if not upkeep:
        return "-", "-", "-"
    return f"{upkeep.small_share:.0%}", f"{upkeep.metadata_bytes:,}", f"{upkeep.dead_bytes:,}"
