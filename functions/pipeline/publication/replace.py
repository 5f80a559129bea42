"""Replace the earlier versions of a key by the newest one, in one commit, if the contract says so.

Before each merge, the versions that main has are read. If one of them is newer, this one ends
ignored. If rows of earlier ones are there, a fresh branch registers this one's files and removes
theirs, by metadata alone. Main refuses a branch created before its table changed, so nothing can
happen between the read and the merge. docs/adr/0010-versions.md has the whole argument.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial

from functions.adapters.all import Adapters
from functions.adapters.iceberg.errors import CannotRebase, FilesGone
from functions.adapters.nessie import UnknownBranch
from functions.model.ingestion import Ingestion, State
from functions.model.intent import Intent
from functions.pipeline.outcome.finish import delete_replaced, end, end_if_merged
from functions.pipeline.outcome.reports import readable_report
from functions.pipeline.outcome.versions import (
    SUPERSEDED,
    VersionStatus,
    is_on_main,
    newest_newer,
    read_status,
    where_separate,
)
from functions.pipeline.publication.fresh_branch import FreshBranch, Overtaken, on_fresh_branch
from functions.telemetry import metrics
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError
from lakegate.job.landing import fresh_branch

CANNOT_REPLACE = "CANNOT_REPLACE"


class CannotReplace(LakegateError):
    """The rows of an earlier version cannot be told from other rows any more."""


def prepare(adapters: Adapters, ingestion: Ingestion, *, refused: bool) -> Ingestion:
    """Give an audited ingestion an intent that leaves only the newest version's rows on main.

    `refused` says that main has refused the present intent. Return the ingestion as it is then: it
    can be merged if it is still audited.
    """
    while ingestion.state is State.AUDITED:
        status = read_status(adapters, ingestion)
        if status.newer:
            return _superseded(adapters, ingestion)
        if not refused and {each.id for each in status.live} <= set(ingestion.replaced):
            return ingestion  # whose intent removes every earlier version's rows
        if not refused and _makes_the_table(adapters, ingestion):
            return adapters.ledger.save(ingestion.but(replaced=tuple(e.id for e in status.live)))
        before, ingestion = ingestion, _on_fresh_branch(adapters, ingestion, status)
        refused = refused and ingestion.intent == before.intent
    return ingestion


def _makes_the_table(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether it was approved to be published although the table of earlier rows is gone.

    Then it has no such rows to remove: main had no table when its branch was created.
    """
    if not ingestion.is_approved_despite(CANNOT_REPLACE):
        return False
    try:
        return not adapters.catalog.metadata(ingestion.base_hash, ingestion.table)
    except UnknownBranch:  # of a catalog that was restored: the job runs again
        return False


def _superseded(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    if merged := end_if_merged(adapters, ingestion):
        return merged  # it was there first, and was replaced
    message = "a newer version of this key is published already"
    return end(adapters, ingestion, State.IGNORED, Reason(SUPERSEDED, message))


def _on_fresh_branch(adapters: Adapters, ingestion: Ingestion, status: VersionStatus) -> Ingestion:
    """Give the ingestion an intent that replaces the versions on main; return it as it is then."""
    fresh = fresh_branch(ingestion.table, ingestion.id, adapters.token())
    register = partial(_register, adapters, ingestion, status)
    try:
        return on_fresh_branch(adapters, fresh, [ingestion], register)
    except CannotReplace as why:
        delete_replaced(adapters, ingestion)  # the fresh branches that a crash left
        return end(adapters, ingestion, State.REJECTED, Reason(CANNOT_REPLACE, why.message))


def _register(
    adapters: Adapters, ingestion: Ingestion, status: VersionStatus, fresh: FreshBranch
) -> list[str]:
    """Replace the rows of earlier versions on the fresh branch, and save it as the intent.

    Return the branch that it replaces. Raise CannotRebase, CannotReplace, Moved, or Overtaken where
    main took another version since `status` was read.
    """
    try:
        adapters.catalog.head(ingestion.branch)
        now = read_status(adapters, ingestion)
        if now.on_main != status.on_main:
            raise Overtaken("OVERTAKEN", "main took another version of the key in between")
        rows = _exchange(adapters, ingestion, now.live, fresh.name)
        intent = Intent(fresh.name, adapters.catalog.head(fresh.name))
    except UnknownBranch as gone:
        raise CannotRebase(gone.code, gone.message) from gone
    replaced = tuple(each.id for each in now.live)
    moved = ingestion.rebased(adapters.now(), intent, fresh.base, ())
    outcome = dataclasses.replace(moved.audit, replaced_rows=rows)
    adapters.ledger.save(moved.but(replaced=replaced, audit=outcome))
    metrics.add_metric("Replacements", "Count", len(replaced))
    return [ingestion.branch]


def _exchange(
    adapters: Adapters, ingestion: Ingestion, earlier: Sequence[Ingestion], fresh: str
) -> int:
    """Register its files on the fresh branch and remove earlier ones; return the rows removed."""
    decided = ingestion.is_approved_despite(CANNOT_REPLACE)  # although rows cannot be found
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
            where = "".join(where_separate(adapters, each) for each in earlier)
            message = (
                "the earlier rows of this key are not in the files that were published: another "
                f"writer compacted or changed the table{where}"
            )
            raise CannotReplace(CANNOT_REPLACE, message) from gone
        rows = {path: n for path, n in rows.items() if path not in gone.paths}
        adapters.tables().replace(ingestion.table, ingestion.intent, rows.keys(), fresh)
    return sum(rows.values())


def _files(adapters: Adapters, earlier: Ingestion, decided: bool) -> dict[str, int]:
    """Return the rows of each data file that was published for an earlier version."""
    report = readable_report(adapters.lake, earlier.report_key)
    files = {file.path: file.rows for file in report.files} if report else {}
    if sum(files.values()) != earlier.audit.rows and not decided:
        message = f"the report of version {earlier.landed.version} does not name its files"
        raise CannotReplace(CANNOT_REPLACE, message)
    return files


def given_way(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return an audited ingestion as it is then, if a newer version keeps it from main.

    While the newer version is in flight it waits, unless files of their table take turns: then the
    newer one waits. Once that one is on main it ends rejected, with its branch. Return None if
    nothing keeps it from main.

    The versions are read before each merge, after the branch was created. A newer version that
    comes to main later changes the table, so main refuses the merge and the versions are read
    again. docs/adr/0010-versions.md has the whole argument.
    """
    newer = newer_first(adapters, ingestion)
    if newer is None:
        return None
    if merged := end_if_merged(adapters, ingestion):
        return merged  # it was there before the newer one
    if not is_on_main(adapters, newer):
        return ingestion
    message = f"a newer version of it was published meanwhile, as ingestion {newer.id}"
    reason = Reason(SUPERSEDED, message)
    return end(adapters, ingestion.without_approval(), State.REJECTED, reason)


def newer_first(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return the newer version that keeps an audited ingestion from main, None without one.

    Only what failed before, and is to be published beside other versions, gives way.
    """
    newer = newest_newer(adapters, ingestion) if ingestion.is_decided else None
    if newer is None or newer.id == ingestion.decisions.despite:
        return None
    newer_waits = ingestion.terms.is_ordered or (ingestion.is_compared and newer.is_compared)
    return None if newer_waits and not is_on_main(adapters, newer) else newer
