"""Files whose keys must be unique in their table come in turns, if a shared run may take them."""

from contextlib import suppress

import pytest

from functions.model import queueing
from functions.model.ingestion import State
from lakegate.errors import Transient
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import ORDERS
from tests.fakes.job import Script, crashed_once, passed, rejected
from tests.fakes.scenario import FIRST, Scenario
from tests.unit.pipeline.test_turns import commits, known

pytestmark = pytest.mark.usefixtures("quiet")
_NAMES = "bcde"
_UNIQUE = (
    "{metric: duplicateValues, mustBe: 0, customProperties: [{property: scope, value: table}]}"
)
_QUERY = "{type: sql, query: 'SELECT count(*) FROM {object}', mustBeGreaterThan: 0}"
_FOUR = [State.PUBLISHED] * 4


@pytest.fixture
def deployment(deployment: Scenario) -> Scenario:
    """Return a deployment with a shared run, and with a table whose keys are unique."""
    deployment.share(1)
    deployment.look_beyond()
    return deployment


def land(deployment: Scenario, name: str, *keys: str, script: Script = passed) -> LandedObject:
    """Land a file whose rows have these keys, by default its name."""
    return deployment.land_with(f"shop/orders/{name}.parquet", *(keys or name), script=script)


def turn(deployment: Scenario, *last: str, **scripts: Script) -> list[LandedObject]:
    """Land a file, and four that wait for it, the last with these keys; publish the first."""
    deployment.land_with(FIRST, "first")
    deployment.deliver()
    given = {_NAMES[-1]: last}
    found = [land(deployment, n, *given.get(n, ()), script=scripts.get(n, passed)) for n in _NAMES]
    deployment.deliver()
    assert all(queueing.is_held(deployment.ingestion(each)) for each in found)
    deployment.run_jobs()
    deployment.deliver()
    return found


def alone(deployment: Scenario, name: str, *keys: str, script: Script = passed) -> LandedObject:
    """Land a file that gets a run of its own, as a large one does; its run ends."""
    deployment.share(0)
    landed = land(deployment, name, *keys, script=script)
    deployment.deliver()
    deployment.run_one_job(0)
    deployment.share(1)
    assert not deployment.ingestion(landed).takes_turns
    return landed


def test_files_that_wait_are_audited_and_published_together(deployment: Scenario) -> None:
    """The files behind the first one are one message, one group and one commit, without a run."""
    files = turn(deployment)
    assert deployment.adapters.work.size() == 1
    deployment.check()
    done = known(deployment, files)
    assert [(each.state, each.attempt) for each in done] == [(State.PUBLISHED, 1)] * 4
    assert commits(deployment) == [["t"], [*_NAMES]]
    assert len({each.job_run for each in done}) == 1


def test_of_two_files_with_one_key_the_earlier_one_is_published(deployment: Scenario) -> None:
    """A file with a key of an earlier one of its turn comes in the next one, and is rejected."""
    files = turn(deployment, "c", "e")
    deployment.check()
    assert deployment.states(*files) == [*_FOUR[:3], State.REJECTED]
    assert commits(deployment) == [["t"], ["b", "c", "d"]]
    assert len(deployment.told()) == 1


def test_a_key_of_main_is_found_in_a_turn(deployment: Scenario) -> None:
    """A file with a key that main has is rejected, and those before and after it are published."""
    files = turn(deployment, "first")
    after = land(deployment, "f")
    deployment.check()
    assert deployment.states(*files, after) == [*_FOUR[:3], State.REJECTED, State.PUBLISHED]
    assert commits(deployment) == [["t"], ["b", "c", "d"], ["f"]]


def test_a_file_with_an_own_run_within_a_turn_stops_nobody(deployment: Scenario) -> None:
    """A large file that landed between those of a turn waits for all of them, and they not."""
    deployment.loses_events = True
    first, before, large, after = [land(deployment, name) for name in "abcd"]
    deployment.loses_events = False
    deployment.share(0)
    deployment.send_upload(large)
    deployment.deliver()
    deployment.share(1)
    for each in (first, before, after):
        deployment.send_upload(each)
        deployment.deliver()
    deployment.run_one_job(0)
    deployment.deliver()
    assert deployment.states(first, large) == [State.LANDED, State.AUDITED]
    deployment.go(8)
    assert deployment.states(first, before, large, after) == _FOUR
    assert commits(deployment) == [["a"], ["b", "d"], ["c"]]


def test_a_turn_has_one_message(deployment: Scenario) -> None:
    """All files of a turn have one message; the sweep queues it again only if it was lost."""
    files = turn(deployment)
    deployment.clock.pass_(7200)
    deployment.sweep()
    assert deployment.adapters.work.size() == 1
    deployment.queues.lose()
    deployment.clock.pass_(7200)
    deployment.sweep()
    assert deployment.adapters.work.size() == 1
    deployment.check()
    assert deployment.states(*files) == _FOUR


def test_an_approved_version_of_a_key_waits_for_no_held_one(deployment: Scenario) -> None:
    """A file that was approved comes to main before a newer one of its key, which waits for it."""
    old = land(deployment, "b", "1", script=rejected)
    deployment.settle()
    deployment.fail("catalog.merge")
    with suppress(Transient):
        deployment.publish_anyway(old)
    new = land(deployment, "b", "2")
    deployment.deliver()
    assert queueing.is_held(deployment.ingestion(new))
    deployment.check()
    assert deployment.states(old, new) == _FOUR[:2]


def test_approved_versions_and_a_turn_do_not_wait_for_each_other(deployment: Scenario) -> None:
    """Two older versions wait for the newer ones of their keys, which wait for none of them."""
    first = deployment.land_with(FIRST, "first")
    deployment.deliver()
    old = [alone(deployment, name, f"old {name}", script=rejected) for name in "bc"]
    deployment.deliver()
    for each in old:
        deployment.publish_anyway(each)
    new = [land(deployment, name, f"new {name}") for name in "bc"]
    deployment.deliver()
    deployment.go(8)
    assert deployment.states(first, *new) == _FOUR[:3]
    deployment.check()
    assert deployment.states(*old) == [State.REJECTED] * 2


def test_files_that_no_run_may_share_are_ingested_side_by_side(deployment: Scenario) -> None:
    """Where a check reads other tables, and one is apart, each file has its own run at once."""
    apart = f"{ORDERS}customProperties: [{{property: isolation, value: own}}]\n"
    deployment.upload_contract(apart.replace("shop.orders", "shop.other"), "shop.other")
    rules = f"quality: [{_UNIQUE}, {_QUERY}]"
    deployment.upload_contract(ORDERS.replace("required: true", f"required: true, {rules}"))
    files = [land(deployment, name) for name in _NAMES]
    deployment.deliver()
    assert [deployment.ingestion(each).is_compared for each in files] == [False] * 4
    assert len(deployment.runs) == 4
    deployment.check()
    assert deployment.states(*files) == _FOUR


def test_files_behind_one_that_killed_its_run_go_on(deployment: Scenario) -> None:
    """Once a file has a run of its own, those that waited in its turn are begun without it."""
    deadly = deployment.land_with(FIRST, "first", script=crashed_once)
    deployment.deliver()
    files = [land(deployment, name) for name in _NAMES]
    deployment.go()
    for _ in range(4):
        for run in deployment.jobs.shared_runs():
            deployment.run_shared(run)
        deployment.deliver()
    assert deployment.ingestion(deadly).state is State.SUBMITTED
    assert deployment.states(*files) == _FOUR


def test_held_files_go_on_under_another_contract(deployment: Scenario) -> None:
    """If the contract asks for no unique keys any more, files that are held come all the same."""
    deployment.land_with(FIRST, "first")
    deployment.deliver()
    files = [land(deployment, name) for name in _NAMES]
    deployment.go()
    deployment.upload_contract(ORDERS)
    deployment.go(10)
    assert deployment.states(*files) == _FOUR


def test_the_sweep_looks_at_the_first_held_file_only(deployment: Scenario) -> None:
    """A sweep lists a table's queue once, however many of its files are held."""
    deployment.land_with(FIRST, "first")
    deployment.deliver()
    for number in range(20):
        land(deployment, f"{number:02}")
    deployment.deliver()
    before = deployment.journal.calls.count("ledger.waiting")
    deployment.sweep()
    assert deployment.journal.calls.count("ledger.waiting") - before < 5
