"""`lakegate expire`: delete failed branches older than the policy."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson, Yes, confirm
from lakegate.job.landing import ID_PART
from lakegate.text import count

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from functions.adapters.all import Adapters
    from functions.operations.upkeep.expire import Expired


def expire(
    context: typer.Context,
    days: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            min=0,
            max=36_500,
            help="Age in days. Default: the deployment's policy.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be deleted.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete failed branches older than the policy.

    Asks before it deletes younger ones. Upkeep deletes the files that only they reach. Exits 1 if
    something could not be deleted; the next run tries again.
    """
    adapters = find(context.obj).adapters()
    policy = adapters.settings.keep_days if days is None else days
    if not (dry_run or yes):
        agree(adapters, policy)
    done = []
    for each in expired(adapters, policy, dry_run=dry_run):
        done.append(each)
        if not as_json:
            terminal.out().print(line(each, dry_run=dry_run), soft_wrap=True)
    if as_json:
        typer.echo(json_output.text([asdict(each) for each in done]))
    elif not done:
        terminal.err().print(f"no failed branch is older than {policy} days")
    if any(each.left for each in done):
        raise typer.Exit(1)


def expired(adapters: "Adapters", days: int, *, dry_run: bool) -> "Iterator[Expired]":
    """Yield what expires, as the daily function has it expire: from a recognised catalog alone.

    Raises InDoubt for another one: main may be set forward to a branch that would be gone.
    """
    from functions.operations.upkeep.dead_files import require_recognised
    from functions.operations.upkeep.expire import expire

    if not dry_run:
        require_recognised(adapters)
    yield from expire(adapters, days, dry_run=dry_run)


def agree(adapters: "Adapters", days: int) -> None:
    """Ask before anything younger than the policy says is deleted. Raises as `confirm`."""
    policy = adapters.settings.keep_days
    due = list(expired(adapters, days, dry_run=True)) if days < policy else []
    for each in due:
        terminal.err().print(line(each, dry_run=True), soft_wrap=True)
    if due:
        confirm(f"Delete {count(len(due), 'failure')} before the end of {policy} days?", yes=False)


def line(expired: "Expired", *, dry_run: bool) -> str:
    """Describe the deletion of one ingestion's branches, or of one unused branch."""
    what = ", ".join(expired.branches) or expired.ingestion[:ID_PART]
    if expired.left:
        return f"{what}: not deleted completely: {expired.left}"
    return f"{what}: {'would be deleted' if dry_run else 'deleted'}"
