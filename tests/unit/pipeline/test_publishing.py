"""The publication of one file while main changes: once, with audited rows only, or never."""

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion, State
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import ORDERS, OTHER_TABLE, SETTINGS, TABLE
from tests.fakes.faults import Fault, ProcessDied
from tests.fakes.job import crashed
from tests.fakes.promises import check_promises
from tests.fakes.scenario import FIRST, FOREVER, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_conflict_is_rebased_without_another_run(deployment: Scenario) -> None:
    """Files that land together for one table are all published, with one job run each."""
    deployment.ended(FIRST)
    for n in range(5):
        deployment.land(f"shop/orders/{n}.parquet")
    deployment.settle()
    assert len(deployment.published_files()) == len(deployment.jobs.runs()) == 6


def test_first_files_of_a_table_need_one_run_each(deployment: Scenario) -> None:
    """Files that each created the new table on its branch are published with one job run each."""
    landed = [deployment.land(f"shop/orders/{n}.parquet") for n in range(6)]
    deployment.settle()
    assert deployment.on_main(*landed) == [True] * 6
    assert len(deployment.jobs.runs()) == len(deployment.published_files()) == 6


def test_a_failed_rebase_leaves_no_branch(deployment: Scenario) -> None:
    """A rebase that could not be saved deletes its fresh branch at once."""
    deployment.ended(FIRST)
    deployment.land("shop/orders/b.parquet")
    landed = deployment.run()
    fault = Fault(partial(deployment.fail, "ledger.rebase"), "after")
    deployment.journal.strike("tables.append_again", fault)
    deployment.deliver()
    assert deployment.states(landed) == [State.AUDITED]
    own = deployment.ingestion(landed).branch
    assert deployment.catalog.branches("ingest/", "publish/") == [own]


def test_a_table_that_changed_too_much_runs_the_job_again(deployment: Scenario) -> None:
    """If main's table cannot take the files as they are, a new attempt is published."""
    landed = deployment.run()
    deployment.catalog.commit("main", TABLE, FakeTable("another", columns=("other@1",)))
    deployment.deliver()
    assert deployment.catalog.branches("publish/") == []
    ended = deployment.end_of(landed)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)
    assert [run.name for run in deployment.jobs.runs()] == [f"{ended.id}-{n}" for n in (1, 2)]


def without_files(deployment: Scenario, branch: str) -> None:
    """Delete the newest metadata that a branch alone has, and then have the branch back."""
    at = deployment.catalog.head(branch)
    metadata = deployment.catalog.metadata(at, TABLE)
    deployment.catalog.delete_branch(branch)
    deployment.lake.delete_objects([metadata.removeprefix("s3://lake/")])
    deployment.catalog.create_branch(branch)
    deployment.catalog.reset(branch, at)


@pytest.mark.parametrize("branch_is_back", [False, True])
def test_a_branch_without_its_files_runs_the_job_again(
    deployment: Scenario, branch_is_back: bool
) -> None:
    """If the audited rows were deleted before they were merged, the landed file is read again."""
    deployment.ended(FIRST)
    landed = deployment.run()
    branch = deployment.ingestion(landed).branch
    without_files(deployment, branch)
    if not branch_is_back:
        deployment.catalog.delete_branch(branch)
    ended = deployment.end_of(landed)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)


def test_a_refused_branch_without_its_files_runs_the_job_again(deployment: Scenario) -> None:
    """If the files cannot be registered because they are gone, the landed file is read again."""
    first, second = deployment.wait_together(2)
    without_files(deployment, deployment.ingestion(first).branch)
    at = Fault(partial(without_files, deployment, deployment.ingestion(second).branch), "after")
    deployment.journal.strike("tables.rows", at)
    deployment.settle()
    assert [deployment.ingestion(each).attempt for each in (first, second)] == [2, 2]
    assert deployment.on_main(first, second) == [True, True]


def test_too_many_attempts_are_alerted() -> None:
    """A table that changes during every attempt ends the ingestion errored after all of them."""
    deployment = Scenario(replace(SETTINGS, max_branches=3))
    landed = deployment.land("shop/orders/a.parquet")
    for attempt in range(3):
        deployment.go()
        deployment.catalog.commit(
            "main", TABLE, FakeTable(f"table {attempt}", columns=(f"{attempt}@1",))
        )
    deployment.check()
    assert deployment.end(landed) == "errored TOO_MANY_ATTEMPTS"
    assert len(deployment.jobs.runs()) == 3


@pytest.mark.parametrize("last", [0, 1])
def test_a_member_that_is_given_up_names_no_shared_branch(last: int) -> None:
    """A group's member that ends errored names no branch that the other members delete."""
    deployment = Scenario(replace(SETTINGS, max_branches=2))
    landed = deployment.wait_together(2)
    tried = deployment.ingestion(landed[1 - last])
    deployment.ledger.save(tried.but(tries_from=-1))
    deployment.share_an_intent(landed)
    deployment.others.require_column(TABLE)
    deployment.check()
    ended = [deployment.ingestion(each) for each in landed]
    assert ended[last].state is State.PUBLISHED
    assert (ended[1 - last].state, ended[1 - last].branch) == (State.ERRORED, "")


def test_an_ingestion_that_is_given_up_leaves_no_fresh_branch() -> None:
    """A fresh branch of a process that died is deleted when its ingestion ends."""
    deployment = Scenario(replace(SETTINGS, max_branches=1))
    (landed,) = deployment.wait_together(1)
    deployment.kill("ledger.rebase")
    with suppress(ProcessDied):
        deployment.publish(landed)
    assert deployment.catalog.branches("publish/")
    deployment.others.require_column(TABLE)
    deployment.check()
    assert deployment.end(landed) == "errored TOO_MANY_ATTEMPTS"
    own = deployment.ingestion(landed).branch
    assert deployment.catalog.branches("ingest/", "publish/") == [own]


def waiting(deployment: Scenario) -> Ingestion:
    """Return a file that passed its audit and could not be merged into the table yet."""
    deployment.others.append(TABLE)
    landed = deployment.land("shop/orders/a.parquet")
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.go(2)
    deployment.journal.repair("catalog.merge")
    assert deployment.states(landed) == [State.AUDITED]
    return deployment.ingestion(landed)


@pytest.mark.parametrize("table", [TABLE, OTHER_TABLE])
def test_a_branch_that_holds_more_than_its_report_is_not_merged(
    deployment: Scenario, table: str
) -> None:
    """An intent with rows or tables that no report names ends errored; main is unchanged."""
    ingestion = waiting(deployment)
    deployment.others.write_on_branch(ingestion.branch, table)
    hash_ = deployment.catalog.head(ingestion.branch)
    strange = deployment.ledger.save(ingestion.step("x", "2026-03-01T13", audited_hash=hash_))
    main = deployment.catalog.head("main")
    ended = deployment.publish(strange)
    assert deployment.end(ended) == "errored UNAUDITED_ROWS"
    assert deployment.catalog.head("main") == main
    assert ingestion.branch in deployment.catalog.branches("ingest/")
    assert deployment.replay(ended).ingestion.attempt == 2


def test_delete_files_that_a_commit_drops_are_no_rows(deployment: Scenario) -> None:
    """Iceberg drops those that hide nothing any more: the file beside them is published."""
    deployment.others.append(TABLE)
    table = deployment.catalog.table("main", TABLE)
    assert table is not None
    deployment.catalog.commit("main", TABLE, replace(table, hidden=1, added=()))
    ingestion = waiting(deployment)
    written = deployment.catalog.table(ingestion.branch, TABLE)
    assert written is not None
    dropped = replace(written, hidden=0)
    hash_ = deployment.catalog.commit(ingestion.branch, TABLE, dropped, registers=True)
    audited = deployment.ledger.save(ingestion.step("x", "2026-03-01T13", audited_hash=hash_))
    assert deployment.end(deployment.publish(audited)) == "published"


def test_an_earlier_attempt_on_main_is_not_registered_again(deployment: Scenario) -> None:
    """If main took an earlier attempt's intent meanwhile, the next attempt ends published."""
    first = waiting(deployment)
    deployment.others.drop_branch(first.branch)
    deployment.publish(first)  # not on main, and the branch is gone: the job runs again
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.run_jobs()
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    second = deployment.ingestion(first.landed)
    assert (second.state, second.attempt) == (State.AUDITED, 2)
    late = deployment.merge_late([first])
    ended = deployment.publish(second)
    assert (ended.state, ended.merge_hash) == (State.PUBLISHED, late)
    assert deployment.on_main(first) == [True]


def test_an_earlier_attempt_on_main_runs_no_job_again(deployment: Scenario) -> None:
    """If main took the earlier intent before the next branch was created, no job runs again."""
    first = waiting(deployment)
    deployment.others.drop_branch(first.branch)
    deployment.journal.strike("ledger.save", Fault(lambda: deployment.merge_late([first]), "after"))
    ended = deployment.publish(first)
    assert ended.state is State.PUBLISHED
    assert len(deployment.jobs.runs("2000")) == 1
    assert deployment.on_main(first) == [True]


def test_what_main_takes_as_it_is_given_up_ends_as_published() -> None:
    """A process that hangs before its merge has the last word about what another one gave up."""
    deployment = Scenario(replace(SETTINGS, max_branches=1))
    deployment.ended(FIRST)
    landed = deployment.run()

    def given_up() -> None:
        deployment.replace_rows("upsert")
        assert deployment.publish(landed).reason_code == "TOO_MANY_ATTEMPTS"

    deployment.journal.strike("catalog.merge", Fault(given_up))
    deployment.deliver()
    assert deployment.on_main(landed) == [True]
    deployment.settle()
    ended = deployment.ingestion(landed)
    assert (ended.state, ended.reason, ended.alerted) == (State.PUBLISHED, None, True)
    assert "Published after all" in deployment.told()[-1]
    check_promises(deployment)


def test_what_main_took_needs_no_contract_any_more(deployment: Scenario) -> None:
    """A file whose contract is broken as it is merged ends as published, not as errored."""
    deployment.ended(FIRST)
    first = deployment.run()
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    audited = deployment.ingestion(first)
    deployment.upload_contract(ORDERS.replace("integer", "no type"))
    deployment.journal.strike("ledger.save", Fault(lambda: deployment.merge_late([audited])))
    ended = deployment.publish(audited)
    assert (ended.state, ended.reason) == (State.PUBLISHED, None)
    assert facts(ended) == facts(audited)
    assert deployment.on_main(first) == [True]


def test_a_replay_of_what_is_on_main_publishes_nothing(deployment: Scenario) -> None:
    """A replay of a file that ended errored, although main took it late, finds it on main."""
    first = waiting(deployment)
    deployment.others.drop_branch(first.branch)
    deployment.script(first.landed, crashed)
    deployment.publish(first)
    failed = deployment.end_of(first.landed)
    assert failed.state is State.ERRORED
    late = deployment.merge_late([first])
    ended = deployment.replay(failed).ingestion
    assert (ended.state, ended.merge_hash) == (State.PUBLISHED, late)
    assert facts(ended) == facts(first)
    assert deployment.on_main(first) == [True]


def facts(ingestion: Ingestion) -> tuple[object, ...]:
    """Return what later versions, retractions and the history go by."""
    return ingestion.report_key, ingestion.job_run, ingestion.audited_hash, ingestion.audit.rows


def test_members_on_main_end_and_the_others_run_again(deployment: Scenario) -> None:
    """If main took the older intent of one member, its rows do not come again with the group."""
    landed = deployment.wait_together(3)
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

    deployment.journal.strike("ledger.rebase", Fault(taken, "after"))
    deployment.publish(landed[0])
    states = [deployment.ingestion(each).state for each in landed]
    assert states == [State.SUBMITTED, State.PUBLISHED, State.SUBMITTED]
    deployment.settle()
    assert all(deployment.on_main(*landed))


def test_rows_that_main_lost_do_not_come_back() -> None:
    """A branch created before main was set back is not merged: its job runs again."""
    deployment = Scenario()
    deployment.others.append(TABLE)
    before = deployment.catalog.head("main")
    withdrawn = deployment.ended("shop/orders/withdrawn.parquet")
    ingestion = waiting(deployment)
    deployment.catalog.reset("main", before)
    ended = deployment.end_of(ingestion.landed)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 2)
    assert deployment.on_main(withdrawn, ingestion) == [False, True]


def test_little_of_mains_log_is_remembered() -> None:
    """Of main's log the last hundred commits are remembered: each may have a megabyte of names."""
    one = dict.fromkeys(("id", "object", "version", "report", "contract", "job_run"), "")
    named = [json.dumps([{**one, "audited_hash": "", "rows": rows}]) for rows in range(102)]
    log = [Commit("", "", "", {merge_commit.INGESTIONS: text}, "", "") for text in named]
    first, *_, last = map(merge_commit.published, log)
    assert merge_commit.published(log[-1]) is last
    assert merge_commit.published(log[0]) is not first
