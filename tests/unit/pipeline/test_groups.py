"""Whose rows an intent holds: all of its members, or it is not merged."""

from typing import Any

import pytest

from functions.model.ingestion import State
from functions.pipeline.rebase import Unit, unit_of
from tests.fakes.deployment import Deployment, share_an_intent, wait_together

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_group_is_all_who_share_the_intent() -> None:
    """Whoever of them asks gets all of them, itself the first."""
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
def test_a_member_that_went_elsewhere_is_none_of_the_group(elsewhere: dict[str, Any]) -> None:
    """Without one who has ended, or has another intent by now, the group is not complete."""
    deployment = Deployment()
    first, second = share_an_intent(deployment, wait_together(deployment, 2))
    deployment.ledger.save(second.but(**elsewhere))
    unit = unit_of(deployment.adapters, first)
    assert unit == Unit(first.intent, [first])
    assert not unit.complete
