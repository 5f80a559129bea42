"""Shared runs: many files in one run, a verdict for each, each on main once."""

import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest

from functions.adapters.emr import RunState
from functions.model.ingestion import State
from functions.pipeline.start.intake import take_in
from functions.pipeline.start.shared_runs import MOST_AGAIN, Queued, run_ended
from functions.sweep import sweep
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import ORDERS, OTHER_TABLE, RETURNS, SETTINGS
from tests.fakes.events import KEYS, Deliver, Land, RunJob, Share, SharedRunDies, Time
from tests.fakes.job import Script, errored, passed
from tests.fakes.machine import tell
from tests.fakes.metrics import metrics_of
from tests.fakes.openings import A_TABLE
from tests.fakes.openings import SHARED as FILES_IN_THE_QUEUE
from tests.fakes.scenario import Scenario
from tests.fakes.stage import File, Story

SHARED = replace(SETTINGS, shared_runs=1)
MANY = 30
_A_BAD_FILE: Story = (Land(KEYS[2], File.REJECTED), Deliver())
_LATER: Story = (Time.COURSE, Time.COURSE, Land(KEYS[1]))
_CALLS = 35  # of a run that takes these files, to work queue, branches, reports and verdicts


@pytest.fixture
def deployment() -> Iterator[Scenario]:
    """Yield a deployment with shared runs; at rest it must keep every promise."""
    deployment = Scenario(SHARED)
    yield deployment
    deployment.check()


def land(deployment: Scenario, count: int = MANY, script: Script = passed) -> list[LandedObject]:
    return [deployment.land(f"shop/orders/{n}.parquet", script=script) for n in range(count)]


def test_one_run_and_one_merge_publish_many_files(deployment: Scenario) -> None:
    """Files that wait together are published by one run and one commit on main."""
    landed = land(deployment)
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED] * MANY
    assert deployment.on_main(*landed) == [True] * MANY
    assert len(deployment.jobs.runs()) == 1
    assert len({deployment.ingestion(each).merge_hash for each in landed}) == 1


def test_a_late_report_of_an_earlier_attempt_is_recorded() -> None:
    """A run that reports on files which have got runs of their own meanwhile keeps its results."""
    tell((*FILES_IN_THE_QUEUE, Share(0), Time.SWEEP, RunJob(0)))


@pytest.mark.parametrize("more", [False, True], ids=["no other run", "another run up"])
def test_a_run_that_ended_before_its_verdict_is_recorded_is_named(
    deployment: Scenario, more: bool
) -> None:
    """An ingestion names its run although the run's slot is free again, or has the next run."""
    landed = land(deployment)
    deployment.deliver()
    (run,) = deployment.jobs.shared_runs()
    deployment.run_shared(run)
    if more:
        take_in(deployment.adapters, deployment.land("shop/orders/more.parquet"))
    deployment.jobs.end(run, RunState.SUCCESS)
    run_ended(deployment.adapters, deployment.jobs.get(run))
    assert len(deployment.jobs.shared_runs()) == more
    deployment.settle()
    assert {deployment.ingestion(each).job_run for each in landed} == {run}


@pytest.mark.parametrize("state", [RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED])
def test_a_run_that_dies_is_counted(
    deployment: Scenario,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    state: RunState,
) -> None:
    """The metric that an alarm watches counts the runs that did not end by success."""
    monkeypatch.setenv("LAKEGATE_STAGE", "test")
    land(deployment, 1)
    deployment.deliver()
    (run,) = deployment.jobs.shared_runs()
    deployment.jobs.end(run, state)
    ended = deployment.jobs.get(run)
    found = metrics_of(lambda: run_ended(deployment.adapters, ended), capsys)
    counted = [each for each in found if each[0] == "SharedRunsFailed"]
    alarmed = ("SharedRunsFailed", 1, {"service": "lakegate", "stage": "test"})
    assert counted == ([] if state is RunState.SUCCESS else [alarmed])


def test_a_run_is_apart_from_tables_of_own_runs(deployment: Scenario) -> None:
    """A shared run names the tables with `isolation: own`; an invalid contract stops no run."""
    own = "customProperties: [{property: isolation, value: own},"
    text = RETURNS.replace("customProperties: [", own)
    deployment.lake.put_text("contracts/shop.returns.yaml", text.encode())
    deployment.lake.put_text("contracts/bad.yaml", RETURNS.replace("integer", "intger").encode())
    deployment.land("shop/orders/1.parquet")
    deployment.deliver()
    (run,) = deployment.jobs.shared_runs()
    assert deployment.jobs.shared_run(run).apart == ("shop.returns",)


@pytest.mark.parametrize("spaces", [1, 50], ids=["its namespace", "all"])
def test_a_file_that_no_shared_run_may_touch_does_not_wait_for_one(
    deployment: Scenario, spaces: int
) -> None:
    """Its own run is its first attempt; a shared run that could touch no table is not started."""
    for number in range(50):
        table = f"{'shop' if number % spaces == 0 else f'hr{number}'}.own{number}"
        own = "customProperties: [{property: isolation, value: own},"
        text = RETURNS.replace("customProperties: [", own).replace("shop.returns", table)
        deployment.lake.put_text(f"contracts/{table}.yaml", text.encode())
    landed = land(deployment, 3)
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED] * 3
    found = [deployment.ingestion(each) for each in landed]
    assert [(each.attempt, each.failures, each.is_shared) for each in found] == [(1, 0, False)] * 3
    assert len(deployment.jobs.runs()) == len(landed) + (spaces == 1)


@pytest.mark.parametrize("apart", [False, True])
def test_a_file_that_reads_other_tables_needs_a_run_with_rights_to_all(
    deployment: Scenario, *, apart: bool
) -> None:
    """A query may read any table: its file shares a run, unless a table is apart from that."""
    rule = "quality: [{type: sql, query: SELECT 1, mustBe: 1}], required: true"
    deployment.upload_contract(ORDERS.replace("required: true", rule))
    if apart:
        own = "customProperties: [{property: isolation, value: own},"
        deployment.upload_contract(RETURNS.replace("customProperties: [", own), OTHER_TABLE)
    landed = land(deployment, 2)
    deployment.deliver()
    found = [deployment.ingestion(each) for each in landed]
    assert [(each.is_shared, each.attempt) for each in found] == [(not apart, 1)] * 2
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED] * 2


def test_a_report_that_nobody_can_read_ends_the_file_without_its_message(
    deployment: Scenario,
) -> None:
    """The sweep records the error where the message of the verdict was lost, too."""
    landed = deployment.land(KEYS[0])
    deployment.deliver()
    deployment.lake.put_text(deployment.ingestion(landed).report_key, b"{}")
    deployment.work.lose()
    deployment.settle()
    assert deployment.end(landed) == "errored BAD_REPORT"


def test_a_file_that_lands_as_the_run_ends_is_taken_by_the_next(deployment: Scenario) -> None:
    """No file waits for a run that has ended."""
    first = deployment.land("shop/orders/first.parquet")
    deployment.deliver()
    (run,) = deployment.jobs.shared_runs()
    second = deployment.land("shop/orders/second.parquet")
    deployment.jobs.end(run, RunState.SUCCESS)
    deployment.deliver()
    assert not deployment.jobs.shared_runs()
    deployment.send_job_run(run)
    deployment.settle()
    assert deployment.states(first, second) == [State.PUBLISHED] * 2


def test_a_file_after_an_error_has_a_run_of_its_own(deployment: Scenario) -> None:
    """What ended as an error may have killed a shared run, so its replay joins no other."""
    (bad,) = land(deployment, 1, errored)
    assert deployment.end_of(bad).state is State.ERRORED
    assert deployment.ingestion(bad).is_shared
    deployment.replay(bad)
    deployment.deliver()
    replayed = deployment.ingestion(bad)
    assert (replayed.state, replayed.is_shared) == (State.SUBMITTED, False)


def test_isolation_counts_from_its_contract_on(deployment: Scenario) -> None:
    """A file waits for no shared run though one is up that had rights to its table before."""
    deployment.submit()
    own = "customProperties: [{property: isolation, value: own}]\n"
    deployment.upload_contract(ORDERS + own)
    later = deployment.submit("shop/orders/b.parquet")
    assert len(deployment.jobs.shared_runs()) == 1
    assert (later.state, later.is_shared) == (State.SUBMITTED, False)


def test_the_next_run_starts_as_one_ends_while_files_wait(deployment: Scenario) -> None:
    """Files wait for no sweep, nor for another upload, where a run ended before it took them."""
    land(deployment)
    deployment.deliver()
    (run,) = deployment.jobs.shared_runs()
    deployment.jobs.end(run, RunState.FAILED)
    run_ended(deployment.adapters, deployment.jobs.get(run))
    (following,) = deployment.jobs.shared_runs()
    deployment.work.lose()
    deployment.jobs.end(following, RunState.SUCCESS)
    run_ended(deployment.adapters, deployment.jobs.get(following))
    assert deployment.jobs.shared_runs() == []


def test_a_burst_starts_the_runs_that_it_needs_as_it_lands() -> None:
    """Uploads start a run for each 250 waiting files, without waiting for a sweep."""
    deployment = Scenario(replace(SHARED, shared_runs=5))
    land(deployment, 251)
    deployment.deliver()
    assert len(deployment.jobs.shared_runs()) == 1
    deployment.clock.pass_(11)
    deployment.land("shop/orders/last.parquet")
    deployment.deliver()
    assert len(deployment.jobs.shared_runs()) == 2


@pytest.mark.parametrize(("files", "again"), [(MANY, MANY), (MOST_AGAIN + 1, MOST_AGAIN)])
def test_one_sweep_queues_all_files_again_that_it_has_time_for(
    deployment: Scenario, files: int, again: int
) -> None:
    """No file waits for another sweep because one before it was queued again."""
    land(deployment, files)
    deployment.deliver()
    deployment.work.lose()
    deployment.sweep()
    assert deployment.work.size() == again


@pytest.mark.usefixtures("quiet")
def test_a_backlog_is_queued_once_however_long_it_takes(deployment: Scenario) -> None:
    """Files whose messages are all there are not queued again, though they wait for hours."""
    land(deployment, 20)
    deployment.deliver()
    for _ in range(3):
        deployment.clock.pass_(3700)
        deployment.sweep()
        assert deployment.work.size() == 20


def test_files_that_wait_take_no_memory_of_the_sweep(deployment: Scenario) -> None:
    """However many files wait, only those are kept of which one sweep may queue messages again."""
    (landed,) = land(deployment, 1)
    deployment.deliver()
    one = deployment.ingestion(landed)
    deployment.work.lose(1)
    deployment.clock.pass_(3700)
    queued, kept = Queued(deployment.adapters, deployment.adapters.now()), []
    for n in range(2 * MOST_AGAIN):
        waiting = one.but(id=f"{n:032}")
        queued.add(waiting)
        kept.append(weakref.ref(waiting))
        del waiting
    assert sum(each() is not None for each in kept) == MOST_AGAIN
    assert [each.id for each in queued.lost] == [f"{n:032}" for n in range(MOST_AGAIN)]


def test_a_lost_message_is_replaced_although_others_wait(deployment: Scenario) -> None:
    """Fewer messages than files show a loss; the file that waits longest is queued again."""
    (first,) = land(deployment, 1)
    deployment.deliver()
    deployment.work.lose(1)
    for n in (7, 8):
        deployment.land(f"shop/orders/{n}.parquet")
    deployment.deliver()
    deployment.clock.pass_(2900)
    sweep(deployment.adapters)
    assert deployment.work.size() == 2
    deployment.clock.pass_(800)
    for n in (5, 6):
        deployment.land(f"shop/orders/{n}.parquet")
    deployment.deliver()
    sweep(deployment.adapters)
    assert deployment.work.size() == 5
    assert first.key in deployment.queues.take(0)[-1].body


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("bad", [(), _A_BAD_FILE], ids=["all good", "one bad"])
@pytest.mark.parametrize(
    "meanwhile", [None, (), (Time.COURSE,), _LATER], ids=["dies", "slow", "hangs", "hangs long"]
)
def test_a_run_may_die_or_hang_at_any_call(meanwhile: Story | None, bad: Story) -> None:
    """Every promise is kept, also if others take and publish the files of a run that goes on."""
    for call in range(_CALLS):
        tell((*A_TABLE, *FILES_IN_THE_QUEUE, *bad, SharedRunDies(call, meanwhile), Time.COURSE))
