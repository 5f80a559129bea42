"""Guards on the path from a passed audit to main."""

from dataclasses import replace
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model import merge_commit
from functions.model.commits import NotOnMain
from functions.model.ingestion import Ingestion
from functions.model.intent import Intent
from functions.pipeline.publication import duplicates, fresh_branch, publish, rebase, retry
from functions.pipeline.publication import replace as replacement
from functions.pipeline.publication.fresh_branch import FreshBranch
from functions.pipeline.publication.rebase import Unit
from functions.pipeline.publication.retry import may_try_again
from functions.pipeline.start import batches, submit
from lakegate.job.batch import BatchFile
from tests.fakes import catalog, job
from tests.fakes.catalog import FakeCatalog
from tests.fakes.guards.guard import Guard, always, never, nothing
from tests.fakes.openings import (
    A_GROUP_LOSES_A_MEMBER,
    A_GROUP_WITH_A_FORGED_ROW,
    A_LATE_DECISION,
    A_LATE_FILE_AND_A_GROUP,
    A_LATE_TWIN,
    A_MEDDLER,
    A_SWAP,
    A_TABLE,
    BATCHES,
    MERGED_BUT_NOT_RECORDED,
    VERSIONS,
    WAITING_TOGETHER,
)
from tests.fakes.sabotage import Patch

# Main's log is read again behind other guards (tests/unit/pipeline/test_publishing.py).
_LOG_READ_AT_NEW_ATTEMPT = Patch(submit, "require_unpublished", nothing)
_LOG_READ_BEFORE_REBASE = Patch(fresh_branch, "require_unpublished", nothing)
_BRANCH_OF_INCOMPLETE_UNIT_DELETED = Patch(publish, "_delete_incomplete", nothing)


def _merge_head(merge_intent: Any, adapters: Adapters, unit: Unit) -> Any:
    branch = unit.intent.branch
    return merge_intent(
        adapters, replace(unit, intent=Intent(branch, adapters.catalog.head(branch)))
    )


def _without_evidence(unit_of: Any, *known: Any) -> Unit:
    unit: Unit = unit_of(*known)
    return replace(unit, is_evidence=False)


def _merge_or_give_up(merge_intent: Any, adapters: Adapters, unit: Unit) -> Any:
    if merged := merge_intent(adapters, unit):
        return merged
    raise NotOnMain("NOT_ON_MAIN", "main has these rows already")


def _merge_existing_branch(merge_intent: Any, adapters: Adapters, unit: Unit) -> Any:
    try:
        return merge_intent(adapters, unit)
    except UnknownBranch as error:
        raise NotOnMain("NOT_ON_MAIN", "the branch is gone") from error


def _save_one_by_one(
    _: Any, adapters: Adapters, members: list[Ingestion], fresh: FreshBranch
) -> None:
    intent = Intent(fresh.name, adapters.catalog.head(fresh.name))
    group = tuple(member.id for member in members)
    for member in members:
        adapters.ledger.save(member.rebased(adapters.now(), intent, fresh.base, group))


def _merge_before_save(
    set_intent: Any, adapters: Adapters, members: list[Ingestion], fresh: FreshBranch
) -> None:
    at = adapters.catalog.head(fresh.name)
    adapters.catalog.merge(fresh.name, at, fresh.base, "", merge_commit.properties(members))
    set_intent(adapters, members, fresh)


def _enter_first_table(
    register_again: Any, adapters: Adapters, batch: Ingestion, fresh: str
) -> tuple[BatchFile, ...]:
    first = tuple(part for part in batch.parts if part.table == batch.tables[0])
    entered = register_again(adapters, batch.but(parts=first), fresh)
    return tuple(replace(part, hash=entered[0].hash) for part in batch.parts)


def _delete_before_save(run_again: Any, adapters: Adapters, ingestion: Ingestion) -> Any:
    if may_try_again(adapters, ingestion):
        adapters.catalog.delete_branch(ingestion.branch)
    return run_again(adapters, ingestion)


PUBLISHING = (
    Guard(
        "exactly the audited hash is merged",
        "unaudited",
        (Patch(publish, "_merge_intent", _merge_head),),
    ),
    Guard(
        "the job detects other writers on its branch",
        "unaudited",
        (
            Patch(FakeCatalog, "reset", nothing),
            Patch(job, "_require_unshared", nothing),
            Patch(FakeCatalog, "own_commit", lambda _, self, branch, before: self.head(branch)),
            # The publisher's guard stands behind the job's.
            Patch(publish, "_require_audited", nothing),
        ),
        opening=A_MEDDLER,
    ),
    Guard(
        "rows that main has are published",
        "doubled",
        (Patch(publish, "_merge_intent", _merge_or_give_up), _LOG_READ_AT_NEW_ATTEMPT),
    ),
    Guard(
        "main's log is read where the branch is gone",
        "doubled",
        (Patch(publish, "_merge_intent", _merge_existing_branch), _LOG_READ_AT_NEW_ATTEMPT),
        opening=MERGED_BUT_NOT_RECORDED,
    ),
    Guard(
        "all intents of a group change in one write",
        "doubled",
        (
            Patch(rebase, "_set_intent", _save_one_by_one),
            # The guard behind it is removed separately below.
            _BRANCH_OF_INCOMPLETE_UNIT_DELETED,
        ),
        opening=A_SWAP,
    ),
    Guard(
        "a group is merged after its intents were saved",
        "doubled",
        (Patch(rebase, "_set_intent", _merge_before_save), _LOG_READ_BEFORE_REBASE),
        opening=WAITING_TOGETHER,
    ),
    Guard(
        "a group is merged only with all its members",
        "doubled",
        (_BRANCH_OF_INCOMPLETE_UNIT_DELETED,),
        opening=A_GROUP_LOSES_A_MEMBER,
    ),
    Guard(
        "files that main has are not registered again",
        "doubled",
        (Patch(rebase, "_Since.names", never),),
        opening=MERGED_BUT_NOT_RECORDED,
    ),
    Guard(
        "an intent that main can still merge stays as it is",
        "doubled",
        (Patch(rebase, "_Since.changed", always), _LOG_READ_BEFORE_REBASE),
        opening=A_LATE_FILE_AND_A_GROUP,
    ),
    Guard(
        "replaced branches are deleted",
        "still there",
        (Patch(rebase, "_register", lambda register, *given: register(*given)[:0]),),
        opening=A_TABLE,
    ),
    Guard(
        "files of another table are registered only if it has no other rows",
        "cannot read",
        (Patch(catalog, "_has_other_rows", never),),
    ),
    Guard(
        "files are registered only where they can be read as written",
        "cannot read",
        (Patch(catalog, "_has_other_columns", never),),
    ),
    Guard(
        "all files of a batch are registered again",
        "lost or doubled",
        (Patch(batches, "register_again", _enter_first_table),),
        opening=BATCHES,
    ),
    Guard(
        "a file that passed precedes a file that landed earlier",
        "twice",
        (Patch(duplicates, "_has_passed", never),),
        opening=A_LATE_TWIN,
    ),
    Guard(
        "a branch is deleted only after the ledger has given it up",
        "evidence is gone",
        (Patch(retry, "run_again", _delete_before_save),),
        opening=VERSIONS,
    ),
    Guard(
        "a late decision publishes nothing",
        "published after a newer version",
        (Patch(replacement, "given_way", nothing),),
        opening=A_LATE_DECISION,
    ),
    Guard(
        "an ingestion that failed once is published alone",
        "published after a newer version",
        (
            Patch(rebase, "_may_join", lambda _, i: not (i.terms.replaces or i.change or i.parts)),
            Patch(publish, "_leaving", lambda *_: ()),  # or else its group runs again
        ),
        opening=A_LATE_DECISION,
    ),
    Guard(
        "a branch with which a file ended is not its group's any more",
        "evidence is gone",
        (Patch(rebase, "unit_of", _without_evidence),),
        opening=A_GROUP_WITH_A_FORGED_ROW,
    ),
)
