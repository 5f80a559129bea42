"""Render what an audit found: checks, rows that break them, and what it cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.console.terminal import cell, table
from lakegate.audit import failing_rows
from lakegate.audit.report import AuditReport, Status, Tier

_MOST_SAMPLES = 10
_CHECKS = {
    Status.WARN: ("!", "yellow"),
    Status.FAIL: ("✗", "red"),
    Status.ERROR: ("✗", "bold red"),
    Status.SKIPPED: ("-", "dim"),
}


def checks(results: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of the checks that did not pass, with expected and found values.

    Those that the reason tells are left out.
    """
    made = table("", "check", "columns", "expected", "found")
    for check in results:
        status = Status(check["status"])
        if status is not Status.PASS and not check.get("is_told"):
            mark, colour = _CHECKS[status]
            made.add_row(
                Text(mark, colour),
                check["id"],
                ", ".join(check["columns"]),
                check["expected"],
                Text(_found(check), colour),
            )
    return made


def samples(report: AuditReport) -> Iterable[RenderableType]:
    """Yield a few of the rows that break each check that fails or warns."""
    for result in (*report.failed, *report.warned):
        if result.samples:
            yield Text(f"rows that break {result.id}", "bold")
            yield rows(failing_rows.shown(result.samples[:_MOST_SAMPLES]))


def cost(report: AuditReport, *, verbose: bool) -> RenderableType:
    """Return each step's time and data; if `verbose`, also how many checks each tier answered."""
    numbers = ("seconds", "Spark jobs", "rows read", "bytes read", "shuffled")
    made = table("step of the job run", *numbers, right=numbers)
    for step in report.steps:
        counts = (step.jobs, step.rows, step.bytes, step.shuffled)
        made.add_row(step.name, f"{step.seconds:.2f}", *(f"{count:,}" for count in counts))
    tiers = Counter(result.tier for result in report.checks if result.tier) if verbose else {}
    answered = ", ".join(f"{tiers[tier]} by {tier}" for tier in Tier if tiers.get(tier))
    return Group(made, Text(f"answered: {answered}", "dim")) if answered else made


def check_counts(counted: Mapping[str, int]) -> str:
    """Return the number of checks by status: `34 pass, 3 fail`."""
    return ", ".join(f"{counted[status]} {status}" for status in Status if counted.get(status))


def _found(check: Mapping[str, Any]) -> str:
    """Return the value found, or the reason why there is none."""
    unasked = check["status"] in (Status.ERROR, Status.SKIPPED)
    return f"{check['found']}: {check['message']}" if unasked else str(check["found"])


def rows(records: Sequence[Mapping[str, Any]], right: Iterable[str] = ()) -> Table:
    """Return a table of rows, at least one; `right` names the columns of numbers."""
    made = table(*records[0], right=right)
    for row in records:
        made.add_row(*(cell(value) for value in row.values()))
    return made
