"""Render consoles, colours and tables on a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from access.ingestions import outcomes
from cli.console.spinner import SPINNER
from functions.model.ingestion import Ingestion
from functions.model.shown_state import ShownState
from lakegate.text import one_line, visible

_WIDE = 200
_NARROWEST = 6  # of a column, with the blanks beside it: rich leaves out what does not fit
_ANY = 1 << 20
_COLOURS = {
    ShownState.PUBLISHED: "green",
    ShownState.REJECTED: "red",
    ShownState.ERRORED: "bold red",
    ShownState.IGNORED: "dim",
    ShownState.DISCARDED: "dim",
    ShownState.SUPERSEDED: "dim",
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


class _Table(Table):
    """A table that is written row by row, a cell on each line, if its columns are too many."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = console.measure(self, options=options.update(max_width=_ANY)).maximum
        if options.max_width >= min(needed, len(self.columns) * _NARROWEST):
            yield from super().__rich_console__(console, options)
            return
        names = [column.header for column in self.columns]
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            made = Table.grid("", Column(overflow="fold"), padding=(0, 2))
            for name, cell in zip(names, cells, strict=True):
                made.add_row(name, cell)
            yield made
            yield Text()


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table in the common style; `right` names the columns of numbers."""
    made = _Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Any = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold")
    return made


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Return names and values, one pair per line; empty values are left out."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            made.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return made


def cell(value: object) -> Text:
    """Return a data value for a table; null looks different from the text "null"."""
    return Text("null", "dim") if value is None else Text(str(value))
