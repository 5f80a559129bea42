"""Main gets each file once, only audited rows, and no rows that it lost."""

from collections.abc import Callable, Iterator

import pytest

from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.failed import replay
from functions.pipeline.publish import publish
from functions.telemetry import logger
from lakegate.landing import LandedObject
from tests.fakes.deployment import OTHER_TABLE, TABLE, Deployment, wait_together
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import crashed
from tests.fakes.promises import check_promises, left_behind

KEY = "shop/orders/a.parquet"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Return a deployment whose main has the table; check every promise at the end."""
    deployment = Deployment()
    deployment.others.append(TABLE)
    level = logger.log_level
    logger.setLevel("CRITICAL")
    yield deployment
    logger.setLevel(level)
    deployment.settle()
    check_promises(deployment)
    assert left_behind(deployment) == []


def audited(deployment: Deployment) -> Ingestion:
    """Return a file that passed its audit and could not be merged yet."""
    landed = deployment.land(KEY)
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=float("inf")))
    for _ in range(2):
        deployment.deliver()
        deployment.run_jobs()
    deployment.journal.repair("catalog.merge")
    ingestion = deployment.ingestion(landed)
    assert ingestion.state is State.AUDITED
    return ingestion


def merged_late(deployment: Deployment, ingestion: Ingestion) -> str:
    """Let a process that hung before its merge continue, and restore its branch."""
    deployment.catalog.create_branch(ingestion.branch)
    intent, base = ingestion.intent, ingestion.base_hash
    named = merge_commit.properties([ingestion])
    return deployment.catalog.merge(intent.branch, intent.hash, base, "late", named)


def files(deployment: Deployment, landed: LandedObject) -> list[str]:
    """Return the data files on main that hold a landed object's rows."""
    return [
        file for file in deployment.published_files() if file == f"{landed.uri}@{landed.version}"
    ]


def _rows(deployment: Deployment, branch: str) -> str:
    deployment.others.write_on_branch(branch, TABLE)
    return deployment.catalog.head(branch)


def _table(deployment: Deployment, branch: str) -> str:
    deployment.others.write_on_branch(branch, OTHER_TABLE)
    return deployment.catalog.head(branch)


@pytest.mark.parametrize("write", [_rows, _table], ids=["rows", "another table"])
def test_a_branch_that_holds_more_than_its_report_is_not_merged(
    deployment: Deployment, write: Callable[[Deployment, str], str]
) -> None:
    """An intent with rows or tables that no report names ends errored; main is unchanged."""
    ingestion = audited(deployment)
    hash_ = write(deployment, ingestion.branch)
    strange = deployment.ledger.save(ingestion.step("x", "2026-03-01T13", audited_hash=hash_))
    main = deployment.catalog.head("main")
    ended = publish(deployment.adapters, strange)
    assert (ended.state, ended.reason and ended.reason.code) == (State.ERRORED, "UNAUDITED_ROWS")
    assert deployment.catalog.head("main") == main
    assert ingestion.branch in deployment.catalog.branches("ingest/")
    assert replay(deployment.adapters, ended).ingestion.attempt == 2


def test_an_earlier_attempt_on_main_is_not_registered_again(
    deployment: Deployment,
) -> None:
    """If main took an earlier attempt's intent meanwhile, the next attempt ends published."""
    first = audited(deployment)
    deployment.others.drop_branch(first.branch)
    publish(deployment.adapters, first)  # not on main, and the branch is gone: the job runs again
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=float("inf")))
    deployment.run_jobs()
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    second = deployment.ingestion(first.landed)
    assert (second.state, second.attempt) == (State.AUDITED, 2)
    late = merged_late(deployment, first)
    ended = publish(deployment.adapters, second)
    assert (ended.state, ended.merge_hash) == (State.PUBLISHED, late)
    assert len(files(deployment, first.landed)) == 1


def test_an_earlier_attempt_on_main_runs_no_job_again(
    deployment: Deployment,
) -> None:
    """If main took the earlier intent before the next branch was created, no job runs again."""
    first = audited(deployment)
    deployment.others.drop_branch(first.branch)
    deployment.journal.strike("ledger.save", Fault(lambda: merged_late(deployment, first), "after"))
    ended = publish(deployment.adapters, first)
    assert ended.state is State.PUBLISHED
    assert len(deployment.jobs.runs("2000")) == 1
    assert len(files(deployment, first.landed)) == 1


def test_a_replay_of_what_is_on_main_publishes_nothing(deployment: Deployment) -> None:
    """A replay of a file that ended errored, although main took it late, finds it on main."""
    first = audited(deployment)
    deployment.others.drop_branch(first.branch)
    deployment.script(first.landed, crashed)
    publish(deployment.adapters, first)
    deployment.settle()
    failed = deployment.ingestion(first.landed)
    assert failed.state is State.ERRORED
    late = merged_late(deployment, first)
    ended = replay(deployment.adapters, failed).ingestion
    assert (ended.state, ended.merge_hash) == (State.PUBLISHED, late)
    assert len(files(deployment, first.landed)) == 1


def test_members_on_main_end_and_the_others_run_again(deployment: Deployment) -> None:
    """If main took the older intent of one member, its rows do not come again with the group."""
    landed = wait_together(deployment, 3)
    older = deployment.ingestion(landed[1])

    def taken() -> None:
        branch = f"{older.branch}-by-hand"
        base = deployment.catalog.create_branch(branch)
        audited = deployment.catalog.table(older.audited_hash, TABLE)
        current = deployment.catalog.table("main", TABLE)
        assert audited
        assert current
        at = deployment.catalog.commit(branch, TABLE, current.append(*audited.added))
        deployment.catalog.merge(branch, at, base, "late", merge_commit.properties([older]))
        deployment.catalog.delete_branch(branch)

    deployment.journal.strike("ledger.save_all", Fault(taken, "after"))
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    states = [deployment.ingestion(each).state for each in landed]
    assert states == [State.SUBMITTED, State.PUBLISHED, State.SUBMITTED]
    deployment.settle()
    assert [len(files(deployment, each)) for each in landed] == [1, 1, 1]


def test_rows_that_main_lost_do_not_come_back() -> None:
    """A branch created before main was set back is not merged: its job runs again."""
    deployment = Deployment()
    deployment.others.append(TABLE)
    before = deployment.catalog.head("main")
    withdrawn = deployment.land("shop/orders/withdrawn.parquet")
    deployment.settle()
    ingestion = audited(deployment)
    deployment.catalog.reset("main", before)
    deployment.settle()
    ended = deployment.ingestion(ingestion.landed)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)
    assert files(deployment, withdrawn) == []
    assert len(files(deployment, ingestion.landed)) == 1
