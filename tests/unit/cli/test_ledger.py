from dataclasses import replace

import pytest

from cli.reconcile import restored_summary
from tests.unit.cli.cli_examples import PUBLISHED, REJECTED, SUBMITTED

LOST = [PUBLISHED, replace(PUBLISHED, id=32 * "1"), SUBMITTED, REJECTED]


def test_restored_ingestions_are_counted_by_state() -> None:
    """The output counts restored ingestions by state and names the next steps."""
    said = restored_summary(LOST, dry_run=False)

    assert "4 ingestions restored: 1 submitted, 2 published, 1 rejected." in said
    assert "sweep" in said
    assert "`lakegate status`" in said


def test_a_dry_run_says_that_nothing_was_done() -> None:
    """A dry run says what would be restored."""
    said = restored_summary(LOST, dry_run=True)

    assert said == "4 ingestions would be restored: 1 submitted, 2 published, 1 rejected."


@pytest.mark.parametrize("dry_run", [True, False])
def test_that_nothing_was_lost_is_reported(dry_run: bool) -> None:
    """Without anything to restore, a message says so."""
    assert restored_summary([], dry_run=dry_run) == "No lost ingestion found."
