"""Wait for ingestions to end, and exit by how they ended."""

from collections.abc import Iterable, Iterator
from typing import NoReturn

import typer
from rich.console import Console

from access.ingestions.follow import TrackedIngestion, ended, follow
from cli.console import terminal
from cli.ingestions.progress import show_progress
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from lakegate.audit import causes, failing_rows
from lakegate.audit.report import AuditReport, CheckResult
from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART

_MOST_ROWS, _MOST_LINES = 3, 10  # of a check, and of a file
EXIT_CODES = {State.PUBLISHED: 0, State.REJECTED: 3, State.ERRORED: 4, State.IGNORED: 5}


def wait_for(
    adapters: Adapters, tracked: list[TrackedIngestion], seconds: float, at_least: int = 0
) -> NoReturn:
    """Follow ingestions to their final states for at most `seconds`, then exit by the worst one.

    The exit code is `at_least` this.
    """
    try:
        with show_progress(terminal.err()) as show:
            tracked = follow(adapters, tracked, ended, seconds, show)
    except KeyboardInterrupt:
        terminal.err().print("\n" + stopped(tracked), soft_wrap=True)
        raise typer.Exit(130) from None
    explain(terminal.err(), adapters, tracked)
    raise typer.Exit(max(at_least, exit_code(tracked)))


def stopped(tracked: Iterable[TrackedIngestion]) -> str:
    """Return what to do after nobody waits any more: the ingestions go on."""
    shows = [f"  lakegate show {item.ingestion.id[:ID_PART]}" for item in tracked]
    return "\n".join(["Stopped waiting; the work goes on. How far it is:", *shows])


def exit_code(tracked: Iterable[TrackedIngestion]) -> int:
    """Return the exit code of the worst final state."""
    return max(EXIT_CODES[item.ingestion.state] for item in tracked)


def explain(console: Console, adapters: Adapters, tracked: Iterable[TrackedIngestion]) -> None:
    """Print what is remarkable about published ingestions, and why the others were not published.

    Warnings, rows in quarantine and likely duplicates are remarkable.
    """
    for item in tracked:
        lines = list(dict.fromkeys(_told(adapters, item.ingestion)))
        for line in lines:
            console.print(f"{item.name}: {line}", soft_wrap=True)
        if lines:
            console.print(f"Details: `lakegate show {item.ingestion.id[:ID_PART]}`")


def _told(adapters: Adapters, ingestion: Ingestion) -> Iterator[str]:
    from access.ingestions.shown_report import shown_report

    report = None
    try:
        report = shown_report(adapters, ingestion)
    except LakegateError as error:
        if not ingestion.reason:
            yield f"its audit report cannot be read: {error.message}"
    if ingestion.state is State.PUBLISHED:
        yield from _remarks(ingestion, report)
    if ingestion.reason:
        although = "published although: " if ingestion.state is State.PUBLISHED else ""
        yield although + ingestion.reason.message
        rows = (row for check in (report.failed if report else ()) for row in _rows(check))
        yield from list(dict.fromkeys(rows))[:_MOST_LINES]


def _remarks(ingestion: Ingestion, report: AuditReport | None) -> Iterator[str]:
    """Yield a published file's warnings, each with its first rows, and what else is remarkable."""
    rows = {check.id: _rows(check) for check in report.warned} if report else {}
    for check in ingestion.audit.warnings:
        yield f"warning, {check['id']}: {causes.finding(check)}"
        yield from rows.get(check["id"], ())
    if first := ingestion.audit.duplicate_of:
        yield f"likely a duplicate: {first[:ID_PART]} brought the same before"
    if report and (many := report.rows_rejected):
        left_out = "1 row is" if many == 1 else f"{many:,} rows are"
        yield f"{left_out} in quarantine (`ops.quarantine`), not in the table"


def _rows(check: CheckResult) -> list[str]:
    return failing_rows.told(check)[:_MOST_ROWS]
