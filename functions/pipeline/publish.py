"""From a passed audit to main, by as few commits as it takes.

    intent := (branch, hash), kept in the ledger, changed only by a guarded write
    merge the intent → applied now, or applied before: published
                     → refused, for main's table moved on: enter the files of all intents that wait
                       for the table, and that main refuses too, into one fresh branch off main;
                       swap all these intents for it in one write; delete the branches they named;
                       merge again
                     → refused, for main was set back past the branch's base: run the job again

An intent is swapped only once main is known to refuse its branch for ever, so that of a branch and
its successor only one can publish. docs/adr/0008-publishing-together.md has the whole argument.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from functions.adapters.all import Adapters
from functions.adapters.ledger import MOST_BYTES, MOST_TOGETHER, Moved, weight
from functions.adapters.nessie import (
    MAIN,
    CannotRebase,
    MergeConflict,
    SetBack,
    UnknownBranch,
)
from functions.model import merge_commit
from functions.model.commits import (
    NotOnMain,
)
from functions.model.ingestion import Ingestion, Intent, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.batches import enter_again
from functions.pipeline.finish import end, end_published, finish
from functions.pipeline.intake import current_requirements, run_again
from functions.pipeline.reaudit import audit_again
from functions.pipeline.replace import given_way, prepare
from functions.pipeline.table_queue import must_wait, next_in_line
from functions.telemetry import logger, metrics
from lakegate.errors import LakegateError, Transient
from lakegate.landing import WRITTEN_BY_JOBS, fresh_branch
from lakegate.report import Reason

# What waits for one table and can be published together: intents that main refuses, and whose.


@dataclass(frozen=True)
class Unit:
    """One intent, and the ingestions whose rows it holds."""

    intent: Intent
    members: Sequence[Ingestion]

    @property
    def complete(self) -> bool:
        """Whether these are all; the ledger may lack some, or an index be behind."""
        return len(self.members) == max(1, len(self.members[0].group))


def unit_of(adapters: Adapters, ingestion: Ingestion) -> Unit:
    """The ingestion's intent with all its members, itself the first."""
    if not ingestion.group:
        return Unit(ingestion.intent, [ingestion])
    members = adapters.ledger.together(ingestion.group)
    same = [m for m in members if m.intent == ingestion.intent and m.state is State.AUDITED]
    return Unit(ingestion.intent, [ingestion, *(m for m in same if m.id != ingestion.id)])


def refused_too(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> Iterator[Unit]:
    """The other units that wait for the table and that main refuses, as many as fit in."""
    first = refused.members[0]
    if not _may_join(first):
        return
    room, bytes_left = MOST_TOGETHER - len(refused.members), MOST_BYTES - weight(refused.members)
    waiting: defaultdict[Intent, list[Ingestion]] = defaultdict(list)
    for each in adapters.ledger.waiting(first.table):
        if each.intent != refused.intent and _may_join(each):
            waiting[each.intent].append(each)
    found = [Unit(intent, members) for intent, members in waiting.items()]
    units = [
        unit
        for unit in found
        if unit.complete
        and not any(member.id in elsewhere for member in unit.members)
        and all(_asked_alike(member, first) for member in unit.members)
    ]
    for unit in _dead(adapters, units):
        if len(unit.members) <= room and (taken := weight(unit.members)) <= bytes_left:
            room, bytes_left = room - len(unit.members), bytes_left - taken
            yield unit


def _may_join(waiting: Ingestion) -> bool:
    """Whether its rows are of one file, with which nothing else has to be published or undone.

    And of one that no newer version can keep from main (see stale.py).
    """
    return not (waiting.replaces or waiting.change or waiting.parts or waiting.is_decided)


def _asked_alike(one: Ingestion, other: Ingestion) -> bool:
    return (one.requirements_digest, one.contract_pinned) == (
        other.requirements_digest,
        other.contract_pinned,
    )


def _dead(adapters: Adapters, units: Sequence[Unit]) -> Iterator[Unit]:
    """The units that main can never take: it changed the table since their branch was cut.

    What main took already is not among them: a commit since then names it.
    """
    cut_at: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        cut_at[unit.members[0].base_hash].append(unit)
    since = _Since()
    for commit in adapters.catalog.log() if cut_at else ():
        for unit in cut_at.pop(commit.hash, ()):
            if since.changed(unit) and not since.names(unit):
                yield unit
        if not cut_at:
            return
        since.tables |= merge_commit.tables(commit)
        since.published.update(each.id for each in merge_commit.published(commit))


@dataclass
class _Since:
    """What main's commits, from the newest back, published, and into which tables."""

    tables: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)

    def changed(self, unit: Unit) -> bool:
        return unit.members[0].table in self.tables

    def names(self, unit: Unit) -> bool:
        return any(member.id in self.published for member in unit.members)


_MOST_TRIES = 20


class _Unaudited(LakegateError):
    """A branch holds something else than what its report says was audited."""

    def __init__(self, ingestion: Ingestion, found: str) -> None:
        message = f"branch {ingestion.branch} holds more than was audited: {found}"
        todo = f"find out who wrote there, then `lakegate replay {ingestion.id}`"
        super().__init__("UNAUDITED_ROWS", f"{message}; {todo}")


def publish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Merge the intent into main: exactly what was audited, and nothing else.

    Who goes first is waited for. Where checks look beyond the file it is audited again where main
    refuses it, a change is made again; either leaves its place in the line to the next. Raises
    Transient TABLE_BUSY when main's table moved on again each time that it was tried.
    """
    done = _publish(adapters, ingestion)
    publish_next(adapters, done)
    return done


def publish_next(adapters: Adapters, done: Ingestion) -> None:
    """Publish those that waited for an ingestion which is in their way no more, one by one."""
    tried = {done.id}
    while following := next_in_line(adapters, done, tried):
        tried.add(following.id)
        try:
            done = _publish(adapters, following)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"next": following.id, "why": error.message})
            return


def _publish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    elsewhere: set[str] = set()
    refused = False
    for _ in range(_MOST_TRIES):
        ingestion, may_merge = _looked_at(adapters, ingestion, refused=refused)
        if not may_merge:
            return ingestion
        unit = unit_of(adapters, ingestion)
        try:
            return end_published(adapters, unit.members, _merge(adapters, unit))
        except MergeConflict:
            refused = True
            ingestion = _renewed(adapters, unit, elsewhere)
        except (NotOnMain, SetBack) as why:
            logger.warning("the job must run again", extra={"why": why.message})
            return _all_again(adapters, unit)
        except (_Unaudited, CannotRebase) as why:
            return end(adapters, ingestion, State.ERRORED, Reason(why.code, why.message))
    moved = f"{' or '.join(ingestion.tables)} moved on main {_MOST_TRIES} times"
    message = f"{moved} while {ingestion.id} waited"
    raise Transient("TABLE_BUSY", f"{message}; it will be tried again")


def _looked_at(
    adapters: Adapters, ingestion: Ingestion, *, refused: bool
) -> tuple[Ingestion, bool]:
    """Return the ingestion as it then is, and whether it is to be merged now.

    Other versions of its key may keep it from main, or have to be replaced, and others of its table
    may go first.
    """
    if ingestion.is_decided and (late := given_way(adapters, ingestion)):
        return late, False
    if ingestion.replaces:
        ingestion = prepare(adapters, ingestion, refused=refused)
    if ingestion.state is not State.AUDITED:
        return finish(adapters, ingestion), False
    return ingestion, not must_wait(adapters, ingestion)


def _merge(adapters: Adapters, unit: Unit) -> str:
    """The hash of the commit on main, made now or before.

    Raises MergeConflict, NotOnMain or SetBack, and _Unaudited where the branch holds other rows.
    """
    members, merged = unit.members, ""
    _delete_incomplete(adapters, unit)
    try:
        if unit.intent.branch.startswith(WRITTEN_BY_JOBS):
            _require_audited(adapters, unit)
        merged = _merge_intent(adapters, unit)
    except UnknownBranch:
        logger.info("the branch is gone: main's log tells whether it was merged")
    return merged or merge_commit.commit_of(adapters.catalog.log(), members[0]).hash


def _delete_incomplete(adapters: Adapters, unit: Unit) -> None:
    """Delete the branch of a unit whose commit would not name all ingestions that it publishes."""
    if not unit.complete:
        adapters.catalog.delete_branch(unit.intent.branch)


def _merge_intent(adapters: Adapters, unit: Unit) -> str:
    """Merge the audited hash; return the commit on main, "" where main has these rows already."""
    members = unit.members
    return adapters.catalog.merge(
        unit.intent.branch,
        unit.intent.hash,
        members[0].base_hash,
        merge_commit.message(members),
        merge_commit.properties(members),
    )


def _require_audited(adapters: Adapters, unit: Unit) -> None:
    """Raise _Unaudited unless the intent changes its tables alone, by the rows of the report.

    The job itself reports nothing else. This is the second look, at a branch that others with the
    job's token could write to.
    """
    first, at = unit.members[0], unit.intent.hash
    if strange := adapters.catalog.changed_tables(first.base_hash, at) - set(first.tables):
        raise _Unaudited(first, f"it also changes {', '.join(sorted(strange))}")
    for table, expected in merge_commit.expected_gains(unit.members).items():
        before, after = (
            adapters.tables().rows(table, f"{MAIN}@{hash_}").live for hash_ in (first.base_hash, at)
        )
        if after - before != expected:
            raise _Unaudited(first, f"{table} gains {after - before:,} rows, not {expected:,}")


def _renewed(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """What main refused, after the first step towards another intent."""
    first = refused.members[0]
    if first.replaces:
        return first  # which `prepare` will see to
    if first.change or (first.parts and first.checks_whole_table):
        return run_again(adapters, first)  # what it changes, or looks at, is another table now
    if first.checks_whole_table:
        return audit_again(adapters, first)
    return _rebase(adapters, refused, elsewhere)


def _rebase(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """Enter the refused files, and all that wait with them, into a fresh branch off main.

    Returns the unit's first ingestion as it then stands. `elsewhere` are the ids of ingestions that
    other processes have in hand: they are left to them, and more of them are added.
    """
    first = refused.members[0]
    fresh = fresh_branch(first.table, first.id, adapters.token())
    base = adapters.catalog.create_branch(fresh)
    try:
        replaced = _swap(adapters, refused, elsewhere, fresh, base)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        adapters.catalog.delete_branch(fresh)
        return _all_again(adapters, refused)
    except AlreadyPublished as found:
        adapters.catalog.delete_branch(fresh)
        return _end_found(adapters, refused, found)
    except Exception as error:
        # A save that timed out may have been done: then the fresh branch is the intent.
        now = adapters.ledger.get(first.id)
        if now.branch == fresh:
            return now
        adapters.catalog.delete_branch(fresh)
        if isinstance(error, Moved):
            elsewhere |= error.ids
        elif now.revision == first.revision or not isinstance(error, LakegateError):
            raise
        return now
    for branch in replaced:
        adapters.catalog.delete_branch(branch)
    metrics.add_metric("Rebases", "Count", 1)
    return adapters.ledger.get(first.id)


def _swap(
    adapters: Adapters, refused: Unit, elsewhere: set[str], fresh: str, base: str
) -> Sequence[str]:
    """Make the fresh branch, cut at `base`, the intent of all whose files it can hold.

    Returns the branches that it replaces. Raises CannotRebase when the refused files cannot be
    entered, AlreadyPublished when main has some of them, Moved when another process was quicker.
    """
    first = refused.members[0]
    require_unpublished(adapters.catalog.log(), refused.members)
    if any(m.requirements_digest != current_requirements(adapters, m) for m in refused.members):
        raise CannotRebase("CONTRACT_CHANGED", "the contract asks for other things now")
    if first.parts:
        return _swap_batch(adapters, first, fresh, base)
    units = [refused, *refused_too(adapters, refused, elsewhere)]
    failed = adapters.tables().append_again(first.table, [unit.intent for unit in units], fresh)
    if refused.intent in failed:
        raise failed[refused.intent]
    entered = [unit for unit in units if unit.intent not in failed]
    members = [member for unit in entered for member in unit.members]
    _set_intent(adapters, members, Intent(fresh, adapters.catalog.head(fresh)), base)
    return [unit.intent.branch for unit in entered]


def _set_intent(
    adapters: Adapters, members: Sequence[Ingestion], intent: Intent, base: str
) -> None:
    """Give all members the intent, whose branch was created at `base`, in one write."""
    group = tuple(member.id for member in members) if len(members) > 1 else ()
    at = adapters.now()
    adapters.ledger.save_all([member.rebased(at, intent, base, group) for member in members])


def _swap_batch(adapters: Adapters, batch: Ingestion, fresh: str, base: str) -> Sequence[str]:
    """Make the fresh branch the intent of a batch, which is published alone; as `_swap`."""
    parts = enter_again(adapters, batch, fresh)
    intent = Intent(fresh, adapters.catalog.head(fresh))
    moved = batch.rebased(adapters.now(), intent, base, ())
    adapters.ledger.save(replace(moved, parts=parts))
    return [batch.branch]


def _end_found(adapters: Adapters, unit: Unit, found: AlreadyPublished) -> Ingestion:
    """Record as published the members that main has; the jobs of the others run again.

    Returns the unit's first ingestion as it then stands.
    """
    first = unit.members[0]
    for member in unit.members:
        if member.id in found.commits:
            end_published(adapters, [member], found.commits[member.id])
    if others := [member for member in unit.members if member.id not in found.commits]:
        _all_again(adapters, replace(unit, members=others))
    return adapters.ledger.get(first.id)


def _all_again(adapters: Adapters, unit: Unit) -> Ingestion:
    """Run the jobs of all members again; each of the others has a message or the sweep as well."""
    first, *others = unit.members
    for other in others:
        try:
            run_again(adapters, other)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"other": other.id, "why": error.message})
    return run_again(adapters, first)
