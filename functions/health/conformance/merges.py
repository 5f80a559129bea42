"""What a merge into main does, what it answers, and when it is refused."""

from functions.adapters.nessie import MergeConflict, SetBack, UnknownBranch
from functions.health.conformance.scratch import NO_HASH, Scratch, refused, same
from functions.health.conformance.writer import ONE, THREE, TWO


def a_merge_is_one_commit(on: Scratch) -> None:
    """A merge is one commit on main with message, author and properties as they were given."""
    branch, head = on.written(1)
    properties = {"lakegate.ingestion": on.name, "lakegate.object": "s3://b/Flüge 1+1.csv"}
    merged = on.catalog.merge(branch, head, on.bases[branch], "Publish 3 rows", properties)
    commit = next(on.catalog.log())
    same((commit.hash, commit.parent), (merged, on.bases[branch]))
    same(on.head(), merged)
    same(on.on_main(), ONE)
    same(on.catalog.metadata(merged, on.table), on.catalog.metadata(head, on.table))
    same((commit.message, commit.author), ("Publish 3 rows", "lakegate"))
    same(commit.properties, properties)


def a_merge_is_done_once(on: Scratch) -> None:
    """Merging a merged hash again changes nothing, even if main changed the same table since."""
    branch, head = on.written(1)
    main = on.merge(branch, head)
    same(on.merge(branch, head), "")
    same(on.head(), main)
    on.merge(*on.written(2, TWO))
    same(on.merge(branch, head), "")
    same(on.on_main(), TWO)


def an_empty_branch_changes_nothing(on: Scratch) -> None:
    """A merge of a branch without commits is answered as not applied."""
    head = on.catalog.create_branch(on.branch())
    same(on.merge(on.branch(), head, head), "")
    same(on.head(), head)


def only_what_was_named_is_merged(on: Scratch) -> None:
    """Commits after the named hash stay on the branch until they are named."""
    branch, head = on.written(1)
    later = on.write(branch, TWO)
    on.merge(branch, head)
    same(on.on_main(), ONE)
    same(on.merge(branch, later, head), on.head())
    same(on.on_main(), TWO)
    same(on.merge(branch, head), "")


def a_new_table_is_a_conflict(on: Scratch) -> None:
    """Of two branches that created one table the second is refused, each time."""
    _conflict(on)


def a_changed_table_is_a_conflict(on: Scratch) -> None:
    """Of two branches that changed one table the second is refused, each time."""
    on.merge(*on.written(0, TWO))
    _conflict(on)


def _conflict(on: Scratch) -> None:
    first, second = on.written(1, ONE), on.written(2, THREE)
    on.merge(*first)
    main = on.head()
    for _ in range(2):
        with refused(MergeConflict, "MERGE_CONFLICT"):
            on.merge(*second)
    same(on.head(), main)
    same(on.on_main(), ONE)
    same(on.merge(*on.written(3, TWO)), on.head())


def a_write_on_main_is_a_conflict(on: Scratch) -> None:
    """A change of a table on main conflicts with branches created before."""
    on.merge(*on.written(0))
    branch, head = on.written(1, THREE)
    by_hand = on.write(on.main, TWO)
    with refused(MergeConflict, "MERGE_CONFLICT"):
        on.merge(branch, head)
    same(on.head(), by_hand)


def a_later_change_of_a_merged_branch_can_conflict(on: Scratch) -> None:
    """A branch that continues after its merge conflicts only with later changes of main."""
    branch, head = on.written(1)
    on.merge(branch, head)
    on.merge(*on.written(2, TWO))
    later = on.write(branch, THREE)
    with refused(MergeConflict, "MERGE_CONFLICT"):
        on.merge(branch, later, head)


def other_tables_are_no_conflict(on: Scratch) -> None:
    """Branches that changed different tables are all merged, though all created one namespace."""
    branches = [on.written(n, ONE, on.other(f"t{n}")) for n in range(3)]
    for each in branches:
        same(on.merge(*each), on.head())
    same([on.on_main(on.other(f"t{n}")) for n in range(3)], [ONE] * 3)


def a_main_that_was_set_back_takes_no_older_branch(on: Scratch) -> None:
    """A dry run names the common ancestor, by which commits that main lost never return."""
    before, others = on.head(), on.other("others")
    on.merge(*on.written(1))
    branch, head = on.written(2, ONE, others)
    on.writer.set_back(on.main, before)
    for _ in range(2):
        with refused(SetBack, "MAIN_SET_BACK"):
            on.merge(branch, head)
    same(on.head(), before)
    on.merge(*on.written(3, TWO, others))
    same((on.on_main(), on.on_main(others)), ("", TWO))


def a_branch_that_is_gone_cannot_be_merged(on: Scratch) -> None:
    """A branch that is deleted or never existed, and an unknown hash, are refused as unknown."""
    branch, head = on.written(1)
    with refused(UnknownBranch, "UNKNOWN_BRANCH"):
        on.merge(branch, NO_HASH)
    on.catalog.delete_branch(branch)
    for name in (branch, on.branch(2)):
        with refused(UnknownBranch, "UNKNOWN_BRANCH"):
            on.merge(name, head, on.bases[branch])
    same(on.on_main(), "")


def a_hash_is_taken_through_any_branch(on: Scratch) -> None:
    """A known hash is merged even if the named branch does not lead to it."""
    branch, head = on.written(1)
    on.catalog.delete_branch(branch)
    on.catalog.create_branch(branch)
    same(on.merge(branch, head), on.head())
    same(on.on_main(), ONE)
