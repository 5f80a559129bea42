"""How things look on a terminal: consoles, colours, and the tables of ingestions."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from functions.health import model
from functions.health.model import Finding
from functions.model.ingestion import Ingestion, State
from lakegate.landing import ID_PART
from lakegate.report import ADDRESS, AuditReport, Status, Tier
from lakegate.text import one_line, visible

_STATEMENT = 60
_WIDE = 200
_MOST_SAMPLES = 5
_COLOURS = {
    State.PUBLISHED: "green",
    State.REJECTED: "red",
    State.ERRORED: "bold red",
    State.IGNORED: "dim",
}
_CHECK_COLOURS = {
    Status.WARN: "yellow",
    Status.FAIL: "red",
    Status.ERROR: "bold red",
    Status.SKIPPED: "dim",
}
_CHECK_MARKS = {Status.WARN: "!", Status.SKIPPED: "-"}
_FINDING_COLOURS = {model.Status.WARN: "yellow", model.Status.FAIL: "red"}
_FINDING_MARKS = {
    model.Status.OK: "✓",
    model.Status.WARN: "!",
    model.Status.FAIL: "✗",
}


def out() -> Console:
    """Standard output, for results. A pipe is taken to be wide, so that nothing is cut off."""
    return _console(stderr=False)


def err() -> Console:
    """Standard error, for everything that is not the result."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    # No markup: what files, keys and contracts say is shown as it is.
    return _Harmless(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


class _Harmless(Console):
    """A console on which no text acts: whatever is printed, only rich's own styles do."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def coloured(state: State) -> Text:
    """A state in its colour; what is in flight is yellow."""
    return Text(state.value, _COLOURS.get(state, "yellow"))


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """An empty table in the house's look; `right` are the columns of numbers."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Any = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold")
    return made


def runs(ingestions: Iterable[Ingestion]) -> Table:
    """Ingestions, one a line."""
    made = table("id", "state", "table", "file", "rows", "landed", "why", right=["rows"])
    for each in ingestions:
        made.add_row(
            each.id[:ID_PART],
            coloured(each.state),
            ", ".join(each.tables) or "-",
            source(each),
            f"{each.rows:,}" if each.rows else "-",
            _clock(each.landed.landed_at),
            _why(each),
        )
    return made


def _why(ingestion: Ingestion) -> str:
    """Return why it was not published, and by whom it is superseded."""
    newer = ingestion.superseded_by[:ID_PART]
    code = ingestion.reason.code if ingestion.reason else ""
    return f"{code}, superseded by {newer}" if newer else code


def source(ingestion: Ingestion) -> str:
    """The key of the file, or the statement of the change, on one line."""
    if not ingestion.change:
        return one_line(ingestion.landed.key)
    text = " ".join(ingestion.change.statement.split())
    return text if len(text) <= _STATEMENT else f"{text[:_STATEMENT]}…"


def checks(results: Iterable[Mapping[str, Any]]) -> Table:
    """Those checks that say something of the file, with what was expected and found."""
    made = table("", "check", "columns", "expected", "found")
    for check in results:
        status = Status(check["status"])
        if status is not Status.PASS:
            made.add_row(
                Text(_CHECK_MARKS.get(status, "✗"), _CHECK_COLOURS[status]),
                check["id"],
                ", ".join(check["columns"]),
                check["expected"],
                Text(_found(check), _CHECK_COLOURS[status]),
            )
    return made


def samples(report: AuditReport) -> Iterable[RenderableType]:
    """A few of the rows that break each failed check."""
    for result in report.failed:
        if result.samples:
            yield Text(f"rows that break {result.id}", "bold")
            yield _rows(result.samples[:_MOST_SAMPLES])


def cost(report: AuditReport) -> RenderableType:
    """What the job run's steps took, and of how many checks each tier knew the answer."""
    numbers = ("seconds", "Spark jobs", "rows read", "bytes read", "shuffled")
    made = table("step of the job run", *numbers, right=numbers)
    for step in report.steps:
        counts = (step.jobs, step.rows, step.bytes, step.shuffled)
        made.add_row(step.name, f"{step.seconds:.2f}", *(f"{count:,}" for count in counts))
    tiers = Counter(result.tier for result in report.checks if result.tier)
    told = ", ".join(f"{tiers[tier]} by {tier}" for tier in Tier if tiers[tier])
    return Group(made, Text(f"answered: {told}", "dim")) if told else made


def check_counts(counted: Mapping[str, int]) -> str:
    """How many checks ended how: `34 pass, 3 fail`."""
    return ", ".join(f"{counted[status]} {status}" for status in Status if counted.get(status))


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Names and values, one pair a line; pairs without a value are left out."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            made.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return made


def health(parts: Mapping[str, str]) -> Table:
    """The parts and whether they are up."""
    states = {k: Text(v, "green" if v == "up" else "bold red") for k, v in parts.items()}
    return facts(states.items())


def findings(found: Iterable[Finding]) -> Table:
    """What was looked at, each with its mark; under a fault, what to do about it."""
    made = table("", "check", "found")
    for each in found:
        colour = _FINDING_COLOURS.get(each.status, "")
        message = Text(each.message, colour)
        if each.fix:
            message.append(f"\n→ {each.fix}", "default")
        made.add_row(Text(_FINDING_MARKS[each.status], colour or "green"), each.check, message)
    return made


def counts(by_state: Mapping[str, int]) -> Table:
    """How many ingestions are in each state; states without any are left out."""
    return facts((name, Text(f"{many:,}")) for name, many in by_state.items() if many)


def cell(value: object) -> Text:
    """A value of the data in a table; null is not mistaken for a text."""
    return Text("null", "dim") if value is None else Text(str(value))


def _found(check: Mapping[str, Any]) -> str:
    """What was found, or why nothing was."""
    unasked = check["status"] in (Status.ERROR, Status.SKIPPED)
    return f"{check['found']}: {check['message']}" if unasked else str(check["found"])


def _rows(rows: Sequence[Mapping[str, str | None]]) -> Table:
    file = ADDRESS[0]  # too long to be shown; the report has it whole
    shown = [{**r, file: Path(r.get(file) or "").name} if file in r else r for r in rows]
    made = table(*shown[0])
    for row in shown:
        made.add_row(*(cell(value) for value in row.values()))
    return made


def _clock(time: str) -> str:
    """A time of the ledger (ISO 8601) as the machine's own wall clock shows it."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}" if time else ""
