"""`lakegate mend` says what it wrote, what became of the broken rows, and how it is called."""

import pytest
from typer.testing import CliRunner

from access.mending.mend import Mended
from cli.files.mend import told
from cli.main import app
from tests.unit.cli.cli_examples import LANDED


@pytest.mark.parametrize("arguments", [[], ["--out", "b.csv", __file__]])
def test_rows_are_either_written_or_taken(arguments: list[str]) -> None:
    """Without a file and `--out`, or with both, the command says what to give."""
    said = CliRunner().invoke(app, ["mend", "0123", *arguments])
    assert said.exit_code == 2
    assert "give --out to write broken rows, or FILE with corrected ones" in said.output


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1, 0, 0), "1 broken row replaced"),
        ((2, 3, 0), "2 broken rows replaced, 3 removed"),
        ((0, 0, 1200), "0 broken rows replaced, 1,200 left as they are"),
    ],
)
def test_all_broken_rows_are_accounted_for(counts: tuple[int, int, int], words: str) -> None:
    """Rows that were replaced, removed and left are told apart."""
    assert told(Mended(LANDED, *counts, "line")) == words
