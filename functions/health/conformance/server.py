"""What only a server shows: changes of references that expect a hash."""

from functions.adapters.nessie import UnknownBranch
from functions.health.conformance.scratch import NO_HASH, Scratch, refused, same
from functions.health.conformance.writer import ONE, THREE, TWO, RestWriter


def a_stale_hash_changes_no_branch(on: Scratch, writer: RestWriter) -> None:
    """A branch is set back or deleted only by the hash at which it stands; else 409 is answered."""
    branch, stale = on.written(1)
    head = on.write(branch, TWO)
    same(writer.assign(branch, stale, on.head()).status_code, 409)
    same(writer.delete(branch, stale).status_code, 409)
    same(on.catalog.head(branch), head)
    same(writer.assign(branch, head, stale).status_code, 200)
    same(on.catalog.head(branch), stale)
    same(writer.delete(branch, stale).status_code, 200)
    with refused(UnknownBranch, "UNKNOWN_BRANCH"):
        on.catalog.head(branch)


def a_second_creation_is_a_conflict(on: Scratch, writer: RestWriter) -> None:
    """Creating a branch that exists is answered 409, and the branch stays."""
    branch, head = on.written(1)
    same(writer.create(branch, on.main, on.head()).status_code, 409)
    same(on.catalog.head(branch), head)


def a_tag_is_a_reference_but_no_branch(on: Scratch, writer: RestWriter) -> None:
    """A tag is listed with its hash among all references, and not among branches."""
    tag, at = f"{on.fresh()}-tag", on.head()
    same(writer.create(tag, on.main, at, "TAG").status_code, 200)
    try:
        same(on.catalog.references().get(tag), at)
        same(tag in on.catalog.branches(on.fresh()), False)
    finally:
        same(writer.delete(tag, at, "TAG").status_code, 200)


def a_merge_onto_an_older_main_loses_nothing(on: Scratch, writer: RestWriter) -> None:
    """If main moved on from the expected hash, other tables are merged and the same is refused."""
    before, others = on.head(), on.other("others")
    other, same_table = on.written(1, ONE, others), on.written(2, TWO)
    moved = on.merge(*on.written(3, THREE))
    same(writer.merge(*same_table, on.main, before).status_code, 409)
    same(on.head(), moved)
    same(writer.merge(*other, on.main, before).status_code, 200)
    same(next(on.catalog.log()).parent, moved)
    same((on.on_main(), on.on_main(others)), (THREE, ONE))


def a_merge_onto_an_unknown_hash_is_refused(on: Scratch, writer: RestWriter) -> None:
    """A merge that expects main at a hash that it never had is answered 404."""
    branch, head = on.written(1)
    main = on.head()
    for never in (NO_HASH, head):
        same(writer.merge(branch, head, on.main, never).status_code, 404)
    same(on.head(), main)
