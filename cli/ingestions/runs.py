"""`lakegate runs`: list ingestions, or those that need a decision."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from access.deployment.choice import find
from access.ingestions.find import Wanted
from access.ingestions.find import find as find_ingestions
from cli.console import json_output, terminal
from cli.console.options import AsJson, since
from functions.model.ingestion import Ingestion
from functions.model.shown_state import ShownState
from lakegate.job.landing import ID_PART
from lakegate.text import one_line
from lakegate.times import duration, seconds

_STATEMENT = 60
_CAUSE = 120


def runs(
    context: typer.Context,
    table: Annotated[str, typer.Option(help="Only ingestions of this table.")] = "",
    state: Annotated[ShownState | None, typer.Option(help="Only ingestions in this state.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            parser=since, metavar="TIME", help="Only what landed since then: 2026-11-02, 36h, 7d."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most ingestions; 0 for all.")] = 50,
    is_waiting: Annotated[
        bool, typer.Option("--waiting", help="What needs a decision, oldest first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List ingestions, newest first; with --waiting those that need a decision, oldest first."""
    adapters = find(context.obj).adapters()
    wanted = Wanted(table, state, since or "", limit)
    listing = find_ingestions(adapters, wanted, is_waiting=is_waiting)
    if as_json:
        typer.echo(
            json_output.text([json_output.ingestion_json(each) for each in listing.ingestions])
        )
    elif listing.ingestions:
        now = adapters.now()
        terminal.out().print(
            undecided(listing.ingestions, now) if is_waiting else listed(listing.ingestions)
        )
    else:
        nothing = "Nothing waits for a decision" if is_waiting else "No matching ingestions"
        terminal.err().print(nothing)
    if listing.more:
        terminal.err().print(f"Only {limit:,} of them; --limit 0 lists all", style="dim")


def listed(ingestions: Iterable[Ingestion]) -> Table:
    """Return a table of ingestions, one per line."""
    made = terminal.table(
        "id", "state", "table", "file", "rows", "landed", "reason", right=["rows"]
    )
    for each in ingestions:
        made.add_row(
            each.id[:ID_PART],
            terminal.state(each),
            ", ".join(each.tables) or "-",
            _source(each),
            f"{each.audit.rows:,}" if each.audit.rows else "-",
            _clock(each.landed.landed_at),
            _why(each),
        )
    return made


def undecided(ingestions: Iterable[Ingestion], now: str) -> Table:
    """Return a table of ingestions that wait for a decision at the time `now`, one per line."""
    made = terminal.table("id", "table", "file", "cause", "rows", "age", "owner", right=["rows"])
    for each in ingestions:
        made.add_row(
            each.id[:ID_PART],
            ", ".join(each.tables) or "-",
            _source(each),
            _cause(each),
            f"{each.audit.rows:,}" if each.audit.rows else "-",
            duration(seconds(each.landed.landed_at, now), parts=1),
            one_line(each.terms.owner) or each.terms.channel or "-",
        )
    return made


def _cause(ingestion: Ingestion) -> str:
    """Return the reason in words, cut to two lines of a terminal."""
    words = one_line(ingestion.reason_text)
    return words if len(words) <= _CAUSE else f"{words[:_CAUSE]}…"


def _why(ingestion: Ingestion) -> str:
    """Return why an ingestion was not published, and which one supersedes it."""
    newer = ingestion.superseded_by[:ID_PART]
    code = ingestion.reason_code
    return f"{code}, superseded by {newer}" if newer else code


def _source(ingestion: Ingestion) -> str:
    """Return the key of the file, or the statement of the change, on one line."""
    if not ingestion.change:
        return one_line(ingestion.landed.key)
    text = " ".join(ingestion.change.statement.split())
    return text if len(text) <= _STATEMENT else f"{text[:_STATEMENT]}…"


def _clock(time: str) -> str:
    """Return a time of the ledger (ISO 8601) in the machine's time zone."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}" if time else ""
