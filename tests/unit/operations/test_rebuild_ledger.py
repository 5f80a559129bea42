"""The rebuild of a ledger that was lost completely or partly, at any moment."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import pytest

from functions.adapters.ledger.notes import Moved
from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.recovery.rebuild_ledger import rebuild
from lakegate.errors import Permanent, Transient
from lakegate.job.landing import ingestion_id
from tests.fakes import events
from tests.fakes.amounts import some
from tests.fakes.deployment import TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.job import Script, crashed, errored, rejected
from tests.fakes.machine import tell
from tests.fakes.openings import BEYOND
from tests.fakes.promises import ends
from tests.fakes.scenario import KEY, Scenario
from tests.fakes.schedule import Begin, Work
from tests.fakes.schedules import play
from tests.fakes.stage import File, Kind
from tests.unit.pipeline.test_crashes import READS, STORIES, Story, told

pytestmark = pytest.mark.usefixtures("quiet")


Loss = Callable[[tuple[str, ...], Scenario], None]


def rebuilt(ids: tuple[str, ...], deployment: Scenario) -> None:
    """Lose items with the process, and restore them before anything else."""
    deployment.ledger.lose(*ids)
    list(rebuild(deployment.adapters))
    raise ProcessDied


def rebuilt_meanwhile(ids: tuple[str, ...], deployment: Scenario) -> None:
    """Let the process continue with its old data after loss and rebuild."""
    deployment.ledger.lose(*ids)
    list(rebuild(deployment.adapters))


def rebuilt_late(ids: tuple[str, ...], deployment: Scenario) -> None:
    """Let events, job runs and a sweep run before the rebuild."""
    deployment.ledger.lose(*ids)
    deployment.go()
    deployment.sweep()
    list(rebuild(deployment.adapters))


def never_rebuilt(ids: tuple[str, ...], deployment: Scenario) -> None:
    """Let only the sweep restore."""
    deployment.ledger.lose(*ids)
    raise ProcessDied


DYING = (rebuilt, never_rebuilt)
LOSSES = [rebuilt, rebuilt_meanwhile, rebuilt_late, never_rebuilt]


@pytest.mark.parametrize("story", STORIES)
def test_a_lost_ledger_changes_no_end(story: Story) -> None:
    """A loss of the ledger or of one item at any moment changes no final state."""
    undisturbed, known = _watched(story)
    for number, files in known.items():
        call = undisturbed.journal.calls[number]
        died_before = call in READS and number in undisturbed.journal.following
        losses = [loss for loss in LOSSES if not (loss in DYING and died_before)]
        lost = dict.fromkeys([files, *((file,) for file in files)])
        cases = [(loss, ids) for loss in losses for ids in lost]
        for loss, ids in some(cases, "loss", story.__name__, number):
            disturbed = told(story, number, partial(_lost, loss, ids))
            where = f"{loss.__name__}, {len(ids)} of {len(files)} lost at call {number}, {call}"
            assert ends(disturbed) == ends(undisturbed), where


@pytest.mark.parametrize("moment", [0.5, 0.6, 0.9, 1])
def test_a_rebuild_that_fails_is_done_again(moment: float) -> None:
    """After a fault at any call a repeated rebuild has the undisturbed result."""
    undisturbed = ends(told(mixed))
    calls = len(_rebuilt(moment, None).journal.calls)
    begun = len(_lost_at(moment).journal.calls)
    for number in range(begun, calls):
        for kind in some(list(KINDS), "rebuild", moment, number):
            deployment = _rebuilt(moment, (number, Fault(*KINDS[kind])))
            list(rebuild(deployment.adapters))
            deployment.check()
            assert ends(deployment) == undisturbed, f"{kind} at call {number - begun}"


def _rebuilt(moment: float, fault: tuple[int, Fault] | None) -> Scenario:
    """Return a deployment whose ledger is rebuilt, as far as a fault allows."""
    deployment = _lost_at(moment)
    if fault:
        deployment.journal.strike_at(*fault)
    with suppress(Transient, ProcessDied):
        list(rebuild(deployment.adapters))
    return deployment


def test_a_whole_ledger_stays_as_it_is() -> None:
    """A complete ledger stays unchanged, however often it is rebuilt."""
    deployment = Scenario()
    mixed(deployment)
    deployment.land("shop/orders/on-its-way.parquet")
    deployment.deliver()
    deployment.land("shop/orders/new.parquet")
    begun = len(deployment.journal.calls)
    assert list(rebuild(deployment.adapters)) == []
    changes = (
        "ledger.begin",
        "ledger.save",
        "ledger.save_all",
        "ledger.rebase",
        "ledger.save_each",
        "catalog.delete_branch",
    )
    assert not {*changes} & {*deployment.journal.calls[begun:]}


def test_a_dry_run_changes_nothing() -> None:
    """A dry run names what would be restored, and changes nothing."""
    deployment = _lost_at(0.6)
    branches = deployment.catalog.branches("")
    planned = {(i.id, i.state) for i in rebuild(deployment.adapters, dry_run=True)}
    assert list(deployment.ledger.all()) == []
    assert deployment.catalog.branches("") == branches
    assert planned == {(i.id, i.state) for i in rebuild(deployment.adapters)}


def test_a_publication_is_restored_as_it_was() -> None:
    """Main's log and the report restore everything except the history."""
    deployment = Scenario()
    landed = deployment.ended()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    (after,) = rebuild(deployment.adapters)
    assert after.times.keys() == {"landed", "audited", "published", "restored"}
    same = replace(after, times=before.times, revision=before.revision, announced=True)
    assert replace(same, base_hash=before.base_hash, recorded=before.recorded) == before


def test_a_publication_is_restored_from_main_alone() -> None:
    """A publication is restored from main's log alone."""
    deployment = Scenario()
    landed = deployment.ended()
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    deployment.landing.lose()
    deployment.lake.lose("reports/")
    deployment.jobs.lose(before.job_run)
    (after,) = rebuild(deployment.adapters)
    assert (after.id, after.state, after.audit.rows) == (
        before.id,
        State.PUBLISHED,
        before.audit.rows,
    )
    assert after.landed.uri == before.landed.uri
    assert (after.merge_hash, after.report_key) == (before.merge_hash, before.report_key)


@pytest.mark.parametrize("script", [rejected, errored])
def test_a_failed_file_of_old_needs_its_report_alone(script: Script) -> None:
    """A failed file is restored from its report alone, and does not run again."""
    deployment = Scenario()
    landed = deployment.ended(script=script)
    before = deployment.ingestion(landed)
    deployment.ledger.lose()
    deployment.jobs.lose(before.job_run)
    deployment.catalog.delete_branch(before.branch)
    assert [i.state for i in rebuild(deployment.adapters)] == [before.state]
    after = deployment.end_of(landed)
    assert after.times[after.state] == after.times["audited"]
    assert (after.reason, after.audit.checks, after.audit.rows) == (
        before.reason,
        before.audit.checks,
        before.audit.rows,
    )
    assert not deployment.jobs.runs()
    assert after.alerted


def test_a_pass_that_nobody_can_confirm_is_run_again(deployment: Scenario) -> None:
    """A passed report without a known job run publishes nothing: the job runs again."""
    deployment.fail("catalog.merge", times=99)
    landed = deployment.run()
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    deployment.jobs.lose(deployment.ingestion(landed).job_run)
    deployment.ledger.lose()
    assert [(i.state, i.attempt) for i in rebuild(deployment.adapters)] == [(State.LANDED, 2)]
    assert deployment.end_of(landed).state is State.PUBLISHED


def test_a_merge_just_before_it_is_cut_off_counts() -> None:
    """A merge during the rebuild counts as published, and is not repeated."""
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
    deployment.check()


def _swapped() -> tuple[Scenario, tuple[str, ...]]:
    """Return files waiting on one branch after a crash, and the ids of their ingestions."""
    deployment = Scenario()
    landed = deployment.wait_together(3)
    deployment.kill("ledger.rebase", "after")
    deployment.sweep()
    together = deployment.ingestion(landed[0]).group
    assert len(together) >= 3
    return deployment, together


def test_an_entry_that_lacks_its_start_keeps_what_people_decided(deployment: Scenario) -> None:
    """It has another attempt, with its steps and decisions and as few tries as before."""
    landed = deployment.ended(script=rejected)
    deployment.replay(landed)
    started = deployment.ingestion(landed)
    assert (started.attempt, started.tries_from) == (2, 1)
    deployment.ledger.save(started.but(state=State.LANDED, branch="", job_run=""))
    [restored] = rebuild(deployment.adapters)
    assert (restored.attempt, restored.tries_from) == (3, 2)
    assert restored.decisions == started.decisions
    assert restored.times.keys() >= {"rejected", "replayed"}


def test_a_process_of_before_saves_over_nothing() -> None:
    """An older process cannot overwrite a restored ingestion."""
    deployment = Scenario()
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
    """An invalid contract stops nothing; its alerts go to the default channel."""
    deployment = Scenario()
    deployment.run(script=rejected)
    deployment.ledger.lose()
    deployment.lake.put_text("contracts/shop.orders.yaml", b"nonsense")
    assert [i.state for i in rebuild(deployment.adapters)] == [State.SUBMITTED]
    deployment.settle()
    assert {channel for channel, _ in deployment.alerts.posted} == {""}


def test_a_file_ingested_during_the_rebuild_is_not_lost() -> None:
    """A file that an event ingests meanwhile keeps its branch, and its job runs."""
    deployment = Scenario()
    landed = deployment.land(KEY)
    deployment.fail("jobs.start")
    deployment.journal.strike("jobs.runs", Fault(deployment.deliver))
    assert list(rebuild(deployment.adapters)) == []
    begun = deployment.ingestion(landed)
    assert begun.state is State.BRANCHED
    assert begun.branch in deployment.catalog.branches("ingest/")


def test_a_run_of_before_that_was_asked_for_otherwise_is_taken_over(deployment: Scenario) -> None:
    """An object's listing and its event give the same ingestion.

    Its existing job run is used, although no event reports its end.
    """
    landed = deployment.land(KEY)
    deployment.sweep()
    deployment.ledger.lose()
    deployment.loses_events = True
    assert deployment.end_of(landed).state is State.PUBLISHED


def mixed(deployment: Scenario) -> None:
    """Land files that are published together and alone, rejected, errored or unclaimed."""
    deployment.wait_together(2)
    deployment.land("shop/orders/rejected.parquet", script=rejected)
    deployment.land("shop/orders/errored.parquet", script=errored)
    deployment.land("shop/orders/crashed.parquet", script=crashed)
    deployment.ended("elsewhere/a.parquet")


@cache
def _calls_of_mixed() -> int:
    return len(told(mixed).journal.calls)


def _lost_at(moment: float) -> Scenario:
    """Return a deployment that crashed and lost its ledger after a part of the story."""
    deployment = Scenario()
    stop = int(moment * _calls_of_mixed()) - 1

    def lose() -> None:
        deployment.ledger.lose()
        raise _Stopped

    deployment.journal.strike_at(stop, Fault(lose, "after"))
    with suppress(_Stopped):
        mixed(deployment)
    deployment.ledger.lose()
    return deployment


def _lost(loss: Loss, ids: tuple[str, ...], deployment: Scenario) -> Fault:
    return Fault(partial(loss, ids, deployment), "after")


def _watched(story: Story) -> tuple[Scenario, dict[int, tuple[str, ...]]]:
    """Run a story without faults; return it and the ledger's files after each call.

    Calls that never return, such as failing ones or unfinished lists, are skipped.
    """
    deployment = Scenario()
    known: dict[int, tuple[str, ...]] = {}

    def check(number: int) -> None:
        landed = [ingestion_id(each) for each in deployment.landing.landed()]
        known[number] = tuple(sorted(deployment.ledger.known(landed)))

    for number in range(len(told(story).journal.calls)):
        deployment.journal.strike_at(number, Fault(partial(check, number), "after"))
    story(deployment)
    return deployment, known


class _Stopped(BaseException):
    """The story ends here."""


def test_live_work_that_moves_on_while_traces_are_read_is_left_alone() -> None:
    """A sweep that is slower than the next attempt deletes nothing of that attempt."""
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


def test_a_branch_is_deleted_only_after_its_ingestion_was_registered(deployment: Scenario) -> None:
    """If another process adds the ingestion first, no branch is deleted."""
    landed = deployment.land(KEY)
    deployment.kill("jobs.start")
    deployment.deliver()
    branched = deployment.ingestion(landed)
    assert branched.state is State.BRANCHED
    deployment.ledger.lose(branched.id)
    deployment.journal.strike("ledger.begin", Fault(lambda: deployment.ledger.begin(branched)))
    assert list(rebuild(deployment.adapters)) == []
    assert deployment.catalog.branches("ingest/") == [branched.branch]


def test_the_branch_of_a_restored_run_stays() -> None:
    """A restored re-audit keeps the branch that its job run names."""
    steps = (Begin(Work.JOB, 0), Begin(Work.MESSAGE, 0), Begin(Work.JOB, 0))
    play((*BEYOND, *steps, events.LoseEntry(2)))


def test_a_cut_history_publishes_nothing_twice() -> None:
    """Without the beginning of main's log, earlier publications cannot be told from lost ones."""
    deployment = Scenario()
    before, after = deployment.ended(KEY), deployment.ended("shop/orders/later.parquet")
    rows = deployment.tables.rows(TABLE, "main")
    deployment.catalog.cut(after.merge_hash)
    assert list(rebuild(deployment.adapters, dry_run=True)) == []
    deployment.ledger.lose(before.id)
    with pytest.raises(Permanent, match="HISTORY_CUT"):
        list(rebuild(deployment.adapters))
    deployment.clock.pass_(24 * 3600)
    deployment.sweep()
    deployment.go()
    assert deployment.tables.rows(TABLE, "main") == rows
