"""Nobody who holds the job's token and may write reports has a table's rows replaced."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from functions.adapters.emr import RunState
from functions.adapters.nessie import MAIN
from functions.model import merge_commit
from functions.operations.compaction import compact as compaction
from functions.operations.compaction.compact import Step
from functions.operations.reconcile.compare import reconciled
from functions.operations.recovery.rebuild_ledger import rebuild
from functions.operations.upkeep.expire import expire
from lakegate.errors import LakegateError, Transient
from lakegate.job.upkeep import FEWEST, Comparison, Fingerprint
from tests.fakes.catalog import FakeTable
from tests.fakes.compaction import run_compaction
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault
from tests.fakes.rows import AND, rewritten
from tests.fakes.scenario import Scenario
from tests.unit.operations.test_compaction import DAY, Upkeep

ID = "upkeep-20261123T120000-0123456789abcdef"
BRANCH = f"upkeep/{TABLE}/{ID}"


@pytest.fixture
def lake() -> Upkeep:
    return Upkeep()


def evil(table: FakeTable) -> FakeTable:
    """Return the table with as many other rows."""
    return replace(table, files=()).append(*(f"evil-{n}" for n in range(len(table.files))))


def forged(lake: Scenario, branch: str = BRANCH) -> str:
    """Commit other rows on a branch as the job's role may; return its head."""
    table = lake.catalog.table(branch, TABLE)
    assert table
    return lake.catalog.commit(branch, TABLE, evil(table))


def test_the_run_that_rewrites_does_not_judge_itself(lake: Upkeep) -> None:
    """Its report, whatever it says, is overwritten by that of the run that compares."""
    begun, before = lake.begin(), lake.main_table
    at = forged(lake, begun.branch)
    told = Comparison(TABLE, begun.branch, begun.base, at, Fingerprint(9, "1"), Fingerprint(9, "1"))
    lake.lake.put_text(begun.report_key, told.to_json().encode())
    lake.jobs.end(begun.rewriting, RunState.SUCCESS)
    assert lake.settle_it().step is Step.WAITS
    assert lake.settle_it().step is Step.WAITS  # for the run that compares
    lake.run_job()
    assert lake.settle_it().step is Step.DROPPED
    assert lake.main_table == before


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
@pytest.mark.parametrize("second", [False, True])
def test_only_a_run_that_succeeded_is_believed(lake: Upkeep, state: RunState, second: bool) -> None:
    """If EMR Serverless does not call one of its runs a success, the compaction is dropped."""
    before = lake.main_table
    if second:
        lake.rewritten()
        lake.settle_it()
        begun = lake.now()
        at = Fingerprint(9, "1")
        told = Comparison(TABLE, begun.branch, begun.base, begun.rewritten, at, at)
        lake.lake.put_text(begun.report_key, told.to_json().encode())
    else:
        lake.begin()
        forged(lake, lake.now().branch)
    (run,) = (each for each in lake.jobs.runs() if not each.has_ended)
    lake.jobs.end(run.id, state, "why")
    done = lake.settle_it()
    assert (done.step, lake.main_table) == (Step.DROPPED, before)
    assert str(state) in done.why


def test_a_lost_run_is_not_believed(lake: Upkeep) -> None:
    """If EMR Serverless does not know the recorded run, the compaction is dropped."""
    begun = lake.rewritten()
    lake.jobs.lose(begun.rewriting)
    assert lake.settle_it().step is Step.DROPPED


@pytest.mark.parametrize("second", [False, True])
def test_a_run_of_another_name_is_not_believed(lake: Upkeep, second: bool) -> None:
    """If the recorded run is that of something else, the compaction is dropped."""
    begun = lake.start() if second else lake.rewritten()
    other = lake.jobs.start(replace(lake.jobs.spec(begun.rewriting), ingestion="other"))
    lake.jobs.end(other, RunState.SUCCESS)
    known = lake.ledger.compactions()
    named = replace(begun, comparing=other) if second else replace(begun, rewriting=other)
    lake.ledger.save_compactions(known.exchanged(begun, named))
    done = lake.settle_it()
    assert done.step is Step.DROPPED
    assert "something else" in done.why


@pytest.mark.parametrize(
    "forge",
    [
        lambda report: replace(report, table="shop.others"),
        lambda report: replace(report, branch=BRANCH),
        lambda report: replace(report, base_hash="b" * 64),
        lambda report: replace(report, rewritten_hash="c" * 64),
    ],
    ids=["table", "branch", "base", "rewritten"],
)
def test_the_report_of_something_else_is_not_believed(
    lake: Upkeep, forge: Callable[[Comparison], Comparison]
) -> None:
    """A report counts only for the table, branch and hashes that the ledger has."""
    begun = lake.start()
    report = lake.lake.comparison(begun.report_key)
    lake.lake.put_text(begun.report_key, forge(report).to_json().encode())
    done = lake.settle_it()
    assert done.step is Step.DROPPED
    assert "something else" in done.why


@pytest.mark.parametrize("body", [None, b"[]"])
def test_a_success_without_a_report_is_not_believed(lake: Upkeep, body: bytes | None) -> None:
    """A comparison whose report is missing or unreadable leads to nothing."""
    begun = lake.rewritten()
    lake.settle_it()
    if body:
        lake.lake.put_text(begun.report_key, body)
    lake.jobs.end(lake.now().comparing, RunState.SUCCESS)
    assert lake.settle_it().step is Step.DROPPED
    assert lake.nothing_left()


@pytest.mark.parametrize(
    "added",
    [("0.parquet",), ("good",), ("good", "evil"), ("good", "good")],
    ids=["another", "fewer", "more", "twice"],
)
def test_exactly_what_was_compared_is_registered(lake: Upkeep, added: Sequence[str]) -> None:
    """The newest commit of a branch may add other data files than those that were compared."""
    begun, before = lake.begin(), lake.main_table
    table = lake.catalog.table(begun.branch, TABLE)
    assert table
    good, rest = rewritten(table.files[:4], "good"), rewritten(table.files[4:], "rest")
    all_ = replace(table, files=()).append(good, rest)
    named = tuple(good if each == "good" else each for each in added)
    lake.catalog.commit(begun.branch, TABLE, replace(all_, added=named))
    lake.jobs.end(begun.rewriting, RunState.SUCCESS)
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.DROPPED
    assert lake.main_table == before


@pytest.mark.parametrize("columns", ["id@1", "name@1"])
def test_a_commit_that_changes_no_data_file_leads_to_nothing(lake: Upkeep, columns: str) -> None:
    """A branch with another schema alone, or none, is dropped."""
    begun, head = lake.begin(), lake.catalog.head(MAIN)
    table = lake.catalog.table(begun.branch, TABLE)
    assert table
    lake.catalog.commit(begun.branch, TABLE, table.with_columns(columns))
    lake.jobs.end(begun.rewriting, RunState.SUCCESS)
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.DROPPED
    assert lake.catalog.head(MAIN) == head


def test_deletes_that_came_meanwhile_stay(lake: Upkeep) -> None:
    """If another writer's delete files hide rows now, the new data files would show them again."""
    lake.start()
    lake.catalog.commit(MAIN, TABLE, replace(lake.main_table, hidden=1, added=()))
    before = lake.main_table
    done = lake.settle_it()
    assert (done.step, lake.main_table) == (Step.DROPPED, before)
    assert "deleted" in done.why


def test_a_table_with_delete_files_is_left_alone(lake: Upkeep) -> None:
    """A table of which delete files hide rows is not compacted."""
    lake.catalog.commit(MAIN, TABLE, replace(lake.main_table, hidden=1, added=()))
    assert "delete files" in lake.why_not()


def problems(lake: Scenario, table: str = "") -> list[str]:
    return [each.code for each in reconciled(lake.adapters, table, full=True).problems]


def test_a_branch_that_nobody_began_is_a_problem(lake: Upkeep) -> None:
    """Reconcile names the branch; one that the ledger knows is none."""
    lake.begin()
    assert problems(lake) == []
    lake.catalog.create_branch(BRANCH)
    (found,) = reconciled(lake.adapters).problems
    assert (found.code, BRANCH in found.message) == ("FOREIGN_COMPACTION", True)
    assert problems(lake, TABLE) == ["FOREIGN_COMPACTION"]
    with pytest.raises(LakegateError, match="UNKNOWN_TABLE"):  # its branch is another table's
        problems(lake, "shop.others")


def test_one_that_ends_meanwhile_is_no_problem(lake: Upkeep) -> None:
    """A compaction that is published while reconcile looks is not taken for one of others."""
    begun = lake.start()
    ending = partial(compaction.settle, lake.adapters, begun)
    lake.journal.strike("ledger.compactions", Fault(ending))
    assert problems(lake) == []
    assert lake.nothing_left()


def test_a_compaction_on_main_that_nobody_began_is_a_problem(lake: Upkeep) -> None:
    """Reconcile names a commit that calls itself a compaction and is none of the ledger's."""
    lake.settled()
    assert problems(lake) == []
    base = lake.catalog.create_branch("publish/mine")
    at = lake.catalog.commit("publish/mine", TABLE, evil(lake.main_table))
    for note in (json.dumps({"table": TABLE, "branch": BRANCH}), "[]", "no JSON"):
        lake.catalog.merge("publish/mine", at, base, "Compact", {merge_commit.UPKEEP: note})
        assert "FOREIGN_COMPACTION" in problems(lake)
        assert "FOREIGN_COMPACTION" in problems(lake, TABLE)


def test_what_was_compacted_before_the_ledger_knew_is_not_blamed(lake: Upkeep) -> None:
    """After the ledger was lost, commits from before that are no problem."""
    lake.settled()
    lake.ledger.lose()
    list(rebuild(lake.adapters))
    assert "FOREIGN_COMPACTION" not in problems(lake)
    lake.clock.pass_(DAY)
    for number in range(FEWEST):
        lake.ended(f"shop/orders/again-{number}.parquet")
    lake.begin()
    assert "FOREIGN_COMPACTION" not in problems(lake)


def test_a_lost_ledger_publishes_no_compaction(lake: Upkeep) -> None:
    """What was under way when the ledger was lost is dropped by its rebuilding."""
    begun, before = lake.start(), lake.main_table
    lake.ledger.lose()
    list(rebuild(lake.adapters, dry_run=True))
    lake.sweep()
    assert lake.catalog.branches("upkeep/") == [begun.branch]
    list(rebuild(lake.adapters))
    lake.sweep()
    assert lake.main_table == before
    assert lake.nothing_left()


def test_a_branch_that_nobody_began_expires(lake: Upkeep) -> None:
    """It is deleted as any branch that nobody needs; one that is under way stays."""
    lake.catalog.create_branch(BRANCH)
    forged(lake)
    lake.clock.pass_(2 * DAY)
    lake.begin()
    gone = list(expire(lake.adapters, 1))
    assert [each.branches for each in gone] == [(BRANCH,)]
    assert lake.catalog.branches("upkeep/") == [lake.now().branch]


def test_a_run_that_compares_only_once_decides(lake: Upkeep) -> None:
    """The hash that is compared is fixed in the ledger before the run that compares starts."""
    lake.rewritten()
    lake.settle_it()
    begun = lake.now()
    forged(lake, begun.branch)
    spec = lake.jobs.spec(begun.comparing)
    assert (spec.base_hash, spec.audited_hash) == (begun.base, begun.rewritten)
    run_compaction(begun.comparing, lake.catalog, lake.lake, lake.jobs)
    assert compaction.settle(lake.adapters, begun).step is Step.PUBLISHED
    assert "evil" not in str(lake.main_table.files)


def test_an_answer_that_was_lost_changes_no_hash(lake: Upkeep) -> None:
    """If the start of that run is repeated, it is the same run, whatever was committed since."""
    lake.rewritten()
    lake.fail("jobs.start", "after")
    with pytest.raises(Transient):
        lake.settle_it()
    forged(lake, lake.now().branch)
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.PUBLISHED
    assert "evil" not in str(lake.main_table.files)


def test_a_wrong_count_of_rows_never_reaches_main(lake: Upkeep) -> None:
    """Data files with the same rows are dropped if the table's branch counts others in them."""
    begun, before = lake.begin(), lake.main_table
    miscounted = f"{rewritten(before.files, 'lying')}{AND}#rows of no source"
    lake.catalog.commit(begun.branch, TABLE, replace(before, files=()).append(miscounted))
    lake.jobs.end(begun.rewriting, RunState.SUCCESS)
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.DROPPED
    assert lake.main_table == before
