"""The daily function starts the compactions that are due."""

import pytest

from functions.compact import begun
from functions.model.budget import Use
from lakegate.job.upkeep import FEWEST
from tests.fakes.metrics import metrics_of
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_schedule_starts_what_is_due(deployment: Scenario) -> None:
    """The answer counts what was started, of the table and of the history; then nothing is due."""
    for number in range(FEWEST):
        deployment.ended(f"shop/orders/{number}.parquet")
    assert begun(deployment.adapters) == {"started": 2, "waiting": 0}
    assert begun(deployment.adapters) == {"started": 0, "waiting": 0}


def test_what_starts_is_counted(deployment: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    """The metric `CompactionsStarted` says how many compactions a run of the function started."""
    for number in range(FEWEST):
        deployment.ended(f"shop/orders/{number}.parquet")
    found = metrics_of(lambda: begun(deployment.adapters), capsys)
    assert [many for name, many, _ in found if name == "CompactionsStarted"] == [2]


def test_what_the_budget_has_no_room_for_waits(deployment: Scenario) -> None:
    """What is due and is not started today is counted apart."""
    for number in range(FEWEST):
        deployment.ended(f"shop/orders/{number}.parquet")
    deployment.limit_spending(1)
    deployment.jobs.bill = Use(vcpu_hours=24.0)
    deployment.ended("shop/orders/last.parquet")
    assert begun(deployment.adapters) == {"started": 0, "waiting": 2}
