"""`lakegate expire`: delete failed branches older than the policy."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson
from lakegate.landing import ID_PART

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from functions.operations.upkeep.expire import Expired


def expire(
    context: typer.Context,
    days: Annotated[
        int | None,
        typer.Option("--older-than", min=0, help="Age in days. Default: the deployment's policy."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete failed branches older than the policy, and the data files that only they reach.

    Keeps every file that another branch or any later commit of main reaches. Exits 1 if something
    could not be deleted; the next run tries again.
    """
    from functions.operations.upkeep.expire import expire as expired_of

    adapters = find(context.obj).adapters()
    policy = adapters.settings.keep_days if days is None else days
    done = []
    for each in expired_of(adapters, policy, dry_run=dry_run):
        done.append(each)
        if not as_json:
            terminal.out().print(line(each, dry_run=dry_run), soft_wrap=True)
    if as_json:
        typer.echo(json_output.text([asdict(each) for each in done]))
    elif not done:
        terminal.err().print(f"no failed branch is older than {policy} days")
    if any(each.left for each in done):
        raise typer.Exit(1)


def line(expired: "Expired", *, dry_run: bool) -> str:
    """Describe the deletion of one ingestion's branches, or of one unused branch."""
    what = ", ".join(expired.branches) or expired.ingestion[:ID_PART]
    if expired.left:
        return f"{what}: not deleted completely: {expired.left}"
    return f"{what}: {'would be deleted' if dry_run else 'deleted'}"
