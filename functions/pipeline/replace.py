"""A version of a key whose contract has it replace the earlier ones: one commit does both.

Before each merge the versions that main has had are looked at. A newer one among them: this one
ends ignored. Earlier ones whose rows are there: a fresh branch enters this one's files and takes
theirs out, by metadata alone. Main refuses what was cut before its table changed, so between look
and merge nothing can have happened. docs/adr/0010-versions.md has the whole argument.
"""

from collections.abc import Sequence
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.adapters.nessie import (
    CannotRebase,
    FilesGone,
    UnknownBranch,
)
from functions.model.commits import (
    NotOnMain,
)
from functions.model.ingestion import Ingestion, Intent, State
from functions.model.merge_commit import AlreadyPublished, commit_of, require_unpublished
from functions.pipeline.finish import delete_replaced, end, end_published, report_of
from functions.pipeline.intake import current_requirements, run_again
from functions.pipeline.versions import SUPERSEDED, Standing, is_on_main, look, newest_newer
from functions.telemetry import logger, metrics
from lakegate.errors import LakegateError, Permanent
from lakegate.landing import fresh_branch
from lakegate.report import Reason

CANNOT_REPLACE = "CANNOT_REPLACE"


class CannotReplace(LakegateError):
    """The rows of an earlier version cannot be told from others any more."""


class _Overtaken(LakegateError):
    """Main took another version of the key in between."""


def prepare(adapters: Adapters, ingestion: Ingestion, *, refused: bool) -> Ingestion:
    """Have an audited ingestion's intent leave main with the newest version's rows alone.

    `refused` says that main has refused the intent. Returns the ingestion as it then stands: to
    be merged where it is still audited.
    """
    while ingestion.state is State.AUDITED:
        seen = look(adapters, ingestion)
        if seen.newer:
            return _superseded(adapters, ingestion)
        if seen.is_settled_by(ingestion) and not refused:
            return ingestion
        before, ingestion = ingestion, _afresh(adapters, ingestion, seen)
        refused = refused and ingestion.intent == before.intent
    return ingestion


def _superseded(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    try:
        commit = commit_of(adapters.catalog.log(), ingestion)
    except NotOnMain:
        message = "a newer version of this key is published already"
        return end(adapters, ingestion, State.IGNORED, Reason(SUPERSEDED, message))
    return end_published(adapters, [ingestion], commit.hash)  # it was there first, and was replaced


def _afresh(adapters: Adapters, ingestion: Ingestion, seen: Standing) -> Ingestion:
    """Give the ingestion a fresh intent that replaces the versions seen; returns it as it is."""
    fresh = fresh_branch(ingestion.table, ingestion.id, adapters.token())
    base = adapters.catalog.create_branch(fresh)
    try:
        swapped = _swap(adapters, ingestion, seen, fresh, base)
    except (CannotRebase, UnknownBranch) as why:
        logger.info("the job must run again", extra={"why": why.message})
        adapters.catalog.delete_branch(fresh)
        return run_again(adapters, ingestion)
    except CannotReplace as why:
        delete_replaced(adapters, ingestion)  # this fresh one, and any that a crash left
        return end(adapters, ingestion, State.REJECTED, Reason(CANNOT_REPLACE, why.message))
    except AlreadyPublished as found:
        adapters.catalog.delete_branch(fresh)
        return end_published(adapters, [ingestion], found.commits[ingestion.id])
    except Exception as error:
        # A save that timed out may have been done: then the fresh branch is the intent.
        now = adapters.ledger.get(ingestion.id)
        if now.branch != fresh:
            adapters.catalog.delete_branch(fresh)
        if not isinstance(error, LakegateError):
            raise
        if now.revision == ingestion.revision and not isinstance(error, _Overtaken):
            raise
        return now
    adapters.catalog.delete_branch(ingestion.branch)
    metrics.add_metric("Replacements", "Count", len(swapped.replaced))
    return swapped


def _swap(
    adapters: Adapters, ingestion: Ingestion, seen: Standing, fresh: str, base: str
) -> Ingestion:
    require_unpublished(adapters.catalog.log(), [ingestion])
    if ingestion.requirements_digest != current_requirements(adapters, ingestion):
        raise CannotRebase("CONTRACT_CHANGED", "the contract asks for other things now")
    adapters.catalog.head(ingestion.branch)  # raises UnknownBranch where somebody deleted it
    now = look(adapters, ingestion)
    if now.on_main != seen.on_main:
        raise _Overtaken("OVERTAKEN", "main took another version of the key in between")
    rows = _exchange(adapters, ingestion, now.live, fresh)
    intent = Intent(fresh, adapters.catalog.head(fresh))
    replaced = tuple(each.id for each in now.live)
    moved = ingestion.rebased(adapters.now(), intent, base, ())
    return adapters.ledger.save(replace(moved, replaced=replaced, replaced_rows=rows))


def _exchange(
    adapters: Adapters, ingestion: Ingestion, earlier: Sequence[Ingestion], fresh: str
) -> int:
    """Enter its files on the fresh branch and take out the earlier ones': returns their rows."""
    decided = _is_decided(ingestion)
    rows = {path: n for each in earlier for path, n in _files(adapters, each, decided).items()}
    try:
        adapters.tables().replace(ingestion.table, ingestion.intent, rows.keys(), fresh)
    except CannotRebase as gone:
        if gone.code == "TABLE_GONE" and earlier and not decided:
            message = "the table that had the earlier rows of this key is gone"
            raise CannotReplace(CANNOT_REPLACE, message) from gone
        raise
    except FilesGone as gone:
        if not decided:
            message = "the earlier rows of this key are not in the files that were published"
            raise CannotReplace(CANNOT_REPLACE, f"{message}: was the table compacted?") from gone
        rows = {path: n for path, n in rows.items() if path not in gone.paths}
        adapters.tables().replace(ingestion.table, ingestion.intent, rows.keys(), fresh)
    return sum(rows.values())


def _files(adapters: Adapters, earlier: Ingestion, decided: bool) -> dict[str, int]:
    """The rows of each data file that was published for an earlier version."""
    try:
        report = report_of(adapters, earlier)
    except Permanent:
        report = None
    found = {file.path: file.rows for file in report.files} if report else {}
    if sum(found.values()) != earlier.rows and not decided:
        message = f"the report of version {earlier.landed.version} does not name its files"
        raise CannotReplace(CANNOT_REPLACE, message)
    return found


def _is_decided(ingestion: Ingestion) -> bool:
    """Whether a person answers for earlier rows that cannot be told: who publishes it anyway."""
    code = ingestion.reason.code if ingestion.reason else ""
    return ingestion.approval is not None and code == CANNOT_REPLACE


# A decision on a failed version of a key, when a newer version has come since.
#
# It is looked at before each merge, after the branch was cut. A newer version that comes to main
# after the look changes the table after the cut, so main refuses the merge and the look is
# repeated. docs/adr/0010-versions.md has the whole argument.


def given_way(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return an audited ingestion as it then is where a newer version keeps it from main.

    Where that one is on its way it waits; where it is on main it ends rejected, with its branch.
    None where nothing keeps it from main.
    """
    newer = newest_newer(adapters, ingestion)
    if newer is None or newer.id == ingestion.despite:
        return None
    try:
        commit = commit_of(adapters.catalog.log(), ingestion)
    except NotOnMain:
        return _given_way(adapters, ingestion, newer) if is_on_main(adapters, newer) else ingestion
    return end_published(adapters, [ingestion], commit.hash)  # it was there before the newer one


def _given_way(adapters: Adapters, ingestion: Ingestion, newer: Ingestion) -> Ingestion:
    message = f"a newer version of it was published meanwhile, as ingestion {newer.id}"
    return end(adapters, ingestion.but(approval=None), State.REJECTED, Reason(SUPERSEDED, message))
