"""`lakegate tables` and `log`: list the tables, and main's commits of one."""

from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from access.deployment import find
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.adapters.all import Adapters
from functions.model.commits import MAIN, Commit
from functions.model.merge_commit import Published, gains, published
from functions.model.notes.upkeep_note import TableUpkeep
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART
from lakegate.text import one_line

if TYPE_CHECKING:
    from access.tables import Reader

_HASH = 12  # characters of a commit's hash


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


def log(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Table, for example nyc.flights.")],
    limit: Annotated[int, typer.Option(min=1, help="Most commits.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show main's commits of a table, newest first: what was published, by whom, why."""
    found = commits(find(context.obj).adapters(), table, limit)
    if as_json:
        typer.echo(json_output.text([document(commit, table) for commit in found]))
    else:
        terminal.out().print(log_of(found, table))


def log_of(found: list[Commit], table: str) -> RenderableType:
    """Return the commits of a table, one below the other."""
    made = terminal.table("time (UTC)", "commit", "rows", "what", right=["rows"])
    for commit in found:
        gained = gains(commit).get(table)
        rows = "" if gained is None else f"{gained:+,}"
        made.add_row(commit.time[:19], commit.hash[:_HASH], rows, _what(commit))
    return made


def commits(adapters: Adapters, table: str, limit: int) -> list[Commit]:
    """Return main's last commits that changed a table. Raises LakegateError NO_COMMITS."""
    history = adapters.catalog.history()
    found = list(islice((commit for commit, names in history if table in names), limit))
    if not found:
        message = f"main has no commit of {table}\nList the tables with `lakegate tables`."
        raise LakegateError("NO_COMMITS", message)
    return found


def document(commit: Commit, table: str) -> dict[str, Any]:
    """Return a commit as JSON; `rows` is by how many the table grew, null if others wrote it."""
    return {
        "hash": commit.hash,
        "time": commit.time,
        "author": commit.author,
        "message": commit.message,
        "rows": gains(commit).get(table),
        "ingestions": [asdict(each) for each in published(commit)],
    }


def _what(commit: Commit) -> str:
    """Return the message, who decided it, and the ingestion if it is one alone."""
    members = published(commit)
    lines = [one_line(commit.message), *filter(None, map(_decision, members))]
    if len(members) == 1:
        lines.append(f"`lakegate show {members[0].id[:ID_PART]}`")
    return "\n".join(lines)


def _decision(member: Published) -> str:
    """Return who published it anyway, or requested the change, and why; "" for neither."""
    if member.approved_by:
        return one_line(f"approved by {member.approved_by}: {member.approved_because}")
    if member.asked_by:
        return one_line(f"requested by {member.asked_by}: {member.asked_because}").rstrip(": ")
    return ""
