import io

import pytest
from rich.console import Console

from access.ingestions.follow import TrackedIngestion
from cli.ingestions.progress import progress_table, show_progress
from functions.adapters.emr import RunState
from functions.model.ingestion import Ingestion
from tests.unit.cli.cli_examples import (
    AUDITED,
    ERRORED,
    IGNORED,
    LANDED,
    PUBLISHED,
    QUEUED,
    REJECTED,
    SUBMITTED,
)
from tests.unit.cli.shown import shown


def test_each_step_takes_one_line_however_the_load_changes() -> None:
    """A file that waits, even again, takes one line, with the number of files when it began."""
    said = io.StringIO()
    with show_progress(Console(file=said, width=200)) as show:
        for load in ("about 3 files wait", "about 2 files wait"):
            show([TrackedIngestion(QUEUED, load=load)])
        for ingestion in (LANDED, QUEUED, PUBLISHED):
            show([TrackedIngestion(ingestion)])
    first, second, third = said.getvalue().splitlines()
    assert first.endswith("waits for a shared run; about 3 files wait")
    assert "landed" in second
    assert "published 1,842 rows" in third


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
