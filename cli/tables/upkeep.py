"""`lakegate upkeep`: compact tables, and delete files that nobody can read any more."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from access.deployment.choice import find
from cli.console import json_output, options, terminal
from functions.adapters.all import Adapters
from functions.operations.compaction import compact as compaction
from functions.operations.compaction.compact import Need, Progress, Step
from functions.operations.upkeep import dead_files
from functions.operations.upkeep.dead_files import Accepted, DeadFiles
from lakegate.errors import LakegateError

_WORDS = {
    Step.STARTED: "compaction started",
    Step.WAITS: "waits",
    Step.PUBLISHED: "compacted",
    Step.DROPPED: "compaction dropped",
}


def upkeep(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Only this table, and no deletion.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only measure: start and delete nothing.")
    ] = False,
    accept_main: Annotated[
        str,
        typer.Option(
            metavar="COMMIT",
            help="Accept main with this commit, though it lacks what it had; deletes nothing yet.",
        ),
    ] = "",
    accept_bytes: Annotated[
        int, typer.Option(metavar="BYTES", help="Accept that so much is deleted at once.", min=0)
    ] = 0,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Compact tables, and delete files that nobody reads.

    A compaction goes by a job run and a branch of its own; the sweep publishes it within minutes
    after its end, or this command when it is called again. The schedule does both once a day.
    """
    accepted = Accepted(accept_main, accept_bytes)
    if accepted != dead_files.NOTHING:
        if table or dry_run:
            message = "what is accepted is deleted: give neither a table nor --dry-run"
            raise typer.BadParameter(message)
        options.confirm(warning(accepted), yes=yes)
    adapters = find(context.obj).adapters()
    needs = list(compaction.needs(adapters, table))
    if table and not needs:
        message = f"main has no table {table} with a contract"
        raise LakegateError("UNKNOWN_TABLE", message)
    done = [] if dry_run else compacted(adapters, needs)
    dead = None if table else _dead(adapters, accepted, dry_run=dry_run)
    report(needs, done, dead, dry_run=dry_run, as_json=as_json)


def _dead(adapters: Adapters, accepted: Accepted, *, dry_run: bool) -> DeadFiles:
    from functions.operations.upkeep import daily

    return dead_files.find(adapters) if dry_run else daily.upkeep(adapters, accepted)


def warning(accepted: Accepted) -> str:
    """Return what a person accepts, as a question."""
    main = (
        f"Main is right as it is, with commit {accepted.head}, whatever it lacks: from the next "
        "upkeep on, files that only lost commits, branches or tags reach are deleted."
    )
    many = f"Up to {accepted.bytes:,} bytes of files without a reader are deleted now."
    last = "KeepDays later S3 has no version of them either. Do you accept that?"
    said = [*([main] if accepted.head else []), *([many] if accepted.bytes else [])]
    return " ".join([*said, last])


def report(
    needs: Sequence[Need],
    done: Sequence[Progress],
    dead: DeadFiles | None,
    *,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Print the tables, what became of their compactions, and the dead files."""
    if as_json:
        typer.echo(json_output.text(_document(needs, done, dead)))
        return
    terminal.out().print(_sizes(needs))
    for line in (*_lines(done), *_dead_file_lines(dead, dry_run=dry_run)):
        terminal.out().print(line, soft_wrap=True)


def compacted(adapters: Adapters, needs: Sequence[Need]) -> list[Progress]:
    """Settle what is under way, then start what is due. Raises as `start_due`, at the end."""
    tables = {need.table for need in needs}
    mine = [each for each in compaction.under_way(adapters) if each.table in tables]
    settled = [compaction.settle(adapters, each) for each in mine]
    return [*settled, *compaction.start_due(adapters, needs)]


def _sizes(needs: Iterable[Need]) -> Table:
    columns = ("table", "data files", "small", "data MB", "manifests", "to compact")
    shown = Table(*columns, box=None)
    for need in needs:
        size = need.size
        share = f"{size.small / size.files:.0%}" if size.files else ""
        shown.add_row(
            need.table,
            f"{size.files:,}",
            share,
            f"{size.bytes / 1e6:,.1f}",
            f"{size.manifests:,} of {size.manifest_bytes / 1e3:,.0f} KB",
            need.why_not or f"{size.scattered:,} files",
        )
    return shown


def _lines(done: Iterable[Progress]) -> Iterable[str]:
    for each in done:
        yield f"{each.table}: {_WORDS[each.step]}{f': {each.why}' if each.why else ''}"


def _dead_file_lines(dead: DeadFiles | None, *, dry_run: bool) -> Iterable[str]:
    if dead is None:
        return
    deed = "can be deleted" if dry_run else "deleted"
    yield f"{len(dead.due):,} files without a reader {deed}: {dead.due_bytes / 1e6:,.1f} MB"
    if dead.waiting:
        more = f"{len(dead.waiting):,} wait for the next upkeep, as this one saw main"
        yield f"{more} for the first time: {sum(each.bytes for each in dead.waiting) / 1e6:,.1f} MB"
    if dead.young:
        later = f"{len(dead.young):,} more are too young for that: {dead.young_bytes / 1e6:,.1f} MB"
        yield later


def _document(
    needs: Sequence[Need], done: Sequence[Progress], dead: DeadFiles | None
) -> dict[str, Any]:
    """Return the result for `--json`."""
    tables = [{"table": n.table, **asdict(n.size), "why_not": n.why_not} for n in needs]
    counts = dead and {
        "files": len(dead.due),
        "bytes": dead.due_bytes,
        "waiting_files": len(dead.waiting),
        "young_files": len(dead.young),
        "young_bytes": dead.young_bytes,
    }
    return {"tables": tables, "compactions": [asdict(each) for each in done], "dead": counts}
