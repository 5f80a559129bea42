"""The spinner shows on a terminal that a command is at work, and is gone before its output."""

import io
import time

import pytest
from rich.console import Console

from cli.console.spinner import Spinner


def drawn(spinner: Spinner, text: io.StringIO) -> str:
    """Return what a spinner has drawn, as soon as that has words."""
    spinner.start()
    deadline = time.monotonic() + 60
    while "working" not in text.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    return text.getvalue()


def test_a_terminal_shows_that_work_goes_on() -> None:
    """The spinner is drawn after its time, and what is printed later follows it undisturbed."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True)
    spinner = Spinner(lambda: console, after=0)
    assert "working" in drawn(spinner, text)
    spinner.stop()
    spinner.stop()
    before = text.getvalue()
    console.print("result")
    assert text.getvalue() == f"{before}result\n"


@pytest.mark.parametrize(("is_terminal", "after"), [(False, 0), (True, 3600)])
def test_nothing_is_drawn_without_a_terminal_or_before_its_time(
    after: int, *, is_terminal: bool
) -> None:
    """A pipe gets no spinner, and a quick command shows none."""
    text = io.StringIO()
    asked: list[Console] = []

    def console() -> Console:
        asked.append(Console(file=text, force_terminal=is_terminal))
        return asked[-1]

    spinner = Spinner(console, after=after)
    spinner.start()
    deadline = time.monotonic() + 60
    while not after and not asked and time.monotonic() < deadline:
        time.sleep(0.01)
    spinner.stop()
    assert text.getvalue() == ""
