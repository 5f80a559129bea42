"""Publish an ingestion that passed its audit: merge its intent into main.

intent := (branch, hash), kept in the ledger, changed only by a conditional write
    merge the intent → applied now or before: published
                     → refused, since main's table changed: register the files of all intents that
                       wait for the table, and that main refuses too, on one fresh branch off main;
                       make it the intent of all of them in one write; delete the old branches;
                       merge again
                     → refused, since main was set back past the branch's base: run the job again
    the contract in force lets rows enter in another way: do not merge, run the job again

An intent is replaced only once main is known to refuse its branch for ever, so of a branch and its
successor only one can be published. docs/adr/0008-publishing-together.md has the whole argument.
"""

from collections.abc import Sequence
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.adapters.iceberg.errors import CannotRebase, MetadataGone
from functions.adapters.nessie import MAIN, MergeConflict, SetBack, UnknownBranch
from functions.model import merge_commit, queueing
from functions.model.commits import NotOnMain
from functions.model.ingestion import Ingestion, State
from functions.pipeline.outcome.finish import end, end_published, finish, finish_published
from functions.pipeline.outcome.versions import require_recorded
from functions.pipeline.publication.duplicates import doubled, doubled_by
from functions.pipeline.publication.fresh_branch import run_unpublished_again
from functions.pipeline.publication.reaudit import audit_again
from functions.pipeline.publication.rebase import Unit, rebase, unit_of
from functions.pipeline.publication.replace import given_way, newer_first, prepare
from functions.pipeline.publication.retry import run_all_again
from functions.pipeline.publication.table_queue import keeps_order, must_wait, next_in_queue
from functions.pipeline.start.contracts import outdated
from functions.pipeline.start.landing_order import overtaken
from functions.pipeline.start.submit import submit
from functions.telemetry import logger
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import WRITTEN_BY_JOBS

_MOST_TRIES = 20


class _Unaudited(LakegateError):
    """A branch holds other rows than its audit report says."""

    def __init__(self, ingestion: Ingestion, excess: str) -> None:
        message = (
            f"branch {ingestion.branch} holds more than was audited: {excess}; "
            f"find out who wrote there, then `lakegate replay {ingestion.id}`"
        )
        super().__init__("UNAUDITED_ROWS", message)


def publish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Merge exactly what was audited into main, finish, and publish those that waited for it.

    Wait for ingestions of the table that have priority. Where main refuses it, audit it again if it
    has checks of the whole table, or run a change again: both then leave their place to the next.
    Raise Transient TABLE_BUSY if main's table changed again at each of several tries.
    """
    done = _publish(adapters, ingestion)
    publish_next(adapters, done)
    return done


def publish_next(adapters: Adapters, done: Ingestion) -> None:
    """Publish, one by one, the ingestions that waited for `done`."""
    tried = {done.id}
    while following := next_in_queue(adapters, done, tried):
        tried.add(following.id)
        try:
            if queueing.is_held(following):
                done = finish(adapters, submit(adapters, following))
            else:
                done = _publish(adapters, following)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"next": following.id, "why": error.message})
            return


def _publish(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    done = _merged(adapters, ingestion)
    return (finish_published if done.state is State.PUBLISHED else finish)(adapters, done)


def _merged(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    elsewhere: set[str] = set()
    refused = False
    for _ in range(_MOST_TRIES):
        ingestion, may_merge = _prepared(adapters, ingestion, refused=refused)
        if not may_merge:
            return ingestion
        unit = unit_of(adapters, ingestion)
        if leaving := _leaving(adapters, unit):
            return run_unpublished_again(adapters, leaving)
        if changed := outdated(adapters, unit.members):
            return _by_contract_in_force(adapters, unit, changed)
        try:
            return end_published(adapters, unit.members, _merge(adapters, unit))
        except MergeConflict:
            refused = True
            ingestion = _next_intent(adapters, unit, elsewhere)
        except (NotOnMain, SetBack) as error:
            logger.warning("the job must run again", extra={"why": error.message})
            return run_all_again(adapters, unit.members)
        except (_Unaudited, CannotRebase) as error:
            return _end_first(adapters, unit, error)
    tables = " or ".join(ingestion.tables)
    message = (
        f"{tables} changed on main {_MOST_TRIES} times while {ingestion.id} waited; "
        "it will be tried again"
    )
    raise Transient("TABLE_BUSY", message)


def _leaving(adapters: Adapters, unit: Unit) -> Sequence[Ingestion]:
    """Return the members of a unit as they run again instead of its merge; none if they need not.

    One that another file keeps from main has a run of its own then: it may have to end with its
    branch, and wait without holding up the others.
    """
    if unit.is_evidence:
        return unit.leaving  # a process died after it had ended the first
    of_group = (each for each in unit.members if each.group)
    late = {e.id for e in of_group if newer_first(adapters, e) or doubled_by(adapters, e)}
    if not late and keeps_order(adapters, unit.members):
        return ()
    why = "another file comes before one of them" if late else "its files are out of order"
    logger.warning("the job must run again", extra={"why": why})
    return [each.but(leaves_group=each.id in late) for each in unit.members]


def _by_contract_in_force(adapters: Adapters, unit: Unit, changed: str) -> Ingestion:
    """Run the jobs again, since rows would go elsewhere; a replay by the original, too."""
    logger.warning("the contract in force is another", extra={"changed": changed})
    free = [member.but(contract_pinned=False) for member in unit.members]
    return run_unpublished_again(adapters, free)


def _prepared(adapters: Adapters, ingestion: Ingestion, *, refused: bool) -> tuple[Ingestion, bool]:
    """Return the ingestion as it is then, and whether it may be merged now.

    Other versions of its key may keep it from main, or may have to be replaced. Others of its table
    may have priority.
    """
    for keeps_back in () if ingestion.group else (given_way, doubled, overtaken):
        if late := keeps_back(adapters, ingestion):
            return late, False
    if ingestion.terms.replaces:
        ingestion = prepare(adapters, ingestion, refused=refused)
    may_merge = ingestion.state is State.AUDITED and not must_wait(adapters, ingestion)
    return ingestion, may_merge


def _merge(adapters: Adapters, unit: Unit) -> str:
    """Return the hash of the commit on main that published the unit, now or before.

    Raise MergeConflict, NotOnMain or SetBack, and _Unaudited if the branch holds other rows.
    """
    members, merged = unit.members, ""
    _delete_incomplete(adapters, unit)
    try:
        if unit.complete and unit.intent.branch.startswith(WRITTEN_BY_JOBS):
            _require_audited(adapters, unit)
        merged = _merge_intent(adapters, unit)
    except (UnknownBranch, MetadataGone):
        logger.info("the branch is gone: main's log tells whether it was merged")
    return merged or merge_commit.commit_of(adapters.catalog.log(), members[0]).hash


def _end_first(adapters: Adapters, unit: Unit, why: LakegateError) -> Ingestion:
    """End the first member as errored, with the branch as evidence, and run the others again.

    Nobody merges that branch: each process finds the same rows at its hash. It is the first's
    alone from then on, so that the others do not delete it.
    """
    try:
        adapters.catalog.head(unit.intent.branch)
    except UnknownBranch:  # it expired before the verdicts came, so nothing shows the rows
        return run_all_again(adapters, unit.members)
    first, *others = adapters.ledger.leave(replace(unit, is_evidence=True).leaving)
    first = first.but(branch=unit.intent.branch)
    ended = end(adapters, first, State.ERRORED, Reason(why.code, why.message))
    if others:
        run_all_again(adapters, others)
    return ended


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
    """Raise _Unaudited unless the intent changes only its tables, by the rows of the report.

    The job checks the same; this is a second check, since others with the job's token can write
    there.
    """
    first, at = unit.members[0], unit.intent.hash
    if strange := adapters.catalog.changed_tables(first.base_hash, at) - set(first.tables):
        raise _Unaudited(first, f"it also changes {', '.join(sorted(strange))}")
    for table, expected in merge_commit.expected_gains(unit.members).items():
        before, after = (
            adapters.tables().rows(table, f"{MAIN}@{hash_}") for hash_ in (first.base_hash, at)
        )
        gained = after.live - before.live
        if abs(gained - expected) > before.hidden:
            raise _Unaudited(first, f"{table} gains {gained:,} rows, not {expected:,}")


def _next_intent(adapters: Adapters, refused: Unit, elsewhere: set[str]) -> Ingestion:
    """Take the first step towards another intent for a unit that main refused."""
    first = refused.members[0]
    require_recorded(adapters, [i for i in refused.members if i.terms.replaces or i.is_decided])
    if first.terms.replaces:
        return first  # which `prepare` will see to
    # What these change, or look at, is another table now.
    if first.change or first.takes_turns or (first.parts and first.terms.checks_whole_table):
        return run_all_again(adapters, refused.members)
    if first.terms.checks_whole_table:
        return audit_again(adapters, first)
    return rebase(adapters, refused, elsewhere)
