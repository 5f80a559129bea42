"""`lakegate drop` and `change`: start ingestions, and follow them to their final state."""

import getpass
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from access import uploads
from access.deployment import find, identified
from access.follow import TrackedIngestion, ended, follow
from access.uploads import BadTarget, Target
from cli.console import terminal
from cli.console.options import By, Id, Seconds, Wait, Yes, confirm
from cli.ingestions.progress import show_progress
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from lakegate.change import Change
from lakegate.errors import LakegateError
from lakegate.landing import ID_PART, ingestion_id

# The pipeline's adapters take a second to import, which help does not need.

EXIT_CODES = {State.PUBLISHED: 0, State.REJECTED: 3, State.ERRORED: 4, State.IGNORED: 5}


def drop(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(help="Files to upload.", exists=True, dir_okay=False)
    ],
    key: Annotated[
        str, typer.Option(help="Key in the landing bucket, or a prefix that ends in /.")
    ] = "",
    table: Annotated[str, typer.Option(help="Table whose landing prefix to use.")] = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Upload files to the landing bucket.

    With --wait, exits 0 if all files were published, 3 if one was rejected, 4 if one errored and 5
    if one was ignored; the highest code counts.

    Of a _manifest.json, uploads the files that it lists first: they are one batch.
    """
    target = Target(table, key)
    try:
        target.refuse_unfit(files)
    except BadTarget as error:
        raise typer.BadParameter(error.message) from error
    adapters = find(context.obj).adapters()
    tracked = uploads.drop(adapters, files, target)
    list_uploads(tracked)
    if wait:
        wait_for(adapters, tracked, seconds)


def change(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Table, for example nyc.flights.")],
    sql: Annotated[str, typer.Option(help="One DELETE, UPDATE or MERGE statement in Spark SQL.")],
    message: Annotated[str, typer.Option(help="Reason, recorded in main's log.")] = "",
    by: Annotated[str, typer.Option(help="Your name, recorded. Default: your user name.")] = "",
    token: Annotated[
        str, typer.Option(help="Token of an earlier try, to continue it instead of changing twice.")
    ] = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Change a table on a branch, audit the whole table there, and publish it if it passes.

    Repeating the command with the same token makes the change only once. With --wait, exits like
    `lakegate drop`: 0 published, 3 rejected, 4 errored.
    """
    from functions.pipeline.start import intake

    adapters = find(context.obj).adapters()
    request = Change(table, sql, token or adapters.token(), by or getpass.getuser(), message)
    landed = request.landed(adapters.lake.bucket)
    id_ = ingestion_id(landed)
    terminal.out().print(f"{id_}  change of {table}, token {request.token}", soft_wrap=True)
    ingestion = intake.ask(adapters, request)
    if wait:
        wait_for(adapters, [TrackedIngestion(ingestion)], seconds)
    terminal.out().print(f"Progress: `lakegate show {id_[:ID_PART]}`")


def retract(
    context: typer.Context,
    identity: Id,
    by: By,
    reason: Annotated[str, typer.Option(help="Reason, recorded in main's log.")],
    yes: Yes = False,
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Remove the rows of a published file from its table, audited like any change.

    Repeating the command continues the first request. With --wait, exits like `lakegate drop`: 0
    published, 3 rejected, 4 errored.
    """
    from functions.pipeline.start import intake

    adapters = find(context.obj).adapters()
    published = identified(adapters.ledger, identity)
    rows, tables = f"{published.rows:,} rows", ", ".join(published.tables)
    confirm(f"Remove the {rows} of {published.name} from {tables}?", yes=yes)
    ingestion = intake.retract(adapters, published, by, reason)
    about = f"retraction of {published.name} from {tables}, {ingestion.state}"
    terminal.out().print(f"{ingestion.id}  {about}", soft_wrap=True)
    if wait:
        wait_for(adapters, [TrackedIngestion(ingestion)], seconds)
    terminal.out().print(f"Progress: `lakegate show {ingestion.id[:ID_PART]}`")


def wait_for(adapters: Adapters, tracked: list[TrackedIngestion], seconds: float) -> NoReturn:
    """Follow ingestions to their final states for at most `seconds`, then exit by the worst one."""
    try:
        with show_progress(terminal.err()) as show:
            tracked = follow(adapters, tracked, ended, seconds, show)
    except KeyboardInterrupt:
        terminal.err().print("\n" + stopped(tracked), soft_wrap=True)
        raise typer.Exit(130) from None
    explain(terminal.err(), adapters, tracked)
    raise typer.Exit(exit_code(tracked))


def stopped(tracked: Iterable[TrackedIngestion]) -> str:
    """Return what to do after nobody waits any more: the ingestions go on."""
    shows = [f"  lakegate show {item.ingestion.id[:ID_PART]}" for item in tracked]
    return "\n".join(["Stopped waiting; the work goes on. How far it is:", *shows])


def list_uploads(tracked: Iterable[TrackedIngestion]) -> None:
    """Print the id and the address of each uploaded file."""
    for item in tracked:
        terminal.out().print(f"{item.ingestion.id}  {item.ingestion.landed.uri}", soft_wrap=True)


def exit_code(tracked: Iterable[TrackedIngestion]) -> int:
    """Return the exit code of the worst final state."""
    return max(EXIT_CODES[item.ingestion.state] for item in tracked)


def explain(console: Console, adapters: Adapters, tracked: Iterable[TrackedIngestion]) -> None:
    """Print what is remarkable about published ingestions, and why the others were not published.

    Warnings, rows in quarantine and likely duplicates are remarkable.
    """
    for item in tracked:
        lines = list(_remarks(adapters, item.ingestion))
        if item.ingestion.reason:
            lines.append(item.ingestion.reason.message)
        for line in lines:
            console.print(f"{item.name}: {line}", soft_wrap=True)
        if lines:
            console.print(f"Details: `lakegate show {item.ingestion.id[:ID_PART]}`")


def _remarks(adapters: Adapters, ingestion: Ingestion) -> Iterator[str]:
    from functions.pipeline.outcome.reports import report_of

    if ingestion.state is not State.PUBLISHED:
        return
    for check in ingestion.warnings:
        yield f"warning, {check['id']}: expected {check['expected']}, found {check['found']}"
    if ingestion.duplicate_of:
        yield f"likely a duplicate: {ingestion.duplicate_of[:ID_PART]} brought the same before"
    try:
        report = report_of(adapters, ingestion)
    except LakegateError as error:
        yield f"its audit report cannot be read: {error.message}"
        return
    if report and (many := report.rows_rejected):
        rows = "1 row is" if many == 1 else f"{many:,} rows are"
        yield f"{rows} in quarantine (`ops.quarantine`), not in the table"
