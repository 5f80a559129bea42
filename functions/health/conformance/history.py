"""What Nessie tells of commits, of those that a branch reaches and of others."""

from datetime import UTC, datetime
from itertools import islice

from functions.adapters.nessie import UnknownBranch
from functions.health.conformance.scratch import NO_HASH, Scratch, refused, same
from functions.health.conformance.writer import ONE, TWO

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def the_log_goes_from_the_newest_back(on: Scratch) -> None:
    """Main's commits come in order over several pages, each with its parent."""
    begun = on.head()
    states = [TWO, ONE] * 3
    merged = [on.merge(*on.written(n, state), k=str(n)) for n, state in enumerate(states)]
    log = list(islice(on.catalog.log(), len(merged) + 1))
    same([commit.hash for commit in log], [*merged[::-1], begun])
    same([commit.parent for commit in log[:-1]], [*merged[-2::-1], begun])
    same([commit.properties["k"] for commit in log[:-1]], list("543210"))


def a_log_leads_to_any_hash(on: Scratch) -> None:
    """The commits that lead to a hash come from the newest back, and merges are told apart."""
    on.merge(*on.written(1))
    branch, _ = on.written(2, TWO)
    on.write(branch, ONE, on.other("others"))
    head = on.write(branch, ONE)
    newest, other, older, merge = islice(on.catalog.log_of(head), 4)
    same((newest.hash, newest.is_merge, newest.parent), (head, False, other.hash))
    same((merge.hash, merge.is_merge, older.parent), (on.head(), True, merge.hash))
    moments = [each.moment for each in (newest, other, older, merge)]
    same(moments, sorted(moments, reverse=True))


def a_history_tells_what_was_changed(on: Scratch) -> None:
    """Each of main's commits names the tables that it changed, also for a merge."""
    ours = on.merge(*on.written(1), ours="1")
    others = on.other("others")
    theirs = on.merge(*on.written(2, ONE, others))
    by_hand = on.write(on.main, TWO)
    log = islice(on.catalog.history(), 3)
    commits = {commit.hash: (commit.properties, names) for commit, names in log}
    same(list(commits), [by_hand, theirs, ours])
    same(commits[by_hand][1], {on.table})
    same(others in commits[theirs][1], True)
    same((commits[ours][0].get("ours"), on.table in commits[ours][1]), ("1", True))


def the_states_of_a_log_are_whole(on: Scratch) -> None:
    """All contents at a hash are told with their metadata, and what its commits put before."""
    others = on.other("others")
    branch, first = on.written(1)
    on.write(branch, ONE, others)
    last = on.write(branch, TWO)
    on.catalog.delete_branch(branch)
    put = {on.catalog.metadata(at, each) for at, each in ((first, on.table), (last, others))}
    put.add(on.catalog.metadata(last, on.table))
    known = {on.bases[branch]}
    files = {each.metadata for each in on.catalog.states(last, _LONG_AGO, known) if each.is_table}
    same(put - files, set())
    same({first, last} - known, set())


def main_tells_how_far_it_is(on: Scratch) -> None:
    """Each commit on main raises its position by one; commits on branches do not."""
    before = on.catalog.tip()
    branch, at = on.written(1)
    same(on.catalog.tip(), before)
    merged = on.merge(branch, at)
    after = on.catalog.tip()
    same((after.hash, after.position), (merged, before.position + 1))


def differing_tables_are_named(on: Scratch) -> None:
    """The difference of two hashes names the tables created or changed, but no namespace."""
    base, others = on.head(), on.other("others")
    branch, head = on.written(1)
    same(on.catalog.changed_tables(base, head), {on.table})
    later = on.write(branch, ONE, others)
    same(on.catalog.changed_tables(base, later), {on.table, others})
    same(on.catalog.changed_tables(head, later), {others})
    same(on.catalog.changed_tables(head, head), frozenset())


def a_missing_table_has_no_metadata(on: Scratch) -> None:
    """A table that is not there is told from a hash that is not there."""
    same(on.catalog.metadata(on.head(), on.table), "")
    with refused(UnknownBranch, "UNKNOWN_BRANCH"):
        on.catalog.metadata(NO_HASH, on.table)
    with refused(UnknownBranch, "UNKNOWN_BRANCH"):
        next(on.catalog.log_of(NO_HASH))


def a_repository_tells_when_it_was_created(on: Scratch) -> None:
    """Nessie tells its repository from another by when it was created, and that main has begun."""
    same((bool(on.catalog.identity()), on.catalog.begun()), (True, True))
    same(on.catalog.identity(), on.catalog.identity())
