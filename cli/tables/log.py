"""`lakegate log`: list main's commits of a table."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import RenderableType

from access.deployment.choice import find
from access.tables.history import TableCommit, commits
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.model.merge_commit import Published
from lakegate.job.landing import ID_PART
from lakegate.text import one_line

_HASH = 12  # characters of a commit's hash


def log(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Table, for example nyc.flights.")],
    limit: Annotated[int, typer.Option(min=1, help="Most commits.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show main's commits of a table, newest first: what was published, by whom, why."""
    history = commits(find(context.obj).adapters(), table, limit)
    if as_json:
        typer.echo(json_output.text([asdict(commit) for commit in history]))
    else:
        terminal.out().print(log_of(history))


def log_of(history: list[TableCommit]) -> RenderableType:
    """Return the commits of a table, one below the other."""
    made = terminal.table("time (UTC)", "commit", "rows", "what", right=["rows"])
    for commit in history:
        rows = "" if commit.rows is None else f"{commit.rows:+,}"
        # A Z, as `restore --to` and `--since` take a time without a zone as the machine's.
        made.add_row(f"{commit.time[:19]}Z", commit.hash[:_HASH], rows, _what(commit))
    return made


def _what(commit: TableCommit) -> str:
    """Return the message, who decided it, and the ingestion if it is one alone."""
    members = commit.ingestions
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
