import io

from rich.console import Console

from access.follow import TrackedIngestion
from cli.ingestions.progress import show_progress
from tests.unit.cli.cli_examples import PUBLISHED, QUEUED


def test_each_step_takes_one_line_however_the_load_changes() -> None:
    """Beside a terminal, a file that waits takes one line, with the number when it began."""
    said = io.StringIO()
    with show_progress(Console(file=said, width=200)) as show:
        for load in ("about 3 files wait", "about 2 files wait"):
            show([TrackedIngestion(QUEUED, load=load)])
        show([TrackedIngestion(PUBLISHED)])
    first, second = said.getvalue().splitlines()
    assert first.endswith("waits for a shared run; about 3 files wait")
    assert "published 1,842 rows" in second
