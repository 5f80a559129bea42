"""The publication of one file while main changes: a rebase, another run, or a final error."""

from contextlib import suppress
from dataclasses import replace

import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from functions.pipeline.publish import publish
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import SETTINGS, TABLE, Deployment, share_an_intent, wait_together
from tests.fakes.faults import Fault, ProcessDied, die, unavailable
from tests.fakes.promises import check_promises, left_behind

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment where nothing has landed."""
    return Deployment()


def test_only_what_was_audited_is_published(deployment: Deployment) -> None:
    """Rows added to the branch after the audit are not published."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    branch = deployment.ingestion(landed).branch
    deployment.catalog.commit(branch, TABLE, FakeTable("x", ("unaudited",)))
    deployment.settle()
    check_promises(deployment)
    assert deployment.published_files() == [f"s3://landing/{KEY}@v1"]


def test_a_conflict_is_rebased_without_another_run(deployment: Deployment) -> None:
    """Files that land together for one table are all published, with one job run each."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    for n in range(5):
        deployment.land(f"shop/orders/{n}.parquet")
    deployment.settle()
    check_promises(deployment)
    assert len(deployment.published_files()) == 6
    assert len(deployment.jobs.runs()) == 6


def test_a_replaced_branch_is_gone_before_its_successor_is_merged(deployment: Deployment) -> None:
    """The replaced branch is deleted before its successor is merged."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.land(KEY)
    landed = deployment.land("shop/orders/b.parquet")
    deployment.deliver()
    deployment.run_jobs()
    replaced = deployment.ingestion(landed).branch
    seen: list[bool] = []

    def look() -> None:
        moved = deployment.ingestion(landed).branch != replaced
        if moved and not seen:
            seen.append(replaced in deployment.catalog.branches("ingest/"))

    deployment.journal.strike("catalog.merge", Fault(look, times=9))
    deployment.settle()
    check_promises(deployment)
    assert seen == [False]


def test_a_failed_rebase_leaves_no_branch(deployment: Deployment) -> None:
    """A rebase that could not be saved deletes its fresh branch at once."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.land(KEY)
    landed = deployment.land("shop/orders/b.parquet")
    deployment.deliver()
    deployment.run_jobs()
    fault = Fault(lambda: deployment.journal.strike("ledger.save_all", Fault(unavailable)), "after")
    deployment.journal.strike("tables.append_again", fault)
    deployment.deliver()
    assert deployment.ingestion(landed).state is State.AUDITED
    assert deployment.catalog.branches("ingest/") == [deployment.ingestion(landed).branch]
    assert deployment.catalog.branches("publish/") == []
    deployment.settle()
    check_promises(deployment)


def test_a_table_that_changed_too_much_runs_the_job_again(deployment: Deployment) -> None:
    """If main's table cannot take the files as they are, a new attempt is published."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    deployment.deliver()
    assert deployment.catalog.branches("publish/") == []
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.PUBLISHED
    assert ingestion.attempt == 2
    assert [run.name for run in deployment.jobs.runs()] == [f"{ingestion.id}-{n}" for n in (1, 2)]


def test_a_second_attempt_that_is_rejected_leaves_only_its_own_branch(
    deployment: Deployment,
) -> None:
    """A new attempt deletes the branch of the attempt before."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    deployment.deliver()
    (_, second) = deployment.jobs.runs()
    deployment.jobs.end(second.id, RunState.CANCELLED)
    deployment.settle()
    assert deployment.ingestion(landed).state is State.ERRORED
    assert deployment.catalog.branches("ingest/") == [deployment.ingestion(landed).branch]


def test_a_late_event_of_an_earlier_attempt_changes_nothing(deployment: Deployment) -> None:
    """The end of attempt 1, delivered again while attempt 2 runs, does not change attempt 2."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.catalog.commit("main", TABLE, FakeTable("another"))
    deployment.deliver()
    (first, _) = deployment.jobs.runs()
    deployment.send_job_run(first.id)
    deployment.deliver()
    ingestion = deployment.ingestion(landed)
    assert (ingestion.state, ingestion.attempt) == (State.SUBMITTED, 2)


def test_too_many_attempts_are_alerted() -> None:
    """A table that changes during every attempt ends the ingestion errored after all of them."""
    deployment = Deployment(replace(SETTINGS, max_branches=3))
    landed = deployment.land(KEY)
    for attempt in range(1, 4):
        deployment.deliver()
        deployment.run_jobs()
        deployment.catalog.commit("main", TABLE, FakeTable(f"table {attempt}"))
    deployment.settle()
    check_promises(deployment)
    ingestion = deployment.ingestion(landed)
    assert ingestion.reason is not None
    assert ingestion.reason.code == "TOO_MANY_ATTEMPTS"
    assert len(deployment.jobs.runs()) == 3


@pytest.mark.parametrize("last", [0, 1])
def test_a_member_that_is_given_up_names_no_shared_branch(last: int) -> None:
    """A group's member that ends errored names no branch that the other members delete."""
    deployment = Deployment(replace(SETTINGS, max_branches=2))
    landed = wait_together(deployment, 2)
    tried = deployment.ingestion(landed[1 - last])
    deployment.ledger.save(tried.but(tries_from=-1))
    share_an_intent(deployment, landed)
    deployment.others.require_column(TABLE)
    deployment.settle()
    check_promises(deployment)
    assert left_behind(deployment) == []
    ended = [deployment.ingestion(each) for each in landed]
    assert ended[last].state is State.PUBLISHED
    assert (ended[1 - last].state, ended[1 - last].branch) == (State.ERRORED, "")


def test_an_ingestion_that_is_given_up_leaves_no_fresh_branch() -> None:
    """A fresh branch of a process that died is deleted when its ingestion ends."""
    deployment = Deployment(replace(SETTINGS, max_branches=1))
    (landed,) = wait_together(deployment, 1)
    deployment.journal.strike("ledger.save_all", Fault(die))
    with suppress(ProcessDied):
        publish(deployment.adapters, deployment.ingestion(landed))
    assert deployment.catalog.branches("publish/")
    deployment.others.require_column(TABLE)
    deployment.settle()
    check_promises(deployment)
    ended = deployment.ingestion(landed)
    assert ended.reason is not None
    assert ended.reason.code == "TOO_MANY_ATTEMPTS"
    assert deployment.catalog.branches("ingest/", "publish/") == [ended.branch]


def test_a_merged_branch_that_is_gone_was_published(deployment: Deployment) -> None:
    """If the branch was merged and then deleted, main's log decides, and no job runs again."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.journal.strike("catalog.merge", Fault(unavailable, "after"))
    deployment.deliver()
    assert len(deployment.published_files()) == 1
    deployment.catalog.delete_branch(deployment.ingestion(landed).branch)
    deployment.settle()
    check_promises(deployment)
    assert len(deployment.jobs.runs()) == 1


def test_a_lost_branch_runs_the_job_again(deployment: Deployment) -> None:
    """If the branch is gone and nothing was merged, a new attempt is published."""
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.catalog.delete_branch(deployment.ingestion(landed).branch)
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED
