"""What another writer put on a branch is done on main once, if it passes, and as it was audited."""

from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.model import merge_commit
from functions.model.commits import Change as BranchCommit
from functions.model.commits import Commit, line_and_base
from functions.model.ingestion import Ingestion, State
from functions.notifications.failure_text import failure_advice
from functions.operations.decisions.failed import publish_anyway, replay
from functions.operations.decisions.takeover import gate, takeover
from functions.operations.reconcile.compare import reconciled
from functions.pipeline.start.intake import ask
from lakegate.errors import LakegateError
from lakegate.job.change import Change, Takeover
from lakegate.job.landing import LandedObject
from tests.fakes.catalog import FakeTable
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import OTHER_TABLE, RETURNS, TABLE
from tests.fakes.faults import ProcessDied, When
from tests.fakes.job import ROWS, Script, passed, rejected
from tests.fakes.promises import unwatched
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")
WHENS: list[When] = ["before", "after"]
BRANCH = "write/nightly"
OTHER = "shop/orders/other.parquet"


@pytest.fixture
def deployment(deployment: Scenario) -> Scenario:
    """Return a deployment in which a branch of another writer adds a row to shop.orders."""
    deployment.ended()
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    return deployment


def asked(deployment: Scenario, script: Script = passed) -> LandedObject:
    """Return the request to take the branch over; the command is repeated if it fails."""
    for _ in range(3):
        with suppress(LakegateError, ProcessDied):
            wanted = takeover(deployment.adapters, BRANCH, by="Ann", because="nightly")
            deployment.script(wanted.landed("lake"), script)
            gate(deployment.adapters, wanted)
            break
    return wanted.landed("lake")


def taken(deployment: Scenario, script: Script = passed) -> Ingestion:
    """Return the takeover of the branch, after it ended."""
    return deployment.end_of(asked(deployment, script))


def own_rows(deployment: Scenario) -> int:
    """Return how many rows of other writers' branches main has."""
    table = deployment.main()
    return sum(f"row on {BRANCH}" in file for file in table.files)


def code(deployment: Scenario, branch: str = BRANCH, table: str = "") -> str:
    """Return the code of the error with which a branch is refused; it says what to do."""
    with pytest.raises(LakegateError) as caught:
        takeover(deployment.adapters, branch, table)
    assert len(caught.value.message.splitlines()) == 2
    return caught.value.code


def test_a_commit_says_who_took_over_what(deployment: Scenario) -> None:
    """The rows are on main in a file of Lakegate's; log and reconcile agree, the branch stays."""
    head = deployment.catalog.head(BRANCH)
    done = taken(deployment)
    assert (done.state, done.audit.rows, done.audit.replaced_rows) == (State.PUBLISHED, ROWS, 0)
    commit = merge_commit.commit_of(deployment.catalog.log(), done)
    assert commit.message == (
        "Take over write/nightly into shop.orders, 3 rows added, 0 removed, by Ann: nightly"
    )
    (entry,) = merge_commit.published(commit)
    assert (entry.kind, entry.asked_by, entry.asked_because) == ("change", "Ann", "nightly")
    branch = deployment.catalog.table(BRANCH, TABLE)
    assert branch
    assert not set(deployment.main().files) & set(branch.added)
    assert deployment.catalog.head(BRANCH) == head
    found = reconciled(unwatched(deployment), thorough=True)
    assert (found.problems, found.remarks) == ((), ())


def test_a_rejected_branch_stays_out_until_it_is_decided(deployment: Scenario) -> None:
    """A failed audit is alerted as a change's; replay audits the same commits again."""
    done = taken(deployment, rejected)
    assert (done.state, own_rows(deployment)) == (State.REJECTED, 0)
    assert "Correct the branch" in failure_advice(done)
    replay(deployment.adapters, done, by="Ann")
    assert deployment.end_of(done).state is State.REJECTED
    publish_anyway(deployment.adapters, deployment.ingestion(done), "Ann", "it is right")
    assert deployment.end_of(done).state is State.PUBLISHED


def test_a_corrected_branch_is_taken_over_whole(deployment: Scenario) -> None:
    """After a rejection more commits make another request; the first one is refused from then."""
    first = taken(deployment, rejected)
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    second = taken(deployment)
    assert (second.state, own_rows(deployment)) == (State.PUBLISHED, 2)
    publish_anyway(deployment.adapters, first, "Ann", "it is right")
    assert deployment.end(deployment.end_of(first)) == "errored ALREADY_TAKEN"
    assert own_rows(deployment) == 2


def test_commits_are_taken_over_once(deployment: Scenario) -> None:
    """The same head is the same request; a later or earlier one of the branch is refused."""
    early = takeover(deployment.adapters, BRANCH)
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    done = taken(deployment)
    assert gate(deployment.adapters, takeover(deployment.adapters, BRANCH)).id == done.id
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    for again in (early, takeover(deployment.adapters, BRANCH)):
        with pytest.raises(LakegateError) as caught:
            gate(deployment.adapters, again)
        assert caught.value.code == "ALREADY_TAKEN"
        assert len(caught.value.message.splitlines()) == 2
    assert own_rows(deployment) == 2


def test_of_two_heads_at_once_one_is_published(deployment: Scenario) -> None:
    """Whichever comes to main first, the other one runs again and then errs."""
    first = asked(deployment)
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    second = asked(deployment)
    deployment.settle()
    assert sorted(map(deployment.end, (first, second))) == ["errored ALREADY_TAKEN", "published"]


def test_what_the_owner_does_later_is_not_published(deployment: Scenario) -> None:
    """The commits are named by their hash: the branch may move or be deleted meanwhile."""
    landed = asked(deployment)
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    deployment.catalog.delete_branch(BRANCH)
    assert deployment.end_of(landed).state is State.PUBLISHED
    assert own_rows(deployment) == 1


def test_a_file_that_comes_meanwhile_stays(deployment: Scenario) -> None:
    """If main changes while its job runs, it runs again on what main is then."""
    landed = asked(deployment)
    deployment.go()
    deployment.move_main()
    assert deployment.end_of(landed).attempt == 2
    assert deployment.end(landed) == "published"


def test_rows_that_both_changed_are_not_lost(deployment: Scenario) -> None:
    """If main rewrote what the branch rewrote, it ends errored and main stays as it is."""
    deployment.others.write_on_own_branch(BRANCH, TABLE, rewrites=True)
    deployment.end_of(deployment.change())
    before = deployment.main()
    assert deployment.end(taken(deployment)) == "errored TABLE_MOVED"
    assert deployment.main() == before


def test_commits_that_nessie_lost_are_named(deployment: Scenario) -> None:
    """After a backup of the catalog from before the branch, the request says what to do."""
    backup = deployment.catalog.backup()
    deployment.others.write_on_own_branch(BRANCH, TABLE)
    wanted = takeover(deployment.adapters, BRANCH)
    deployment.catalog.restore(backup)
    with pytest.raises(LakegateError, match=r"lost commits of write/nightly.*\n.*new branch"):
        gate(deployment.adapters, wanted)


def test_branches_of_lakegate_are_refused(deployment: Scenario) -> None:
    """Main, Lakegate's own branches, and branches off them are no other writer's."""
    failed = deployment.ended(OTHER, script=rejected)
    assert code(deployment, "main") == "OWN_BRANCH"
    assert code(deployment, failed.branch) == "OWN_BRANCH"
    assert code(deployment, "publish/shop.orders/a-b") == "OWN_BRANCH"
    assert code(deployment, "upkeep/shop.orders/a") == "OWN_BRANCH"
    deployment.catalog.fork("write/corrected", failed.branch)
    deployment.others.write_on_own_branch("write/corrected", TABLE)
    assert code(deployment, "write/corrected") == "HAS_INGESTION"


def test_a_branch_off_a_published_file_is_refused(deployment: Scenario) -> None:
    """Commits that main has by their ingestion are not published once more."""
    landed = deployment.run(OTHER)
    branch = deployment.ingestion(landed).branch
    deployment.catalog.fork("write/copy", branch)
    deployment.end_of(landed)
    deployment.others.write_on_own_branch("write/copy", TABLE)
    assert code(deployment, "write/copy") == "HAS_INGESTION"


def test_a_branch_without_a_change_is_refused(deployment: Scenario) -> None:
    """A branch that is unknown, at main, or of another table has nothing to take over."""
    assert code(deployment, "write/none") == "UNKNOWN_BRANCH"
    deployment.catalog.create_branch("write/empty")
    assert code(deployment, "write/empty") == "NOTHING_TO_TAKE"
    assert code(deployment, BRANCH, OTHER_TABLE) == "NOTHING_TO_TAKE"
    deployment.catalog.merge_into("write/empty", BRANCH)
    assert code(deployment, "write/empty") == "NOT_OFF_MAIN"


CHANGES: dict[str, tuple[str, FakeTable | None]] = {
    "NO_CONTRACT": ("shop.unknown", FakeTable("new")),
    "TABLE_CREATED": (OTHER_TABLE, FakeTable("new")),
    "TABLE_DROPPED": (TABLE, None),
}


@pytest.mark.parametrize("expected", CHANGES)
def test_tables_must_be_known_on_both_sides(deployment: Scenario, expected: str) -> None:
    """A table without a contract, made by the branch or dropped by it is refused at once."""
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
    deployment.catalog.commit(BRANCH, *CHANGES[expected])
    assert code(deployment) == expected


def test_one_table_is_taken_over_at_a_time(deployment: Scenario) -> None:
    """A branch with several tables needs the name of one; each is published for itself."""
    deployment.batch("monday", {"b.parquet": OTHER_TABLE})
    deployment.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
    deployment.settle()
    both = "write/both"
    for table in (TABLE, OTHER_TABLE):
        deployment.others.write_on_own_branch(both, table)
    assert code(deployment, both) == "SEVERAL_TABLES"
    requests = [takeover(deployment.adapters, both, table) for table in (TABLE, OTHER_TABLE)]
    for each in requests:
        gate(deployment.adapters, each)
    deployment.settle()
    assert [deployment.end(each.landed("lake")) for each in requests] == ["published"] * 2


def test_only_its_command_asks_for_one(deployment: Scenario) -> None:
    """SQL is none, and its statement is no SQL."""
    assert Change(TABLE, "DELETE FROM shop.orders", "t").takeover is None
    wanted = takeover(deployment.adapters, BRANCH)
    with pytest.raises(LakegateError) as caught:
        ask(deployment.adapters, Change(TABLE, wanted.statement, "another"))
    assert caught.value.code == "NOT_SQL"


def test_a_request_names_its_commits() -> None:
    """What a statement is made of is read back from it."""
    commits = Takeover("write/a-b.c", "a" * 64, "b" * 64, "c" * 64)
    change = commits.change(TABLE, "Ann", "nightly")
    assert (change.takeover, change.only_token) == (commits, "b" * 64)
    assert (change.restores, change.replaces, change.retracts) == ("", "", "")


def _on_main(hash_: str) -> Commit:
    return Commit(hash_, "", "", {}, "", "")


def _on_branch(hash_: str) -> BranchCommit:
    return BranchCommit(hash_, datetime.fromisoformat(FakeClock().now()))


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_a_branch_begins_at_the_newest_commit_that_main_has(
    own: int, later: int, shared: int
) -> None:
    """Its commits are those after that, however far both went on; no log is read much farther."""
    both = [f"both {number}" for number in range(shared)]
    mine = [f"own {number}" for number in range(own)]
    branch = map(_on_branch, [*mine, *both])
    main = map(_on_main, [*(f"main {number}" for number in range(later)), *both])
    line, base = line_and_base(branch, main)
    assert ([each.hash for each in line], base) == (mine, both[0] if both else "")
    assert len(list(branch)) == max(0, own + shared - max(own, later) - 1)
