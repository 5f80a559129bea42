"""A catalog restored to an older backup: ledger and main agree again, and nothing is doubled."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from functions.model import merge_commit
from functions.model.ingestion import State
from functions.operations.reconcile.compare import reconciled
from functions.operations.recovery.realign import Realigned, realign
from functions.operations.recovery.realign_plan import Kind
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.pipeline.start.intake import retract
from functions.pipeline.start.submit import submit
from lakegate.errors import LakegateError, Permanent
from lakegate.job.upkeep import UPKEEP
from tests.fakes.amounts import RUNS, SEED, some
from tests.fakes.backups import Backup, realigned
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import ORDERS, OTHER_TABLE, TABLE
from tests.fakes.events import Land, Time
from tests.fakes.faults import KINDS, Fault, ProcessDied, When
from tests.fakes.job import rejected
from tests.fakes.machine import tell
from tests.fakes.openings import DAYS
from tests.fakes.promises import check_promises, ends, left_behind, unwatched
from tests.fakes.restorations import Restoration
from tests.fakes.scenario import FIRST, FOREVER, KEY, Scenario
from tests.fakes.stage import File, Stage, happen
from tests.fakes.stories import explore_with, restorations
from tests.fakes.upkeep_events import CleanUp, Compact
from tests.unit.pipeline.test_crashes import fault, pause

pytestmark = pytest.mark.usefixtures("quiet")

OTHER = "shop/orders/b.parquet"


def codes(deployment: Scenario) -> list[str]:
    """Return the problems that reconcile finds."""
    return [each.code for each in reconciled(unwatched(deployment)).problems]


def published_in_order(deployment: Scenario) -> list[str]:
    """Return the landed objects in the order in which main got their rows."""
    log = [*deployment.catalog.log()][::-1]
    return [each.object for commit in log for each in merge_commit.published(commit)]


def test_lost_publications_are_published_again_once(deployment: Scenario) -> None:
    """What main lost is published again, once; a second run changes nothing."""
    first = deployment.ended(FIRST)
    backup = Backup.of(deployment)
    second = deployment.ended()
    backup.restore(deployment)
    assert codes(deployment) == ["NOT_ON_MAIN"]
    assert realigned(deployment) == [Kind.PUBLISH_AGAIN]
    assert realigned(deployment) == []
    deployment.check()
    assert deployment.on_main(first, second) == [True, True]
    assert realigned(deployment) == []
    assert [each.ingestion for each in deployment.announcements.sent] == [first.id, second.id]


def test_what_is_published_meanwhile_is_not_lost(deployment: Scenario) -> None:
    """What main and the ledger get while both are read is neither unclear nor published again."""
    deployment.ended(FIRST)
    publish = Fault(partial(deployment.ended, KEY))
    deployment.journal.strike("ledger.all", publish)
    assert realign(deployment.adapters) == Realigned([], [])


def test_what_main_has_although_its_branch_is_gone_does_not_run_again(
    deployment: Scenario,
) -> None:
    """A file that was merged, but not recorded, is published once, by the commit that there is."""
    deployment.ended(FIRST)
    file = deployment.run()
    deployment.fail("catalog.merge", "after")
    deployment.deliver()
    assert deployment.states(file) == [State.AUDITED]
    deployment.others.drop_branch(deployment.ingestion(file).branch)
    assert Kind.RUN_AGAIN not in realigned(deployment)
    ended = deployment.end_of(file)
    assert (ended.state, ended.attempt) == (State.PUBLISHED, 1)


def test_what_runs_again_looks_for_itself_from_mains_head(deployment: Scenario) -> None:
    """If a process merges an older intent from now on, the next attempt finds that commit."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    lost = deployment.ended()
    deployment.ledger.lose(lost.id)
    (rebuilt,) = rebuild(deployment.adapters)
    assert rebuilt.base_hash == ""
    backup.restore(deployment)
    head = deployment.catalog.head("main")
    assert realigned(deployment) == [Kind.PUBLISH_AGAIN]
    assert deployment.ingestion(lost).base_hash == head


def test_a_compaction_that_had_ended_leaves_no_branch() -> None:
    """The restored branch of a compaction that has ended since the backup is deleted again."""
    landed = (Land(FIRST), Time.REST, Land(OTHER), Time.REST, Compact())
    happen((*landed, Restoration.BACKUP, Time.REST, Restoration.RESTORE), stage := Stage())
    deployment = stage.deployment
    there = deployment.catalog.branches(UPKEEP)
    assert there
    for _ in range(2):
        assert realign(deployment.adapters, dry_run=True).compactions == there
    assert realign(deployment.adapters).compactions == there
    assert deployment.catalog.branches(UPKEEP) == []
    assert realign(deployment.adapters).compactions == []


def test_a_cut_history_is_not_realigned() -> None:
    """If main's log was cut, nothing that it no longer names is published again."""
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.catalog.cut(deployment.ended().merge_hash)
    with pytest.raises(Permanent, match=r"HISTORY_CUT.* of \d+ Mar 2026, "):
        realign(deployment.adapters)


def test_a_lost_retraction_follows_its_file(deployment: Scenario) -> None:
    """A retraction that main lost with its file is made again once the file is published again."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    file = deployment.ended()
    done = retract(deployment.adapters, file, "Ann", "wrong day")
    deployment.settle()
    backup.restore(deployment)
    assert realigned(deployment) == [Kind.PUBLISH_AGAIN] * 2
    deployment.check()
    assert deployment.states(file, done) == [State.PUBLISHED] * 2
    assert deployment.on_main(file) == [False]


def test_a_dry_run_changes_nothing() -> None:
    """A dry run names what would be done, and makes no change."""
    deployment = Scenario()
    backup = Backup.of(deployment)
    lost = deployment.ended()
    backup.restore(deployment)
    (done,) = realign(deployment.adapters, dry_run=True).done
    assert (done.decision.kinds, done.decision.ingestion) == ((Kind.PUBLISH_AGAIN,), lost)
    assert deployment.ingestion(lost) == lost


@pytest.mark.parametrize("day", DAYS)
def test_a_healthy_deployment_stays_as_it_is(day: object) -> None:
    """Without a restoration the command changes nothing, also while files are in flight."""
    deployment = tell(day).deployment  # type: ignore[arg-type]
    deployment.land(KEY)
    deployment.deliver()
    deployment.land(OTHER)
    deployment.run_jobs()
    begun = len(deployment.journal.calls)
    assert realigned(deployment) == []
    changes = ("ledger.save", "ledger.rebase", "ledger.save_each", "catalog.delete_branch")
    assert not {*changes} & {*deployment.journal.calls[begun:]}


def test_a_change_comes_between_the_same_files_again(deployment: Scenario) -> None:
    """Files and a change are published in their first order, whichever job ends first."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    before = deployment.ended(KEY)
    change = deployment.end_of(deployment.change())
    after = deployment.ended(OTHER)
    order = published_in_order(deployment)
    backup.restore(deployment)
    realigned(deployment)
    deployment.sweep()
    new = deployment.land("shop/orders/new.parquet")
    deployment.deliver()
    for nth in (3, 2, 1):
        deployment.run_one_job(nth)
        deployment.deliver()
    assert deployment.on_main(before, after, new) == [False, False, False]
    deployment.check()
    assert published_in_order(deployment) == [*order, new.uri]
    assert deployment.states(before, change, after) == [State.PUBLISHED] * 3


def test_versions_of_a_key_come_in_the_same_order_again(deployment: Scenario) -> None:
    """A version that was added and one that replaced it leave main as before."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    added = deployment.ended()
    deployment.ask(onNewVersion="replace")
    replacing = deployment.ended()
    backup.restore(deployment)
    realigned(deployment)
    deployment.sweep()
    newest = deployment.land(KEY)
    deployment.deliver()
    for _ in range(3):
        deployment.run_one_job(-1)
        deployment.deliver()
    deployment.check()
    assert deployment.states(added, replacing, newest) == [State.PUBLISHED] * 3
    assert deployment.on_main(added, replacing, newest) == [False, False, True]


def test_a_file_that_is_gone_is_named_as_lost() -> None:
    """Without its landed object it ends errored, its owner is alerted, and others come back."""
    deployment = Scenario()
    backup = Backup.of(deployment)
    lost, other = deployment.ended(), deployment.ended(OTHER)
    backup.restore(deployment)
    deployment.landing.forget(lost.landed)
    assert realigned(deployment) == [Kind.LOST, Kind.PUBLISH_AGAIN]
    deployment.settle()
    assert deployment.end(lost) == "errored WITHDRAWN"
    assert f"{lost.report_key} in the lake bucket names" in deployment.message(lost)
    assert deployment.on_main(lost, other) == [False, True]
    assert lost.id in deployment.told()[-1]
    assert codes(deployment) == []
    assert realigned(deployment) == []


def test_a_batch_without_one_of_its_files_is_lost() -> None:
    """A batch of which a file is gone is named as lost as a whole."""
    deployment = Scenario()
    backup = Backup.of(deployment)
    batch = deployment.end_of(deployment.batch("monday", {"a": TABLE, "b": OTHER_TABLE}))
    backup.restore(deployment)
    deployment.landing.forget(batch.parts[1].landed(batch.landed))
    assert realigned(deployment) == [Kind.LOST]


def test_lost_audit_results_are_recorded_again(deployment: Scenario) -> None:
    """What main's audit tables lost of a rejected file is recorded again, once."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    bad = deployment.ended(script=rejected)
    backup.restore(deployment)
    (done,) = realign(deployment.adapters).done
    assert done.decision.ingestion.id == bad.id
    assert done.decision.kinds == (Kind.RECORD_AGAIN, Kind.BRANCH_GONE)
    deployment.check()
    assert realigned(deployment) == []


def test_a_failure_is_open_again_if_the_newer_version_is_lost() -> None:
    """A failure that a lost version superseded waits for a decision again, and is alerted."""
    deployment = Scenario()
    bad = deployment.ended(script=rejected)
    backup = Backup.of(deployment)
    newer = deployment.ended()
    assert deployment.ingestion(bad).superseded_by == newer.id
    backup.restore(deployment)
    deployment.landing.forget(newer.landed)
    assert realigned(deployment) == [Kind.LOST, Kind.REOPEN]
    assert deployment.end_of(bad).is_open
    assert bad.id in "".join(deployment.told()[-2:])


def test_an_ignored_version_runs_again_if_the_newer_one_is_lost() -> None:
    """A version that was ignored for a lost newer one is published in its place."""
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.ask(onNewVersion="replace")
    backup = Backup.of(deployment)
    old = deployment.land_unannounced()
    newer = deployment.ended()
    deployment.settle()
    assert deployment.end(old) == "ignored SUPERSEDED"
    backup.restore(deployment)
    deployment.landing.forget(newer.landed)
    assert realigned(deployment) == [Kind.LOST, Kind.RUN_AGAIN]
    deployment.settle()
    assert deployment.states(old) == [State.PUBLISHED]


def test_an_ingestion_whose_branch_is_gone_runs_again(deployment: Scenario) -> None:
    """An ingestion in flight on a branch that the backup lacks gets another one."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    begun = deployment.submit()
    backup.restore(deployment)
    assert realigned(deployment) == [Kind.RUN_AGAIN]
    deployment.check()
    found = deployment.ingestion(begun)
    assert (found.state, found.attempt, found.failures) == (State.PUBLISHED, 2, 0)


def test_a_branch_that_another_file_needs_stays() -> None:
    """A branch is named after one file of its group: it stays while another one waits on it."""
    deployment = Scenario()
    done, waits = deployment.share_an_intent(deployment.wait_together(2))
    deployment.ledger.save(done.step("ignored", "2026-03-01T13", state=State.IGNORED, cleaned=True))
    assert done.branch == waits.branch
    assert list(realign(deployment.adapters).done) == []
    assert waits.branch in deployment.catalog.references()


def test_the_branch_of_a_lost_group_stays_while_a_member_waits_on_it() -> None:
    """A file that is published again deletes no branch that another one may still be merged by."""
    deployment = Scenario()
    deployment.share(1)
    landed = [deployment.land(key) for key in (KEY, OTHER)]
    deployment.go()
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    waits, lost = (deployment.ingestion(each) for each in landed)
    backup = Backup.of(deployment)
    deployment.publish(lost)
    deployment.settle()
    backup.restore(deployment)
    now = deployment.ingestion(waits)
    deployment.ledger.save(replace(waits, revision=now.revision))
    (done,) = realign(deployment.adapters).done
    assert (done.decision.ingestion.id, done.decision.branches) == (lost.id, ())
    assert waits.branch in deployment.catalog.references()


def test_a_file_that_is_replayed_meanwhile_keeps_its_new_branch() -> None:
    """What a person replays while the command reads is left to the command's next run."""
    deployment = Scenario()
    deployment.ended(FIRST)
    bad = deployment.ended(script=rejected)
    backup = Backup.of(deployment)
    deployment.discard(bad)
    backup.restore(deployment)

    def replayed() -> None:
        deployment.replay(deployment.ingestion(bad))
        deployment.deliver()

    deployment.journal.strike_later("catalog.references", Fault(replayed), 1)
    (done,) = realign(deployment.adapters).done
    assert (done.overtaken, done.decision.kinds) == (True, (Kind.DELETE_BRANCHES,))
    assert deployment.ingestion(bad).branch in done.decision.branches
    assert deployment.ingestion(bad).branch in deployment.catalog.references()


def test_a_newer_backup_after_an_older_one_doubles_nothing() -> None:
    """If main has an earlier attempt's rows again, the ledger names that commit."""
    deployment = Scenario()
    older = Backup.of(deployment)
    landed = deployment.ended()
    newer = Backup.of(deployment)
    older.restore(deployment)
    realigned(deployment)
    assert deployment.end_of(landed).attempt == 2
    newer.restore(deployment)
    assert Kind.ADOPT in realigned(deployment)
    found = deployment.end_of(landed)
    assert (found.merge_hash, found.report_key) == (landed.merge_hash, landed.report_key)
    assert len(deployment.published_files()) == 1
    assert codes(deployment) == []


def test_an_approval_holds_again(deployment: Scenario) -> None:
    """Rows that a person published anyway are published again without asking."""
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    bad = deployment.ended(script=rejected)
    deployment.publish_anyway(bad)
    deployment.settle()
    backup.restore(deployment)
    realigned(deployment)
    deployment.check()
    found = deployment.ingestion(bad)
    assert (found.state, found.decisions.approved_by) == (
        State.PUBLISHED,
        "Ann",
    )


def test_an_approval_says_nothing_of_bytes_that_come_meanwhile(deployment: Scenario) -> None:
    """Where a file brings the bytes of a lost one before that is published again, one is held."""
    deployment.ask(onDuplicate="hold")
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    early = deployment.land_unannounced(KEY, b"the same")
    lost = deployment.run(OTHER, b"the same", rejected)
    deployment.deliver()
    deployment.publish_anyway(lost)
    backup.restore(deployment)
    assert realigned(deployment) == [Kind.PUBLISH_AGAIN]
    submit(deployment.adapters, deployment.ingestion(lost))
    deployment.send_upload(early)
    deployment.deliver()
    deployment.run_jobs()
    deployment.settle()
    assert sorted(map(deployment.end, (early, lost))) == ["published", "rejected LIKELY_DUPLICATE"]


def test_an_approval_of_known_bytes_holds_again(deployment: Scenario) -> None:
    """Files of the same bytes that a person published both are published both again."""
    deployment.ask(onDuplicate="hold")
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    keys = [f"shop/orders/{name}.parquet" for name in "ab"]
    both = [deployment.ended(key, b"the same", rejected) for key in keys]
    for each in (*both[::-1], both[0]):  # whose own first approval ends it as a duplicate
        deployment.publish_anyway(each.landed)
    deployment.settle()
    backup.restore(deployment)
    realigned(deployment)
    deployment.settle()
    assert deployment.states(*both) == [State.PUBLISHED] * 2


def test_it_is_audited_by_its_own_contract(deployment: Scenario) -> None:
    """A stricter contract of today does not refuse rows that were published before it."""
    backup = Backup.of(deployment)
    landed = deployment.ended()
    deployment.upload_contract(ORDERS.replace("version: 1.0.0", "version: 2.0.0"))
    backup.restore(deployment)
    realigned(deployment)
    deployment.check()
    found = deployment.ingestion(landed)
    assert (found.terms.contract_version, found.contract_pinned) == ("v1", True)


def test_rows_that_may_be_on_main_are_left_alone() -> None:
    """If main lists its data file under no commit of ours, it is named and not doubled."""
    deployment = Scenario()
    deployment.ended(FIRST)
    backup = Backup.of(deployment)
    lost = deployment.ended()
    backup.restore(deployment)
    table = deployment.catalog.table("main", TABLE)
    assert isinstance(table, FakeTable)
    [file] = deployment.lake.report(lost.report_key).files
    deployment.catalog.commit("main", TABLE, table.append(file.path))
    (done,) = realign(deployment.adapters).done
    assert done.decision.kinds == (Kind.UNCLEAR,)
    assert f"{TABLE} lists {file.path}" in done.decision.why
    assert deployment.ingestion(lost) == lost


def test_rows_of_an_unknown_report_are_left_alone() -> None:
    """If its report is gone, nobody can tell whether main has its rows: it is named, no more."""
    deployment = Scenario()
    backup = Backup.of(deployment)
    lost = deployment.ended()
    backup.restore(deployment)
    deployment.lake.lose(lost.report_key)
    (done,) = realign(deployment.adapters).done
    assert done.decision.kinds == (Kind.UNCLEAR,)
    assert "report is gone" in done.decision.why
    assert deployment.ingestion(lost) == lost


def eventful(deployment: Scenario) -> None:
    """Restore a backup after files, a change, a batch, a rejection and a version; one is going."""
    deployment.ended(FIRST)
    gone = deployment.ended("shop/orders/gone.parquet", script=rejected)
    backup = Backup.of(deployment)
    deployment.discard(gone)
    deployment.ended()
    deployment.end_of(deployment.change())
    deployment.ended(OTHER, script=rejected)
    deployment.ended(OTHER)
    deployment.end_of(deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": OTHER_TABLE}))
    deployment.submit("shop/orders/going.parquet")
    backup.restore(deployment)


def test_a_fault_anywhere_changes_no_end() -> None:
    """After a fault at any call the repeated command has the undisturbed result."""
    undisturbed = _told()
    calls = tuple(undisturbed.journal.calls)
    undisturbed.settle()
    for number in range(_begun(), len(calls)):
        for kind in some(list(KINDS), "realign", number):
            where = f"{kind} at call {number}, {calls[number]}"
            disturbed = _told(number, partial(fault, kind))
            assert ends(disturbed) == ends(undisturbed), where
            assert not left_behind(disturbed), where


def test_others_may_work_meanwhile() -> None:
    """The sweep, the completion and another run of the command at any call change no end."""
    undisturbed = _told()
    calls = tuple(undisturbed.journal.calls)
    undisturbed.settle()
    work: list[Callable[[Scenario], object]] = [Scenario.sweep, Scenario.settle, realigned]
    cases: list[tuple[Callable[[Scenario], object], When]] = [
        (others, when) for others in work for when in ("before", "after")
    ]
    for number in range(_begun(), len(calls)):
        for others, when in some(cases, "realign", number):
            disturbed = _told(number, partial(pause, others, when))
            where = f"{others.__name__} {when} call {number}, {calls[number]}"
            assert ends(disturbed) == ends(undisturbed), where


def _begun() -> int:
    """Return the number of the command's first call."""
    deployment = Scenario()
    eventful(deployment)
    return len(deployment.journal.calls)


def _told(number: int = -1, struck: Callable[[Scenario], Fault] | None = None) -> Scenario:
    """Return a realigned deployment; the command's first run met a fault at one of its calls."""
    deployment = Scenario()
    eventful(deployment)
    if struck:
        deployment.journal.strike_at(number, struck(deployment))
    with suppress(LakegateError, ProcessDied):
        realign(deployment.adapters)
    if not struck:
        return deployment
    realigned(deployment)
    deployment.settle()
    assert realigned(deployment) == []
    check_promises(deployment)
    return deployment


def test_results_that_upkeep_deleted_stay_deleted() -> None:
    """If nobody realigned for days, results of lost commits are gone, and main is readable."""
    lost = (Land(FIRST), Time.REST, Restoration.BACKUP, Land(KEY, File.REJECTED), Time.REST)
    after = (Restoration.REALIGN, Restoration.REALIGNED, Restoration.SETTLED)
    stage = tell((*lost, Restoration.RESTORE, CleanUp(4), *after))
    assert any("audit_results" in key for key in stage.deployment.lake.deleted)


def test_a_group_whose_branch_is_gone_runs_again_by_one_command() -> None:
    """That one of them has left the group is no news about the others."""
    deployment = Scenario()
    members = deployment.share_an_intent(deployment.wait_together(3))
    deployment.catalog.delete_branch(members[0].branch)
    done = realign(deployment.adapters).done
    assert [(each.decision.kinds, each.overtaken) for each in done] == [
        ((Kind.RUN_AGAIN,), False)
    ] * 3
    assert deployment.states(*members) == [State.LANDED] * 3


@pytest.mark.timeout(1800)  # it takes long to shorten a failing story
def test_every_promise_is_kept_in_every_restoration() -> None:
    """A random story with a restoration keeps every promise, and a second run changes nothing."""
    explore_with(tell, restorations(), RUNS // 3, SEED)
