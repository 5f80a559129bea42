"""`lakegate replay`, `publish`, `discard`, `accept` and `expire`: handle failed ingestions."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from access import decisions, outcomes
from access.deployment import find, identified
from access.follow import TrackedIngestion
from cli.console import json_output, terminal
from cli.console.options import AsJson, By, Id, Seconds, Wait, Yes, confirm
from cli.files.drop import exit_code, wait_for
from functions.model.ingestion import ALERTED
from lakegate.landing import ID_PART

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from functions.operations.decisions.failed import Outcome
    from functions.operations.upkeep.expire import Expired

_Despite = Annotated[
    str,
    typer.Option(metavar="NEWER_ID", help="Publish although this newer version exists."),
]


class Which(StrEnum):
    """The contract of a replay."""

    CURRENT = "current"
    ORIGINAL = "original"


def replay(
    context: typer.Context,
    identity: Id,
    contract: Annotated[
        Which, typer.Option(help="Contract in force now, or that of the last attempt.")
    ] = Which.CURRENT,
    by: By = "",
    despite: _Despite = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Run the job of a rejected or errored file or change again, on a new branch.

    With --wait, exits like `lakegate drop`: 0 published, 3 rejected, 4 errored, 5 ignored.
    """
    adapters = find(context.obj).adapters()
    subject = decisions.about(adapters, identity, despite)
    outcome = decisions.replay(adapters, subject, by, original=contract is Which.ORIGINAL)
    report_replay(outcome)
    if wait:
        wait_for(adapters, [TrackedIngestion(outcome.ingestion)], seconds)


def publish(
    context: typer.Context,
    identity: Id,
    by: By,
    reason: Annotated[str, typer.Option(help="Reason, recorded.")],
    despite: _Despite = "",
    nulls: Annotated[
        bool,
        typer.Option(
            "--null-unreadable",
            help="Also publish rows with unparseable cells, which become null.",
        ),
    ] = False,
    yes: Yes = False,
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Publish a rejected file or change anyway; main's log records your name and the reason.

    Rows with unparseable cells are listed first and left out, unless --null-unreadable is given.
    Exits 3 if it is rejected again, 4 if it errors.
    """
    adapters = find(context.obj).adapters()

    def agreed(notice: str) -> None:
        terminal.err().print(notice, style="yellow", soft_wrap=True)
        confirm("Publish it this way?", yes=yes)

    subject = decisions.about(adapters, identity, despite)
    outcome = decisions.publish(
        adapters, subject, by, reason, null_unreadable=nulls, confirm=agreed
    )
    report_publish(outcome, by)
    if wait:
        wait_for(adapters, [TrackedIngestion(outcome.ingestion)], seconds)


def discard(
    context: typer.Context,
    identity: Id,
    by: By = "",
    yes: Yes = False,
) -> None:
    """Delete the branches of a failed ingestion, and the data files that only they reach.

    Keeps the original file: `lakegate replay` can read it again. Exits 1 if something could not be
    deleted.
    """
    found = find(context.obj)
    ingestion = identified(found.adapters().ledger, identity)
    confirm(f"Delete branch and data files of {ingestion.name} ({ingestion.state})?", yes=yes)
    report_discard(found.discard(ingestion, by))


def report_replay(outcome: "Outcome") -> None:
    """Print that the job was started."""
    terminal.out().print(outcomes.replayed(outcome), soft_wrap=True)
    _report_next_step(outcome)


def report_publish(outcome: "Outcome", by: str) -> None:
    """Print whether the ingestion is published; exit with its code if it failed again."""
    terminal.out().print(outcomes.approved(outcome, by), soft_wrap=True)
    _report_next_step(outcome)
    if outcome.ingestion.state in ALERTED:
        raise typer.Exit(exit_code([TrackedIngestion(outcome.ingestion)]))


def report_discard(outcome: "Outcome") -> None:
    """Print what was deleted; exit with 1 if something could not be deleted."""
    now = outcome.ingestion
    if outcome.left:
        again = f"Run `lakegate discard {now.id}` again, or let `lakegate expire` delete it."
        terminal.err().print(
            f"{outcomes.discarded(outcome)}\n{again}", style="yellow", soft_wrap=True
        )
        raise typer.Exit(1)
    terminal.out().print(outcomes.discarded(outcome), soft_wrap=True)
    terminal.out().print(f"Details: `lakegate show {now.id[:ID_PART]}`")


def _report_next_step(outcome: "Outcome") -> None:
    if left := outcomes.left(outcome):
        terminal.err().print(left, style="yellow", soft_wrap=True)
    terminal.out().print(f"Progress: `lakegate show {outcome.ingestion.id[:ID_PART]}`")


# `lakegate accept`: make a file's drift the new baseline.


def accept(
    context: typer.Context,
    identity: Id,
    by: By,
    reason: Annotated[str, typer.Option(help="Reason why this is normal from now on.")],
) -> None:
    """Accept the drift of a file: use this file as the new drift baseline.

    This publishes nothing: use `lakegate publish` or `lakegate replay` for a rejected file.
    """
    from functions.pipeline.outcome import baselines

    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    accepted = baselines.accept(adapters, ingestion, by, reason)
    message = f"{accepted.by} accepted {ingestion.landed.key} on {accepted.at}: {accepted.reason}"
    terminal.out().print(message, soft_wrap=True)


# `lakegate expire`: delete failed branches older than the policy.


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
