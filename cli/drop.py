"""`lakegate drop`: files into the landing bucket, and their way from there."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.live import Live

from access.deployment import find
from cli import terminal
from cli.follow import Show, Sight, dropped, ended, follow, sentence, way
from functions.adapters.all import Adapters
from functions.adapters.s3 import Lake
from functions.model.ingestion import State
from lakegate.batch import read_manifest
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.landing import BATCHES, ID_PART, MANIFEST

# `lakegate drop` of a batch: the files that a manifest names, and then the manifest.


def is_manifest(file: Path) -> bool:
    """Whether a file is one that makes those beside it a batch."""
    return file.name == MANIFEST


def put_batch(adapters: Adapters, manifest: Path, key: str = "") -> Sight:
    """Upload the files that a manifest names, from its folder, and the manifest last.

    They land in `batches/<folder>/`, or in `key`, which ends in a slash. Raises LakegateError,
    before anything is uploaded, where the manifest cannot be kept.
    """
    prefix = key or f"{BATCHES}{manifest.resolve().parent.name}/"
    text = _read(manifest)
    listed = read_manifest(text, adapters.settings.limits)
    bodies = {each.key: _read(manifest.parent / each.key) for each in listed}
    for name, body in bodies.items():
        adapters.landing.put(prefix + name, body)
    return dropped(adapters.landing.put(prefix + MANIFEST, text))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{file} cannot be read, and nothing was uploaded: {error.strerror}"
        raise LakegateError("UNREADABLE_FILE", message) from error


_EXIT_CODES = {State.PUBLISHED: 0, State.REJECTED: 3, State.ERRORED: 4, State.IGNORED: 5}


def drop(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files.", exists=True, dir_okay=False)],
    key: Annotated[str, typer.Option(help="The key, or its beginning up to a /.")] = "",
    table: Annotated[str, typer.Option(help="The table whose landing prefix to use.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Show the way to the end state.")] = False,
    seconds: Annotated[float, typer.Option("--timeout", help="How long to wait.")] = 900,
) -> None:
    """Upload files to the landing bucket.

    With --wait the exit code is 0 when all were published, 3 when one was rejected, 4 when one
    ended in an error, 5 when one was ignored; the highest of them counts.

    Of a _manifest.json the files that it names are uploaded first: they are one batch.
    """
    if key and table:
        raise typer.BadParameter("give --key or --table, not both")
    if len(files) > 1 and key and not key.endswith("/"):
        raise typer.BadParameter("for several files --key must end in /", param_hint="--key")
    adapters = find(context.obj).adapters()
    if any(map(is_manifest, files)):
        sights = [_put_batch(adapters, files, key, table)]
    else:
        prefix = key or _prefix(adapters.lake, table)
        exact = bool(key) and not key.endswith("/")
        sights = [put(adapters, file, prefix if exact else prefix + file.name) for file in files]
    for sight in sights:
        terminal.out().print(f"{sight.ingestion.id}  {sight.ingestion.landed.uri}", soft_wrap=True)
    if wait:
        wait_for(adapters, sights, seconds)


def wait_for(adapters: Adapters, sights: list[Sight], seconds: float) -> NoReturn:
    """Show files' way to their end, at most for so many seconds, and end the command by it."""
    with showing(terminal.err()) as show:
        sights = follow(adapters, sights, ended, seconds, show)
    explain(terminal.err(), sights)
    raise typer.Exit(exit_code(sights))


def _put_batch(adapters: Adapters, files: list[Path], key: str, table: str) -> Sight:
    if len(files) > 1:
        raise typer.BadParameter("a _manifest.json is dropped alone: it names the other files")
    if table:
        message = "the manifest names the tables itself"
        raise typer.BadParameter(message, param_hint="--table")
    if key and not re.fullmatch(f"{BATCHES}[^/]+/", key):
        message = f"a batch lands in a folder of its own: {BATCHES}NAME/"
        raise typer.BadParameter(message, param_hint="--key")
    return put_batch(adapters, files[0], key)


def put(adapters: Adapters, file: Path, key: str) -> Sight:
    """Upload a file under a key. Raises LakegateError."""
    try:
        body = file.read_bytes()
    except OSError as error:
        message = f"{file} cannot be read, and was not uploaded: {error.strerror}"
        raise LakegateError("UNREADABLE_FILE", message) from error
    return dropped(adapters.landing.put(key, body))


@contextmanager
def showing(console: Console) -> Iterator[Show]:
    """Shows files' ways: a table that moves on a terminal, else a line for each change."""
    began = time.monotonic()
    if not console.is_terminal:
        yield _lines(console, began)
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda sights: live.update(way(sights, time.monotonic() - began))


def exit_code(sights: Iterable[Sight]) -> int:
    """How the command ends for files that have ended: by the worst of them."""
    return max(_EXIT_CODES[sight.ingestion.state] for sight in sights)


def chosen(contracts: Iterable[Contract], table: str) -> Contract:
    """The contract of a table, or of no table ("") the only one that there is.

    Raises LakegateError WHICH_KEY when that says not where to drop a file.
    """
    known = {contract.table: contract for contract in contracts}
    tables = ", ".join(sorted(known)) or "none"
    if table and table not in known:
        message = f"there is no contract for {table}; there are contracts for: {tables}"
        raise LakegateError("WHICH_KEY", message)
    if not table and len(known) != 1:
        message = f"say where to: --key KEY, or --table TABLE with one of these: {tables}"
        raise LakegateError("WHICH_KEY", message)
    return known[table or next(iter(known))]


def _prefix(lake: Lake, table: str) -> str:
    contract = chosen([stored.contract for stored in lake.contracts()], table)
    if not table:
        terminal.err().print(
            f"to {contract.landing_prefix}, of the only contract, {contract.table}"
        )
    return contract.landing_prefix


def explain(console: Console, sights: Iterable[Sight]) -> None:
    """Say why those ended as they did that were not published, and what the others warn of."""
    for sight in sights:
        for check in sight.ingestion.warnings if sight.ingestion.state is State.PUBLISHED else ():
            warning = f"{check['id']}: expected {check['expected']}, found {check['found']}"
            console.print(f"{sight.name}: warning, {warning}", soft_wrap=True)
        if sight.ingestion.reason:
            more = f"`lakegate show {sight.ingestion.id[:ID_PART]}` tells more"
            console.print(f"{sight.name}: {sight.ingestion.reason.message}; {more}", soft_wrap=True)


def _lines(console: Console, began: float) -> Show:
    told: dict[str, str] = {}

    def show(sights: list[Sight]) -> None:
        for sight in sights:
            words = sentence(sight)
            if told.get(sight.ingestion.id) != words:
                told[sight.ingestion.id] = words
                seconds = f"{time.monotonic() - began:6.1f} s"
                console.print(f"{seconds}  {sight.name}: {words}", soft_wrap=True)

    return show
