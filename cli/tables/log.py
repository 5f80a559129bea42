"""`lakegate log`: list main's commits of a table."""

from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.adapters.all import Adapters
from functions.model.commits import Commit
from functions.model.merge_commit import Published, gains, published
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART
from lakegate.text import one_line

if TYPE_CHECKING:
    pass


_HASH = 12  # characters of a commit's hash


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
    """Return who published it anyway, requested the change, or mended it; "" for none of it."""
    if member.approved_by:
        return one_line(f"approved by {member.approved_by}: {member.approved_because}")
    if mended := member.mended:
        by = f" by {mended.by}" if mended.by else ""
        name = member.object.rsplit("/", 1)[-1]
        return one_line(f"{name} of {mended.ingestion[:ID_PART]} mended with {mended.file}{by}")
    if member.asked_by:
        return one_line(f"requested by {member.asked_by}: {member.asked_because}").rstrip(": ")
    return ""
