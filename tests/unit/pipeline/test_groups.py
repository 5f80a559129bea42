"""Ingestions that wait for one table are published together, and none blocks another."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from functions.adapters.ledger.items import size
from functions.adapters.ledger.ledger import MOST_WRITES
from functions.adapters.ledger.notes import Moved
from functions.model import merge_commit
from functions.model.ingestion import State
from functions.pipeline.outcome.finish import finish_published
from functions.pipeline.publication.publish import publish
from functions.pipeline.publication.rebase import Unit, unit_of
from functions.pipeline.verdict.complete import judge
from lakegate.errors import Transient
from lakegate.job.landing import LandedObject, branch_name
from tests.fakes.deployment import ORDERS, TABLE
from tests.fakes.faults import Fault
from tests.fakes.scenario import FIRST, FOREVER, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


def published_alone(
    deployment: Scenario, key: str, meanwhile: Callable[[], object] = lambda: None
) -> LandedObject:
    """Publish a file while no other message is delivered."""
    landed = deployment.land(key)
    deployment.deliver_one(-1)
    meanwhile()
    deployment.run_jobs()
    judge(deployment.adapters, deployment.ingestion(landed).job_run)
    deployment.publish(landed)
    return landed


def test_files_that_wait_are_published_by_one_commit(deployment: Scenario) -> None:
    """Files that wait for one table are published by a single merge, which names each of them."""
    landed = deployment.wait_together(5)
    one = deployment.publish(landed[2])
    assert one.state is State.PUBLISHED
    assert set(deployment.states(*landed)) == {State.PUBLISHED}
    commit, *older = (each for each in deployment.catalog.log() if merge_commit.published(each))
    assert len(older) == 2
    assert {each.id for each in merge_commit.published(commit)} == {
        deployment.ingestion(each).id for each in landed
    }
    assert commit.message == f"Publish 15 rows of 5 files to {TABLE}"
    assert {deployment.ingestion(each).merge_hash for each in landed} == {commit.hash}


def test_a_branch_that_main_can_merge_joins_no_group(deployment: Scenario) -> None:
    """A branch that main can still merge joins no group."""
    landed = deployment.wait_together(2)
    fresh = deployment.land("shop/orders/fresh.parquet")
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.go(2)
    deployment.journal.repair("catalog.merge")
    assert deployment.states(fresh) == [State.AUDITED]
    deployment.publish(landed[0])
    assert deployment.states(*landed, fresh) == [State.PUBLISHED] * 2 + [State.AUDITED]


def test_a_file_that_cannot_be_registered_blocks_no_other(deployment: Scenario) -> None:
    """Only a file that main's table cannot take keeps its branch, and makes its job run again."""
    landed = deployment.wait_together(3)
    strange = deployment.ingestion(landed[1])
    hash_ = deployment.commit_odd_column(strange)
    deployment.ledger.save(strange.step("x", "2026-03-01T13", audited_hash=hash_))
    deployment.publish(landed[0])
    assert deployment.states(*landed) == [State.PUBLISHED, State.AUDITED, State.PUBLISHED]
    assert strange.branch in deployment.catalog.references()
    deployment.publish(landed[1])
    assert deployment.ingestion(landed[1]).attempt == 2


def test_a_group_that_is_refused_goes_on_as_one(deployment: Scenario) -> None:
    """If main's table changes before the group is merged, the group is rebased together."""
    landed = deployment.wait_together(3)
    deployment.journal.strike("ledger.rebase", Fault(deployment.move_main, "after"))
    deployment.publish(landed[0])
    assert set(deployment.states(*landed)) == {State.PUBLISHED}
    assert deployment.journal.calls.count("tables.append_again") == 2


def test_a_group_that_main_can_take_no_more_runs_its_jobs_again(deployment: Scenario) -> None:
    """If main's table becomes incompatible with the group, every member's job runs again."""
    landed = deployment.wait_together(3)
    change = Fault(partial(deployment.others.require_column, TABLE), "after")
    deployment.journal.strike("ledger.rebase", change)
    deployment.publish(landed[0])
    assert deployment.states(*landed) == [State.SUBMITTED] * 3
    assert {deployment.ingestion(each).attempt for each in landed} == {2}


def test_no_group_is_larger_than_a_transaction(deployment: Scenario) -> None:
    """A group has at most as many ingestions as fit into one transaction."""
    landed = deployment.wait_together(MOST_WRITES + 5)
    deployment.publish(landed[0])
    ended = [each for each in deployment.states(*landed) if each is State.PUBLISHED]
    assert len(ended) == MOST_WRITES


def waiting_groups(deployment: Scenario, groups: int, files: int) -> list[list[LandedObject]]:
    """Return groups that shared runs brought to their branches, which main refuses by now."""
    deployment.share(1)
    deployment.ended(FIRST)
    deployment.fail("catalog.merge", times=FOREVER)
    found = []
    for name in "abcdefgh"[: groups + 1]:
        found.append([deployment.land(f"shop/orders/{name}{n}.parquet") for n in range(files)])
        deployment.go(2)
    deployment.journal.repair("catalog.merge")
    deployment.publish(found[0][0])
    return found[1:]


def test_groups_are_published_by_one_commit(deployment: Scenario) -> None:
    """A commit holds the files of many groups, more than one write to the ledger has items."""
    groups = waiting_groups(deployment, 4, MOST_WRITES // 2)
    landed = [each for group in groups for each in group]
    assert len({deployment.ingestion(each).branch for each in landed}) == len(groups)
    deployment.publish(groups[1][2])
    members = [deployment.ingestion(each) for each in landed]
    assert {each.state for each in members} == {State.PUBLISHED}
    assert len({each.merge_hash for each in members}) == 1


def test_a_group_that_people_were_told_of_is_published(deployment: Scenario) -> None:
    """More files than one write takes come to main, though each was told to be overdue meanwhile.

    That closes what lets one write give all of them another intent.
    """
    groups = waiting_groups(deployment, 3, MOST_WRITES // 2)
    landed = [each for group in groups for each in group]
    shared = deployment.share_an_intent(landed)
    assert len({each.branch for each in shared}) == 1
    deployment.clock.pass_(deployment.settings.overdue_minutes * 60)
    deployment.fail("catalog.merge", times=FOREVER)
    deployment.sweep()
    assert sum("Still not published" in text for text in deployment.told()) == len(landed)
    deployment.journal.repair("catalog.merge")
    deployment.move_main()
    deployment.settle()
    assert set(deployment.states(*landed)) == {State.PUBLISHED}


def test_no_group_has_more_bytes_than_a_transaction(deployment: Scenario) -> None:
    """Ingestions with large items are published and recorded in several groups."""
    landed = deployment.wait_together(24)
    for each in landed:
        known = deployment.ingestion(each)
        checks = ({"status": "skipped", "message": "x" * 350_000},)
        deployment.ledger.save(known.but(audit=replace(known.audit, checks=checks)))
    first = deployment.publish(landed[0])
    together = 4 * 1024**2 // (size(first) + 6_000)
    assert deployment.states(*landed).count(State.PUBLISHED) == len(first.group) == together


def test_a_member_that_another_process_moved_on_is_left_to_it(deployment: Scenario) -> None:
    """If another process changes a member before the write, the others are published without it."""
    landed = deployment.wait_together(3)
    other = deployment.ingestion(landed[1])

    def take_over() -> None:
        deployment.ledger.save(other.step("elsewhere", "2026-03-01T13"))

    deployment.journal.strike("tables.append_again", Fault(take_over, "after"))
    deployment.publish(landed[0])
    assert deployment.states(*landed) == [State.PUBLISHED, State.AUDITED, State.PUBLISHED]


def test_an_outdated_intent_publishes_nothing(deployment: Scenario) -> None:
    """A process with an outdated intent finds its file published, or is refused."""
    landed = deployment.wait_together(2)
    old = [deployment.ingestion(each) for each in landed]
    publish(deployment.adapters, old[0])
    for each in old:
        with suppress(Moved):
            assert publish(deployment.adapters, each).state is State.PUBLISHED


def test_a_contract_that_asks_for_more_runs_the_job_again(deployment: Scenario) -> None:
    """If the contract's checks changed since the audit, the job runs again."""
    landed = deployment.wait_together(2)
    deployment.require_more()
    deployment.publish(landed[0])
    assert deployment.states(*landed) == [State.SUBMITTED, State.AUDITED]


def test_a_contract_with_another_channel_changes_nothing(deployment: Scenario) -> None:
    """A change of the contract that does not concern the rows leaves their audit valid."""
    landed = deployment.wait_together(2)
    quieter = ORDERS.replace("#orders", "#quiet")
    deployment.upload_contract(quieter)
    deployment.publish(landed[0])
    assert set(deployment.states(*landed)) == {State.PUBLISHED}


def test_a_table_that_never_rests_is_tried_later(deployment: Scenario) -> None:
    """If main's table changes before every merge, the message comes again; nothing is lost."""
    landed = deployment.wait_together(1)
    deployment.journal.strike("ledger.rebase", Fault(deployment.move_main, "after", times=99))
    with pytest.raises(Transient, match="TABLE_BUSY"):
        deployment.publish(landed[0])
    deployment.journal.repair("ledger.rebase")


def test_an_intent_names_where_its_branch_was_cut(deployment: Scenario) -> None:
    """After each rebase the ledger has the commit of main at which the fresh branch began."""
    landed = deployment.wait_together(2)
    main = deployment.catalog.head("main")
    members = deployment.share_an_intent(landed)
    assert {each.base_hash for each in members} == {main}


@pytest.mark.parametrize(
    ("late", "expected"),
    [(0, [State.AUDITED] * 2), (1, [State.PUBLISHED] * 2)],
    ids=["the first", "another"],
)
def test_a_group_joins_another_as_a_whole(
    deployment: Scenario, late: int, expected: list[State]
) -> None:
    """A group that the index shows by its first member is published whole, or not at all."""
    *two, other = deployment.wait_together(3)
    deployment.ledger.behind[deployment.ingestion(other).id] = 1
    members = deployment.share_an_intent(two)
    deployment.ledger.behind = Counter({members[late].id: 2})
    published_alone(deployment, "shop/orders/quick.parquet")
    deployment.publish(other)
    assert deployment.states(*two, other) == [*expected, State.PUBLISHED]


def test_a_file_of_another_contract_version_joins_no_group(deployment: Scenario) -> None:
    """A file that was audited by an earlier contract joins no group of the current one."""
    (old,) = deployment.wait_together(1)
    deployment.require_more()
    new = published_alone(deployment, "shop/orders/new.parquet", deployment.move_main)
    assert deployment.states(old, new) == [State.AUDITED, State.PUBLISHED]


def test_a_group_is_all_that_share_the_intent(deployment: Scenario) -> None:
    """Each member of a group finds all of them, itself the first."""
    first, second = deployment.share_an_intent(deployment.wait_together(2))
    unit = unit_of(deployment.adapters, second)
    assert unit == Unit(first.intent, [second, first])
    assert unit.complete


@pytest.mark.parametrize(
    "elsewhere",
    [{"state": State.ERRORED}, {"branch": "ingest/other"}, {"audited_hash": "another"}],
    ids=str,
)
def test_a_member_with_another_intent_leaves_the_group(elsewhere: dict[str, Any]) -> None:
    """A group is not complete without a member that ended or has another intent."""
    deployment = Scenario()
    first, second = deployment.share_an_intent(deployment.wait_together(2))
    deployment.ledger.save(second.but(**elsewhere))
    unit = unit_of(deployment.adapters, first)
    assert unit == Unit(first.intent, [first])
    assert not unit.complete


def test_a_member_that_failed_meanwhile_keeps_its_evidence() -> None:
    """Only branches of those that the same commit published are deleted with the group's."""
    deployment = Scenario()
    first, other = deployment.share_an_intent(deployment.wait_together(2))
    evidence = branch_name(TABLE, other.landed.key, other.id, 1)
    deployment.catalog.create_branch(evidence)
    bad = other.step("errored", "2026-03-01T13", state=State.ERRORED, branch=evidence)
    done = first.step("published", "2026-03-01T13", state=State.PUBLISHED, merge_hash="a")
    deployment.ledger.save_all([bad, done])
    finish_published(deployment.adapters, deployment.ingestion(first))
    assert evidence in deployment.catalog.references()
    assert first.branch not in deployment.catalog.references()
