"""The rows that main lost when it was set back, which can be replayed once or discarded."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.failed import Outcome, discard, replay
from functions.operations.reconcile.compare import reconciled
from lakegate.errors import LakegateError
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.promises import check_promises, unwatched
from tests.fakes.scenario import Scenario

KEY = "shop/orders/b.parquet"


def put_back() -> tuple[Scenario, Ingestion]:
    """Return a deployment whose main was set back before the second file, and that file."""
    deployment = Scenario()
    deployment.ended("shop/orders/a.parquet")
    lost = deployment.ended(KEY)
    log = {commit.hash: commit for commit in deployment.catalog.log()}
    deployment.catalog.reset("main", log[lost.merge_hash].parent)
    sent = deployment.announcements.sent  # of commits that main has lost there is nothing to check
    sent[:] = [each for each in sent if each.ingestion != lost.id]
    deployment.clock.pass_(24 * 3600)
    return deployment, lost


def codes(deployment: Scenario) -> list[str]:
    """Return the problems that reconcile finds."""
    return [each.code for each in reconciled(unwatched(deployment)).problems]


def test_a_replay_brings_the_rows_back_once() -> None:
    """Reconcile names the file and the command; after the replay all is right."""
    deployment, lost = put_back()
    [problem] = reconciled(unwatched(deployment)).problems
    assert (problem.code, problem.ingestion) == ("NOT_ON_MAIN", lost.id)
    assert f"`lakegate replay {lost.id}`" in problem.message
    replay(deployment.adapters, lost, by="Ann")
    deployment.settle()
    found = deployment.ledger.get(lost.id)
    assert (found.state, found.attempt, found.cleaned) == (State.PUBLISHED, 2, True)
    assert len(deployment.published_files()) == 2
    assert codes(deployment) == []
    check_promises(deployment)
    failed, recovered = (alert.text for _, alert in deployment.alerts.posted)
    assert failed.startswith("shop.orders: b.parquet errored, main no longer has commit ")
    assert failed.endswith("…; gone from main")
    assert recovered == "Published after replay by Ann: b.parquet"


def test_a_discard_accepts_that_the_rows_are_gone() -> None:
    """After a discard the loss is accepted, and reconcile finds nothing."""
    deployment, lost = put_back()
    discard(deployment.adapters, lost, by="Ann")
    deployment.check()
    found = deployment.ledger.get(lost.id)
    assert (found.state, found.decisions.discarded, found.audit.rows) == (State.ERRORED, True, 0)
    assert found.reason
    assert found.reason.code == "WITHDRAWN"
    assert len(deployment.published_files()) == 1
    assert codes(deployment) == []


@pytest.mark.parametrize("act", [replay, discard])
def test_rows_that_are_on_main_all_the_same_are_not_brought_again(act: partial[Outcome]) -> None:
    """If main lists its data file under another commit, that file must be removed first."""
    deployment, lost = put_back()
    table = deployment.catalog.table("main", TABLE)
    assert isinstance(table, FakeTable)
    [file] = deployment.lake.report(lost.report_key).files
    deployment.catalog.commit("main", TABLE, table.append(file.path))
    with pytest.raises(LakegateError, match=r"ROWS_ON_MAIN.*remove that file from the table first"):
        act(deployment.adapters, lost)
    assert deployment.ledger.get(lost.id) == lost


def test_a_file_without_its_report_is_not_replayed() -> None:
    """Without its audit report its data files are unknown, so a replay is refused."""
    deployment, lost = put_back()
    deployment.lake.lose(lost.report_key)
    with pytest.raises(LakegateError, match=r"ROWS_ON_MAIN.*report is gone"):
        deployment.replay(lost)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_anywhere_doubles_and_loses_nothing(kind: str) -> None:
    """After a fault at any call the repeated command and the sweep publish the rows once."""
    undisturbed, lost = put_back()
    undisturbed.journal.calls.clear()
    replay(undisturbed.adapters, lost)
    for number in range(len(undisturbed.journal.calls)):
        deployment, lost = put_back()
        begun = len(deployment.journal.calls)
        deployment.journal.strike_at(begun + number, Fault(*KINDS[kind]))
        for _ in range(2):
            deployment.journal.part()
            with suppress(LakegateError, ProcessDied):
                replay(deployment.adapters, deployment.ledger.get(lost.id))
        deployment.settle()
        assert len(deployment.published_files()) == 2
        check_promises(deployment)
        assert codes(deployment) == []


@pytest.mark.parametrize("decide", [Scenario.replay, Scenario.discard])
def test_the_second_of_two_decisions_is_refused(decide: Callable[..., Outcome]) -> None:
    """The second decision is outdated, changes nothing, and names who was faster."""
    deployment, lost = put_back()
    deployment.replay(lost, by="Ann")
    with pytest.raises(LakegateError, match=r"MOVED_ON: .* attempt 2, replayed by Ann"):
        decide(deployment, lost, by="Bob")
    deployment.settle()
    assert len(deployment.published_files()) == 2


def test_a_branch_from_before_does_not_bring_the_rows_back_besides(deployment: Scenario) -> None:
    """An older branch published meanwhile is not doubled by a replay."""
    first, lost = (deployment.land(f"shop/orders/{name}.parquet") for name in "ab")
    deployment.settle()
    late = deployment.run("shop/orders/c.parquet")
    gone = deployment.ingestion(lost)
    log = {commit.hash: commit for commit in deployment.catalog.log()}
    deployment.catalog.reset("main", log[gone.merge_hash].parent)
    sent = deployment.announcements.sent
    sent[:] = [each for each in sent if each.ingestion != gone.id]
    deployment.settle()
    assert deployment.published_files() == [f"{each.uri}@v1" for each in (first, late)]
    assert codes(deployment) == ["NOT_ON_MAIN"]
    deployment.replay(gone)
    deployment.settle()
    assert deployment.published_files() == [f"{each.uri}@v1" for each in (first, lost, late)]
    assert codes(deployment) == []
