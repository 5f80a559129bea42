"""Files whose checks look at the whole table: in line, each against what main gained meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import pytest

from functions.adapters.emr import JobRun, RunState
from functions.adapters.ledger import Ledger, Moved
from functions.model.ingestion import Ingestion, State
from functions.operations.failed import discard, publish_anyway
from functions.operations.rebuild_ledger import rebuild
from functions.pipeline.intake import take_in
from functions.pipeline.publish import publish
from functions.pipeline.table_queue import must_wait
from lakegate.landing import LandedObject
from tests.fakes.deployment import ORDERS, SETTINGS, TABLE, Deployment
from tests.fakes.faults import Fault, unavailable
from tests.fakes.ledger import FakeLedger
from tests.fakes.promises import check_promises, left_behind
from tests.unit.pipeline.test_crashes import KINDS, Story, When, another_file, everything_again

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A table of unique keys with one file; every promise was kept when the test was over."""
    deployment = Deployment()
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "first")
    deployment.settle()
    yield deployment
    deployment.settle()
    check_promises(deployment)
    assert left_behind(deployment) == []


def land(deployment: Deployment, *keys: str) -> list[LandedObject]:
    """Land a file for each key, which is also its only row's."""
    return [deployment.land_with(f"shop/orders/{key}.parquet", key) for key in keys]


def states(deployment: Deployment, landed: list[LandedObject]) -> list[State]:
    """How far each is."""
    return [deployment.ingestion(each).state for each in landed]


def go(deployment: Deployment, rounds: int = 1) -> None:
    """Deliver what waits, then run the jobs; so many times."""
    for _ in range(rounds):
        deployment.deliver()
        deployment.run_jobs()


def being_audited_again(deployment: Deployment, *keys: str) -> list[LandedObject]:
    """Files of which the first is published, and the second is being audited again."""
    landed = land(deployment, *keys)
    go(deployment)
    deployment.deliver()
    assert deployment.ingestion(landed[0]).state is State.PUBLISHED
    assert deployment.ingestion(landed[1]).is_reaudit
    return landed


def moved(deployment: Deployment) -> None:
    """Somebody else changes the table on main."""
    table = deployment.catalog.table("main", TABLE)
    assert table
    deployment.catalog.commit("main", TABLE, table.append())


def test_of_two_files_with_a_common_key_one_is_published(deployment: Deployment) -> None:
    """The key that main gained while the second waited rejects it: it is alerted, and kept."""
    one = deployment.land_with("shop/orders/1.parquet", "a", "b")
    other = deployment.land_with("shop/orders/2.parquet", "b", "c")
    deployment.settle()
    assert states(deployment, [one, other]) == [State.PUBLISHED, State.REJECTED]
    rejected = deployment.ingestion(other)
    assert rejected.reason is not None
    assert rejected.reason.code == "CHECKS_FAILED"
    assert rejected.branch.startswith(f"publish/{TABLE}/")
    channel, alert = deployment.alerts.posted[-1]
    assert channel == "#orders"
    assert "1 row in the whole table" in str(alert.blocks)


def test_files_without_a_common_key_are_all_published(deployment: Deployment) -> None:
    """The second file's job looks again, at what main gained since the first look, and passes."""
    one, other = land(deployment, "a", "b")
    deployment.settle()
    assert states(deployment, [one, other]) == [State.PUBLISHED] * 2
    first, again = [deployment.jobs.spec(run.id) for run in _runs_of(deployment, other)]
    assert (first.reaudit_base, again.reaudit_base) == ("", first.base_hash)
    assert again.earlier_report == first.report_key
    assert again.branch.startswith(f"publish/{TABLE}/")
    assert deployment.ingestion(other).group == ()


def test_each_look_begins_where_the_one_before_ended(deployment: Deployment) -> None:
    """Refused once more, it is looked only at what main gained since it was looked at again."""
    _, other = being_audited_again(deployment, "a", "b")
    moved(deployment)
    deployment.settle()
    second, third = [deployment.jobs.spec(r.id) for r in _runs_of(deployment, other)][1:]
    assert third.reaudit_base == second.base_hash
    assert deployment.ingestion(other).state is State.PUBLISHED


def test_many_at_once_look_again_once_each(deployment: Deployment) -> None:
    """Twenty files at once are published without a sweep, all but one with one more run each."""
    before = len(deployment.jobs.runs())
    landed = land(deployment, *(f"{n:02}" for n in range(20)))
    go(deployment, rounds=22)
    assert set(states(deployment, landed)) == {State.PUBLISHED}
    assert {deployment.ingestion(each).attempt for each in landed[1:]} == {2}
    assert len(deployment.jobs.runs()) - before == 20 + 19


def test_many_first_files_are_published() -> None:
    """Twenty files for a table that is not there yet are published; each of few attempts."""
    deployment = Deployment()
    deployment.look_beyond()
    landed = land(deployment, *(f"{n:02}" for n in range(20)))
    deployment.settle()
    check_promises(deployment)
    assert set(states(deployment, landed)) == {State.PUBLISHED}
    assert max(deployment.ingestion(each).attempt for each in landed) == 3


def test_without_events_the_line_moves_on(deployment: Deployment) -> None:
    """With every event lost the sweep alone publishes what is in line."""
    deployment.loses_events = True
    landed = land(deployment, "a", "b", "c")
    deployment.settle()
    assert set(states(deployment, landed)) == {State.PUBLISHED}


def test_who_comes_later_waits_for_who_is_being_audited_again(deployment: Deployment) -> None:
    """A file that main would take waits while another is looked at again, or that had no end."""
    _, other = being_audited_again(deployment, "a", "b")
    late = land(deployment, "c")[0]
    deployment.settle()
    assert states(deployment, [other, late]) == [State.PUBLISHED] * 2
    assert deployment.ingestion(other).attempt == 2


def test_waiting_is_no_attempt_and_no_job_run(deployment: Deployment) -> None:
    """However often the sweep looks at one that waits, nothing is done for it."""
    _, _, third = being_audited_again(deployment, "a", "b", "c")
    runs = len(deployment.jobs.runs())
    for _ in range(3):
        deployment.sweep()
    assert (deployment.ingestion(third).state, deployment.ingestion(third).attempt) == (
        State.AUDITED,
        1,
    )
    assert len(deployment.jobs.runs()) == runs


def test_nobody_waits_for_one_that_does_not_move(deployment: Deployment) -> None:
    """What has not moved for longer than a job may take holds up no other any more.

    Not even where the clock of its driver is ahead.
    """
    landed = being_audited_again(deployment, "a", "b", "c")
    *_, third = landed
    for each in map(deployment.ingestion, landed):
        deployment.ledger.save(each.step("audited", "2026-03-02T12:00:00.000+00:00"))
    assert must_wait(deployment.adapters, deployment.ingestion(third))
    deployment.clock.pass_(60 * SETTINGS.job_timeout_minutes + 2 * SETTINGS.grace_seconds)
    assert not must_wait(deployment.adapters, deployment.ingestion(third))


def test_nobody_waits_for_one_that_ended(deployment: Deployment) -> None:
    """An index of the ledger that still lists one that has ended holds up nobody."""
    _, other, third = being_audited_again(deployment, "a", "b", "c")
    waits, listed = deployment.ingestion(third), [deployment.ingestion(other)]
    deployment.settle()
    late = _Late(listed, deployment.ledger)
    assert not must_wait(replace(deployment.adapters, ledger=cast("Ledger", late)), waits)


@dataclass(frozen=True)
class _Late:
    """A ledger whose index of those that are audited again lags behind."""

    listed: list[Ingestion]
    ledger: FakeLedger

    def going_first(self, table: str) -> list[Ingestion]:
        return [each for each in self.listed if each.table == table]

    def waiting(self, table: str) -> list[Ingestion]:
        return self.ledger.waiting(table)

    def together(self, ids: list[str]) -> list[Ingestion]:
        return self.ledger.together(ids)


def test_the_next_goes_when_the_one_ahead_is_rejected(deployment: Deployment) -> None:
    """A rejection leaves the place in line to the next, without a sweep."""
    landed = land(deployment, "a", "x", "b")
    deployment.keys[f"{landed[1].uri}@v1"] = frozenset({"a"})
    go(deployment, rounds=6)
    assert states(deployment, landed) == [State.PUBLISHED, State.REJECTED, State.PUBLISHED]


def test_the_next_goes_when_the_run_ahead_is_lost(deployment: Deployment) -> None:
    """Where the run that looked again is lost, that one ends errored and the next goes on."""
    _, other, third = being_audited_again(deployment, "a", "b", "c")
    deployment.jobs.lose(deployment.ingestion(other).job_run)
    deployment.settle()
    assert states(deployment, [other, third]) == [State.ERRORED, State.PUBLISHED]


def test_a_look_that_crashes_is_followed_by_a_whole_run(deployment: Deployment) -> None:
    """Where the run that looks again leaves no report, the file is read and audited anew."""
    _, other = being_audited_again(deployment, "a", "b")
    run = _runs_of(deployment, other)[-1]
    deployment.jobs.end(run.id, RunState.FAILED, "ExitCode: 1.")
    deployment.send_job_run(run.id)
    deployment.settle()
    assert deployment.jobs.spec(_runs_of(deployment, other)[-1].id).reaudit_base == ""
    assert deployment.ingestion(other).state is State.PUBLISHED


def test_nobody_merges_what_is_being_audited_again(deployment: Deployment) -> None:
    """Who holds an ingestion as it was before it was entered anew cannot publish it."""
    deployment.journal.strike("tables.append_again", Fault(unavailable))
    landed = land(deployment, "a", "b")
    go(deployment)
    deployment.deliver()
    old = deployment.ingestion(landed[1])
    assert old.state is State.AUDITED
    deployment.deliver()
    assert deployment.ingestion(landed[1]).is_reaudit
    with pytest.raises(Moved):
        publish(deployment.adapters, old)
    assert f"{landed[1].uri}@v1" not in deployment.published_files()


def test_a_failed_entering_leaves_no_branch(deployment: Deployment) -> None:
    """Where the files cannot be entered just now, the branch made for them goes at once."""
    deployment.journal.strike("tables.append_again", Fault(unavailable))
    land(deployment, "a", "b")
    go(deployment)
    deployment.deliver()
    assert deployment.catalog.branches("publish/") == []


def test_an_upload_that_is_told_again_starts_no_second_look(deployment: Deployment) -> None:
    """Only who may write on publish/ goes on with what was entered there."""
    landed = land(deployment, "a", "b")
    go(deployment)
    deployment.journal.strike("jobs.start", Fault(unavailable))
    deployment.deliver()
    stuck = deployment.ingestion(landed[1])
    assert (stuck.state, stuck.is_reaudit) == (State.BRANCHED, True)
    assert take_in(deployment.adapters, landed[1]) == stuck


def test_a_contract_that_changed_runs_the_job_again(deployment: Deployment) -> None:
    """Where the contract asks for other things by now, all of the file is audited anew."""
    landed = land(deployment, "a", "b", "c")
    go(deployment)
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", ORDERS.encode())
    deployment.settle()
    assert set(states(deployment, landed)) == {State.PUBLISHED}
    again = deployment.jobs.spec(_runs_of(deployment, landed[1])[-1].id)
    assert (again.attempt, again.reaudit_base) == (2, "")


def test_a_table_that_others_never_leave_alone_is_told(deployment: Deployment) -> None:
    """Where main's table moves before every merge, the file ends errored after its attempts."""
    limited = replace(deployment.adapters, settings=replace(SETTINGS, max_branches=3))
    deployment.adapters = limited
    deployment.journal.strike(
        "jobs.start", Fault(lambda: moved(deployment), "after", times=float("inf"))
    )
    landed = land(deployment, "a")
    deployment.settle()
    found = deployment.ingestion(landed[0])
    assert found.reason is not None
    assert (found.state, found.reason.code, found.attempt) == (
        State.ERRORED,
        "TOO_MANY_ATTEMPTS",
        3,
    )


def rejected_rival() -> tuple[Deployment, Ingestion]:
    """A file that was rejected on the branch on which it was audited again."""
    deployment = Deployment()
    rivals(deployment)
    (rejected,) = deployment.ledger.in_state(State.REJECTED)
    assert rejected.is_queued is False
    return deployment, rejected


def test_a_rejected_rivals_branch_goes_with_it() -> None:
    """The branch on which it was audited again is its own: a discard deletes it."""
    deployment, rejected = rejected_rival()
    assert rejected.branch in deployment.catalog.branches("publish/")
    discard(deployment.adapters, rejected)
    assert deployment.catalog.branches("publish/", "ingest/") == []
    check_promises(deployment)


def test_a_person_may_publish_a_rejected_rival() -> None:
    """What a person wants published all the same is looked at again, and published as approved."""
    deployment, rejected = rejected_rival()
    moved(deployment)
    publish_anyway(deployment.adapters, rejected, "Ann", "both are right")
    deployment.settle()
    ended = deployment.ledger.get(rejected.id)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, rejected.attempt + 1)
    assert ended.approval is not None
    assert ended.approval.by == "Ann"


def test_the_evidence_outlives_the_ledger() -> None:
    """A rebuild keeps the branch on which a file was rejected when it was audited again."""
    deployment, rejected = rejected_rival()
    deployment.jobs.lose(rejected.job_run)
    deployment.ledger.lose(rejected.id)
    list(rebuild(deployment.adapters))
    assert deployment.ledger.get(rejected.id).branch == rejected.branch
    deployment.settle()
    check_promises(deployment)


def rivals(deployment: Deployment) -> None:
    """Two files at once, for a table that has another one, with one key in common."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.land_with("shop/orders/a.parquet", "2", "3")
    deployment.land_with("shop/orders/b.parquet", "3", "4")
    deployment.settle()


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_rivals_one_is_published_whatever_fails(kind: str) -> None:
    """Whichever call fails, and however, one is published, and the other rejected and alerted."""
    effect, when = KINDS[kind]
    told(rivals, lambda _: Fault(effect, when))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("others", [everything_again, another_file])
def test_of_two_rivals_one_is_published_whoever_hangs(others: Story, when: When) -> None:
    """Whichever call a process hangs at, while others finish its work, one is published."""
    told(rivals, lambda deployment: Fault(partial(others, deployment), when))


def told(story: Story, fault: Callable[[Deployment], Fault]) -> None:
    """Tell the story once for each of its calls, with a fault there."""
    undisturbed = Deployment()
    story(undisturbed)
    for number, call in enumerate(undisturbed.journal.calls):
        disturbed = Deployment()
        disturbed.journal.strike_at(number, fault(disturbed))
        story(disturbed)
        check_promises(disturbed)
        found = [disturbed.ingestion(each).state for each in disturbed.landing.landed()]
        assert found.count(State.REJECTED) == 1, f"at call {number}, {call}"
        assert found.count(State.PUBLISHED) == len(found) - 1, f"at call {number}, {call}"


def _runs_of(deployment: Deployment, landed: LandedObject) -> list[JobRun]:
    id_ = deployment.ingestion(landed).id
    return [run for run in deployment.jobs.runs() if run.name.startswith(id_)]
