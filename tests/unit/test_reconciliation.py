"""The invariant: every landed object has one end, and main has the rows that were published."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from functions.commits import published
from functions.finding import Finding
from functions.ingestion import State
from functions.reconciliation import End
from functions.table_rows import DoubledFile, TableRows
from tests.unit.main_history import LATER, ORDERS, History

NEW = LATER + timedelta(seconds=1)


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


def ordinary() -> History:
    """A good file, a bad one, one of each other end, and one that is under way."""
    history = History()
    history.publish([3, 4])
    for state in (State.REJECTED, State.ERRORED, State.IGNORED, State.SUBMITTED):
        history.taken_in(state)
    return history


def test_every_object_has_one_end() -> None:
    """Landing is the sum of the ends, with the rows of each, and nothing needs to be said."""
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
    assert found.landed == len(found.accounts) == 6


def test_nothing_at_all_is_all_right() -> None:
    """A deployment in which nothing ever landed reconciles."""
    found = History().reconcile()
    assert (found.landed, found.problems, found.remarks) == (0, (), ())


def not_taken_in(history: History) -> str:
    history.land()
    return "s3://landing/shop/orders/7.csv (version v7) landed at 2026-03-01T12:00"


def published_twice(history: History) -> str:
    history.merge(published(history.log[0])[:1], gain=3)
    return f"its 3 rows each time, by these commits on main: {'0' * 63}1, {'0' * 63}2"


def not_on_main(history: History) -> str:
    history.taken_in(State.PUBLISHED, rows=12)
    return "its 12 rows are missing from shop.orders"


def not_recorded(history: History) -> str:
    history.publish([5], state=State.REJECTED)
    return "but the ledger calls it rejected"


def unknown_to_the_ledger(history: History) -> str:
    history.publish([5])
    del history.ingestions[list(history.ingestions)[-1]]
    history.landed.popitem()
    return "but the ledger does not know it: `lakegate ledger rebuild`"


def rows_disagree(history: History) -> str:
    first = next(iter(history.ingestions.values()))
    history.ingestions[first.id] = replace(first, rows=1234)
    return "says 3 rows of s3://landing/shop/orders/1.csv (version v1), the ledger says 1,234"


def lost(history: History) -> str:
    history.publish([5000], gain=0)
    return "names 5,000 rows, but shop.orders has +0 rows since: 5,000 missing"


def doubled(history: History) -> str:
    history.publish([5000], gain=10000)
    return "names 5,000 rows, but shop.orders has +10,000 rows since: 5,000 too many"


def unaccounted(history: History) -> str:
    history.commit(gain=9)
    return "shop.orders has 16 rows on main: 9 too many, and no commit"


def doubled_file(history: History) -> str:
    history.doubled = (DoubledFile("s3://lake/a.parquet", 3, 2),)
    return "shop.orders lists the data file s3://lake/a.parquet 2 times: readers see its 3 rows 2"


PROBLEMS: dict[str, tuple[Callable[[History], str], str]] = {
    "not taken in": (not_taken_in, "NOT_TAKEN_IN"),
    "published twice": (published_twice, "PUBLISHED_TWICE"),
    "not on main": (not_on_main, "NOT_ON_MAIN"),
    "not recorded": (not_recorded, "NOT_RECORDED"),
    "unknown to the ledger": (unknown_to_the_ledger, "NOT_RECORDED"),
    "rows disagree": (rows_disagree, "ROWS_DISAGREE"),
    "lost": (lost, "WRONG_GAIN"),
    "doubled": (doubled, "WRONG_GAIN"),
    "unaccounted": (unaccounted, "UNACCOUNTED_ROWS"),
    "doubled file": (doubled_file, "DOUBLED_FILE"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_problem_is_told_alone(name: str) -> None:
    """What goes wrong gives exactly its own problem, with what and where in its sentence."""
    provoke, code = PROBLEMS[name]
    history = ordinary()
    said = provoke(history)
    found = history.reconcile()
    assert (codes(found.problems), found.remarks) == ([code], ())
    assert said in found.problems[0].message


def test_a_problem_names_what_a_program_needs() -> None:
    """Table, ingestion and commit are fields of their own."""
    history = ordinary()
    published_twice(history)
    [problem] = history.reconcile().problems
    first = published(history.log[0])[0]
    assert (problem.table, problem.ingestion, problem.commit) == (
        ORDERS,
        first.id,
        history.log[-1].hash,
    )


def test_what_is_new_may_be_under_way() -> None:
    """An object that just landed is in flight, one that was just merged need not be recorded."""
    history = ordinary()
    history.land(at=NEW)
    history.publish([5], at=NEW, state=State.AUDITED)
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["NOT_RECORDED"]
    assert found.ended(End.IN_FLIGHT)[0] == 3


def test_an_object_that_is_no_longer_listed_is_a_remark() -> None:
    """What a lifecycle rule removed keeps its end, and is no longer of what landed."""
    history = ordinary()
    for id_ in list(history.landed)[:3]:
        del history.landed[id_]
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["NO_LONGER_LISTED"]
    assert "3 more objects (2 published, 1 rejected)" in found.remarks[0].message
    assert (found.landed, found.ended(End.PUBLISHED)) == (3, (0, 0))
    assert [each.end for each in found.accounts if not each.listed] == [
        End.PUBLISHED,
        End.PUBLISHED,
        End.REJECTED,
    ]


def test_what_landed_after_the_listing_is_no_less_there() -> None:
    """An object that the ledger took in while the records were read counts as landed."""
    history = ordinary()
    history.taken_in(State.SUBMITTED, at=NEW)
    history.landed.popitem()
    found = history.reconcile()
    assert (found.problems, found.remarks, found.landed) == ((), (), 7)


def test_what_others_did_is_a_remark() -> None:
    """Who, when, what and by which commit: rows that others added or removed."""
    history = ordinary()
    added, removed = history.by_others(1000), history.by_others(-1)
    found = history.reconcile()
    assert found.problems == ()
    assert codes(found.remarks) == ["CHANGED_BY_OTHERS"] * 2
    assert f"ann added 1,000 rows to shop.orders at {added.time}" in found.remarks[0].message
    assert "ann removed 1 rows of shop.orders" in found.remarks[1].message
    assert [each.commit for each in found.remarks] == [added.hash, removed.hash]


def test_rows_that_cannot_be_counted_are_a_remark() -> None:
    """Which rows equality deletes hide is said not to be known."""
    history = ordinary()
    deleted = history.by_others(0)
    history.at[deleted.hash] = TableRows("uuid", 7, equality_deletes=2)
    found = history.reconcile()
    assert (found.problems, codes(found.remarks)) == ((), ["EQUALITY_DELETES"])


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.lists(st.integers(1, 50), min_size=1, max_size=4)),
    st.tuples(st.just("replace"), st.tuples(st.integers(1, 50), st.integers(1, 50))),
    st.tuples(st.just("others"), st.integers(-60, 60)),
    st.tuples(st.just("elsewhere"), st.none()),
    st.tuples(st.just("land"), st.sampled_from([*State])),
)


def tell(steps: list[tuple[str, object]]) -> History:
    """A history of correct steps; the table never has less than no rows."""
    history = History()
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
    """Whatever landed, was published, rejected or replaced, and whatever others did: all right."""
    history = tell(steps)
    found = history.reconcile(thorough=thorough)
    assert found.problems == ()
    assert sum(found.ended(end)[0] for end in End) == found.landed == len(history.landed)


@given(st.lists(STEPS, max_size=15), st.lists(STEPS, max_size=15), st.data())
def test_one_lost_or_doubled_file_does_not(
    before: list[tuple[str, object]], after: list[tuple[str, object]], data: st.DataObject
) -> None:
    """One file's rows lost or doubled, in whichever commit, are found, and only that commit."""
    history = tell([*before, ("publish", [data.draw(st.integers(1, 60))]), *after])
    ours = [change for change in history.changes if change.claimed is not None]
    wrong = data.draw(st.sampled_from(ours)).commit
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
    """Any one landed object that vanishes from the ledger is found."""
    history = tell(steps)
    assume(history.ingestions)
    forgotten = data.draw(st.sampled_from(sorted(history.ingestions)))
    del history.ingestions[forgotten]
    found = history.reconcile()
    assert {each.ingestion for each in found.problems} == {forgotten}
    assert found.ended(End.NOT_TAKEN_IN)[0] == 1
