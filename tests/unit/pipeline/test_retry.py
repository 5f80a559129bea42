"""An ingestion that may have no other attempt ends, and takes nothing from others."""

from dataclasses import replace

import pytest

from functions.adapters.ledger.notes import Moved
from functions.model.ingestion import State
from functions.pipeline.publication.retry import run_again
from tests.fakes.deployment import SETTINGS
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_member_that_another_process_took_further_keeps_the_groups_branch() -> None:
    """A process that gives up on what it read before deletes no branch that is still an intent."""
    deployment = Scenario(replace(SETTINGS, max_branches=1))
    first, _ = deployment.share_an_intent(deployment.wait_together(2))
    deployment.ledger.save(first.step("elsewhere", "2026-03-01T13"))
    with pytest.raises(Moved):
        run_again(deployment.adapters, first)
    assert first.branch in deployment.catalog.references()
    deployment.check()
    assert deployment.on_main(first) == [True]


def test_a_member_that_is_given_up_leaves_no_branch() -> None:
    """What nobody took further ends errored, and the group's branch is gone."""
    deployment = Scenario(replace(SETTINGS, max_branches=1))
    first, _ = deployment.share_an_intent(deployment.wait_together(2))
    ended = run_again(deployment.adapters, first)
    assert (ended.state, ended.branch) == (State.ERRORED, "")
    assert first.branch not in deployment.catalog.references()
