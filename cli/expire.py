"""`lakegate expire`: removes failed branches that are older than the policy."""

from dataclasses import asdict
from typing import Annotated

import typer

from cli import documents, view
from functions.expiring import Expired
from functions.expiring import expire as expired_of
from lakegate.landing import ID_PART
from reading.deployment import find


def expire(
    context: typer.Context,
    days: Annotated[
        int | None,
        typer.Option("--older-than", min=0, help="Days; without it, the deployment's policy."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Remove failed branches that are older than the policy, and the files that only they reach.

    Nothing goes that main, at any time since, or another branch can reach. Exit code 1 when
    something could not be removed; the next run tries again.
    """
    world = find(context.obj).world()
    policy = world.settings.keep_days if days is None else days
    done = []
    for each in expired_of(world, policy, dry_run=dry_run):
        done.append(each)
        if not as_json:
            view.out().print(line(each, dry_run=dry_run), soft_wrap=True)
    if as_json:
        typer.echo(documents.text([asdict(each) for each in done]))
    elif not done:
        view.err().print(f"nothing is older than {policy} days")
    if any(each.left for each in done):
        raise typer.Exit(1)


def line(expired: Expired, *, dry_run: bool) -> str:
    """What is told of one ingestion, or of one branch that nobody needs."""
    what = ", ".join(expired.branches) or expired.ingestion[:ID_PART]
    if expired.left:
        return f"{what}: not all could be removed: {expired.left}"
    goes = "would go" if dry_run else "gone"
    words = f"{what}: {goes}, with {len(expired.removal.files):,} files"
    kept = [f"  kept {path}: {why}" for path, why in expired.removal.kept.items()]
    listed = [f"  {path}" for path in expired.removal.files] if dry_run else []
    return "\n".join([words, *listed, *kept])
