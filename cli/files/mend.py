"""`lakegate mend`: write out the broken rows of a rejected file, or take them back corrected."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from access.contract.local_audit import broken_rows
from access.deployment.choice import find
from access.ingestions.follow import TrackedIngestion
from access.ingestions.identify import identified
from cli.console import terminal
from cli.console.options import By, Id, Seconds, Wait
from cli.files.drop import list_uploads
from cli.ingestions.wait import wait_for
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from lakegate.job.landing import ID_PART
from lakegate.text import count

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from access.mending.mend import Mended

_CONFIDENTIAL = "It has confidential values: only you can read it. Delete it when you are done."


def mend(
    context: typer.Context,
    identity: Id,
    file: Annotated[
        Path | None, typer.Argument(help="File of corrected rows.", exists=True, dir_okay=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New file for the broken rows.", dir_okay=False)
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Remove broken rows that FILE leaves out.")
    ] = False,
    by: By = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Write the broken rows of a rejected file to --out; or land the file with those of FILE.

    Correct the rows in the file that --out wrote, and give it as FILE. They take the places of the
    broken ones, and the file lands as a new version of its key. With --wait, exits like `lakegate
    drop`: 0 published, 3 rejected, 4 errored, 5 ignored.
    """
    if bool(file) == bool(out):
        raise typer.BadParameter("give --out to write broken rows, or FILE with corrected ones")
    adapters = find(context.obj).adapters()
    rejected = identified(adapters.ledger, identity)
    if out:
        _write(adapters, rejected, out)
    elif file:
        item = _mend(adapters, rejected, file, by, drop_missing=drop_missing)
        if wait:
            wait_for(adapters, [item], seconds)


def _write(adapters: Adapters, rejected: Ingestion, out: Path) -> None:
    from access.mending.mend import write_broken

    done = write_broken(adapters, rejected, out, broken_rows)
    say = terminal.err().print
    say(f"{count(done.rows, 'broken row')} of {rejected.name} written to {out}", soft_wrap=True)
    _tell_others(done.others)
    if done.is_secret:
        say(_CONFIDENTIAL, soft_wrap=True)
    command = f"lakegate mend {rejected.id[:ID_PART]} {quote(str(out))}"
    say(f"Correct them, then `{command}`", soft_wrap=True)


def _mend(
    adapters: Adapters, rejected: Ingestion, file: Path, by: str, *, drop_missing: bool
) -> TrackedIngestion:
    from access.mending.mend import mend as land

    done = land(adapters, rejected, file, broken_rows, by=by, drop_missing=drop_missing)
    item = TrackedIngestion(done.ingestion)
    list_uploads([item])
    terminal.err().print(told(done), soft_wrap=True)
    _tell_others(done.others)
    return item


def told(done: "Mended") -> str:
    """Return what became of the broken rows."""
    parts = [f"{count(done.replaced, 'broken row')} replaced"]
    parts += [f"{done.removed:,} removed"] if done.removed else []
    parts += [f"{done.left:,} left as they are"] if done.left else []
    return ", ".join(parts)


def _tell_others(others: Sequence[str]) -> None:
    if others:
        text = f"What no row mends failed as well: {'; '.join(others)}"
        terminal.err().print(text, style="yellow", soft_wrap=True)
