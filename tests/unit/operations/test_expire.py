"""Expiry deletes old failures and unneeded branches, and nothing else."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from functions.model.ingestion import Ingestion, State
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.operations.upkeep.expire import Expired, expire
from lakegate.audit.report import AuditReport
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.deployment import TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.files_in_the_lake import check_files
from tests.fakes.job import errored, passed, rejected
from tests.fakes.promises import check_promises, left_behind
from tests.fakes.scenario import FIRST, Scenario

DAY = 86_400
LEFT = f"publish/{TABLE}/0123456789ab-left"  # a branch that a crash left


def failed(
    script: Callable[[AuditReport], AuditReport | None] = rejected, days: float = 31
) -> Scenario:
    """Return a deployment with a file on main, and one that failed so many days ago."""
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.ended(script=script)
    deployment.clock.pass_(days * DAY)
    return deployment


def expired(deployment: Scenario, days: int = 30, *, dry_run: bool = False) -> list[Expired]:
    """Run expiry and return its results."""
    return list(expire(deployment.adapters, days, dry_run=dry_run))


@pytest.mark.parametrize("script", [rejected, errored])
def test_old_failures_expire(script: Callable[[AuditReport], AuditReport]) -> None:
    """The branch is deleted, the ledger records it, and a second run finds nothing."""
    deployment = failed(script)
    (one,) = expired(deployment)
    assert (one.table, one.left) == (TABLE, "")
    (ingestion,) = [i for i in deployment.ledger.all() if i.id == one.ingestion]
    assert (ingestion.decisions.discarded, ingestion.decisions.branches_to_delete) == (True, {})
    assert deployment.catalog.branches("ingest/") == []
    assert expired(deployment) == []
    check_promises(deployment)


class Streamed:
    """A ledger that yields each ingestion once, and counts how many of them are held at a time."""

    def __init__(self, ledger: Any) -> None:
        self._ledger, self._yielded = ledger, list[weakref.ref[Ingestion]]()
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def all(self) -> Iterator[Ingestion]:
        for each in list(self._ledger.all()):
            copy = each.but()
            self._yielded.append(weakref.ref(copy))
            yield copy
            del copy
            self.most = max(self.most, sum(ref() is not None for ref in self._yielded))


def test_a_ledger_of_any_size_is_read_without_remembering_it() -> None:
    """Of ended ingestions without a branch none is kept in memory, however many there are."""
    deployment = failed()
    done = deployment.ingestion(deployment.ended("shop/orders/done.csv"))
    for n in range(500):
        deployment.ledger.begin(done.but(id=f"{n:032}", revision=0))
    streamed: Any = Streamed(deployment.ledger)
    (one,) = expire(replace(deployment.adapters, ledger=streamed), 30)
    assert one.left == ""
    assert streamed.most < 5


def test_newer_failures_stay() -> None:
    """Newer failures stay unchanged."""
    deployment = failed(days=29)
    assert expired(deployment) == []
    assert deployment.lake.deleted == {}


def test_an_old_branch_of_a_new_failure_stays() -> None:
    """What failed just now keeps its evidence, also on a branch named after another file."""
    deployment = Scenario()
    named, bad = deployment.share_an_intent(deployment.wait_together(2))
    deployment.clock.pass_(31 * DAY)
    at = deployment.adapters.now()
    deployment.ledger.save(named.step("ignored", at, state=State.IGNORED, cleaned=True))
    deployment.ledger.save(
        bad.step("errored", at, state=State.ERRORED, alerted=True, announced=True, cleaned=True)
    )
    assert expired(deployment) == []
    assert bad.branch in deployment.catalog.references()


def test_a_dry_run_names_what_a_run_deletes() -> None:
    """A dry run changes nothing and names exactly what a run deletes."""
    deployment = failed()
    deployment.catalog.fork(f"ingest/{TABLE}/left", deployment.catalog.branches("ingest/")[0])
    before = deployment.catalog.references()
    said = expired(deployment, dry_run=True)
    assert deployment.catalog.references() == before
    assert deployment.lake.deleted == {}
    assert len(said) == 2
    assert expired(deployment) == said
    check_promises(deployment)


def test_a_failure_that_was_not_notified_stays() -> None:
    """A failure that was not notified is kept, however old."""
    deployment = failed()
    deployment.fail("alerts.post", times=99)
    deployment.run("shop/orders/b.parquet", script=rejected)
    deployment.deliver()
    deployment.clock.pass_(31 * DAY)
    assert len(expired(deployment)) == 1


def test_an_ingestion_in_flight_stays() -> None:
    """All branches of a replayed file stay, however old."""
    deployment = failed()
    deployment.replay(*deployment.ledger.in_state(State.REJECTED))
    deployment.clock.pass_(31 * DAY)
    assert expired(deployment, 0) == []
    assert len(deployment.catalog.branches("ingest/")) == 2


def test_both_attempts_go_together() -> None:
    """Both branches of a file that failed again expire together."""
    deployment = failed()
    deployment.replay(*deployment.ledger.in_state(State.REJECTED))
    deployment.check()
    assert expired(deployment) == []
    deployment.clock.pass_(31 * DAY)
    (one,) = expired(deployment)
    assert len(one.branches) == 2


@pytest.mark.parametrize(("days", "goes"), [(0.5, False), (2, True)])
def test_a_branch_that_nobody_names_goes_after_a_day(days: float, goes: bool) -> None:
    """A branch left by a crash is deleted after a day."""
    deployment = Scenario()
    deployment.ended()
    deployment.catalog.fork(LEFT, "main")
    table = deployment.catalog.table(LEFT, TABLE)
    assert table
    deployment.catalog.commit(LEFT, TABLE, table.append("left"))
    deployment.clock.pass_(days * DAY)
    assert [each.branches for each in expired(deployment, 0)] == [(LEFT,)] * goes
    assert (LEFT in deployment.catalog.references()) is not goes
    check_files(deployment)


def test_mains_log_is_read_once_for_all_tables() -> None:
    """Branches of several tables are told by one reading of main's log."""
    deployment = failed()
    for table in (TABLE, "shop.returns", "shop.items"):
        deployment.catalog.create_branch(f"publish/{table}/0123456789ab-left")
    deployment.move_main()
    deployment.clock.pass_(31 * DAY)
    del deployment.journal.calls[:]
    assert len(expired(deployment)) == 4
    assert deployment.journal.calls.count("catalog.changes") == 1 + 3


@pytest.mark.parametrize("published", [0, 1])
def test_a_branch_without_a_commit_is_as_old_as_mains_next(published: int) -> None:
    """A branch without commits is as old as main's next commit; without one it stays."""
    deployment = Scenario()
    for number in range(published):  # so that it begins at a merge
        deployment.ended(f"shop/orders/{number}.parquet")
    deployment.catalog.fork(LEFT, "main")
    deployment.clock.pass_(2 * DAY)
    assert expired(deployment, 1) == []
    deployment.ended()
    assert expired(deployment, 1) == []
    deployment.clock.pass_(2 * DAY)
    assert [each.branches for each in expired(deployment, 1)] == [(LEFT,)]


def test_branches_of_others_stay() -> None:
    """Branches that Lakegate did not create stay, however old."""
    deployment = failed(passed)
    deployment.catalog.fork("mine", "main")
    deployment.clock.pass_(100 * DAY)
    assert expired(deployment, 1) == []
    assert "mine" in deployment.catalog.references()


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_anywhere_is_made_good_by_the_next_run(kind: str) -> None:
    """After a fault at any call the next runs have the result of an undisturbed one."""
    whole = failed()
    start = len(whole.journal.calls)
    expired(whole)
    for number in range(start, len(whole.journal.calls)):
        deployment = failed()
        deployment.journal.strike_at(number, Fault(*KINDS[kind]))
        for _ in range(3):
            with suppress(ProcessDied, Exception):  # the next run makes it good
                expired(deployment)
        deployment.settle()  # the sweep tells people what a crash left untold
        where = f"call {number}, {whole.journal.calls[number]}"
        assert set(deployment.lake.deleted) == set(whole.lake.deleted), where
        assert not left_behind(deployment), where
        check_promises(deployment)


def test_one_that_cannot_be_removed_holds_up_no_other() -> None:
    """A failure is reported, and the others expire."""
    deployment = failed()
    deployment.ended("shop/orders/b.parquet", script=rejected)
    deployment.clock.pass_(31 * DAY)
    deployment.fail("catalog.delete_branch")
    first, second = expired(deployment)
    assert first.left
    assert second.left == ""
    assert [each.left for each in expired(deployment)] == [""]
    assert deployment.catalog.branches("ingest/") == []


@pytest.mark.parametrize(("noted", "many"), [(True, 1), (False, 0)])
def test_a_restored_ingestion_is_as_old_as_its_end(noted: bool, many: int) -> None:
    """A restored ingestion expires by the time of its failure; without one it stays."""
    deployment = failed()
    (branch,) = deployment.catalog.branches("ingest/")
    before = next(i for i in deployment.ledger.all() if i.branch == branch)
    deployment.ledger.lose(before.id)
    deployment.jobs.lose(before.job_run)
    (restored,) = rebuild(deployment.adapters)
    if not noted:
        times = {step: at for step, at in restored.times.items() if step != restored.state}
        deployment.ledger.save(replace(restored, times=times))
    deployment.settle()
    assert len(expired(deployment)) == many


def lost(deployment: Scenario, *files: LandedObject) -> str:
    """Let the ledger lose some files of one branch, long ago; return the branch."""
    (branch,) = {deployment.ingestion(each).branch for each in files}
    for each in files:
        deployment.ledger.lose(ingestion_id(each))
    deployment.clock.pass_(31 * DAY)
    return branch


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_branch_of_files_that_the_ledger_lost_stays(
    quiet: None, shared: int, *, dry_run: bool
) -> None:
    """Files that passed their audit and whose entries are lost are restored, and published."""
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.share(shared)
    files = [deployment.land(f"shop/orders/{n}.parquet") for n in range(1 + shared)]
    deployment.fail("catalog.merge", times=99)
    deployment.go(2)
    deployment.deliver()
    deployment.journal.repair("catalog.merge")
    branch = lost(deployment, *files)
    (kept,) = expired(deployment, dry_run=dry_run)
    assert kept.branches == (branch,)
    assert "the ledger lacks what it is for" in kept.left
    assert deployment.lake.deleted == {}
    assert {i.id for i in deployment.ledger.all()}.issuperset(map(ingestion_id, files)) != dry_run
    deployment.check()
    assert deployment.on_main(*files) == [True] * len(files)


def test_evidence_that_the_ledger_lost_stays() -> None:
    """A rejected file whose entry is lost is restored, with its branch, and expires as others."""
    deployment = Scenario()
    deployment.ended(FIRST)
    bad = deployment.land("shop/orders/bad.parquet", script=rejected)
    deployment.settle()
    deployment.lake.put_text(f"{deployment.ingestion(bad).report_key}.tried", b"")
    branch = lost(deployment, bad)
    (kept,) = expired(deployment)
    assert kept.left
    assert deployment.end_of(bad).state is State.REJECTED
    assert branch in deployment.catalog.references()
    deployment.clock.pass_(31 * DAY)
    (gone,) = expired(deployment)
    assert (gone.branches, gone.left) == ((branch,), "")


def test_a_branch_whose_report_cannot_be_read_stays() -> None:
    """In doubt nothing is deleted, and the reason is given."""
    deployment = Scenario()
    deployment.ended(FIRST)
    bad = deployment.land("shop/orders/bad.parquet", script=rejected)
    deployment.settle()
    deployment.lake.put_text(deployment.ingestion(bad).report_key, b"no report")
    branch = lost(deployment, bad)
    (kept,) = expired(deployment)
    assert "is not JSON" in kept.left
    assert branch in deployment.catalog.references()


def test_a_branch_that_moved_meanwhile_stays() -> None:
    """A branch that somebody writes to between the look and the deletion is kept, and said so."""
    deployment = Scenario()
    deployment.ended(FIRST)
    deployment.catalog.fork(LEFT, "main")
    deployment.others.write_on_branch(LEFT, TABLE)
    deployment.clock.pass_(2 * DAY)
    write = partial(deployment.others.write_on_branch, LEFT, TABLE)
    deployment.journal.strike("catalog.changes", Fault(write, "after"))
    (kept,) = expired(deployment, 1)
    assert "changed meanwhile" in kept.left
    assert LEFT in deployment.catalog.references()


def test_a_file_that_was_replayed_meanwhile_keeps_its_branches() -> None:
    """A discarded file's branch is unneeded, until somebody replays the file."""
    deployment = failed()
    (bad,) = deployment.ledger.in_state(State.REJECTED)
    at = deployment.catalog.references()[bad.branch]
    deployment.discard(bad)
    deployment.settle()
    deployment.catalog.create_branch(bad.branch)  # as a restored catalog has it
    deployment.catalog.reset(bad.branch, at)
    replays = Fault(lambda: deployment.replay(deployment.ingestion(bad)), "after")
    deployment.journal.strike("ledger.read", replays)
    assert expired(deployment) == []
    assert bad.branch in deployment.catalog.references()


def test_an_unneeded_branch_of_a_batch_names_its_tables() -> None:
    """A batch's branch that came back after it was published is told with the batch's tables."""
    deployment = Scenario()
    batch = deployment.batch("monday", {"orders.csv": TABLE, "returns.csv": "shop.returns"})
    deployment.settle()
    branch = deployment.ingestion(batch).branch
    deployment.catalog.create_branch(branch)
    deployment.others.write_on_branch(branch, TABLE)
    deployment.clock.pass_(31 * DAY)
    assert [(one.table, one.branches) for one in expired(deployment)] == [
        (f"{TABLE}, shop.returns", (branch,))
    ]


def test_a_branch_that_is_to_be_merged_stays(quiet: None) -> None:
    """A branch that may still be merged stays, however old."""
    deployment = Scenario()
    first, second = deployment.share_an_intent(deployment.wait_together(2))
    deployment.ledger.lose(first.id)
    deployment.clock.pass_(31 * DAY)
    assert second.branch not in {name for each in expired(deployment) for name in each.branches}
    assert second.branch in deployment.catalog.branches("publish/")
