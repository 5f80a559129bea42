"""`show` and the page say that an ingestion's rows are no longer on main, and why."""

import pytest

from access.ingestions.undone import undone
from dashboard.ingestion import account, facts
from functions.pipeline.start.intake import retract
from lakegate.job.change import retraction
from tests.fakes.deployment import TABLE
from tests.fakes.scenario import Scenario
from tests.unit.pipeline.test_restoration import OTHER, restored

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_retraction_is_named_with_its_state(deployment: Scenario) -> None:
    """It names who asked and why, from the request on until main has lost the rows."""
    file = deployment.ended()
    assert undone(deployment.adapters, file) == ""
    landed = retraction(TABLE, file.id).landed("lake")
    deployment.script(landed, lambda report: report)
    asked = retract(deployment.adapters, file, "Ann", "wrong day")
    assert undone(deployment.adapters, file).startswith(
        f"retraction {asked.id} by Ann: wrong day ("
    )
    deployment.settle()
    assert undone(deployment.adapters, file).endswith("(it is published)")
    assert facts(account(deployment.adapters, file))["removal of rows"] == (
        undone(deployment.adapters, file),
    )


def test_a_retraction_that_is_undone_is_not_named(deployment: Scenario) -> None:
    """Once a restoration brought the rows back, the file is on main like any other."""
    file = deployment.ended()
    landed = retraction(TABLE, file.id).landed("lake")
    deployment.script(landed, lambda report: report)
    retract(deployment.adapters, file, "Ann", "wrong day")
    deployment.settle()
    restored(deployment, file.merge_hash)
    assert undone(deployment.adapters, file) == ""


def test_a_restoration_to_before_it_is_named(deployment: Scenario) -> None:
    """It is named by main's commit and message; a file from before it is not undone."""
    first, second = deployment.ended(), deployment.ended(OTHER)
    done = restored(deployment, first.merge_hash)
    assert undone(deployment.adapters, second).startswith(f"undone by commit {done.merge_hash}: ")
    assert undone(deployment.adapters, first) == ""
    assert "removal of rows" not in facts(account(deployment.adapters, first))
