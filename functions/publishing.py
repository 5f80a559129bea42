"""From a passed audit to main, by as few commits as it takes.

    intent := (branch, hash), kept in the ledger, changed only by a guarded write
    merge the intent → applied now, or applied before: published
                     → refused, for main's table moved on: enter the files of all intents that wait
                       for the table, and that main refuses too, into one fresh branch off main;
                       swap all these intents for it in one write; delete the branches they named;
                       merge again
                     → refused, for main was set back past the branch's base: run the job again

An intent is swapped only once main is known to refuse its branch for ever, so that of a branch and
its successor only one can publish. docs/adr/publishing-together.md has the whole argument.
"""

from collections.abc import Sequence
from dataclasses import replace

from functions import commits
from functions.batches import enter_again
from functions.catalog import MAIN, CannotRebase, MergeConflict, NotOnMain, SetBack, UnknownBranch
from functions.commits import AlreadyPublished, require_unpublished
from functions.ending import end, end_published, finish
from functions.groups import Unit, refused_too, unit_of
from functions.ingestion import Ingestion, Intent, State
from functions.intake import demands_now, run_again
from functions.ledger import Moved
from functions.reauditing import audit_again
from functions.replacing import prepare
from functions.stale import given_way
from functions.telemetry import logger, metrics
from functions.turns import must_wait, next_in_line
from functions.world import World
from lakegate.errors import LakegateError, Transient
from lakegate.landing import WRITTEN_BY_JOBS, fresh_branch
from lakegate.report import Reason

_MOST_TRIES = 20


class _Unaudited(LakegateError):
    """A branch holds something else than what its report says was audited."""

    def __init__(self, ingestion: Ingestion, found: str) -> None:
        message = f"branch {ingestion.branch} holds more than was audited: {found}"
        todo = f"find out who wrote there, then `lakegate replay {ingestion.id}`"
        super().__init__("UNAUDITED_ROWS", f"{message}; {todo}")


def publish(world: World, ingestion: Ingestion) -> Ingestion:
    """Merge the intent into main: exactly what was audited, and nothing else.

    Who goes first is waited for. Where checks look beyond the file it is audited again where main
    refuses it, a change is made again; either leaves its place in the line to the next. Raises
    Transient TABLE_BUSY when main's table moved on again each time that it was tried.
    """
    done = _publish(world, ingestion)
    publish_next(world, done)
    return done


def publish_next(world: World, done: Ingestion) -> None:
    """Publish those that waited for an ingestion which is in their way no more, one by one."""
    tried = {done.id}
    while following := next_in_line(world, done, tried):
        tried.add(following.id)
        try:
            done = _publish(world, following)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"next": following.id, "why": error.message})
            return


def _publish(world: World, ingestion: Ingestion) -> Ingestion:
    elsewhere: set[str] = set()
    refused = False
    for _ in range(_MOST_TRIES):
        ingestion, may_merge = _looked_at(world, ingestion, refused=refused)
        if not may_merge:
            return ingestion
        unit = unit_of(world, ingestion)
        try:
            return end_published(world, unit.members, _merge(world, unit))
        except MergeConflict:
            refused = True
            ingestion = _renewed(world, unit, elsewhere)
        except (NotOnMain, SetBack) as why:
            logger.warning("the job must run again", extra={"why": why.message})
            return _all_again(world, unit)
        except (_Unaudited, CannotRebase) as why:
            return end(world, ingestion, State.ERRORED, Reason(why.code, why.message))
    moved = f"{' or '.join(ingestion.tables)} moved on main {_MOST_TRIES} times"
    message = f"{moved} while {ingestion.id} waited"
    raise Transient("TABLE_BUSY", f"{message}; it will be tried again")


def _looked_at(world: World, ingestion: Ingestion, *, refused: bool) -> tuple[Ingestion, bool]:
    """Return the ingestion as it then is, and whether it is to be merged now.

    Other versions of its key may keep it from main, or have to be replaced, and others of its table
    may go first.
    """
    if ingestion.is_decided and (late := given_way(world, ingestion)):
        return late, False
    if ingestion.replaces:
        ingestion = prepare(world, ingestion, refused=refused)
    if ingestion.state is not State.AUDITED:
        return finish(world, ingestion), False
    return ingestion, not must_wait(world, ingestion)


def _merge(world: World, unit: Unit) -> str:
    """The hash of the commit on main, made now or before.

    Raises MergeConflict, NotOnMain or SetBack, and _Unaudited where the branch holds other rows.
    """
    members, merged = unit.members, ""
    _delete_incomplete(world, unit)
    try:
        if unit.intent.branch.startswith(WRITTEN_BY_JOBS):
            _require_audited(world, unit)
        merged = _merge_intent(world, unit)
    except UnknownBranch:
        logger.info("the branch is gone: main's log tells whether it was merged")
    return merged or commits.commit_of(world.catalog.log(), members[0]).hash


def _delete_incomplete(world: World, unit: Unit) -> None:
    """Delete the branch of a unit whose commit would not name all ingestions that it publishes."""
    if not unit.complete:
        world.catalog.delete_branch(unit.intent.branch)


def _merge_intent(world: World, unit: Unit) -> str:
    """Merge the audited hash; return the commit on main, "" where main has these rows already."""
    members = unit.members
    return world.catalog.merge(
        unit.intent.branch,
        unit.intent.hash,
        members[0].base_hash,
        commits.message(members),
        commits.properties(members),
    )


def _require_audited(world: World, unit: Unit) -> None:
    """Raise _Unaudited unless the intent changes its tables alone, by the rows of the report.

    The job itself reports nothing else. This is the second look, at a branch that others with the
    job's token could write to.
    """
    first, at = unit.members[0], unit.intent.hash
    if strange := world.catalog.changed_tables(first.base_hash, at) - set(first.tables):
        raise _Unaudited(first, f"it also changes {', '.join(sorted(strange))}")
    for table, expected in commits.expected_gains(unit.members).items():
        before, after = (
            world.tables().rows(table, f"{MAIN}@{hash_}").live for hash_ in (first.base_hash, at)
        )
        if after - before != expected:
            raise _Unaudited(first, f"{table} gains {after - before:,} rows, not {expected:,}")


def _renewed(world: World, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """What main refused, after the first step towards another intent."""
    first = refused.members[0]
    if first.replaces:
        return first  # which `prepare` will see to
    if first.change or (first.parts and first.looks_beyond):
        return run_again(world, first)  # what it changes, or looks at, is another table now
    if first.looks_beyond:
        return audit_again(world, first)
    return _rebase(world, refused, elsewhere)


def _rebase(world: World, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """Enter the refused files, and all that wait with them, into a fresh branch off main.

    Returns the unit's first ingestion as it then stands. `elsewhere` are the ids of ingestions that
    other processes have in hand: they are left to them, and more of them are added.
    """
    first = refused.members[0]
    fresh = fresh_branch(first.table, first.id, world.token())
    base = world.catalog.create_branch(fresh)
    try:
        replaced = _swap(world, refused, elsewhere, fresh, base)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        world.catalog.delete_branch(fresh)
        return _all_again(world, refused)
    except AlreadyPublished as found:
        world.catalog.delete_branch(fresh)
        return _end_found(world, refused, found)
    except Exception as error:
        # A save that timed out may have been done: then the fresh branch is the intent.
        now = world.ledger.get(first.id)
        if now.branch == fresh:
            return now
        world.catalog.delete_branch(fresh)
        if isinstance(error, Moved):
            elsewhere |= error.ids
        elif now.revision == first.revision or not isinstance(error, LakegateError):
            raise
        return now
    for branch in replaced:
        world.catalog.delete_branch(branch)
    metrics.add_metric("Rebases", "Count", 1)
    return world.ledger.get(first.id)


def _swap(world: World, refused: Unit, elsewhere: set[str], fresh: str, base: str) -> Sequence[str]:
    """Make the fresh branch, cut at `base`, the intent of all whose files it can hold.

    Returns the branches that it replaces. Raises CannotRebase when the refused files cannot be
    entered, AlreadyPublished when main has some of them, Moved when another process was quicker.
    """
    first = refused.members[0]
    require_unpublished(world.catalog.log(), refused.members)
    if any(m.demands != demands_now(world, m) for m in refused.members):
        raise CannotRebase("CONTRACT_CHANGED", "the contract asks for other things now")
    if first.parts:
        return _swap_batch(world, first, fresh, base)
    units = [refused, *refused_too(world, refused, elsewhere)]
    failed = world.tables().append_again(first.table, [unit.intent for unit in units], fresh)
    if refused.intent in failed:
        raise failed[refused.intent]
    entered = [unit for unit in units if unit.intent not in failed]
    members = [member for unit in entered for member in unit.members]
    _set_intent(world, members, Intent(fresh, world.catalog.head(fresh)), base)
    return [unit.intent.branch for unit in entered]


def _set_intent(world: World, members: Sequence[Ingestion], intent: Intent, base: str) -> None:
    """Give all members the intent, whose branch was created at `base`, in one conditional write."""
    group = tuple(member.id for member in members) if len(members) > 1 else ()
    at = world.now()
    world.ledger.save_all([member.rebased(at, intent, base, group) for member in members])


def _swap_batch(world: World, batch: Ingestion, fresh: str, base: str) -> Sequence[str]:
    """Make the fresh branch the intent of a batch, which is published alone; as `_swap`."""
    parts = enter_again(world, batch, fresh)
    intent = Intent(fresh, world.catalog.head(fresh))
    moved = batch.rebased(world.now(), intent, base, ())
    world.ledger.save(replace(moved, parts=parts))
    return [batch.branch]


def _end_found(world: World, unit: Unit, found: AlreadyPublished) -> Ingestion:
    """Record as published the members that main has; the jobs of the others run again.

    Returns the unit's first ingestion as it then stands.
    """
    first = unit.members[0]
    for member in unit.members:
        if member.id in found.commits:
            end_published(world, [member], found.commits[member.id])
    if others := [member for member in unit.members if member.id not in found.commits]:
        _all_again(world, replace(unit, members=others))
    return world.ledger.get(first.id)


def _all_again(world: World, unit: Unit) -> Ingestion:
    """Run the jobs of all members again; each of the others has a message or the sweep as well."""
    first, *others = unit.members
    for other in others:
        try:
            run_again(world, other)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"other": other.id, "why": error.message})
    return run_again(world, first)
