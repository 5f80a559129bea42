"""`lakegate drop`: upload files to the landing bucket."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from access.deployment.choice import find
from access.files import uploads
from access.files.uploads import BadTarget, Target
from access.ingestions.follow import TrackedIngestion
from cli.console import terminal
from cli.console.options import Seconds, Wait
from cli.ingestions.wait import wait_for
from lakegate.text import one_line


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
    tracked: list[TrackedIngestion] = []
    try:
        for item in uploads.drop(adapters, files, target):
            tracked.append(item)
            list_uploads([item])
    except KeyboardInterrupt as stop:
        words = "" if tracked else "Nothing was uploaded."
        raise KeyboardInterrupt(*(stop.args or (words,))) from None
    if wait:
        wait_for(adapters, tracked, seconds)


def list_uploads(tracked: Iterable[TrackedIngestion]) -> None:
    """Print the id and the address of each uploaded file."""
    for item in tracked:
        where = one_line(item.ingestion.landed.uri)
        terminal.out().print(f"{item.ingestion.id}  {where}", soft_wrap=True)
