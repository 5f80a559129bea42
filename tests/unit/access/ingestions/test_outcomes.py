"""What is said about an ingestion, beyond its state."""

import pytest

from access.ingestions.outcomes import attempt, branch, files_before
from functions.model.decisions import Decisions
from functions.model.ingestion import Ingestion
from tests.fakes.scenario import FIRST, Scenario
from tests.unit.cli.cli_examples import SUBMITTED

_REPLAYED = SUBMITTED.but(attempt=2, tries_from=1)


_ADA = {"replay": "replayed", "publish": "approved", "discard": "discarded"}


def _asked(*verbs: str) -> Ingestion:
    """Return it as Ada asked for these, one a year, of the attempt that was the last then."""
    decisions, times, attempt = Decisions(), dict[str, str](), 1
    for year, what in enumerate(verbs, start=2026):
        times[_ADA[what]] = f"{year}"
        decisions = decisions.acted(what, "Ada", f"{year}", attempt)
        attempt += what == "replay"
    return _REPLAYED.but(decisions=decisions, times=times)


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
        (_asked("replay", "publish"), "2 (replay requested by Ada)"),
        (_asked("replay", "discard"), "2 (replay requested by Ada)"),
        (
            _asked("discard").but(times={"discarded": "2026", "replayed": "2027"}),
            "2 (replay requested)",
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


def test_a_branch_that_waits_for_a_decision_is_not_called_deleted(deployment: Scenario) -> None:
    """A held file's branch is there after its clean-up, until a discard or its publication."""
    deployment.ask(onDuplicate="hold")
    deployment.ended(FIRST, b"the same bytes")
    held, other = (deployment.ended(f"shop/orders/{n}.parquet", b"the same bytes") for n in "ab")
    assert held.cleaned
    assert branch(held) == held.branch
    assert branch(deployment.discard(held).ingestion) == f"{held.branch} (discarded)"
    deployment.publish_anyway(other)
    published = branch(deployment.end_of(other))
    assert published == f"{other.branch} (deleted after its merge)"


@pytest.mark.parametrize(
    ("files", "said"),
    [(0, "next in line"), (1, "1 file before it"), (1200, "1,200 files before it")],
)
def test_a_place_in_line_is_a_number_of_files(files: int, said: str) -> None:
    """A file's place is the number of unfinished files that landed earlier."""
    assert files_before(files) == said
