"""The job runs of a day stay within its budget, and what waits for the next day is not lost."""

from dataclasses import replace
from typing import Any

import pytest

from access.ingestions.shared_runs import places, wait_words
from functions.adapters.emr import RunState
from functions.adapters.spark_submit import most_use
from functions.model.budget import Spending, Use
from functions.model.ingestion import State
from functions.notifications.budget_alert import budget_without_room
from functions.pipeline.start.spending import spending, start_within_budget
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import SETTINGS
from tests.fakes.faults import Fault, unavailable
from tests.fakes.job import rejected
from tests.fakes.promises import check_promises
from tests.fakes.scenario import KEY, Scenario
from tests.unit.lakegate.test_jobspec import SPEC

ONE_DOLLAR = replace(SETTINGS, daily_budget_usd=1)
SMALL = most_use(replace(SPEC, small=True), SETTINGS).cost
A_DOLLAR, A_CENT = Use(24.0), Use(0.25)  # by the price of vCPUs, and a little more
DAY = 24 * 3600
NEXT = "shop/orders/next.parquet"

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def deployment() -> Scenario:
    """Return a deployment whose job runs may cost a dollar a day, and cost a dollar each."""
    return of_a_dollar()


def of_a_dollar(bill: Use | None = A_DOLLAR, **settings: Any) -> Scenario:
    made = Scenario(replace(ONE_DOLLAR, **settings))
    made.jobs.bill = bill
    return made


def today(deployment: Scenario) -> Spending:
    return spending(deployment.adapters)


def about_budget(deployment: Scenario) -> list[str]:
    return [alert.text for _, alert in deployment.alerts.posted if "budget" in alert.about]


def test_no_run_is_started_once_the_amount_is_used(deployment: Scenario) -> None:
    """Later files wait where they landed, without a branch, and are told why."""
    deployment.ended()
    waiting = deployment.submit(NEXT)
    assert (waiting.state, waiting.branch) == (State.LANDED, "")
    assert deployment.sweep()["resumed"] == 0
    assert len(deployment.jobs.runs()) == 1
    words = wait_words(deployment.adapters, deployment.ingestion(waiting))
    assert words.startswith("waits for a job run; the day's budget is used up until 00:00 UTC: $1.")
    assert places(deployment.adapters, [waiting]) == {waiting.id: words.partition("; ")[2]}


def test_people_are_told_once_what_waits_and_what_to_do(deployment: Scenario) -> None:
    """One alert a day has amount, use, number of files and remedy, however often the sweep runs."""
    deployment.ended()
    deployment.sweep()
    assert about_budget(deployment) == []
    for name in ("b", "c"):
        deployment.submit(f"shop/orders/{name}.parquet", script=rejected)
    for _ in range(3):
        deployment.sweep()
    assert about_budget(deployment) == ["The day's budget is used up: 2 files wait for a job run"]
    _, alert = deployment.alerts.posted[-1]
    (block,) = alert.blocks
    remedy = ("00:00 UTC", "`DailyBudgetUsd`", "`lakegate deploy --stage test`")
    assert [w for w in ("$1.01 of $1.00", *remedy) if w not in block["text"]["text"]] == []


def test_the_next_day_goes_on_with_what_waits(deployment: Scenario) -> None:
    """After midnight UTC the sweep starts the files that waited, and their runs count anew."""
    first = deployment.ended()
    waiting = deployment.submit(NEXT)
    deployment.clock.pass_(DAY)
    assert deployment.end_of(waiting).state is State.PUBLISHED
    assert today(deployment).used == A_DOLLAR.cost
    assert deployment.ingestion(first).state is State.PUBLISHED
    check_promises(deployment)


def test_a_raised_amount_goes_on_with_what_waits(deployment: Scenario) -> None:
    """The next sweep starts the files that waited."""
    deployment.ended()
    waiting = deployment.submit(NEXT)
    raised = replace(deployment.settings, daily_budget_usd=5)
    deployment.adapters = replace(deployment.adapters, settings=raised)
    assert deployment.end_of(waiting).state is State.PUBLISHED


def test_runs_under_way_count_by_the_most_that_they_may_cost() -> None:
    """So many runs are up as the amount surely pays; the others follow as these end, unalarmed."""
    deployment = of_a_dollar(A_CENT)
    most = -(-1_000_000 // SMALL)  # the last may begin while less than all is held
    landed = [deployment.land(f"shop/orders/{number}.parquet") for number in range(most + 3)]
    deployment.deliver()
    assert len(deployment.jobs.runs()) == most
    assert today(deployment).held == most * SMALL
    late = [i for i in map(deployment.ingestion, landed) if i.state is State.LANDED]
    words = wait_words(deployment.adapters, late[0])
    assert "no room until a run ends" in words
    deployment.settle()
    assert deployment.states(*landed) == [State.PUBLISHED] * len(landed)
    assert today(deployment).used == len(landed) * A_CENT.cost
    assert today(deployment).held == 0
    assert about_budget(deployment) == []


def test_people_learn_what_is_held_for_a_run_that_died() -> None:
    """Its amount stays held and keeps files waiting for hours: one alert says so, with both sums.

    Files that have just come are no reason, as what is under way may leave room.
    """
    deployment = of_a_dollar(A_CENT)
    for attempt in range(-(-1_000_000 // SMALL)):  # whose ends nobody ever tells
        start_within_budget(deployment.adapters, replace(SPEC, attempt=attempt, small=True))
    waiting = deployment.submit(NEXT)
    deployment.sweep()
    assert about_budget(deployment) == []
    deployment.clock.pass_(deployment.settings.overdue_minutes * 60)
    for _ in range(2):
        deployment.sweep()
    assert about_budget(deployment) == ["The day's budget has no room: 1 file waits for a job run"]
    _, alert = deployment.alerts.posted[-1]
    (block,) = alert.blocks
    assert "$0.00 of $1.00 are used, and runs under way may use $1." in block["text"]["text"]
    assert "when a run under way ends" in block["text"]["text"]
    used_up = Spending(today(deployment).day, used=1_000_000)
    assert budget_without_room(used_up, 1, 1, "dev").about != alert.about  # so that both are shown
    deployment.clock.pass_(DAY)
    assert deployment.end_of(waiting).state is State.PUBLISHED


def test_files_that_wait_for_their_turn_do_not_wait_for_the_budget(deployment: Scenario) -> None:
    """Behind a file whose run is under way none waits for the budget, later only the next one."""
    deployment.replace_rows("upsert")
    for number in range(3):
        deployment.submit(f"shop/orders/{number}.parquet")
    other = deployment.jobs.start(SPEC)
    deployment.jobs.end(other, RunState.SUCCESS)
    deployment.send_job_run(other)
    deployment.deliver()
    deployment.sweep()
    assert about_budget(deployment) == []
    deployment.go(2)
    deployment.sweep()
    assert about_budget(deployment) == ["The day's budget is used up: 1 file waits for a job run"]


def test_a_run_counts_once_however_often_its_end_is_told(deployment: Scenario) -> None:
    """Repeated events, also after midnight, add nothing to any day."""
    ended = deployment.ended()
    deployment.send_job_run(ended.job_run)
    deployment.deliver()
    used = today(deployment)
    assert (used.used, used.held) == (A_DOLLAR.cost, 0)
    deployment.clock.pass_(DAY)
    deployment.send_job_run(ended.job_run)
    deployment.deliver()
    assert today(deployment).used == 0


def test_a_run_whose_bill_is_late_is_counted_by_the_sweep() -> None:
    """Until EMR Serverless tells the bill, the most that the run may cost stays held."""
    deployment = of_a_dollar(bill=None)
    ended = deployment.ended()
    day, late = today(deployment).day, frozenset([ended.job_run])
    assert today(deployment) == Spending(day, 0, SMALL, late)
    assert deployment.sweep()["measured"] == 1
    deployment.jobs.bill = A_CENT
    deployment.sweep()
    assert today(deployment) == Spending(today(deployment).day, A_CENT.cost)
    assert deployment.sweep()["measured"] == 0


def test_files_for_shared_runs_wait_in_their_queue() -> None:
    """No next shared run begins; queued files are taken the next day, and told why till then."""
    deployment = of_a_dollar(shared_runs=1)
    deployment.ended()
    waiting = deployment.submit(NEXT)
    for _ in range(3):
        deployment.sweep()
    assert len(deployment.jobs.runs()) == 1
    assert deployment.ingestion(waiting).awaits_shared_run
    assert "the day's budget is used up" in wait_words(deployment.adapters, waiting)
    assert about_budget(deployment) == ["The day's budget is used up: 1 file waits for a job run"]
    deployment.clock.pass_(DAY)
    assert deployment.end_of(waiting).state is State.PUBLISHED
    check_promises(deployment)


@pytest.mark.parametrize("shared_runs", [0, 1])
def test_a_run_that_was_not_started_holds_nothing(shared_runs: int) -> None:
    """What EMR Serverless refuses to start costs nothing, however often it is tried."""
    deployment = of_a_dollar(A_CENT, shared_runs=shared_runs)
    deployment.journal.strike("jobs.start", Fault(unavailable, times=3))
    landed = deployment.land(KEY)
    for _ in range(3):
        deployment.deliver()
        deployment.clock.pass_(60)
    assert today(deployment).held == 0
    assert deployment.end_of(landed).state is State.PUBLISHED
    assert today(deployment) == Spending(today(deployment).day, A_CENT.cost)


def test_a_start_that_is_repeated_holds_its_amount_once(deployment: Scenario) -> None:
    """After a crash behind the start, the same run is found although there is no more room."""
    run = start_within_budget(deployment.adapters, SPEC)
    assert start_within_budget(deployment.adapters, SPEC) == run
    most = most_use(SPEC, deployment.settings).cost
    assert today(deployment).held == most
    assert start_within_budget(deployment.adapters, replace(SPEC, attempt=9)) == ""


def test_a_run_that_nothing_was_held_for_counts_on_the_day_of_its_end(deployment: Scenario) -> None:
    """A run of a probe, or from before there was a budget, is counted, too."""
    run = deployment.jobs.start(SPEC)
    deployment.jobs.end(run, RunState.CANCELLED)
    deployment.send_job_run(run)
    deployment.deliver()
    assert today(deployment).used == A_DOLLAR.cost


def test_without_a_budget_nothing_is_counted() -> None:
    """The default starts every run, and writes nothing about its cost."""
    deployment = Scenario()
    deployment.jobs.bill = A_DOLLAR
    deployment.ended()
    assert deployment.ended(NEXT).state is State.PUBLISHED
    assert deployment.ledger.spending(deployment.adapters.now()[:10]).used == 0


def test_the_clock_of_the_day_is_lakegates_own() -> None:
    """A driver whose clock is a day ahead changes no day."""
    deployment = of_a_dollar()
    clock = FakeClock()
    clock.pass_(DAY)
    deployment.drivers_time = clock.now()
    deployment.ended()
    assert today(deployment).used == A_DOLLAR.cost


def test_the_most_that_a_run_may_use_is_that_of_all_of_its_workers() -> None:
    """Driver and executors count up to the time-out, with the memory beside each JVM."""
    settings = replace(SETTINGS, job_worker_cores=4, job_worker_memory="14g", job_max_executors=10)
    assert most_use(replace(SPEC, small=False), settings) == Use(44.0, 176.0)
    assert most_use(replace(SPEC, small=True), settings) == Use(2.0, 8.0)
    large = replace(settings, job_worker_cores=8, job_worker_memory="26g")  # EMR gives 32 GB
    assert most_use(replace(SPEC, small=False), large) == Use(88.0, 352.0)
    half = replace(settings, job_timeout_minutes=30, job_worker_memory="512m")
    assert most_use(replace(SPEC, small=False), half) == Use(22.0, 5.5)


def test_a_budget_is_reached_by_what_is_used_and_held() -> None:
    """Only what ended uses it up; without a budget there is always room."""
    assert Spending("d", 999_999).admits(1)
    assert not Spending("d", 999_999, 1).admits(1)
    assert not Spending("d", 999_999, 1).is_used_up(1)
    assert Spending("d", 1_000_000).is_used_up(1)
    assert Spending("d", 10**9).admits(0)
    assert not Spending("d", 10**9).is_used_up(0)
    assert Use(1.0, 4.0, 10.0).cost == 61_716
