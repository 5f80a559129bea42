"""`lakegate ledger rebuild` says what it restored."""

from dataclasses import replace

import pytest

from cli.ledger.rebuild import restored_summary
from functions.model.ingestion import Ingestion
from tests.unit.cli.cli_examples import PUBLISHED, REJECTED, SUBMITTED

LOST = [PUBLISHED, replace(PUBLISHED, id=32 * "1"), SUBMITTED, REJECTED]
COUNTED = "1 submitted, 2 published, 1 rejected."
NONE = "No lost ingestion found."


@pytest.mark.parametrize(
    ("lost", "dry_run", "said"),
    [
        (LOST, False, f"4 ingestions restored: {COUNTED}\n"),
        (LOST, True, f"4 ingestions would be restored: {COUNTED}"),
        ([], False, NONE),
        ([], True, NONE),
    ],
)
def test_restored_ingestions_are_counted_by_state(
    lost: list[Ingestion], dry_run: bool, said: str
) -> None:
    """Restored ingestions are counted by state; a dry run says what would be restored."""
    text = restored_summary(lost, dry_run=dry_run)
    assert text.startswith(said)
    assert ("`lakegate status`" in text) is (bool(lost) and not dry_run)
