"""Files that replace rows by their key come to main in turns: many files, one job, one commit."""

import pytest

from functions.model import merge_commit, queueing
from functions.model.ingestion import Ingestion, State
from functions.operations.reconcile.compare import reconciled
from functions.operations.recovery.rebuild_ledger import rebuild
from lakegate.job.landing import LandedObject
from lakegate.text import count
from tests.fakes.deployment import TABLE
from tests.fakes.job import ROWS, Script, passed, rejected, warned
from tests.fakes.promises import unwatched
from tests.fakes.scenario import FIRST, Scenario

pytestmark = pytest.mark.usefixtures("quiet")
_NAMES = "bcde"


@pytest.fixture
def deployment(deployment: Scenario) -> Scenario:
    """Return a deployment with a shared run, and with a table into which files are upserted."""
    deployment.share(1)
    deployment.replace_rows("upsert")
    return deployment


def turn(deployment: Scenario, **scripts: Script) -> list[LandedObject]:
    """Land a file, and while it is ingested others, which wait for it; publish the first."""
    deployment.land(FIRST)
    deployment.deliver()
    keys = {name: f"shop/orders/{name}.parquet" for name in _NAMES}
    found = [deployment.land(keys[n], script=scripts.get(n, passed)) for n in _NAMES]
    deployment.deliver()
    assert all(queueing.is_held(deployment.ingestion(each)) for each in found)
    deployment.run_jobs()
    deployment.deliver()
    return found


def parted(deployment: Scenario) -> list[LandedObject]:
    """Queue a turn of two files, between which another one landed whose event has not come."""
    deployment.land(FIRST)
    deployment.deliver()
    before = deployment.land("shop/orders/b.parquet")
    late = deployment.land_unannounced("shop/orders/c.parquet")
    after = deployment.land("shop/orders/d.parquet")
    deployment.go()
    deployment.deliver()
    assert deployment.ingestion(after).is_shared
    return [before, late, after]


def commits(deployment: Scenario) -> list[list[str]]:
    """Return the names of the files in each commit of main, in their order."""
    log = list(deployment.catalog.log())[::-1]
    named = [merge_commit.published(commit) for commit in log]
    return [[each.object[-9] for each in files] for files in named if files]


def known(deployment: Scenario, files: list[LandedObject]) -> list[Ingestion]:
    return [deployment.ingestion(each) for each in files]


def test_files_that_wait_are_one_message_and_one_commit(deployment: Scenario) -> None:
    """The files behind the first one come in one message, and to main in one commit, in order."""
    files = turn(deployment)
    assert {each.is_shared for each in known(deployment, files)} == {True}
    assert deployment.adapters.work.size() == 1
    deployment.check()
    done = known(deployment, files)
    assert [(each.state, each.attempt) for each in done] == [(State.PUBLISHED, 1)] * 4
    assert commits(deployment) == [["t"], [*_NAMES]]
    assert [each.audit.rows for each in done] == [ROWS] * 4


def test_each_file_of_a_turn_has_its_verdict(deployment: Scenario) -> None:
    """A file that fails a check is rejected with an alert, and the others come without it."""
    files = turn(deployment, c=rejected)
    deployment.check()
    states = [each.state for each in known(deployment, files)]
    assert states == [State.PUBLISHED, State.REJECTED, State.PUBLISHED, State.PUBLISHED]
    assert commits(deployment) == [["t"], ["b", "d", "e"]]
    assert len(deployment.told()) == 1


def test_turns_are_shorter_where_files_end_them(deployment: Scenario) -> None:
    """Where each file ends its turn, few files are held again often."""
    deployment.land(FIRST)
    deployment.deliver()
    files = [deployment.land(f"shop/orders/{n:02}.parquet", script=warned) for n in range(30)]
    deployment.check()
    done = known(deployment, files)
    assert {each.state for each in done} == {State.PUBLISHED}
    assert sum(each.attempt - 1 for each in done) < 5 * len(files)
    assert max(each.attempt for each in done) < 9


def test_a_file_that_comes_late_is_let_in_between(deployment: Scenario) -> None:
    """If a file is found that belongs between those of a turn, the turn runs again with it."""
    before, late, after = parted(deployment)
    deployment.send_upload(late)
    deployment.deliver()
    deployment.check()
    assert [each.state for each in known(deployment, [before, late, after])] == [
        State.PUBLISHED
    ] * 3
    assert [name for names in commits(deployment) for name in names] == ["t", "b", "c", "d"]


def test_what_main_refuses_of_a_turn_runs_again_whole(deployment: Scenario) -> None:
    """If main's table has changed, all files of the turn are merged into the new one, together."""
    files = turn(deployment)
    deployment.run_jobs()
    deployment.others.append(TABLE)
    deployment.check()
    done = known(deployment, files)
    assert [(each.state, each.attempt) for each in done] == [(State.PUBLISHED, 2)] * 4
    assert commits(deployment) == [["t"], [*_NAMES]]


@pytest.mark.parametrize("settings", [{"write": "spark"}, {"extraColumns": "add"}])
def test_files_that_cannot_be_merged_together_come_one_by_one(
    deployment: Scenario, settings: dict[str, str]
) -> None:
    """A contract that needs its files one at a time has turns of one file: none is tried twice."""
    deployment.replace_rows("upsert", **settings)
    files = turn(deployment)
    deployment.check()
    done = known(deployment, files)
    assert [(each.state, each.attempt) for each in done] == [(State.PUBLISHED, 1)] * 4
    assert commits(deployment) == [["t"], *([name] for name in _NAMES)]


def test_the_log_and_a_rebuilt_ledger_know_each_file_of_a_turn(deployment: Scenario) -> None:
    """Main's log has the counts of each file of a turn, and reconcile and rebuild agree."""
    done = known(deployment, turn(deployment, c=rejected))
    deployment.settle()
    done = [deployment.ingestion(each) for each in done]
    commit = merge_commit.commit_of(deployment.catalog.log(), done[0])
    updated = sum(each.audit.updated_rows for each in done if each.state is State.PUBLISHED)
    words = f"{count(3 * ROWS - updated, 'row')} inserted, {updated} updated, 0 deleted"
    assert updated > 0
    assert commit.message == f"Publish 3 files to shop.orders: {words}"
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks) == ((), ())
    deployment.ledger.lose(done[3].id)
    (again,) = rebuild(deployment.adapters)
    names = ("id", "state", "audit", "terms", "merge_hash")
    assert [getattr(again, name) for name in names] == [getattr(done[3], name) for name in names]
