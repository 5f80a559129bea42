"""Ingestions that wait for one table are published together, and none blocks another."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from functions.adapters.ledger import MOST_TOGETHER, Moved
from functions.adapters.ledger_items import size
from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.pipeline.complete import judge
from functions.pipeline.publish import publish
from functions.telemetry import logger
from lakegate.errors import Transient
from lakegate.landing import LandedObject
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import ORDERS, TABLE, Deployment, share_an_intent, wait_together
from tests.fakes.faults import Fault, unavailable
from tests.fakes.promises import check_promises, left_behind


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Return a deployment; check every promise at the end."""
    deployment = Deployment()
    level = logger.log_level
    logger.setLevel("CRITICAL")
    yield deployment
    logger.setLevel(level)
    deployment.settle()
    check_promises(deployment)
    assert left_behind(deployment) == []


def states(deployment: Deployment, landed: list[LandedObject]) -> list[State]:
    """Return the state of each."""
    return [deployment.ingestion(each).state for each in landed]


def moved(deployment: Deployment) -> None:
    """Let another process change the table on main."""
    table = deployment.catalog.table("main", TABLE)
    assert table
    deployment.catalog.commit("main", TABLE, table.append())


def widened(deployment: Deployment, *, required: bool = False) -> None:
    """Let another process add a column to the table on main."""
    table = deployment.catalog.table("main", TABLE)
    assert table
    columns = (*table.columns, "new!" if required else "new")
    deployment.catalog.commit("main", TABLE, FakeTable(table.uuid, table.files, (), columns))


def published_alone(
    deployment: Deployment, key: str, meanwhile: Callable[[], object] = lambda: None
) -> LandedObject:
    """Publish a file while no other message is delivered."""
    landed = deployment.land(key)
    deployment.deliver_one(-1)
    meanwhile()
    deployment.run_jobs()
    judge(deployment.adapters, deployment.ingestion(landed).job_run)
    publish(deployment.adapters, deployment.ingestion(landed))
    return landed


def test_files_that_wait_are_published_by_one_commit(deployment: Deployment) -> None:
    """Files that wait for one table are published by a single merge, which names each of them."""
    landed = wait_together(deployment, 5)
    before = len(list(deployment.catalog.log()))
    one = publish(deployment.adapters, deployment.ingestion(landed[2]))
    assert one.state is State.PUBLISHED
    assert set(states(deployment, landed)) == {State.PUBLISHED}
    commit, *older = deployment.catalog.log()
    assert len(older) == before
    assert {each.id for each in merge_commit.published(commit)} == {
        deployment.ingestion(each).id for each in landed
    }
    assert commit.message == f"Publish 15 rows of 5 files to {TABLE}"
    assert {deployment.ingestion(each).merge_hash for each in landed} == {commit.hash}


def test_a_branch_that_main_can_merge_joins_no_group(deployment: Deployment) -> None:
    """A branch that main can still merge joins no group."""
    landed = wait_together(deployment, 2)
    fresh = deployment.land("shop/orders/fresh.parquet")
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=float("inf")))
    for _ in range(2):
        deployment.deliver()
        deployment.run_jobs()
    deployment.journal.repair("catalog.merge")
    assert states(deployment, [fresh]) == [State.AUDITED]
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, [*landed, fresh]) == [State.PUBLISHED] * 2 + [State.AUDITED]


def test_a_merged_ingestion_is_not_registered_again(deployment: Deployment) -> None:
    """An ingestion that is merged, but not yet recorded as published, is left out of the group."""
    landed = wait_together(deployment, 3)
    deployment.journal.strike("catalog.merge", Fault(unavailable, "after"))
    with pytest.raises(Transient):
        publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, landed) == [State.AUDITED] * 3
    late = deployment.land("shop/orders/late.parquet")
    deployment.settle()
    assert states(deployment, [*landed, late]) == [State.PUBLISHED] * 4


def test_a_file_that_cannot_be_registered_blocks_no_other(deployment: Deployment) -> None:
    """Only the files that main's table cannot take make their job run again."""
    landed = wait_together(deployment, 3)
    strange = deployment.ingestion(landed[1])
    table = deployment.catalog.table(strange.audited_hash, TABLE)
    assert table
    odd = FakeTable(table.uuid, table.files, table.added, ("id", "odd"))
    hash_ = deployment.catalog.commit(strange.branch, TABLE, odd)
    deployment.ledger.save(strange.step("x", "2026-03-01T13", audited_hash=hash_))
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, landed) == [State.PUBLISHED, State.AUDITED, State.PUBLISHED]
    publish(deployment.adapters, deployment.ingestion(landed[1]))
    assert deployment.ingestion(landed[1]).attempt == 2


def test_a_group_that_is_refused_goes_on_as_one(deployment: Deployment) -> None:
    """If main's table changes before the group is merged, the group is rebased together."""
    landed = wait_together(deployment, 3)
    deployment.journal.strike("ledger.save_all", Fault(lambda: moved(deployment), "after"))
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert set(states(deployment, landed)) == {State.PUBLISHED}
    assert deployment.journal.calls.count("tables.append_again") == 2


def test_a_group_that_main_can_take_no_more_runs_its_jobs_again(deployment: Deployment) -> None:
    """If main's table becomes incompatible with the group, every member's job runs again."""
    landed = wait_together(deployment, 3)
    change = Fault(lambda: widened(deployment, required=True), "after")
    deployment.journal.strike("ledger.save_all", change)
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, landed) == [State.SUBMITTED] * 3
    assert {deployment.ingestion(each).attempt for each in landed} == {2}
    table = deployment.catalog.table("main", TABLE)
    assert table
    plain = FakeTable(table.uuid, table.files, (), ("id",))
    deployment.catalog.commit("main", TABLE, plain)


def test_no_group_is_larger_than_a_transaction(deployment: Deployment) -> None:
    """A group has at most as many ingestions as fit into one transaction."""
    landed = wait_together(deployment, MOST_TOGETHER + 5)
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    ended = [each for each in states(deployment, landed) if each is State.PUBLISHED]
    assert len(ended) == MOST_TOGETHER


def test_no_group_has_more_bytes_than_a_transaction(deployment: Deployment) -> None:
    """Ingestions with large items are published and recorded in several groups."""
    landed = wait_together(deployment, 24)
    for each in landed:
        known = deployment.ingestion(each)
        deployment.ledger.save(known.but(checks=({"status": "skipped", "message": "x" * 350_000},)))
    first = publish(deployment.adapters, deployment.ingestion(landed[0]))
    together = 4 * 1024**2 // (size(first) + 6_000)
    assert states(deployment, landed).count(State.PUBLISHED) == len(first.group) == together


def test_a_member_that_another_process_moved_on_is_left_to_it(deployment: Deployment) -> None:
    """If another process changes a member before the write, the others are published without it."""
    landed = wait_together(deployment, 3)
    other = deployment.ingestion(landed[1])

    def take_over() -> None:
        deployment.ledger.save(other.step("elsewhere", "2026-03-01T13"))

    deployment.journal.strike("tables.append_again", Fault(take_over, "after"))
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, landed) == [State.PUBLISHED, State.AUDITED, State.PUBLISHED]


def test_two_publishers_of_one_group_are_one(deployment: Deployment) -> None:
    """A second publisher of the same files, in the middle of the first, changes nothing."""
    landed = wait_together(deployment, 3)

    def another() -> None:
        publish(deployment.adapters, deployment.ingestion(landed[1]))

    deployment.journal.strike("tables.append_again", Fault(another, "after"))
    done = publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert done.state is State.PUBLISHED
    assert set(states(deployment, landed)) == {State.PUBLISHED}


def test_old_knowledge_publishes_nothing(deployment: Deployment) -> None:
    """A process with an outdated intent cannot publish by it."""
    landed = wait_together(deployment, 2)
    old = [deployment.ingestion(each) for each in landed]
    publish(deployment.adapters, old[0])
    for each in old:
        assert _outcome(deployment, each) in ("moved", State.PUBLISHED)


def _outcome(deployment: Deployment, old: Ingestion) -> str:
    try:
        return publish(deployment.adapters, old).state
    except Moved:
        return "moved"


def test_a_contract_that_asks_for_more_runs_the_job_again(deployment: Deployment) -> None:
    """If the contract's checks changed since the audit, the job runs again."""
    landed = wait_together(deployment, 2)
    stricter = ORDERS.replace("required: true", "required: true, unique: true")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", stricter.encode())
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert states(deployment, landed) == [State.SUBMITTED, State.AUDITED]


def test_a_contract_with_another_channel_changes_nothing(deployment: Deployment) -> None:
    """A change of the contract that does not concern the rows leaves their audit valid."""
    landed = wait_together(deployment, 2)
    quieter = ORDERS.replace("#orders", "#quiet")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", quieter.encode())
    publish(deployment.adapters, deployment.ingestion(landed[0]))
    assert set(states(deployment, landed)) == {State.PUBLISHED}


def test_a_table_that_never_rests_is_tried_later(deployment: Deployment) -> None:
    """If main's table changes before every merge, the message comes again; nothing is lost."""
    landed = wait_together(deployment, 1)
    deployment.journal.strike(
        "ledger.save_all", Fault(lambda: moved(deployment), "after", times=99)
    )
    with pytest.raises(Transient, match="TABLE_BUSY"):
        publish(deployment.adapters, deployment.ingestion(landed[0]))
    deployment.journal.repair("ledger.save_all")


def test_an_intent_names_where_its_branch_was_cut(deployment: Deployment) -> None:
    """After each rebase the ledger has the commit of main at which the fresh branch began."""
    landed = wait_together(deployment, 2)
    main = deployment.catalog.head("main")
    members = share_an_intent(deployment, landed)
    assert {each.base_hash for each in members} == {main}


def test_a_group_that_the_index_shows_in_part_joins_no_other(deployment: Deployment) -> None:
    """A group of which an index still lacks a member is not published without it."""
    first, late, other = wait_together(deployment, 3)
    deployment.ledger.behind[deployment.ingestion(other).id] = 1
    members = share_an_intent(deployment, [first, late])
    deployment.ledger.behind = Counter({members[1].id: 2})
    published_alone(deployment, "shop/orders/quick.parquet")
    publish(deployment.adapters, deployment.ingestion(other))
    assert states(deployment, [first, late, other]) == [State.AUDITED] * 2 + [State.PUBLISHED]


def test_a_file_of_another_contract_version_joins_no_group(deployment: Deployment) -> None:
    """A file that was audited by an earlier contract joins no group of the current one."""
    (old,) = wait_together(deployment, 1)
    stricter = ORDERS.replace("required: true", "required: true, unique: true")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", stricter.encode())
    new = published_alone(deployment, "shop/orders/new.parquet", lambda: moved(deployment))
    assert states(deployment, [old, new]) == [State.AUDITED, State.PUBLISHED]
