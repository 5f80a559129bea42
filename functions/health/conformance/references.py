"""How branches are created, found and deleted."""

from functions.adapters.nessie import UnknownBranch
from functions.health.conformance.scratch import Scratch, refused, same
from functions.health.conformance.writer import ONE
from lakegate.errors import Transient


def a_branch_begins_at_main(on: Scratch) -> None:
    """A new branch begins at main's head; created again it stays where it is."""
    main = on.head()
    branch, head = on.written(1)
    same(on.bases[branch], main)
    same(on.catalog.create_branch(branch), head)
    same(on.writer.read(branch, on.table), ONE)
    references = on.catalog.references()
    same((references[branch], references[on.main]), (head, main))


def a_branch_is_apart(on: Scratch) -> None:
    """A write on a branch changes neither main nor another branch."""
    main = on.head()
    on.written(1)
    on.catalog.create_branch(on.branch(2))
    same(on.head(), main)
    same((on.on_main(), on.writer.read(on.branch(2), on.table)), ("", ""))


def a_deleted_branch_is_gone(on: Scratch) -> None:
    """A deleted branch has no head, deleting it again is no error, and its hash stays readable."""
    branch, head = on.written(1)
    metadata = on.catalog.metadata(head, on.table)
    on.catalog.delete_branch(branch)
    on.catalog.delete_branch(branch)
    for unknown in (branch, on.branch(2)):
        with refused(UnknownBranch, "UNKNOWN_BRANCH"):
            on.catalog.head(unknown)
    same(next(on.catalog.log_of(head)).hash, head)
    same(on.catalog.metadata(head, on.table), metadata)
    same(on.catalog.create_branch(branch), on.head())


def a_fresh_branch_has_one_creator(on: Scratch) -> None:
    """Creating a branch that exists is refused as that, and the branch stays."""
    head = on.catalog.create_branch(on.fresh())
    on.merge(*on.written(1))
    with refused(Transient, "BRANCH_TAKEN"):
        on.catalog.create_branch(on.fresh())
    same(on.catalog.head(on.fresh()), head)


def branches_are_found_by_prefix(on: Scratch) -> None:
    """A filter on names finds all branches with one of the prefixes, over several pages."""
    for number in (2, 1, 10, 11, 3):
        on.catalog.create_branch(on.branch(number))
    beginning = on.branch(1)[:-1]
    names = [on.branch(number) for number in (1, 10, 11, 2, 3)]
    same(on.catalog.branches(beginning), names)
    same(on.catalog.branches(on.branch(1)), names[:3])
    same(on.catalog.branches(on.branch(4)), [])
    same(on.catalog.branches(on.branch(2), on.branch(10)), [names[1], names[3]])
    same(on.catalog.branches(beginning.partition("/")[2]), [])
