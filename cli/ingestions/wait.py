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
from lakegate.errors import LakegateError
from lakegate.findings import causes, failing_rows
from lakegate.landing import ID_PART

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
        lines = list(_remarks(adapters, item.ingestion))
        if reason := item.ingestion.reason:
            although = "published although: " if item.ingestion.state is State.PUBLISHED else ""
            lines.append(although + reason.message)
            lines += _rows(adapters, item.ingestion)
        for line in dict.fromkeys(lines):
            console.print(f"{item.name}: {line}", soft_wrap=True)
        if lines:
            console.print(f"Details: `lakegate show {item.ingestion.id[:ID_PART]}`")


def _rows(adapters: Adapters, ingestion: Ingestion) -> list[str]:
    """Return the first rows that break each failed check of a rejected file."""
    from functions.pipeline.outcome.reports import report_of

    try:
        report = report_of(adapters, ingestion) if ingestion.report_key else None
    except LakegateError:  # `show` tells why
        return []
    failed = report.failed if report else ()
    lines = [line for check in failed for line in failing_rows.told(check)[:_MOST_ROWS]]
    return list(dict.fromkeys(lines))[:_MOST_LINES]


def _remarks(adapters: Adapters, ingestion: Ingestion) -> Iterator[str]:
    from functions.pipeline.outcome.reports import report_of

    if ingestion.state is not State.PUBLISHED:
        return
    for check in ingestion.audit.warnings:
        yield f"warning, {check['id']}: {causes.finding(check)}"
    if first := ingestion.audit.duplicate_of:
        yield f"likely a duplicate: {first[:ID_PART]} brought the same before"
    try:
        report = report_of(adapters, ingestion)
    except LakegateError as error:
        yield f"its audit report cannot be read: {error.message}"
        return
    if report and (many := report.rows_rejected):
        rows = "1 row is" if many == 1 else f"{many:,} rows are"
        yield f"{rows} in quarantine (`ops.quarantine`), not in the table"
