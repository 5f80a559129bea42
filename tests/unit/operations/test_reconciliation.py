"""Every landed object has one final state, and main has the published rows."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from functions.adapters.iceberg.files import DoubledFile, TableRows
from functions.model.commits import Commit
from functions.model.ingestion import State
from functions.model.merge_commit import published
from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import End
from functions.operations.reconcile.row_balance import Finding
from tests.unit.operations.main_history import LATER, ORDERS, START, History

NEW = LATER + timedelta(seconds=1)


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


def ordinary() -> History:
    """Return a history with each final state and one ingestion in flight."""
    history = History()
    history.publish([3, 4])
    for state in (State.REJECTED, State.ERRORED, State.IGNORED, State.SUBMITTED):
        history.taken_in(state)
    return history


def test_every_object_has_one_end() -> None:
    """The final states add up to the landed objects, without problems or remarks."""
    found = ordinary().reconcile()
    assert (found.problems, found.remarks) == ((), ())
    assert {end: found.ended(end) for end in End} == {
        End.PUBLISHED: (2, 7),
        End.REJECTED: (1, 0),
        End.ERRORED: (1, 0),
        End.IGNORED: (1, 0),
        End.IN_FLIGHT: (1, 0),
        End.NOT_TAKEN_IN: (0, 0),
    }
    assert found.landed == 6


def not_taken_in(history: History) -> str:
    history.land()
    return "s3://landing/shop/orders/7.csv (version v7) landed at 2026-03-01T12:00"


def published_twice(history: History) -> str:
    history.merge(published(history.log[0])[:1], gain=3)
    return f"with 3 rows each time, by these commits on main: {'0' * 63}1, {'0' * 63}2"


def not_on_main(history: History) -> str:
    history.taken_in(State.PUBLISHED, rows=12)
    return "its 12 rows are missing from shop.orders"


def not_recorded(history: History) -> str:
    history.publish([5], state=State.REJECTED)
    return "but the ledger says rejected: `lakegate ledger realign` has the ledger follow main"


def not_recorded_yet(history: History) -> str:
    history.publish([5], state=State.AUDITED)
    return "but the ledger says audited: check that the sweep runs"


def unknown_to_the_ledger(history: History) -> str:
    history.publish([5])
    del history.ingestions[list(history.ingestions)[-1]]
    history.landed.popitem()
    return "but the ledger lacks it: `lakegate ledger rebuild`"


def rows_disagree(history: History) -> str:
    first = next(iter(history.ingestions.values()))
    history.ingestions[first.id] = replace(first, audit=replace(first.audit, rows=1234))
    return "says 3 rows of s3://landing/shop/orders/1.csv (version v1), the ledger says 1,234"


def lost(history: History) -> str:
    history.publish([5000], gain=0)
    return "names 5,000 rows, but changed shop.orders by +0 rows: 5,000 missing"


def doubled(history: History) -> str:
    history.publish([5000], gain=10000)
    return "names 5,000 rows, but changed shop.orders by +10,000 rows: 5,000 too many"


def unaccounted(history: History) -> str:
    history.commit(gain=9)
    return "shop.orders has 16 rows on main: 9 too many, and no commit"


def doubled_file(history: History) -> str:
    history.doubled = (DoubledFile("s3://lake/a.parquet", 3, 2),)
    return (
        "shop.orders lists the data file s3://lake/a.parquet 2 times: queries return its 3 rows 2"
    )


def swapped(history: History) -> str:
    first = history.files[history.log[0].hash][0]
    commit = history.publish([3])
    history.files[commit.hash] = (first,)
    return f"added to shop.orders {first}, which none of its audit reports names"


def unreported(history: History) -> str:
    commit = history.publish([3])
    history.files[commit.hash] += ("s3://lake/x.parquet",)
    return "added to shop.orders s3://lake/x.parquet, which none of its audit reports names"


def gone(history: History) -> str:
    commit = history.publish([3])
    history.lake.deleted["7.csv.parquet"] = None
    [path] = history.files[commit.hash]
    return f"shop.orders lists the data file {path}, which does not exist"


PROBLEMS: dict[Callable[[History], str], str] = {
    not_taken_in: "NOT_TAKEN_IN",
    published_twice: "PUBLISHED_TWICE",
    not_on_main: "NOT_ON_MAIN",
    not_recorded: "NOT_RECORDED",
    not_recorded_yet: "NOT_RECORDED",
    unknown_to_the_ledger: "NOT_RECORDED",
    rows_disagree: "ROWS_DISAGREE",
    lost: "WRONG_GAIN",
    doubled: "WRONG_GAIN",
    unaccounted: "UNACCOUNTED_ROWS",
    doubled_file: "DOUBLED_FILE",
    unreported: "UNREPORTED_FILES",
    gone: "FILE_GONE",
}


@pytest.mark.parametrize(("provoke", "code"), PROBLEMS.items())
def test_each_problem_is_reported_alone(provoke: Callable[[History], str], code: str) -> None:
    """Each fault gives exactly its own problem, with all details in its message."""
    history = ordinary()
    said = provoke(history)
    found = history.reconcile(thorough=True)
    assert (codes(found.problems), found.remarks) == ([code], ())
    assert said in found.problems[0].message


def test_a_problem_names_what_a_program_needs() -> None:
    """Table, ingestion and commit are separate fields."""
    history = ordinary()
    published_twice(history)
    [problem] = history.reconcile().problems
    first = published(history.log[0])[0]
    assert (problem.table, problem.ingestion, problem.commit) == (
        ORDERS,
        first.id,
        history.log[-1].hash,
    )


def test_new_objects_may_be_in_flight() -> None:
    """A new object is in flight, and a new merge need not be recorded."""
    history = ordinary()
    history.land(at=NEW)
    history.publish([5], at=NEW, state=State.AUDITED)
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["NOT_RECORDED"]
    assert found.ended(End.IN_FLIGHT)[0] == 3


def test_an_object_that_is_no_longer_listed_is_a_remark() -> None:
    """An object that a lifecycle rule deleted keeps its final state, outside the landed ones."""
    history = ordinary()
    for id_ in list(history.landed)[:3]:
        del history.landed[id_]
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["NO_LONGER_LISTED"]
    assert "3 more objects" in found.remarks[0].message
    assert (found.landed, found.ended(End.PUBLISHED)) == (3, (2, 7))


def test_an_object_ingested_meanwhile_is_no_problem() -> None:
    """An object that the sweep ingests meanwhile is in flight."""
    history = ordinary()
    adapters: Any = history.adapters()
    adapters.ledger.all = lambda: iter(())  # as it was a moment ago
    found = reconciled(adapters)
    assert (found.problems, found.landed, found.ended(End.IN_FLIGHT)[0]) == ((), 6, 6)


def test_changes_by_others_are_remarks() -> None:
    """Other writers' changes are remarks with author, time, rows and commit."""
    history = ordinary()
    added, removed, column = map(history.by_others, (1000, -1, 0))
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["CHANGED_BY_OTHERS"] * 3
    assert f"ann added 1,000 rows to shop.orders at {added.time}" in found.remarks[0].message
    assert "ann removed 1 row of shop.orders" in found.remarks[1].message
    assert "ann changed columns, properties or delete files, and" in found.remarks[2].message
    assert [each.commit for each in found.remarks] == [added.hash, removed.hash, column.hash]


def test_rows_that_cannot_be_counted_are_a_remark() -> None:
    """Equality deletes are a remark: their rows cannot be counted."""
    history = ordinary()
    deleted = history.by_others(0)
    history.at[deleted.hash] = TableRows("uuid", 7, equality_deletes=2)
    found = history.reconcile()
    assert (found.problems, codes(found.remarks)) == (
        (),
        ["CHANGED_BY_OTHERS", "EQUALITY_DELETES"],
    )


def with_hidden_rows() -> History:
    """Return a history in which another writer's delete files hide 4 of 10 rows."""
    history = History()
    history.publish([10])
    deleted = history.by_others(0)
    history.at[deleted.hash] = TableRows("uuid", 10, position_deletes=4)
    return history


def test_rows_that_delete_files_name_are_gone() -> None:
    """Rows removed by position deletes are subtracted."""
    [found] = with_hidden_rows().reconcile().balances
    assert [gain.rows for gain in found.others] == [-4]
    assert found.off == 0


@pytest.mark.parametrize(("rows", "is_wrong"), [(13, False), (14, True), (4, True)])
def test_delete_files_that_hide_nothing_may_go_with_any_commit(rows: int, is_wrong: bool) -> None:
    """A commit may seem to gain as many rows as they hid once, and no more."""
    history = with_hidden_rows()
    commit = history.publish([3])
    history.at[commit.hash] = TableRows("uuid", rows)
    [found] = history.reconcile().balances
    assert [each.commit.hash for each in found.wrong] == [commit.hash] * is_wrong
    assert found.unaccounted == 0


def test_a_file_twice_and_another_one_lost_is_found() -> None:
    """A commit that has one file twice and lacks another is reported both ways."""
    history = ordinary()
    said = swapped(history)
    found = history.reconcile()
    assert codes(found.problems) == ["UNREPORTED_FILES", "MISSING_FILES"]
    assert said in found.problems[0].message
    assert "did not add to shop.orders s3://lake/7.csv.parquet" in found.problems[1].message


def test_files_that_others_exchanged_are_a_remark() -> None:
    """Other writers' exchange of as many rows is a remark."""
    history = ordinary()
    history.by_others(0, "s3://lake/x.parquet")
    found = history.reconcile()
    assert (found.problems, codes(found.remarks)) == ((), ["CHANGED_BY_OTHERS"])
    assert "replaced 0 data files by 1 with as many rows in shop.orders" in found.remarks[0].message


def test_files_that_no_report_names_are_only_counted() -> None:
    """Without reports, rows are compared all the same, and a remark names the gap."""
    history = ordinary()
    history.reports.clear()
    found = history.reconcile()
    assert (found.problems, codes(found.remarks)) == ((), ["FILES_NOT_COMPARED"])
    history.publish([5], gain=4)
    assert codes(history.reconcile().problems) == ["WRONG_GAIN"]


def test_the_next_run_begins_where_the_last_one_ended() -> None:
    """Only commits since the checkpoint are read; the sums include all."""
    history = ordinary()
    history.by_others(2)
    first = history.reconcile()
    assert (first.since, len(history.reads)) == ("", 2)
    new = history.publish([5])
    found = history.reconcile()
    assert (found.problems, found.remarks, found.since) == ((), (), history.log[1].hash)
    assert history.reads == [new.hash]
    [balance] = found.balances
    assert (balance.rows.live, balance.published, balance.gained_by_others) == (14, 12, 2)
    assert (balance.off, found.ended(End.PUBLISHED)) == (0, (3, 12))
    assert len(history.reconcile(full=True).balances[0].others) == 1
    assert len(history.reads) == 3


def test_commits_in_progress_are_checked_again() -> None:
    """A checkpoint excludes commits in progress, and problems keep it where it is."""
    history = ordinary()
    history.publish([5], at=NEW)
    history.reconcile()
    assert history.checkpoint
    assert history.checkpoint.hash == history.log[0].hash
    history.publish([6], gain=0, at=NEW)
    history.since += timedelta(days=1)
    assert codes(history.reconcile().problems) == ["WRONG_GAIN"]
    assert history.checkpoint.hash == history.log[0].hash
    assert len(history.reconcile().problems) == 1


def test_a_main_that_was_put_back_is_checked_from_the_beginning() -> None:
    """A checkpoint that main lost is ignored, and missing ingestions are named."""
    history = ordinary()
    first, second = history.log[0], history.publish([5])
    history.reconcile()
    history.put_back(first)
    found = history.reconcile()
    assert (codes(found.problems), codes(found.remarks)) == (["NOT_ON_MAIN"], ["MAIN_PUT_BACK"])
    assert (found.since, found.problems[0].commit) == ("", second.hash)
    for command in ("replay", "discard"):
        assert f"`lakegate {command} {found.problems[0].ingestion}`" in found.problems[0].message


def test_an_ingestion_lost_behind_the_checkpoint_is_found() -> None:
    """An ingestion published since the checkpoint and lost by main is missing."""
    history = ordinary()
    history.reconcile()
    history.publish([5], at=NEW)
    history.reconcile()
    history.put_back(history.log[0])
    found = history.reconcile()
    assert (codes(found.problems), found.since) == (["NOT_ON_MAIN"], history.log[0].hash)


def test_a_second_publication_since_the_checkpoint_is_found() -> None:
    """A second publication is found even if the first is before the checkpoint."""
    history = ordinary()
    history.reconcile()
    history.merge(published(history.log[0])[:1], gain=3)
    assert codes(history.reconcile().problems) == ["PUBLISHED_TWICE"]


def test_a_table_that_becomes_ours_begins_with_what_others_left() -> None:
    """Rows from before the first publication belong to other writers."""
    history = History()
    history.by_others(9)
    history.reconcile()
    history.publish([5])
    found = history.reconcile()
    [balance] = found.balances
    assert (found.problems, balance.gained_by_others, balance.off) == ((), 9, 0)


def of_years() -> tuple[History, tuple[Commit, ...]]:
    """Return a history whose oldest states are gone, and its commits."""
    history, days = History(), [START + timedelta(days=days) for days in (-90, -80, -40, -2, -1)]
    commits = (
        history.publish([3, 4], at=days[0]),
        history.by_others(10, at=days[1]),
        history.publish([5], at=days[2]),
        history.by_others(-2, at=days[3]),
        history.publish([6], at=days[4]),
    )
    history.forget(START - timedelta(days=30))
    return history, commits


def test_commits_whose_metadata_is_gone_are_not_compared() -> None:
    """Rows are compared from the oldest kept state on, a remark says so, and later runs agree."""
    history, commits = of_years()
    found = history.reconcile(full=True)
    assert (found.problems, codes(found.remarks)) == (
        (),
        ["ROWS_NOT_COMPARED", "CHANGED_BY_OTHERS"],
    )
    assert "the rows of 4 commits up to" in found.remarks[0].message
    assert found.remarks[0].commit == commits[2].hash
    assert history.reads == [each.hash for each in (commits[4], commits[3])]
    [balance] = found.balances
    assert (balance.published, balance.gained_by_others, balance.off) == (18, 8, 0)
    history.publish([1], at=START)
    later = history.reconcile()
    assert (later.problems, later.remarks) == ((), ())


def test_a_checkpoint_that_is_the_oldest_kept_state_needs_no_remark() -> None:
    """A table that nobody changed for long is not reported on each run."""
    history = History()
    history.publish([3], at=START - timedelta(days=90))
    assert not history.reconcile().remarks
    history.forget(START - timedelta(days=30))
    assert not history.reconcile().remarks
    history.publish([1])
    assert not history.reconcile().remarks


def test_what_old_commits_published_is_still_compared_with_the_ledger() -> None:
    """An ingestion that the ledger lacks is found, however old its commit is."""
    history, commits = of_years()
    del history.ingestions[published(commits[0])[0].id]
    assert "NOT_TAKEN_IN" in codes(history.reconcile(full=True).problems)


def test_a_wrong_commit_whose_metadata_is_there_is_found() -> None:
    """Of the kept commits each one's rows are compared."""
    history, commits = of_years()
    rows = history.at[commits[4].hash]
    history.at[commits[4].hash] = replace(rows, records=rows.records + 1)
    [problem] = history.reconcile(full=True).problems
    assert (problem.code, problem.commit) == ("WRONG_GAIN", commits[4].hash)


def test_a_cut_history_is_not_a_loss() -> None:
    """Publications before a cut of Nessie's history are not missed, and a remark says so."""
    history = History()
    history.publish([3, 4], at=START - timedelta(days=90))
    at = history.publish([5], at=START - timedelta(days=60))
    history.publish([6])
    history.cut(at)
    found = history.reconcile(full=True)
    assert found.problems == ()
    assert codes(found.remarks) == ["ROWS_NOT_COMPARED", "HISTORY_CUT"]
    assert found.balances[0].off == 0
    assert not history.reconcile().remarks


def test_a_new_catalog_is_a_loss() -> None:
    """A log that begins with a commit of others was not cut: what it lacks is missing."""
    history = History()
    history.publish([3])
    history.by_others(0)
    at = history.log[-1]
    history.publish([6])
    history.cut(at)
    assert "NOT_ON_MAIN" in codes(history.reconcile(full=True).problems)


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.lists(st.integers(1, 50), min_size=1, max_size=4)),
    st.tuples(st.just("replace"), st.tuples(st.integers(1, 50), st.integers(1, 50))),
    st.tuples(st.just("others"), st.integers(-60, 60)),
    st.tuples(st.just("elsewhere"), st.none()),
    st.tuples(st.just("land"), st.sampled_from([*State])),
)


def tell(steps: list[tuple[str, object]], history: History | None = None) -> History:
    """Return a history of correct steps, in which the table never has negative rows."""
    history = history or History()
    for step in steps:
        rows = history.at[history.log[-1].hash].records if history.log else 0
        match step:
            case ("publish", list(files)):
                history.publish(files)
            case ("replace", (int(new), int(old))):
                history.publish([new], replaced=min(old, rows))
            case ("others", int(gain)):
                history.by_others(max(gain, -rows))
            case ("elsewhere", _):
                history.commit()
            case ("land", State.PUBLISHED):
                history.publish([1])
            case ("land", State() as state):
                history.taken_in(state)
    return history


@given(st.lists(STEPS, max_size=30), st.booleans())
def test_correct_steps_reconcile(steps: list[tuple[str, object]], thorough: bool) -> None:
    """Any correct history reconciles.

    Earlier runs, each from the checkpoint of the one before, make no difference.
    """
    history, third = History(), len(steps) // 3
    for part in (steps[:third], steps[third : 2 * third]):
        tell(part, history).reconcile()
    tell(steps[2 * third :], history)
    found = history.reconcile(thorough=thorough)
    full = history.reconcile(thorough=thorough, full=True)
    assert found.problems == full.problems == ()
    assert [replace(each, others=()) for each in found.balances] == [
        replace(each, others=()) for each in full.balances
    ]
    assert sum(found.ended(end)[0] for end in End) == found.landed == len(history.landed)


@given(st.lists(STEPS, max_size=15), st.lists(STEPS, max_size=15), st.data())
def test_one_lost_or_doubled_file_does_not(
    before: list[tuple[str, object]], after: list[tuple[str, object]], data: st.DataObject
) -> None:
    """One file's lost or doubled rows are found with exactly their commit."""
    history = tell([*before, ("publish", [data.draw(st.integers(1, 60))]), *after])
    wrong = data.draw(st.sampled_from([commit for commit in history.log if published(commit)]))
    file = data.draw(st.sampled_from(published(wrong)))
    assume(file.rows)
    sign = data.draw(st.sampled_from([-1, 1]))
    for commit in history.log[history.log.index(wrong) :]:
        rows = history.at[commit.hash]
        history.at[commit.hash] = replace(rows, records=rows.records + sign * file.rows)
    found = history.reconcile(thorough=data.draw(st.booleans()))
    assert [(each.code, each.commit) for each in found.problems] == [("WRONG_GAIN", wrong.hash)]


@given(st.lists(STEPS, min_size=1, max_size=20), st.data())
def test_a_forgotten_object_does_not(steps: list[tuple[str, object]], data: st.DataObject) -> None:
    """Any landed object that disappears from the ledger is found."""
    history = tell(steps)
    assume(history.ingestions)
    forgotten = data.draw(st.sampled_from(sorted(history.ingestions)))
    del history.ingestions[forgotten]
    found = history.reconcile()
    assert {each.ingestion for each in found.problems} == {forgotten}
    assert found.ended(End.NOT_TAKEN_IN)[0] == 1
