"""Render consoles, colours and tables on a terminal."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from access import outcomes
from cli.console.spinner import SPINNER
from functions.health import model
from functions.health.model import Finding
from functions.model.ingestion import Ingestion
from functions.model.shown_state import ShownState
from lakegate.landing import ID_PART
from lakegate.report import ADDRESS, AuditReport, Status, Tier
from lakegate.text import one_line, visible
from lakegate.times import duration, seconds

_STATEMENT = 60
_CAUSE = 120
_WIDE = 200
_MOST_SAMPLES = 10
_COLOURS = {
    ShownState.PUBLISHED: "green",
    ShownState.REJECTED: "red",
    ShownState.ERRORED: "bold red",
    ShownState.IGNORED: "dim",
    ShownState.DISCARDED: "dim",
    ShownState.SUPERSEDED: "dim",
}
_CHECKS = {
    Status.WARN: ("!", "yellow"),
    Status.FAIL: ("✗", "red"),
    Status.ERROR: ("✗", "bold red"),
    Status.SKIPPED: ("-", "dim"),
}
_FINDINGS = {
    model.Status.OK: ("✓", "green", ""),
    model.Status.WARN: ("!", "yellow", "yellow"),
    model.Status.FAIL: ("✗", "red", "red"),
}


def out() -> Console:
    """Return standard output, for results; a pipe counts as wide, so that no text is cut."""
    return _console(stderr=False)


def err() -> Console:
    """Return standard error, for everything except results."""
    return _console(stderr=True)


def progress_printer() -> Callable[[str], None]:
    """Return a function that prints a step and the seconds so far to standard error."""
    began, console = time.monotonic(), err()
    return lambda text: console.print(f"{time.monotonic() - began:6.1f} s  {text}", style="dim")


def raw(text: str) -> None:
    """Print a text to standard output exactly as it is, for files and programs."""
    SPINNER.stop()
    typer.echo(text, nl=False)


def _console(*, stderr: bool) -> Console:
    SPINNER.stop()
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    # No markup: text of files, keys and contracts is printed unchanged.
    return _Harmless(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


class _Harmless(Console):
    """A console that escapes control characters in all text; only rich's own styles take effect."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def state(ingestion: Ingestion) -> Text:
    """Return an ingestion's state in its colour; states in flight are yellow."""
    return coloured(ShownState.of(ingestion), one_line(outcomes.state(ingestion)))


def coloured(state: ShownState, words: str = "") -> Text:
    """Return a state, or its description, in its colour."""
    return Text(words or state.value, _COLOURS.get(state, "yellow"))


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table in the common style; `right` names the columns of numbers."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Any = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold")
    return made


def runs(ingestions: Iterable[Ingestion]) -> Table:
    """Return a table of ingestions, one per line."""
    made = table("id", "state", "table", "file", "rows", "landed", "reason", right=["rows"])
    for each in ingestions:
        made.add_row(
            each.id[:ID_PART],
            state(each),
            ", ".join(each.tables) or "-",
            source(each),
            f"{each.rows:,}" if each.rows else "-",
            _clock(each.landed.landed_at),
            _why(each),
        )
    return made


def waiting(ingestions: Iterable[Ingestion], now: str) -> Table:
    """Return a table of ingestions that wait for a decision at the time `now`, one per line."""
    made = table("id", "table", "file", "cause", "rows", "age", "owner", right=["rows"])
    for each in ingestions:
        made.add_row(
            each.id[:ID_PART],
            ", ".join(each.tables) or "-",
            source(each),
            _cause(each),
            f"{each.rows:,}" if each.rows else "-",
            duration(seconds(each.landed.landed_at, now), parts=1),
            one_line(each.owner) or each.channel or "-",
        )
    return made


def _cause(ingestion: Ingestion) -> str:
    """Return the reason in words, cut to two lines of a terminal."""
    words = one_line(ingestion.reason.message) if ingestion.reason else ""
    return words if len(words) <= _CAUSE else f"{words[:_CAUSE]}…"


def _why(ingestion: Ingestion) -> str:
    """Return why an ingestion was not published, and which one supersedes it."""
    newer = ingestion.superseded_by[:ID_PART]
    code = ingestion.reason.code if ingestion.reason else ""
    return f"{code}, superseded by {newer}" if newer else code


def source(ingestion: Ingestion) -> str:
    """Return the key of the file, or the statement of the change, on one line."""
    if not ingestion.change:
        return one_line(ingestion.landed.key)
    text = " ".join(ingestion.change.statement.split())
    return text if len(text) <= _STATEMENT else f"{text[:_STATEMENT]}…"


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
    """Yield a few of the rows that break each failed check."""
    for result in report.failed:
        if result.samples:
            yield Text(f"rows that break {result.id}", "bold")
            yield _rows(result.samples[:_MOST_SAMPLES])


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


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Return names and values, one pair per line; empty values are left out."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            made.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return made


def health(parts: Mapping[str, str]) -> Table:
    """Return the parts with their health."""
    states = {k: Text(v, "green" if v == "up" else "bold red") for k, v in parts.items()}
    return facts(states.items())


def findings(found: Iterable[Finding]) -> Table:
    """Return a table of findings with their marks; a problem is followed by its fix."""
    made = table("", "check", "found")
    for each in found:
        mark, colour, words = _FINDINGS[each.status]
        message = Text(each.message, words)
        if each.fix:
            message.append(f"\n→ {each.fix}", "default")
        made.add_row(Text(mark, colour), each.check, message)
    return made


def shared_runs(found: Mapping[str, Any]) -> Table:
    """Return how many files wait for a shared run, and the runs that are up."""
    waiting, up = found["waiting"], found["up"] or ()
    lines = [f"{run['state'].lower()}, {run['name']}, {run['id']}" for run in up]
    return facts(
        [
            ("files that wait for a shared run", f"{waiting:,}" if waiting else ""),
            *(("shared run", line) for line in lines),
            ("shared runs", found["problem"]),
        ]
    )


def cell(value: object) -> Text:
    """Return a data value for a table; null looks different from the text "null"."""
    return Text("null", "dim") if value is None else Text(str(value))


def _found(check: Mapping[str, Any]) -> str:
    """Return the value found, or the reason why there is none."""
    unasked = check["status"] in (Status.ERROR, Status.SKIPPED)
    return f"{check['found']}: {check['message']}" if unasked else str(check["found"])


def _rows(rows: Sequence[Mapping[str, str | None]]) -> Table:
    file = ADDRESS[0]  # shortened here; the report has the full address
    shown = [{**r, file: Path(r.get(file) or "").name} if file in r else r for r in rows]
    made = table(*shown[0])
    for row in shown:
        made.add_row(*(cell(value) for value in row.values()))
    return made


def _clock(time: str) -> str:
    """Return a time of the ledger (ISO 8601) in the machine's time zone."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}" if time else ""
