"""`lakegate drop` and `change`: start ingestions, and follow them to their final state."""

import getpass
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.live import Live

from access.deployment import find, identified
from cli import terminal
from cli.follow import Show, TrackedIngestion, dropped, ended, follow, progress_table, sentence
from cli.options import By, Id, Seconds, Wait, Yes, confirm
from functions.adapters.all import Adapters
from functions.adapters.s3 import Lake
from functions.model.ingestion import Ingestion, State
from functions.pipeline import intake
from functions.pipeline.reports import report_of
from lakegate.batch import read_manifest
from lakegate.change import Change
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.landing import BATCHES, ID_PART, MANIFEST, ingestion_id

# Batches: the files that a manifest lists, and then the manifest.

_NOTHING = "Nothing was uploaded."


def is_manifest(file: Path) -> bool:
    """Return whether a file is the manifest of a batch."""
    return file.name == MANIFEST


def put_batch(adapters: Adapters, manifest: Path, key: str = "") -> TrackedIngestion:
    """Upload the files that a manifest lists from its folder, and the manifest last.

    They land in `batches/<folder>/`, or in `key`, which ends in a slash. Raises LakegateError for
    an invalid manifest, before anything is uploaded.
    """
    prefix = key or f"{BATCHES}{manifest.resolve().parent.name}/"
    text = _read(manifest, _NOTHING)
    listed = read_manifest(text, adapters.settings.limits)
    bodies = {each.key: _read(manifest.parent / each.key, _NOTHING) for each in listed}
    for name, body in bodies.items():
        adapters.landing.put(prefix + name, body)
    return dropped(adapters.landing.put(prefix + MANIFEST, text))


def _read(file: Path, hint: str = "It was not uploaded.") -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}\n{hint}"
        raise LakegateError("UNREADABLE_FILE", message) from error


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
    if key and table:
        raise typer.BadParameter("give --key or --table, not both")
    if len(files) > 1 and key and not key.endswith("/"):
        raise typer.BadParameter("with several files, --key must end in /", param_hint="--key")
    adapters = find(context.obj).adapters()
    if any(map(is_manifest, files)):
        tracked = [_put_batch(adapters, files, key, table)]
    else:
        prefix = key or _prefix(adapters.lake, table)
        exact = bool(key) and not key.endswith("/")
        tracked = [put(adapters, file, prefix if exact else prefix + file.name) for file in files]
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


def _put_batch(adapters: Adapters, files: list[Path], key: str, table: str) -> TrackedIngestion:
    if len(files) > 1:
        raise typer.BadParameter("drop a _manifest.json alone: it lists the other files")
    if table:
        message = "leave it out: the manifest names the tables"
        raise typer.BadParameter(message, param_hint="--table")
    if key and not re.fullmatch(f"{BATCHES}[^/]+/", key):
        message = f"a batch needs its own folder: {BATCHES}NAME/"
        raise typer.BadParameter(message, param_hint="--key")
    return put_batch(adapters, files[0], key)


def put(adapters: Adapters, file: Path, key: str) -> TrackedIngestion:
    """Upload a file under a key. Raises LakegateError."""
    return dropped(adapters.landing.put(key, _read(file)))


def list_uploads(tracked: Iterable[TrackedIngestion]) -> None:
    """Print the id and the address of each uploaded file."""
    for item in tracked:
        terminal.out().print(f"{item.ingestion.id}  {item.ingestion.landed.uri}", soft_wrap=True)


@contextmanager
def show_progress(console: Console) -> Iterator[Show]:
    """Yield a function that shows progress: a live table on a terminal, else a line per change."""
    began = time.monotonic()
    if not console.is_terminal:
        yield _lines(console, began)
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda tracked: live.update(progress_table(tracked, time.monotonic() - began))


def exit_code(tracked: Iterable[TrackedIngestion]) -> int:
    """Return the exit code of the worst final state."""
    return max(EXIT_CODES[item.ingestion.state] for item in tracked)


def chosen(contracts: Iterable[Contract], table: str) -> Contract:
    """Return the contract of a table, or the only contract if no table ("") is named.

    Raises LakegateError WHICH_KEY if that does not determine one.
    """
    known = {contract.table: contract for contract in contracts}
    tables = ", ".join(sorted(known)) or "none"
    if table and table not in known:
        message = f"there is no contract for {table}\nTables with a contract: {tables}"
        raise LakegateError("WHICH_KEY", message)
    if not table and len(known) != 1:
        message = (
            f"several landing prefixes are possible\nGive --key KEY, or --table TABLE: {tables}"
        )
        raise LakegateError("WHICH_KEY", message)
    return known[table or next(iter(known))]


def _prefix(lake: Lake, table: str) -> str:
    contract = chosen([stored.contract for stored in lake.contracts()], table)
    if not table:
        terminal.err().print(
            f"uploading to {contract.landing_prefix}, for the only contract, {contract.table}"
        )
    return contract.landing_prefix


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


def _lines(console: Console, began: float) -> Show:
    printed: dict[str, str] = {}

    def show(tracked: list[TrackedIngestion]) -> None:
        for item in tracked:
            step = sentence(replace(item, load=""))  # a line per step, not per number of files
            if printed.get(item.ingestion.id) != step:
                printed[item.ingestion.id] = step
                seconds = f"{time.monotonic() - began:6.1f} s"
                console.print(f"{seconds}  {item.name}: {sentence(item)}", soft_wrap=True)

    return show
