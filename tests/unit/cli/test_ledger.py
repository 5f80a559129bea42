from dataclasses import replace

import pytest

from cli.reconcile import told
from tests.unit.cli.cli_examples import PUBLISHED, REJECTED, SUBMITTED

LOST = [PUBLISHED, replace(PUBLISHED, id=32 * "1"), SUBMITTED, REJECTED]


def test_what_was_restored_is_told_by_state() -> None:
    """A person sees how many ingestions are back, in which states, and what comes next."""
    said = told(LOST, dry_run=False)

    assert "4 ingestions are restored: 1 submitted, 2 published, 1 rejected." in said
    assert "sweep" in said
    assert "`lakegate status`" in said


def test_a_dry_run_says_that_nothing_was_done() -> None:
    """What would be restored is not told as if it were."""
    said = told(LOST, dry_run=True)

    assert said == "4 ingestions would be restored: 1 submitted, 2 published, 1 rejected."


@pytest.mark.parametrize("dry_run", [True, False])
def test_that_nothing_was_lost_is_told(dry_run: bool) -> None:
    """Where there is nothing to restore a person is not left with an empty screen."""
    assert told([], dry_run=dry_run) == "Nothing was lost that left a trace."
