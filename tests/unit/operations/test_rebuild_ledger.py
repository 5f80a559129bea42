"""The ledger is lost, whole or in part, at any moment of a story: every end is as it would be."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import pytest

from functions.adapters.ledger import Moved
from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.rebuild_ledger import rebuild
from lakegate.errors import Transient
from lakegate.landing import ingestion_id
from tests.fakes import events
from tests.fakes.amounts import some
from tests.fakes.deployment import Deployment, wait_together
from tests.fakes.faults import Fault, ProcessDied, die, unavailable
from tests.fakes.job import Script, crashed, errored, rejected
from tests.fakes.machine import tell
from tests.fakes.openings import BEYOND
from tests.fakes.promises import check_promises, ends, left_behind
from tests.fakes.schedule import Begin, Work, play
from tests.fakes.stage import File, Kind
from tests.unit.pipeline.test_crashes import KINDS, READS, STORIES, Story

pytestmark = pytest.mark.usefixtures("quiet")


Loss = Callable[[tuple[str, ...], Deployment], None]
KEY = "shop/orders/a.parquet"


def rebuilt(ids: tuple[str, ...], deployment: Deployment) -> None:
    """They are lost with the process, and restored before anything else happens."""
    deployment.ledger.lose(*ids)
    list(rebuild(deployment.adapters))
    raise ProcessDied


def rebuilt_meanwhile(ids: tuple[str, ...], deployment: Deployment) -> None:
    """The process goes on, with what it knew of before, after loss and rebuild."""
    deployment.ledger.lose(*ids)
    list(rebuild(deployment.adapters))


def rebuilt_late(ids: tuple[str, ...], deployment: Deployment) -> None:
    """Events, job runs and a sweep meet the gap before it is filled."""
    deployment.ledger.lose(*ids)
    deployment.deliver()
    deployment.run_jobs()
    deployment.sweep()
    list(rebuild(deployment.adapters))


def never_rebuilt(ids: tuple[str, ...], deployment: Deployment) -> None:
    """Nobody notices: the sweep alone restores."""
    deployment.ledger.lose(*ids)
    raise ProcessDied


DYING = (rebuilt, never_rebuilt)
LOSSES = [rebuilt, rebuilt_meanwhile, rebuilt_late, never_rebuilt]


@pytest.mark.parametrize("story", STORIES)
def test_a_lost_ledger_changes_no_end(story: Story) -> None:
    """Whenever the ledger is lost, all of it or one ingestion, all final states are the same."""
    undisturbed, known = _watched(story)
    for number, files in known.items():
        call = undisturbed.journal.calls[number]
        died_before = call in READS and number in undisturbed.journal.following
        losses = [loss for loss in LOSSES if not (loss in DYING and died_before)]
        lost = dict.fromkeys([files, *((file,) for file in files)])
        cases = [(loss, ids) for loss in losses for ids in lost]
        for loss, ids in some(cases, "loss", story.__name__, number):
            disturbed = _told(story, number, partial(loss, ids))
            where = f"{loss.__name__}, {len(ids)} of {len(files)} lost at call {number}, {call}"
            assert ends(disturbed) == ends(undisturbed), where


@pytest.mark.parametrize("moment", [0.5, 0.6, 0.9, 1])
def test_a_rebuild_that_fails_is_done_again(moment: float) -> None:
    """Whichever call of a rebuild fails, and however, doing it again ends as an undisturbed one."""
    undisturbed = ends(_told(mixed))
    calls = len(_rebuilt(moment, None).journal.calls)
    begun = len(_lost_at(moment).journal.calls)
    for number in range(begun, calls):
        for kind in some(list(KINDS), "rebuild", moment, number):
            deployment = _rebuilt(moment, (number, Fault(*KINDS[kind])))
            list(rebuild(deployment.adapters))
            deployment.settle()
            check_promises(deployment)
            assert ends(deployment) == undisturbed, f"{kind} at call {number - begun}"


def _rebuilt(moment: float, fault: tuple[int, Fault] | None) -> Deployment:
    """Return a deployment whose ledger is rebuilt, as far as a fault allows."""
    deployment = _lost_at(moment)
    if fault:
        deployment.journal.strike_at(*fault)
    with suppress(Transient, ProcessDied):
        list(rebuild(deployment.adapters))
    return deployment


def test_a_whole_ledger_stays_as_it_is() -> None:
    """Where nothing was lost nothing is restored, deleted or saved, however often."""
    deployment = Deployment()
    mixed(deployment)
    deployment.land("shop/orders/on-its-way.parquet")
    deployment.deliver()
    deployment.land("shop/orders/new.parquet")
    begun = len(deployment.journal.calls)
    assert list(rebuild(deployment.adapters)) == []
    changes = ("ledger.begin", "ledger.save", "ledger.save_all", "catalog.delete_branch")
    assert not {*changes} & {*deployment.journal.calls[begun:]}


def test_a_dry_run_changes_nothing() -> None:
    """It tells what would be restored, and leaves ledger and branches as they are."""
    deployment = _lost_at(0.6)
    branches = deployment.catalog.branches("")
    planned = {(i.id, i.state) for i in rebuild(deployment.adapters, dry_run=True)}
    assert list(deployment.ledger.all()) == []
    assert deployment.catalog.branches("") == branches
    assert planned == {(i.id, i.state) for i in rebuild(deployment.adapters)}


def test_what_was_published_is_as_it_was() -> None:
    """Main's log and the report give back all but what only the way there knew."""
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.settle()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    (after,) = rebuild(deployment.adapters)
    assert after.times.keys() == {"landed", "audited", "published", "restored"}
    same = replace(after, times=before.times, revision=before.revision, announced=True)
    assert replace(same, base_hash=before.base_hash, recorded=before.recorded) == before


def test_what_is_on_main_needs_nothing_else() -> None:
    """A publication is restored from main's log alone: file, report and job run may be gone."""
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.settle()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    deployment.landing.lose()
    deployment.lake.lose("reports/")
    deployment.jobs.lose(before.job_run)
    (after,) = rebuild(deployment.adapters)
    assert (after.id, after.state, after.rows) == (before.id, State.PUBLISHED, before.rows)
    assert after.landed.uri == landed.uri
    assert (after.merge_hash, after.report_key) == (before.merge_hash, before.report_key)


@pytest.mark.parametrize("script", [rejected, errored])
def test_a_failed_file_of_old_needs_its_report_alone(script: Script) -> None:
    """With job run and branch long gone, a file is failed still, and is not run again."""
    deployment = Deployment()
    landed = deployment.land(KEY, script=script)
    deployment.settle()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    deployment.jobs.lose(before.job_run)
    deployment.catalog.delete_branch(before.branch)
    assert [i.state for i in rebuild(deployment.adapters)] == [before.state]
    deployment.settle()
    after = deployment.ingestion(landed)
    assert after.times[after.state] == after.times["audited"]
    assert (after.reason, after.checks, after.rows) == (before.reason, before.checks, before.rows)
    assert not deployment.jobs.runs()
    assert after.alerted


def test_a_pass_that_nobody_can_confirm_is_run_again() -> None:
    """A report that passed publishes nothing where its job run is not known any more."""
    deployment = Deployment()
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=99))
    landed = deployment.land(KEY)
    deployment.deliver()
    deployment.run_jobs()
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    deployment.jobs.lose(deployment.ingestion(landed).job_run)
    deployment.ledger.lose()
    assert [(i.state, i.attempt) for i in rebuild(deployment.adapters)] == [(State.LANDED, 2)]
    deployment.settle()
    check_promises(deployment)
    assert deployment.ingestion(landed).state is State.PUBLISHED
    assert not left_behind(deployment)


@pytest.mark.parametrize("most", [1, 9])
def test_a_merge_of_before_publishes_nothing_twice(most: int) -> None:
    """A process that meant to merge what was lost, whole or in part, finds nothing to merge."""
    deployment, together = _swapped()

    def lose() -> None:
        deployment.ledger.lose(*together[-most:])
        list(rebuild(deployment.adapters))

    deployment.journal.strike("catalog.merge", Fault(lose))
    deployment.settle()
    check_promises(deployment)
    assert {i.state for i in deployment.ledger.all()} == {State.PUBLISHED}


def test_a_merge_just_before_it_is_cut_off_counts() -> None:
    """What a process of before merges while the rebuild reads is published, and not once more."""
    deployment, together = _swapped()
    members = deployment.ledger.together(together)
    intent = members[0].intent
    said = merge_commit.message(members), merge_commit.properties(members)
    merge = partial(
        deployment.catalog.merge, intent.branch, intent.hash, members[0].base_hash, *said
    )
    deployment.ledger.lose()
    deployment.journal.strike("jobs.spec", Fault(merge))
    assert {i.state for i in rebuild(deployment.adapters)} == {State.PUBLISHED}
    deployment.settle()
    check_promises(deployment)


@pytest.mark.parametrize("lost", [0, -1])
def test_a_group_that_lost_a_member_is_not_merged(lost: int) -> None:
    """The others are not published by a commit that does not name all whose rows it brings."""
    deployment, together = _swapped()
    deployment.ledger.lose(together[lost])
    deployment.settle()
    check_promises(deployment)
    assert {i.state for i in deployment.ledger.all()} == {State.PUBLISHED}


def _swapped() -> tuple[Deployment, tuple[str, ...]]:
    """Files that wait together on one branch, whose maker died; and the ids of their ingestions."""
    deployment = Deployment()
    landed = wait_together(deployment, 3)
    deployment.journal.strike("ledger.save_all", Fault(die, "after"))
    deployment.sweep()
    together = deployment.ingestion(landed[0]).group
    assert len(together) >= 3
    return deployment, together


@pytest.mark.parametrize("rebuilds", [True, False])
def test_what_an_event_began_anew_is_restored(rebuilds: bool) -> None:
    """Where all events come again before rebuild or sweep, what was published stays so."""
    deployment = Deployment()
    wait_together(deployment, 2)
    deployment.settle()
    deployment.ledger.lose()
    deployment.send_all_again()
    deployment.deliver()
    assert {i.state for i in deployment.ledger.all()} == {State.BRANCHED}
    if rebuilds:
        assert {i.state for i in rebuild(deployment.adapters)} == {State.PUBLISHED}
    deployment.settle()
    check_promises(deployment)
    assert {i.state for i in deployment.ledger.all()} == {State.PUBLISHED}
    assert not left_behind(deployment)


def test_a_process_of_before_saves_over_nothing() -> None:
    """What a process knew before the loss is no revision of what was restored."""
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.deliver()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    list(rebuild(deployment.adapters))
    after = deployment.ingestion(landed)
    assert after.revision - before.revision > 10**9
    with pytest.raises(Moved):
        deployment.ledger.save(before)


def test_contracts_that_cannot_be_read_hold_up_nothing() -> None:
    """Where a contract is broken everything is restored; its people are then told by default."""
    deployment = Deployment()
    deployment.land(KEY, script=rejected)
    deployment.deliver()
    deployment.run_jobs()
    deployment.ledger.lose()
    deployment.lake.put_text("contracts/shop.orders.yaml", b"nonsense")
    assert [i.state for i in rebuild(deployment.adapters)] == [State.SUBMITTED]
    deployment.settle()
    assert {channel for channel, _ in deployment.alerts.posted} == {""}


def test_what_begins_while_the_traces_are_read_is_not_lost() -> None:
    """A file that an event takes in meanwhile keeps its branch, and its job runs."""
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.journal.strike("jobs.start", Fault(unavailable))
    deployment.journal.strike("jobs.runs", Fault(deployment.deliver))
    assert list(rebuild(deployment.adapters)) == []
    begun = deployment.ingestion(landed)
    assert begun.state is State.BRANCHED
    assert begun.branch in deployment.catalog.branches("ingest/")


def test_a_run_of_before_that_was_asked_for_otherwise_is_taken_over() -> None:
    """A listing names a landed object without its sequencer, an event with it: both are the same.

    Its job run, which no other may take the place of, is judged although nobody announces it.
    """
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.sweep()
    deployment.ledger.lose()
    deployment.loses_events = True
    deployment.settle()
    assert deployment.ingestion(landed).state is State.PUBLISHED
    check_promises(deployment)


def mixed(deployment: Deployment) -> None:
    """Files that are published together and alone, rejected, errored, crashed and unclaimed."""
    wait_together(deployment, 2)
    deployment.land("shop/orders/rejected.parquet", script=rejected)
    deployment.land("shop/orders/errored.parquet", script=errored)
    deployment.land("shop/orders/crashed.parquet", script=crashed)
    deployment.land("elsewhere/a.parquet")
    deployment.settle()


@cache
def _calls_of_mixed() -> int:
    return len(_told(mixed).journal.calls)


def _lost_at(moment: float) -> Deployment:
    """Return a deployment that crashed and lost its ledger after a part of the story."""
    deployment = Deployment()
    stop = int(moment * _calls_of_mixed()) - 1

    def lose() -> None:
        deployment.ledger.lose()
        raise _Stopped

    deployment.journal.strike_at(stop, Fault(lose, "after"))
    with suppress(_Stopped):
        mixed(deployment)
    deployment.ledger.lose()
    return deployment


def _watched(story: Story) -> tuple[Deployment, dict[int, tuple[str, ...]]]:
    """Run a story without faults; return it and the ledger's files after each call.

    What the ledger does not know then it cannot lose, and a call that never returns, as it fails or
    is a list that nobody reads to its end, is not struck.
    """
    deployment = Deployment()
    known: dict[int, tuple[str, ...]] = {}

    def check(number: int) -> None:
        landed = [ingestion_id(each) for each in deployment.landing.landed()]
        known[number] = tuple(sorted(deployment.ledger.known(landed)))

    for number in range(len(_told(story).journal.calls)):
        deployment.journal.strike_at(number, Fault(partial(check, number), "after"))
    story(deployment)
    return deployment, known


class _Stopped(BaseException):
    """The story stops here."""


def _told(
    story: Story, number: int = -1, loss: Callable[[Deployment], None] | None = None
) -> Deployment:
    deployment = Deployment()
    if loss:
        deployment.journal.strike_at(number, Fault(partial(loss, deployment), "after"))
    story(deployment)
    check_promises(deployment)
    return deployment


def test_live_work_that_moves_on_while_traces_are_read_is_left_alone() -> None:
    """A sweep that is slower than the next attempt of a file deletes nothing of that attempt."""
    meanwhile = (
        events.Deliver(),  # the event comes again: the first attempt runs, and leaves no report
        events.RunJob(),
        events.Strike("jobs.start", Kind.DIES_BEFORE),
        events.Deliver(),  # the second attempt has its branch, and no job run yet
    )
    stage = tell(
        [
            events.Land(events.KEYS[0], File.CRASHING_ONCE),
            events.Strike("lake.contracts", Kind.DIES_BEFORE),
            events.Deliver(),
            events.Strike("ledger.together", Kind.HANGS_AFTER, 0, meanwhile),
            events.Time.SWEEP,
        ]
    )
    assert [i.state for i in stage.deployment.ledger.all()] == [State.PUBLISHED]
    assert "restored" not in next(stage.deployment.ledger.all()).times


def test_a_branch_is_deleted_only_after_its_ingestion_was_entered() -> None:
    """Where another process is quicker than the restoring one, no branch is deleted."""
    deployment = Deployment()
    landed = deployment.land(KEY)
    deployment.journal.strike("jobs.start", Fault(die))
    deployment.deliver()
    branched = deployment.ingestion(landed)
    assert branched.state is State.BRANCHED
    deployment.ledger.lose(branched.id)
    deployment.journal.strike("ledger.begin", Fault(lambda: deployment.ledger.begin(branched)))
    assert list(rebuild(deployment.adapters)) == []
    assert deployment.catalog.branches("ingest/") == [branched.branch]
    deployment.settle()
    check_promises(deployment)


def test_the_branch_of_a_restored_run_stays() -> None:
    """A file that is audited again when its entry is lost keeps the branch that the run names."""
    steps = (Begin(Work.JOB, 0), Begin(Work.MESSAGE, 0), Begin(Work.JOB, 0))
    play((*BEYOND, *steps, events.LoseEntry(2)))
