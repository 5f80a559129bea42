"""EMR Serverless starts a burst of runs, and then one a second; the others begin later."""

import pytest

from functions.model.ingestion import State
from infra.local.emr.limits import BURST
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_start_that_comes_too_fast_ends_no_file() -> None:
    """Files whose start is refused wait for the sweep, and are published without an alert."""
    made = Scenario()
    made.jobs.limit()
    landed = [made.land(f"shop/orders/{number}.parquet") for number in range(2 * BURST)]
    for _ in range(9):  # more often than a message is received before it is a dead letter
        made.deliver()
    states = [made.ingestion(each).state for each in landed]
    assert states.count(State.SUBMITTED) == BURST
    assert states.count(State.BRANCHED) == BURST
    made.settle()
    assert {made.ingestion(each).state for each in landed} == {State.PUBLISHED}
    assert made.alerts.posted == []
    made.check()
