"""Publish a compaction: exactly the data files that were compared, in the place of the old ones.

The branch is never merged, as every job run can commit there. The publisher registers the new data
files on a fresh branch off main, by metadata alone, and merges that.
"""

import json
from functools import partial
from typing import TYPE_CHECKING

from functions.adapters.all import Adapters
from functions.adapters.iceberg.errors import FilesGone
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Missing, contracts_of
from functions.model import merge_commit
from functions.model.intent import Intent
from functions.model.notes.compactions import Compaction
from functions.operations.compaction.begun import branch_of
from functions.pipeline.outcome.own_commit import merge_fresh_branch
from functions.telemetry import logger, metrics
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError, Permanent
from lakegate.job.landing import fresh_branch

if TYPE_CHECKING:  # it imports pyiceberg: a second that help does not need
    from functions.adapters.iceberg.files import TableChange


class Unsound(LakegateError):
    """The compaction must never be published."""


def publish(adapters: Adapters, begun: Compaction) -> None:
    """Publish it, unless main has it already; its comparison has succeeded.

    Raises CannotRebase or Unsound where main cannot take it, UnknownBranch if another process has
    dropped it, but has died before it said so.
    """
    _require_same_rows(adapters, begun)
    if _is_published(adapters, begun):
        return
    _require_allowed(adapters, begun.table)
    adapters.catalog.head(begun.branch)
    compared = adapters.tables().change(
        begun.table, _main_at(begun.base), _main_at(begun.rewritten)
    )
    if not compared.removed:
        raise Unsound("NO_EFFECT", "no data file was rewritten")
    prefix = fresh_branch(begun.table, begun.id[-12:], "")
    adapters.ledger.note_compacted(begun.branch)  # first: main must name none that it lacks
    busy = f"{begun.table} changed on main each time"
    try:
        merge_fresh_branch(adapters, prefix, partial(_merge, adapters, begun, compared), busy)
    except FilesGone as gone:
        if not _is_published(adapters, begun):  # by another process, meanwhile
            raise Unsound(gone.code, "main has replaced some of its data files") from gone


def why_forbidden(contract: Contract) -> str:
    """Return why a contract keeps its table's data files as they are, "" if it does not."""
    if contract.compaction == "never":
        return "its contract says `compaction: never`"
    if contract.on_new_version == "replace":
        return "a newer version of a file replaces its data files, so each file keeps its own"
    return ""


def _require_allowed(adapters: Adapters, table: str) -> None:
    """Raise Unsound if the contract in force says otherwise than when the compaction began."""
    stored = contracts_of(adapters.lake).get(table)
    if stored and (why := why_forbidden(stored.contract)):
        raise Unsound("CONTRACT_CHANGED", why)


def _main_at(hash_: str) -> str:
    return f"{MAIN}@{hash_}"


def _require_same_rows(adapters: Adapters, begun: Compaction) -> None:
    try:
        report = adapters.lake.comparison(begun.report_key)
    except (Missing, Permanent) as error:
        raise Unsound("NO_REPORT", f"its comparison left no report: {error.message}") from error
    named = (report.table, report.branch, report.base_hash, report.rewritten_hash)
    if named != (begun.table, begun.branch, begun.base, begun.rewritten):
        raise Unsound("FOREIGN_REPORT", f"{begun.report_key} is the report of something else")
    if not report.same_rows:
        extra = {"branch": begun.branch, "table": begun.table}
        logger.error("a compaction changed rows", extra=extra)
        metrics.add_metric("CompactionsUnsound", "Count", 1)
        message = f"the rows differ: {report.before} before, {report.after} after"
        raise Unsound("ROWS_DIFFER", message)


def _is_published(adapters: Adapters, begun: Compaction) -> bool:
    """Return whether a commit on main after its base names it."""
    for commit in adapters.catalog.log():
        if commit.hash == begun.base:
            break
        if merge_commit.UPKEEP in commit.properties and branch_of(commit) == begun.branch:
            return True
    return False


def _merge(
    adapters: Adapters, begun: Compaction, compared: "TableChange", name: str, base: str
) -> None:
    """Register the new data files in the place of the old ones on a fresh branch, and merge it.

    All old files have to be there, without deletes: then the rows in them are what they were.
    """
    rows = adapters.tables().rows(begun.table, _main_at(base))
    if rows.position_deletes or rows.equality_deletes:
        raise Unsound("ROWS_DELETED", "rows of its data files were deleted meanwhile")
    written = Intent(begun.branch, begun.rewritten)
    adapters.tables().replace(begun.table, written, tuple(compared.removed), name)
    head = adapters.catalog.head(name)
    made = adapters.tables().change(begun.table, _main_at(base), _main_at(head))
    if made != compared or made.rows:
        raise Unsound("FILES_DIFFER", "other data files would come or go than were compared")
    message = (
        f"Compact {len(compared.removed):,} data files of {begun.table} to {len(compared.added):,}"
    )
    note = json.dumps({"table": begun.table, "branch": begun.branch})
    adapters.catalog.merge(name, head, base, message, {merge_commit.UPKEEP: note})
