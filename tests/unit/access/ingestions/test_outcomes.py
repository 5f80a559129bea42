"""What is said about an ingestion, beyond its state."""

import pytest

from access.ingestions.outcomes import attempt, files_before
from functions.model.decisions import Decisions
from functions.model.ingestion import Ingestion
from tests.unit.cli.cli_examples import SUBMITTED

_REPLAYED = SUBMITTED.but(attempt=2, tries_from=1)


def _asked(what: str) -> Ingestion:
    return _REPLAYED.but(decisions=Decisions().acted(what, "Ada", "2026", 1))


@pytest.mark.parametrize(
    ("ingestion", "said"),
    [
        (SUBMITTED, "1"),
        (SUBMITTED.but(attempt=2, failures=1), "2 (the run before did not finish it)"),
        (SUBMITTED.but(attempt=2), "2 (main or its contract changed, or a right was missing)"),
        (
            SUBMITTED.but(attempt=2, leaves_group=True),
            "2 (another file keeps it from main, but not those that it ran with)",
        ),
        (_REPLAYED, "2 (replay requested)"),
        (
            _asked("replay"),
            "2 (replay requested by Ada)",
        ),
        (
            _asked("publish"),
            "2 (publish requested by Ada)",
        ),
        (
            _REPLAYED.but(times={"replayed": "2026", "held again": "2027"}),
            "2 (it waited for files that landed before it)",
        ),
        (_REPLAYED.but(attempt=3, failures=1), "3 (the run before did not finish it)"),
    ],
)
def test_an_attempt_has_its_reason(ingestion: Ingestion, said: str) -> None:
    """From the second attempt on the reason is given: a person, a failed run, or main."""
    assert attempt(ingestion) == said


@pytest.mark.parametrize(
    ("files", "said"),
    [(0, "next in line"), (1, "1 file before it"), (1200, "1,200 files before it")],
)
def test_a_place_in_line_is_a_number_of_files(files: int, said: str) -> None:
    """A file's place is the number of unfinished files that landed earlier."""
    assert files_before(files) == said
