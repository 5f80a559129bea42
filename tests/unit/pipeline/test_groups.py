"""An intent is merged only with all its members."""

from typing import Any

import pytest

from functions.model.ingestion import State
from functions.pipeline.rebase import Unit, unit_of
from tests.fakes.deployment import Deployment, share_an_intent, wait_together

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_group_is_all_that_share_the_intent() -> None:
    """Each member of a group finds all of them, itself the first."""
    deployment = Deployment()
    first, second = share_an_intent(deployment, wait_together(deployment, 2))
    unit = unit_of(deployment.adapters, second)
    assert unit == Unit(first.intent, [second, first])
    assert unit.complete


@pytest.mark.parametrize(
    "elsewhere",
    [{"state": State.ERRORED}, {"branch": "ingest/other"}, {"audited_hash": "another"}],
    ids=str,
)
def test_a_member_with_another_intent_leaves_the_group(elsewhere: dict[str, Any]) -> None:
    """A group is not complete without a member that ended or has another intent."""
    deployment = Deployment()
    first, second = share_an_intent(deployment, wait_together(deployment, 2))
    deployment.ledger.save(second.but(**elsewhere))
    unit = unit_of(deployment.adapters, first)
    assert unit == Unit(first.intent, [first])
    assert not unit.complete
