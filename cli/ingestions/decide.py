"""`lakegate replay`, `publish` and `discard`: decide on failed ingestions."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from access.deployment.choice import find
from access.ingestions import decisions, outcomes
from access.ingestions.follow import TrackedIngestion
from access.ingestions.identify import whole
from cli.console import terminal
from cli.console.options import By, Ids, NotAgreed, OfCause, Seconds, Wait, Yes, confirm
from cli.ingestions.wait import exit_code, wait_for
from functions.adapters.all import Adapters
from functions.model.ingestion import ALERTED, Ingestion
from functions.operations.decisions.cause import each_alone
from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART
from lakegate.text import count

if TYPE_CHECKING:  # they import Nessie's library: a second that help does not need
    from functions.operations.decisions.failed import Outcome

_Despite = Annotated[
    str,
    typer.Option(metavar="NEWER_ID", help="Publish one although this newer version exists."),
]
_Decide = Callable[[Ingestion], "Outcome"]
_LISTED = 10  # of those that are asked about
_Report = Callable[["Outcome"], int]


class Which(StrEnum):
    """The contract of a replay."""

    CURRENT = "current"
    ORIGINAL = "original"


def replay(
    context: typer.Context,
    identities: Ids = None,
    cause: OfCause = "",
    contract: Annotated[
        Which, typer.Option(help="Contract in force now, or that of the last attempt.")
    ] = Which.CURRENT,
    by: By = "",
    despite: _Despite = "",
    yes: Yes = False,
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Run the job of rejected or errored files or changes again, each on a new branch.

    Each is decided alone: exits 1 if one could not be, 4 if one errs at once. With --wait, exits
    like `lakegate drop`: 0 published, 3 rejected, 4 errored, 5 ignored.
    """
    from functions.operations.decisions import failed

    adapters, original = find(context.obj).adapters(), contract is Which.ORIGINAL
    chosen, newer = _chosen(adapters, identities, cause, despite)

    def decide(one: Ingestion) -> "Outcome":
        return failed.replay(adapters, one, by=by, original=original, despite=newer)

    if cause:
        agree("Replay", chosen, yes=yes)
    code, done = report_each(chosen, decide, report_replay)
    _end(adapters, code, done if wait else [], seconds)


def publish(
    context: typer.Context,
    by: By,
    reason: Annotated[str, typer.Option(help="Reason, recorded.")],
    identities: Ids = None,
    cause: OfCause = "",
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
    """Publish rejected files or changes anyway; main's log records your name and the reason.

    Rows with unparseable cells are listed first and left out, unless --null-unreadable is given.
    Each is decided alone: exits 1 if one could not be, 3 if one is rejected again, 4 if it errors.
    """
    adapters = find(context.obj).adapters()
    chosen, newer = _chosen(adapters, identities, cause, despite)

    def decide(one: Ingestion) -> "Outcome":
        def agreed(notice: str) -> None:
            agree_to(notice, one.name, yes=yes)

        return decisions.publish(
            adapters, one, by, reason, despite=newer, null_unreadable=nulls, confirm=agreed
        )

    if cause:
        agree("Publish", chosen, yes=yes)
    code, done = report_each(chosen, decide, lambda outcome: report_publish(outcome, by))
    _end(adapters, code, done if wait else [], seconds)


def discard(
    context: typer.Context,
    identities: Ids = None,
    cause: OfCause = "",
    by: By = "",
    yes: Yes = False,
) -> None:
    """Delete the branches of failed ingestions; upkeep deletes the data files that only they reach.

    Keeps the original files: `lakegate replay` can read them again. Each is decided alone: exits 1
    if one could not be, or if something could not be deleted.
    """
    deployment = find(context.obj)
    chosen = decisions.chosen(deployment.adapters(), identities or (), cause)
    agree("Delete the branches of", chosen, yes=yes)
    code, _ = report_each(chosen, lambda each: deployment.discard(each, by), report_discard)
    raise typer.Exit(code)


def _chosen(
    adapters: Adapters, identities: Sequence[str] | None, cause: str, despite: str
) -> tuple[list[Ingestion], str]:
    """Return what to decide about, and the id of the newer version beside which it may be, or "".

    Raises LakegateError, also for `despite` with several.
    """
    chosen = decisions.chosen(adapters, identities or (), cause)
    if despite and len(chosen) > 1:
        message = "--despite is for one file\nDecide about each such file by a command of its own."
        raise LakegateError("ONE_DESPITE", message)
    return chosen, whole(adapters.ledger, despite)


def agree(what: str, every: Sequence[Ingestion], *, yes: bool) -> None:
    """Ask whether to do it; the first of several are listed. Raises as `confirm`."""
    if len(every) == 1:
        confirm(f"{what} {every[0].name} ({every[0].state})?", yes=yes)
        return
    for each in every[:_LISTED]:
        terminal.err().print(f"{each.id[:ID_PART]}  {each.name} ({each.state})", soft_wrap=True)
    if len(every) > _LISTED:
        terminal.err().print(f"and {count(len(every) - _LISTED, 'more file')}")
    confirm(f"{what} these {len(every):,}?", yes=yes)


def agree_to(notice: str, name: str, *, yes: bool) -> None:
    """Ask whether to publish one file as a notice says; others may be published already.

    Raises Abort as `confirm`, LakegateError NOT_AGREED where there is no terminal to ask at.
    """
    terminal.err().print(f"{name}: {notice}", style="yellow", soft_wrap=True)
    try:
        confirm("Publish it this way?", yes=yes)
    except NotAgreed as error:
        message = "not published: add `--yes` to agree to what becomes of its unreadable rows"
        raise LakegateError("NOT_AGREED", message) from error


def report_each(
    every: Sequence[Ingestion], decide: _Decide, report: _Report
) -> tuple[int, list[Ingestion]]:
    """Decide about each alone; return the highest exit code, and those that were decided.

    Of several, what fails for one is printed. Raises LakegateError where the only one fails.
    """
    codes, done = [0], []
    for one, result in each_alone(every, decide):
        if not isinstance(result, LakegateError):
            codes.append(report(result))
            done.append(result.ingestion)
        elif len(every) == 1:
            raise result
        else:
            words = f"{one.name}: {result.message} ({result.code})"
            terminal.err().print(words, style="red", soft_wrap=True)
            codes.append(1)
    return max(codes), done


def _end(adapters: Adapters, code: int, waited: Sequence[Ingestion], seconds: float) -> None:
    """Exit with a code, or wait for ingestions and exit by the worst of both."""
    if not waited:
        raise typer.Exit(code)
    wait_for(adapters, list(map(TrackedIngestion, waited)), seconds, at_least=code)


def report_replay(outcome: "Outcome") -> int:
    """Print that the job was started; return the ingestion's exit code if it failed at once."""
    terminal.out().print(outcomes.replayed(outcome), soft_wrap=True)
    _report_next_step(outcome)
    return _code(outcome)


def report_publish(outcome: "Outcome", by: str) -> int:
    """Print whether the ingestion is published; return its exit code if it failed again."""
    terminal.out().print(outcomes.approved(outcome, by), soft_wrap=True)
    _report_next_step(outcome)
    return _code(outcome)


def _code(outcome: "Outcome") -> int:
    failed = outcome.ingestion.state in ALERTED
    return exit_code([TrackedIngestion(outcome.ingestion)]) if failed else 0


def report_discard(outcome: "Outcome") -> int:
    """Print what was deleted; return 1 if something could not be deleted."""
    now = outcome.ingestion
    if outcome.left:
        again = f"Run `lakegate discard {now.id}` again, or let `lakegate expire` delete it."
        terminal.err().print(
            f"{outcomes.discarded(outcome)}\n{again}", style="yellow", soft_wrap=True
        )
        return 1
    terminal.out().print(outcomes.discarded(outcome), soft_wrap=True)
    terminal.out().print(f"Details: `lakegate show {now.id[:ID_PART]}`")
    return 0


def _report_next_step(outcome: "Outcome") -> None:
    if left := outcomes.left(outcome):
        terminal.err().print(left, style="yellow", soft_wrap=True)
    terminal.out().print(f"Progress: `lakegate show {outcome.ingestion.id[:ID_PART]}`")
