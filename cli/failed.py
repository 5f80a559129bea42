"""`lakegate replay`, `publish` and `discard`: what people do with a failed ingestion."""

import sys
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from access import outcomes
from access.deployment import find, identified
from cli import documents, terminal
from cli.drop import exit_code, showing
from cli.follow import Sight, ended, follow
from functions.adapters.all import Adapters
from functions.model import unreadable
from functions.model.ingestion import ALERTED, Ingestion
from functions.operations import failed
from functions.operations.expire import Expired
from functions.operations.expire import expire as expired_of
from functions.operations.failed import Outcome
from functions.operations.preconditions import require_publishable
from functions.pipeline import audit_history
from functions.pipeline.finish import report_of
from lakegate.landing import ID_PART

_Id = Annotated[str, typer.Argument(metavar="ID", help="An id, or its beginning.")]
_By = Annotated[str, typer.Option(help="Who wants it: the ledger keeps the name.")]
_Despite = Annotated[
    str,
    typer.Option(
        metavar="NEWER_ID", help="The newer version of it beside which it is to be published."
    ),
]
_Wait = Annotated[bool, typer.Option("--wait", help="Show the way to the end state.")]
_Seconds = Annotated[float, typer.Option("--timeout", help="How long to wait.")]


class Which(StrEnum):
    """The contract to replay by."""

    CURRENT = "current"
    ORIGINAL = "original"


def replay(
    context: typer.Context,
    identity: _Id,
    contract: Annotated[
        Which, typer.Option(help="The contract in force now, or the one of the last attempt.")
    ] = Which.CURRENT,
    by: _By = "",
    despite: _Despite = "",
    wait: _Wait = False,
    seconds: _Seconds = 900,
) -> None:
    """Run the job of a rejected or errored file or change again, on a fresh branch.

    With --wait the exit code tells the end, as that of `lakegate drop` does.
    """
    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    newer = _newer(adapters, despite)
    original = contract is Which.ORIGINAL
    outcome = failed.replay(adapters, ingestion, by=by, original=original, despite=newer)
    tell_replay(outcome)
    _follow(adapters, outcome.ingestion, seconds if wait else None)


def publish(
    context: typer.Context,
    identity: _Id,
    by: Annotated[str, typer.Option(help="Who wants it published.")],
    reason: Annotated[str, typer.Option(help="Why, although its audit failed.")],
    despite: _Despite = "",
    nulls: Annotated[
        bool,
        typer.Option(
            "--null-unreadable",
            help="Publish also rows with cells that cannot be read, with null for each such cell.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    wait: _Wait = False,
    seconds: _Seconds = 900,
) -> None:
    """Publish a rejected file or change anyway; main's log says who wanted it, and why.

    Rows with cells that cannot be read are named first, and left out.
    """
    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    newer = _newer(adapters, despite)
    require_publishable(adapters, ingestion, newer)
    if words := unreadable.named(report_of(adapters, ingestion), null_unreadable=nulls):
        terminal.err().print(words, style="yellow", soft_wrap=True)
        if not yes and sys.stdin.isatty():
            typer.confirm("Publish it so?", abort=True, err=True)
    outcome = failed.publish_anyway(
        adapters, ingestion, by, reason, despite=newer, null_unreadable=nulls
    )
    tell_publish(outcome, by)
    _follow(adapters, outcome.ingestion, seconds if wait else None)


def discard(
    context: typer.Context,
    identity: _Id,
    by: _By = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a failed file's branches, and the data files that only they reach.

    The landed object stays: `lakegate replay` reads it anew. Exit code 1 when something is left.
    """
    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    question = f"Discard {_name(ingestion)} ({ingestion.state}) with its branch and files?"
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
    tell_discard(failed.discard(adapters, ingestion, by=by))


def tell_replay(outcome: Outcome) -> None:
    """Say that it is on its way."""
    terminal.out().print(outcomes.replayed(outcome), soft_wrap=True)
    _tell_rest(outcome)


def tell_publish(outcome: Outcome, by: str) -> None:
    """Say whether it is published; ends the command where it failed again."""
    terminal.out().print(outcomes.approved(outcome, by), soft_wrap=True)
    _tell_rest(outcome)
    if outcome.ingestion.state in ALERTED:
        raise typer.Exit(exit_code([Sight(outcome.ingestion)]))


def tell_discard(outcome: Outcome) -> None:
    """Say what was deleted and what stays; ends the command where something is left."""
    now = outcome.ingestion
    if outcome.left:
        again = f"run `lakegate discard {now.id}` again, or leave it to `lakegate expire`"
        (message,) = outcomes.discarded(outcome)
        terminal.err().print(f"{message}\n{again}", style="yellow", soft_wrap=True)
        raise typer.Exit(1)
    for line in outcomes.discarded(outcome):
        terminal.out().print(line, soft_wrap=True)
    terminal.out().print(f"`lakegate show {now.id[:ID_PART]}` tells more")


def _tell_rest(outcome: Outcome) -> None:
    if left := outcomes.left(outcome):
        terminal.err().print(left, style="yellow", soft_wrap=True)
    terminal.out().print(f"`lakegate show {outcome.ingestion.id[:ID_PART]}` tells how it goes")


def _follow(adapters: Adapters, ingestion: Ingestion, seconds: float | None) -> None:
    """Show the way to the end, for that many seconds; the exit code is that of the end."""
    if seconds is None:
        return
    with showing(terminal.err()) as show:
        sights = follow(adapters, [Sight(ingestion)], ended, seconds, show)
    raise typer.Exit(exit_code(sights))


def _newer(adapters: Adapters, identity: str) -> str:
    """Return the whole id of the newer version that is named, "" where none is."""
    return identified(adapters.ledger, identity).id if identity else ""


def _name(ingestion: Ingestion) -> str:
    return ingestion.name


# `lakegate accept`: a change that was found unusual is the new normal.


def accept(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", help="An id, or its beginning.")],
    by: Annotated[str, typer.Option(help="Who accepts it.")],
    reason: Annotated[str, typer.Option(help="Why this is normal from now on.")],
) -> None:
    """Make the drift of a file the new normal: what is compared with restarts at this file.

    Its rows stay where they are: `lakegate publish` or `lakegate replay` bring a rejected file on.
    """
    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    accepted = audit_history.accept(adapters, ingestion, by, reason)
    words = f"{accepted.by} accepted {ingestion.landed.key} on {accepted.at}: {accepted.reason}"
    terminal.out().print(words, soft_wrap=True)


# `lakegate expire`: removes failed branches that are older than the policy.


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
    adapters = find(context.obj).adapters()
    policy = adapters.settings.keep_days if days is None else days
    done = []
    for each in expired_of(adapters, policy, dry_run=dry_run):
        done.append(each)
        if not as_json:
            terminal.out().print(line(each, dry_run=dry_run), soft_wrap=True)
    if as_json:
        typer.echo(documents.text([asdict(each) for each in done]))
    elif not done:
        terminal.err().print(f"nothing is older than {policy} days")
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
