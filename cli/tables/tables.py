"""`lakegate tables`: list the tables, and what the last upkeep found."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.adapters.all import Adapters
from functions.model.commits import MAIN
from functions.model.notes.upkeep_note import TableUpkeep
from lakegate.text import one_line

if TYPE_CHECKING:
    from access.tables.reader import Reader


@dataclass(frozen=True)
class ListedTable:
    """A table with a contract in force, or on main, or both.

    `rows`, `files` and `size` (bytes) are None before its first file is published; `version`,
    `prefix` and `owner` are "" without a contract. `upkeep` is what the daily upkeep found at the
    time `upkeep_at`, None before it looked.
    """

    table: str
    rows: int | None = None
    files: int | None = None
    size: int | None = None
    version: str = ""
    prefix: str = ""
    owner: str = ""
    upkeep: TableUpkeep | None = None
    upkeep_at: str = ""


def tables(context: typer.Context, as_json: AsJson = False) -> None:
    """List the tables with a contract or on main, with their rows."""
    deployment = find(context.obj)
    found = listed(deployment.adapters(), deployment.reader(MAIN))
    if as_json:
        typer.echo(json_output.text([asdict(each) for each in found]))
    elif found:
        terminal.out().print(rendered(found))
    else:
        terminal.err().print("No table yet: `lakegate contract push` puts a contract in force")


def listed(adapters: Adapters, main: "Reader") -> list[ListedTable]:
    """Return the tables by name, with their sizes on main from its metadata."""
    on_main = {name: main.state(name) for name in main.names()}
    contracts = {each.contract.table: each.contract for each in adapters.lake.contracts(None)}
    note, found = adapters.ledger.upkeep(), []
    for name in sorted(on_main.keys() | contracts.keys()):
        state, contract, upkeep = on_main.get(name), contracts.get(name), note.tables.get(name)
        sizes = (state.rows, state.files, state.size) if state else (None, None, None)
        terms = (contract.version, contract.landing_prefix, contract.owner) if contract else ()
        at = note.at if upkeep else ""
        found.append(replace(ListedTable(name, *sizes, *terms), upkeep=upkeep, upkeep_at=at))
    return found


def rendered(found: list[ListedTable]) -> RenderableType:
    """Return the tables, one per line."""
    numbers = ("rows", "data files", "bytes", "small", "metadata", "dead")
    made = terminal.table("table", *numbers, "contract", "files under", "owner", right=numbers)
    for each in found:
        sizes = ("-" if n is None else f"{n:,}" for n in (each.rows, each.files, each.size))
        words = (each.version or "none", each.prefix or "-", one_line(each.owner) or "-")
        made.add_row(each.table, *sizes, *_upkeep(each.upkeep), *words)
    looked = max((each.upkeep_at for each in found), default="")
    made.caption = f"small files, metadata and dead bytes: as the upkeep of {looked} found"
    if not looked:
        made.caption = "small files, metadata and dead bytes: unknown before the first daily upkeep"
    return made


def _upkeep(found: TableUpkeep | None) -> tuple[str, str, str]:
    if not found:
        return "-", "-", "-"
    return f"{found.small_share:.0%}", f"{found.metadata_bytes:,}", f"{found.dead_bytes:,}"
