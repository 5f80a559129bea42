"""From a passed audit to main."""

from functions import commits
from functions.catalog import CannotRebase, MergeConflict, NotOnMain, UnknownBranch
from functions.ending import end
from functions.ingestion import Ingestion, State
from functions.intake import run_again
from functions.telemetry import logger, metrics
from functions.world import World
from lakegate.errors import LakegateError


def publish(world: World, ingestion: Ingestion) -> Ingestion:
    """Merge the intent into main: exactly what was audited, and nothing else."""
    try:
        world.catalog.merge(
            ingestion.branch,
            ingestion.audited_hash,
            commits.message(ingestion),
            commits.properties(ingestion),
        )
    except MergeConflict:
        return _rebase(world, ingestion)
    except UnknownBranch:
        logger.info("the branch is gone: main's log tells whether it was merged")
    try:
        commit = world.catalog.find_commit(commits.INGESTION, ingestion.id)
    except NotOnMain:
        return run_again(world, ingestion)
    return end(world, ingestion, State.PUBLISHED, merge_hash=commit.hash)


def _rebase(world: World, ingestion: Ingestion) -> Ingestion:
    """Main's table moved: enter the audited files into its newer state, on a fresh branch.

    The refused branch can never be merged, so when the intent has moved on to the fresh one, by a
    write that only one publisher can win, exactly one branch can still publish these rows.
    """
    fresh = f"{ingestion.branch.partition('-r.')[0]}-r.{world.token()}"
    world.catalog.create_branch(fresh)
    try:
        world.tables().append_again(
            ingestion.table, ingestion.branch, ingestion.audited_hash, fresh
        )
        audited = world.catalog.head(fresh)
        rebased = ingestion.step("rebased", world.now(), branch=fresh, audited_hash=audited)
        moved = world.ledger.save(rebased)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        world.catalog.delete_branch(fresh)
        return run_again(world, ingestion)
    except LakegateError:
        # A save that timed out may have been done: then the fresh branch is the intent.
        if world.ledger.get(ingestion.id).branch != fresh:
            world.catalog.delete_branch(fresh)
        raise
    world.catalog.delete_branch(ingestion.branch)
    metrics.add_metric("Rebases", "Count", 1)
    return publish(world, moved)
