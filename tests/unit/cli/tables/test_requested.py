"""A command says whose request it continues."""

import pytest
import typer

from cli.tables.requested import follow
from functions.pipeline.start.intake import ask
from lakegate.job.change import Change
from tests.fakes.deployment import TABLE
from tests.fakes.job import rejected
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(("by", "told"), [("Ann", ""), ("Bob", ", requested before by Ann")])
def test_a_second_person_learns_whose_request_it_is(
    deployment: Scenario, capsys: pytest.CaptureFixture[str], by: str, told: str
) -> None:
    """The same request of another person goes on under the name of the first, and says so."""
    for each in ("Ann", by):
        asked = ask(deployment.adapters, Change(TABLE, "DELETE FROM t", "token", each, "old"))
    deployment.settle()
    follow(deployment.adapters, asked, f"change of {TABLE}", by, wait=False, seconds=0)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{asked.id}  change of {TABLE}, {asked.state}{told}"
    assert second == f"Progress: `lakegate show {asked.id[:12]}`"


def test_what_became_of_the_same_request_is_told(
    deployment: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request that was rejected and discarded before is shown so, with its reason and code."""
    change = Change(TABLE, "DELETE FROM t", "token", "Ann", "old")
    deployment.ended()
    deployment.script(change.landed("lake"), rejected)
    deployment.discard(deployment.end_of(ask(deployment.adapters, change)), by="Bob")
    asked = ask(deployment.adapters, change)
    with pytest.raises(typer.Exit) as ended:
        follow(deployment.adapters, asked, f"change of {TABLE}", "Ann", wait=False, seconds=0)
    printed = capsys.readouterr()
    assert printed.out == f"{asked.id}  change of {TABLE}, discarded\n"
    assert "1 of 2 checks failed: id.required" in printed.err
    assert ended.value.exit_code == 3
