import io
import re
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from access.follow import TrackedIngestion
from cli.console import terminal
from cli.ingestions.progress import progress_table
from functions.adapters.emr import RunState
from functions.model.ingestion import Ingestion
from lakegate.report import Reason
from tests.unit.cli.cli_examples import (
    AUDITED,
    ERRORED,
    IGNORED,
    LANDED,
    PASSED_CHECK,
    PUBLISHED,
    QUEUED,
    REJECTED,
    SUBMITTED,
)


def shown(renderable: RenderableType) -> str:
    """Return the output for a pipe, with single blanks and spinners as ~."""
    console = Console(file=io.StringIO(), width=200, markup=False)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return re.sub("[\u2800-\u28ff]", "~", " ".join(file.getvalue().split()))


def test_a_list_of_runs_names_each_by_the_beginning_of_its_id() -> None:
    """A line has short id, state, table, key, rows and reason."""
    text = shown(terminal.runs([PUBLISHED, REJECTED]))

    assert "0123456789ab published shop.orders shop/orders/[red] März.csv 1,842" in text
    assert "0123456789ab rejected" in text
    assert "0123456789ab landed (queued) shop.orders" in shown(terminal.runs([QUEUED]))
    assert text.endswith("CHECKS_FAILED")


def test_what_waits_for_a_decision_says_why_and_since_when() -> None:
    """A line has short id, table, key, cause in words, rows, age and owner."""
    long = replace(REJECTED, owner="Ada", reason=Reason("COLUMNS", "18 columns " * 40))
    text = shown(terminal.waiting([REJECTED, long], "2026-03-04T13:00:00.000+00:00"))
    assert "id table file cause rows age owner" in text
    assert "shop/orders/[red] März.csv 1 of 3 checks failed: total.range 1,842 3 d -" in text
    assert "3 d Ada" in text
    assert "…" in text


def test_a_key_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets in a key are printed unchanged on both consoles."""
    terminal.out().print("[red] März.csv")
    terminal.err().print("[red] März.csv")

    said = capsys.readouterr()
    assert (said.out, said.err) == ("[red] März.csv\n", "[red] März.csv\n")


@pytest.mark.parametrize(
    ("ingestion", "run", "line"),
    [
        (LANDED, None, "✓ ~ creating 1.5"),
        (QUEUED, None, "✓ ~ waits for a shared run 1.5"),
        (SUBMITTED, RunState.QUEUED, "✓ ✓ ~ queued 1.5"),
        (SUBMITTED, RunState.FAILED, "✓ ✓ ~ ended 1.5"),
        (AUDITED, None, "✓ ✓ ✓ ✓ 2, ! 1 ~ publishing 1.5"),
        (PUBLISHED, None, "✓ ✓ ✓ ✓ 2, ! 1 +1,842 rows 4.2"),
        (REJECTED, None, "✓ ✓ ✓ ✗ 1 of 3 rejected"),
        (ERRORED, None, "✓ errored"),
        (IGNORED, None, "✓ ignored"),
    ],
)
def test_the_progress_table_shows_each_step(
    ingestion: Ingestion, run: RunState | None, line: str
) -> None:
    """Each step is done, running or open; the seconds stop at the final state."""
    assert shown(progress_table([TrackedIngestion(ingestion, run)], elapsed=1.5)).endswith(
        f"[red] März.csv {line}"
    )


def test_a_check_that_was_not_asked_says_why() -> None:
    """A skipped check, and one that could not be evaluated, is shown with the reason."""
    why = {"found": "skipped", "message": "looks at the whole table"}
    for status in ("skipped", "error"):
        text = shown(terminal.checks([{**PASSED_CHECK, **why, "status": status}]))
        assert "skipped: looks at the whole table" in text


def test_only_checks_that_say_something_take_a_line() -> None:
    """Failed checks and warnings are listed; the others are counted."""
    text = shown(terminal.checks([PASSED_CHECK, *REJECTED.checks]))

    assert "✗ total.range total 0 rows 3 rows" in text
    assert "! few_late 0 rows 7 rows" in text
    assert "id.nullValues" not in text
    assert terminal.check_counts(REJECTED.check_counts) == "1 pass, 1 warn, 1 fail"


def test_null_is_not_a_text() -> None:
    """A null looks different from the text "null"."""
    assert terminal.cell(None).style != terminal.cell("null").style
