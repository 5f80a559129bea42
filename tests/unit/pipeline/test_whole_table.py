"""Files with checks of the whole table are published one by one, audited against main's gains."""

from dataclasses import replace
from functools import partial

import pytest

from functions.adapters.emr import JobRun, RunState
from functions.adapters.ledger.notes import Moved
from functions.model.ingestion import State
from functions.pipeline.publication.table_queue import must_wait
from functions.pipeline.start.intake import take_in
from lakegate.job.landing import LandedObject
from tests.fakes.amounts import some
from tests.fakes.deployment import ORDERS, SETTINGS, TABLE
from tests.fakes.faults import KINDS, Fault, When
from tests.fakes.scenario import FIRST, FOREVER, Scenario
from tests.unit.pipeline.test_crashes import another_file, everything_again, fault, pause, told

pytestmark = pytest.mark.usefixtures("quiet")
WHENS: list[When] = ["before", "after"]


@pytest.fixture(autouse=True)
def _unique_keys(deployment: Scenario) -> None:
    """Publish one file of a table whose keys are unique."""
    deployment.look_beyond()
    deployment.land_with(FIRST, "first")
    deployment.settle()


def land(deployment: Scenario, *keys: str) -> list[LandedObject]:
    """Land a file for each key, which is also its only row's."""
    return [deployment.land_with(f"shop/orders/{key}.parquet", key) for key in keys]


def being_audited_again(deployment: Scenario, *keys: str) -> list[LandedObject]:
    """Return two files, the first published and the second in its re-audit."""
    landed = land(deployment, *keys)
    deployment.go()
    deployment.deliver()
    assert deployment.ingestion(landed[0]).state is State.PUBLISHED
    assert deployment.ingestion(landed[1]).is_reaudit
    return landed


def test_of_two_files_with_a_common_key_one_is_published(deployment: Scenario) -> None:
    """The second file is rejected for a key that main gained while it waited."""
    one = deployment.land_with("shop/orders/1.parquet", "a", "b")
    other = deployment.land_with("shop/orders/2.parquet", "b", "c")
    deployment.settle()
    assert deployment.states(one, other) == [State.PUBLISHED, State.REJECTED]
    rejected = deployment.ingestion(other)
    assert deployment.end(other) == "rejected CHECKS_FAILED"
    assert rejected.branch.startswith(f"publish/{TABLE}/")
    channel, alert = deployment.alerts.posted[-1]
    assert channel == "#orders"
    assert "1 row in the whole table" in str(alert.blocks)


def test_files_without_a_common_key_are_all_published(deployment: Scenario) -> None:
    """The second file's re-audit scans what main gained since its audit, and passes."""
    one, other = land(deployment, "a", "b")
    deployment.settle()
    assert deployment.states(one, other) == [State.PUBLISHED] * 2
    first, again = [deployment.jobs.spec(run.id) for run in _runs_of(deployment, other)]
    assert (first.reaudit_base, again.reaudit_base) == ("", first.base_hash)
    assert again.earlier_report == first.report_key
    assert again.branch.startswith(f"publish/{TABLE}/")
    assert deployment.ingestion(other).group == ()


def test_each_reaudit_begins_where_the_one_before_ended(deployment: Scenario) -> None:
    """Each re-audit scans only what main gained since the one before."""
    _, other = being_audited_again(deployment, "a", "b")
    deployment.move_main()
    deployment.settle()
    second, third = [deployment.jobs.spec(r.id) for r in _runs_of(deployment, other)][1:]
    assert third.reaudit_base == second.base_hash
    assert deployment.ingestion(other).state is State.PUBLISHED


def test_many_files_at_once_need_one_reaudit_each(deployment: Scenario) -> None:
    """Twenty files at once are published without a sweep, all but the first by one re-audit."""
    before = len(deployment.jobs.runs())
    landed = land(deployment, *(f"{n:02}" for n in range(20)))
    deployment.go(22)
    assert set(deployment.states(*landed)) == {State.PUBLISHED}
    assert {deployment.ingestion(each).attempt for each in landed[1:]} == {2}
    assert len(deployment.jobs.runs()) - before == 20 + 19


def test_waiting_is_no_attempt_and_no_job_run(deployment: Scenario) -> None:
    """Waiting costs no attempt and no job run, however often the sweep runs."""
    _, _, third = being_audited_again(deployment, "a", "b", "c")
    runs = len(deployment.jobs.runs())
    for _ in range(3):
        deployment.sweep()
    waits = deployment.ingestion(third)
    assert (waits.state, waits.attempt) == (State.AUDITED, 1)
    assert len(deployment.jobs.runs()) == runs


def test_a_stuck_file_blocks_no_other(deployment: Scenario) -> None:
    """A file that has not changed for longer than a job may take blocks no other.

    This also holds if the clock of its driver is ahead.
    """
    landed = being_audited_again(deployment, "a", "b", "c")
    *_, third = landed
    for each in map(deployment.ingestion, landed):
        deployment.ledger.save(each.step("audited", "2026-03-02T12:00:00.000+00:00"))
    assert must_wait(deployment.adapters, deployment.ingestion(third))
    deployment.clock.pass_(60 * SETTINGS.job_timeout_minutes + 2 * SETTINGS.grace_seconds)
    assert not must_wait(deployment.adapters, deployment.ingestion(third))


def test_a_file_that_ended_blocks_no_other(deployment: Scenario) -> None:
    """A file that ended blocks no other, even if an index of the ledger still lists it."""
    _, other, third = being_audited_again(deployment, "a", "b", "c")
    waits, then = deployment.ingestion(third), deployment.ingestion(other)
    ended = deployment.end_of(other)
    deployment.ledger.behind[ended.id] = ended.revision - then.revision
    assert deployment.ledger.waiting(TABLE) == [then]
    assert not must_wait(deployment.adapters, waits)


def test_the_next_is_published_after_a_rejection(deployment: Scenario) -> None:
    """After a rejection the next file is published without a sweep."""
    landed = land(deployment, "a", "x", "b")
    deployment.keys[f"{landed[1].uri}@v1"] = frozenset({"a"})
    deployment.go(6)
    assert deployment.states(*landed) == [State.PUBLISHED, State.REJECTED, State.PUBLISHED]


def test_the_next_is_published_after_a_lost_run(deployment: Scenario) -> None:
    """If the run of a re-audit is lost, that file ends errored and the next one goes on."""
    _, other, third = being_audited_again(deployment, "a", "b", "c")
    deployment.jobs.lose(deployment.ingestion(other).job_run)
    deployment.settle()
    assert deployment.states(other, third) == [State.ERRORED, State.PUBLISHED]


def test_a_later_file_waits_for_a_reaudit(deployment: Scenario) -> None:
    """A file that main would merge waits while another one is in its re-audit."""
    _, other = being_audited_again(deployment, "a", "b")
    late = land(deployment, "c")[0]
    deployment.settle()
    assert deployment.states(other, late) == [State.PUBLISHED] * 2
    assert deployment.ingestion(other).attempt == 2


def test_a_reaudit_that_crashes_is_followed_by_a_whole_run(deployment: Scenario) -> None:
    """If a re-audit leaves no report, the whole job runs again."""
    _, other = being_audited_again(deployment, "a", "b")
    deployment.end_run(other, RunState.FAILED, "ExitCode: 1.")
    deployment.settle()
    assert deployment.jobs.spec(_runs_of(deployment, other)[-1].id).reaudit_base == ""
    assert deployment.states(other) == [State.PUBLISHED]


def test_a_file_in_its_reaudit_is_not_merged(deployment: Scenario) -> None:
    """A process that holds an ingestion as it was before its re-audit cannot publish it.

    A registration that failed before left no branch.
    """
    deployment.fail("tables.append_again")
    landed = land(deployment, "a", "b")
    deployment.go()
    deployment.deliver()
    assert deployment.catalog.branches("publish/") == []
    old = deployment.ingestion(landed[1])
    assert old.state is State.AUDITED
    deployment.deliver()
    assert deployment.ingestion(old).is_reaudit
    with pytest.raises(Moved):
        deployment.publish(old)
    assert deployment.on_main(old) == [False]


def test_a_repeated_upload_starts_no_second_reaudit(deployment: Scenario) -> None:
    """A repeated upload event does not continue a re-audit."""
    landed = land(deployment, "a", "b")
    deployment.go()
    deployment.fail("jobs.start")
    deployment.deliver()
    stuck = deployment.ingestion(landed[1])
    assert (stuck.state, stuck.is_reaudit) == (State.BRANCHED, True)
    assert take_in(deployment.adapters, landed[1]) == stuck


def test_a_contract_that_changed_runs_the_job_again(deployment: Scenario) -> None:
    """If the contract has other requirements now, the whole job runs again."""
    landed = land(deployment, "a", "b", "c")
    deployment.go()
    deployment.upload_contract(ORDERS)
    deployment.settle()
    assert set(deployment.states(*landed)) == {State.PUBLISHED}
    again = deployment.jobs.spec(_runs_of(deployment, landed[1])[-1].id)
    assert (again.attempt, again.reaudit_base) == (2, "")


def test_a_table_that_always_changes_is_alerted(deployment: Scenario) -> None:
    """If main's table changes before every merge, the file ends errored after its attempts."""
    limited = replace(deployment.adapters, settings=replace(SETTINGS, max_branches=3))
    deployment.adapters = limited
    deployment.journal.strike("jobs.start", Fault(deployment.move_main, "after", times=FOREVER))
    found = deployment.end_of(land(deployment, "a")[0])
    assert (deployment.end(found), found.attempt) == ("errored TOO_MANY_ATTEMPTS", 3)


STRUCK = [
    *(partial(fault, kind) for kind in KINDS),
    *(
        partial(pause, others, when)
        for others in (everything_again, another_file)
        for when in WHENS
    ),
]


def rivals(deployment: Scenario) -> None:
    """Return two files at once, with one key in common, for a table that has another one."""
    deployment.look_beyond()
    deployment.land_with(FIRST, "1")
    deployment.settle()
    deployment.land_with("shop/orders/a.parquet", "2", "3")
    deployment.land_with("shop/orders/b.parquet", "3", "4")
    deployment.settle()


def test_of_two_rivals_one_is_published_whatever_happens() -> None:
    """After a fault or a pause at any call one file is published, the other rejected and alerted.

    Each call is struck in one way, and in every way by `make test-long`.
    """
    undisturbed = Scenario()
    rivals(undisturbed)
    for number, call in enumerate(undisturbed.journal.calls):
        for struck in some(STRUCK, "rivals", number):
            disturbed = told(rivals, number, struck)
            found = [disturbed.ingestion(each).state for each in disturbed.landing.landed()]
            assert found.count(State.REJECTED) == 1, f"{struck} at call {number}, {call}"
            assert found.count(State.PUBLISHED) == len(found) - 1, f"{struck} at {number}, {call}"


def _runs_of(deployment: Scenario, landed: LandedObject) -> list[JobRun]:
    id_ = deployment.ingestion(landed).id
    return [run for run in deployment.jobs.runs() if run.name.startswith(id_)]
