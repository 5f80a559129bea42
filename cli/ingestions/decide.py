"""`lakegate replay`, `publish` and `discard`: decide on a failed ingestion."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from access.deployment.choice import find
from access.ingestions import decisions, outcomes
from access.ingestions.follow import TrackedIngestion
from access.ingestions.identify import identified
from cli.console import terminal
from cli.console.options import By, Id, Seconds, Wait, Yes, confirm
from cli.ingestions.wait import exit_code, wait_for
from functions.model.ingestion import ALERTED
from lakegate.landing import ID_PART

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from functions.operations.decisions.failed import Outcome

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
