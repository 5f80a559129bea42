"""Give ingestions that main refused another intent, on a fresh branch off main.

    create a fresh branch off main, then read main's log
       → main has published some of them: record that, run the jobs of the others again
       → their contracts have other requirements by now: run the jobs again
    register their audited files on the fresh branch, by metadata alone
       → main's table cannot take the files: run the jobs again
    save the fresh branch as their intent, by one conditional write
    delete the branches that it replaces

Main refuses the fresh branch if its table changes after the branch was created. So it does not
matter what main publishes after its log was read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import tee

from functions.adapters.all import Adapters
from functions.adapters.iceberg.errors import CannotRebase
from functions.adapters.ledger.notes import Moved
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.outcome.finish import end_taken, finish_published
from functions.pipeline.publication.retry import run_all_again
from functions.pipeline.start.contracts import current_requirements
from functions.telemetry import logger
from lakegate.errors import LakegateError


class Overtaken(LakegateError):
    """Another process changed what was to be registered, so that it has to be read again."""


@dataclass(frozen=True)
class FreshBranch:
    """A branch off main's commit `base`. `log` is main's log, read after it was created."""

    name: str
    base: str
    log: Iterable[Commit]


def on_fresh_branch(
    adapters: Adapters,
    name: str,
    members: Sequence[Ingestion],
    register: Callable[[FreshBranch], Sequence[str]],
) -> Ingestion:
    """Have `register` give the members an intent on a fresh branch of that name.

    `register` registers their files there, saves the members with the branch as their intent, and
    returns the branches that it replaces. Return the first member as it is then: with the fresh
    branch, run again, published, or as another process left it.
    """
    first = members[0]
    base = adapters.catalog.create_branch(name)
    try:
        replaced = _registered(adapters, name, base, members, register)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        adapters.catalog.delete_branch(name)
        return run_all_again(adapters, members)
    except AlreadyPublished as merged:
        adapters.catalog.delete_branch(name)
        return settle_published(adapters, members, merged)
    except Exception as error:
        now = adapters.ledger.get(first.id)
        if now.branch != name:  # a save that timed out may have been done
            adapters.catalog.delete_branch(name)
        has_moved = now.revision != first.revision or isinstance(error, Moved | Overtaken)
        if has_moved and isinstance(error, LakegateError):
            return now
        raise
    for branch in replaced:
        adapters.catalog.delete_branch(branch)
    return adapters.ledger.get(first.id)


def _registered(
    adapters: Adapters,
    name: str,
    base: str,
    members: Sequence[Ingestion],
    register: Callable[[FreshBranch], Sequence[str]],
) -> Sequence[str]:
    log, same_log = tee(adapters.catalog.log())
    require_unpublished(log, members)
    if any(m.terms.requirements_digest != current_requirements(adapters, m) for m in members):
        raise CannotRebase("CONTRACT_CHANGED", "the contract has other requirements now")
    return register(FreshBranch(name, base, same_log))


def settle_published(
    adapters: Adapters, members: Sequence[Ingestion], merged: AlreadyPublished
) -> Ingestion:
    """Record as published the members that main has, and run the jobs of the others again.

    Return the first member as it is then.
    """
    members = adapters.ledger.leave(members)
    for member in (m for m in members if m.id in merged.commits):
        published = end_taken(adapters, member, merged.commits[member.id])
        if member is not members[0]:
            finish_published(adapters, published)
    if others := [member for member in members if member.id not in merged.commits]:
        run_all_again(adapters, others)
    return adapters.ledger.get(members[0].id)


def run_unpublished_again(adapters: Adapters, members: Sequence[Ingestion]) -> Ingestion:
    """Run the jobs of the members again; those that main has are only recorded as published.

    Return the first member as it is then.
    """
    try:
        require_unpublished(adapters.catalog.log(), members)
    except AlreadyPublished as merged:
        return settle_published(adapters, members, merged)
    return run_all_again(adapters, members)
