"""`lakegate log` lists main's commits of a table."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from access.tables.history import TableCommit, commits
from cli.console.options import since
from cli.tables import log
from functions.model.commits import Commit
from functions.model.decisions import Approval, Decisions
from functions.model.merge_commit import message, properties
from lakegate.errors import LakegateError
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.job import ROWS
from tests.unit.cli.cli_examples import PUBLISHED
from tests.unit.cli.shown import shown


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment with two published files of one table."""
    made = Deployment()
    for name in ("a", "b"):
        made.land(f"shop/orders/{name}.parquet")
        made.settle()
    return made


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the machine into another time zone than UTC."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_a_log_has_the_commits_of_its_table(deployment: Deployment) -> None:
    """Main's commits of the table are listed, newest first, with what they published."""
    deployment.catalog.append("main", "shop.returns", "s3://lake/other.parquet")
    ours = [each for each in commits(deployment.adapters, TABLE, 20) if each.ingestions]
    assert [each.ingestions[0].object[-9:] for each in ours] == ["b.parquet", "a.parquet"]
    assert [each.rows for each in ours] == [ROWS, ROWS]
    assert len(commits(deployment.adapters, TABLE, 1)) == 1


def test_a_decision_is_in_the_log(deployment: Deployment) -> None:
    """A commit of an approved file says by whom and why, and which command tells more."""
    approval = Approval("Ada", "a refund", "2026", ())
    members = [replace(PUBLISHED, decisions=Decisions(approval=approval))]
    commit = Commit("c0ffee", "", message(members), properties(members), "lakegate", "2026-03-01")
    text = shown(log.log_of([TableCommit.of(commit, TABLE)]))
    assert "+1,842 Publish 1,842 rows of [red] März.csv to shop.orders" in text
    assert "approved by Ada: a refund" in text
    assert "`lakegate show 0123456789ab`" in text


@pytest.mark.usefixtures("new_york")
def test_a_time_of_the_log_means_the_same_in_other_commands(deployment: Deployment) -> None:
    """A commit's time, given to `--since` or `restore --to`, is that time in any zone."""
    (commit,) = commits(deployment.adapters, TABLE, 1)
    copied = shown(log.log_of([commit])).partition(commit.hash[:12])[0].split()[-1]
    assert since(copied)[:19] == commit.time[:19]


def test_an_unknown_table_has_no_log(deployment: Deployment) -> None:
    """A table without a commit on main is refused with the command that lists the tables."""
    with pytest.raises(LakegateError, match="lakegate tables"):
        commits(deployment.adapters, "shop.nothing", 20)
