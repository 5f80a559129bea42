"""Check what must hold before a decision on a failed ingestion."""

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.pipeline.outcome.versions import SUPERSEDED, newest_newer
from functions.pipeline.publication.duplicates import LIKELY_DUPLICATE, brought_besides
from functions.pipeline.start.contracts import current_requirements, outdated
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject


def require_failed(now: Ingestion, done: str) -> None:
    """Raise LakegateError NOT_FAILED unless it is rejected or errored.

    `done` names the refused operation in the message.
    """
    if now.state not in ALERTED:
        message = f"only a rejected or errored ingestion can be {done}: {status_text(now)}"
        raise LakegateError("NOT_FAILED", message)


def require_publishable(adapters: Adapters, ingestion: Ingestion, despite: str = "") -> None:
    """Raise LakegateError where its rows cannot be published anyway."""
    require_rows(ingestion)
    require_branch(adapters, ingestion)
    require_new(adapters, ingestion)
    require_contract(adapters, ingestion)
    require_newest(adapters, ingestion, despite, "publish")


def overtaken(now: Ingestion) -> LakegateError:
    """Return the error for a decision on an ingestion with which another process was faster."""
    return LakegateError("MOVED_ON", f"another process was faster: {status_text(now)}")


def require_rows(now: Ingestion) -> None:
    """Raise LakegateError unless audited rows wait on its branch.

    The codes are NOT_FAILED, DISCARDED and NO_ROWS.
    """
    require_failed(now, "published anyway")
    if now.decisions.discarded:
        message = (
            f"it was discarded{now.by_whom('discarded')} and its rows deleted: "
            f"`lakegate replay {now.id}` reads the file again"
        )
        raise LakegateError("DISCARDED", message)
    if now.state is State.ERRORED:
        message = (
            "its audit did not finish, so there are no audited rows to publish: fix the cause "
            f"that its reason names, then `lakegate replay {now.id}`"
        )
        raise LakegateError("NO_ROWS", message)
    if now.terms.is_ordered and now.audit.rows and not now.has_audited_rows:
        message = (
            "its rows could not be merged, as a key is null or ambiguous: its branch has them to "
            "look at, beside the table's; drop a corrected file, or correct the contract and then "
            f"`lakegate replay {now.id}`"
        )
        raise LakegateError("NO_ROWS", message)
    if not now.has_audited_rows:
        other = "submit another change" if now.change else "drop a corrected file"
        message = (
            "it was rejected before any row was written: correct the contract, then "
            f"`lakegate replay {now.id}`, or {other}"
        )
        raise LakegateError("NO_ROWS", message)


def require_new(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError LIKELY_DUPLICATE where main may have a file of the batch already.

    A batch that was rejected for this reason passes: its owner knows.
    """
    if not ingestion.parts or ingestion.reason_code == LIKELY_DUPLICATE:
        return
    other = brought_besides(ingestion, adapters.ledger.versions(ingestion.landed))
    if other:
        message = (
            f"another manifest has some of the same files ({other.id}, {other.state}), which must "
            "not be published twice: discard this batch, and drop the missing files as a new one"
        )
        raise LakegateError(LIKELY_DUPLICATE, message)


def require_branch(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError BRANCH_GONE where the branch with its rows is gone."""
    try:
        adapters.catalog.head(ingestion.branch)
    except UnknownBranch as error:
        require_rows(adapters.ledger.get(ingestion.id))  # another process may have been faster
        message = (
            f"its branch {ingestion.branch} is gone: `lakegate replay {ingestion.id}` creates it "
            "again"
        )
        raise LakegateError("BRANCH_GONE", message) from error


def require_contract(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError NO_CONTRACT without a contract in force, by which its rows may enter."""
    if not current_requirements(adapters, ingestion.but(contract_pinned=False)):
        message = (
            f"no contract in force for {', '.join(ingestion.tables)} can be read: its rows would "
            "not enter, and its branch would go\nCorrect it and `lakegate contract push`, then "
            "publish."
        )
        raise LakegateError("NO_CONTRACT", message)


def require_newest(adapters: Adapters, ingestion: Ingestion, despite: str, verb: str) -> None:
    """Raise LakegateError SUPERSEDED where a newer version of its key is, or may be, published.

    An owner confirms by naming that version as `despite`; the message shows the `verb` with it.
    """
    newer = newest_newer(adapters, ingestion)
    if newer is None or (newer.id == despite and not ingestion.terms.replaces):
        return
    is_published = newer.state is State.PUBLISHED
    if ingestion.terms.replaces and not is_published:
        return  # in either order the newest version's rows stay
    state = "is published" if is_published else f"is in flight ({newer.state})"
    name, wait = ingestion.name, "" if is_published else "wait for its final state; or "
    if ingestion.terms.replaces:
        message = (
            f"a newer version of {name} {state}, as ingestion {newer.id}\nthe contract lets a "
            "newer version replace it: drop this one again to publish its rows"
        )
    else:
        risk = "main may get the same rows twice"
        if ingestion.terms.is_ordered:
            risk = "these rows may be older than those that they would replace"
        message = (
            f"a newer version of {name} {state}, as ingestion {newer.id}: {risk}\n"
            f"{wait}to publish both, {command_despite(verb, ingestion, newer.id)}"
        )
    raise LakegateError(SUPERSEDED, message)


def command_despite(verb: str, ingestion: Ingestion, newer: str) -> str:
    """Return the command that replays or publishes an ingestion beside a newer version."""
    needed = " --by NAME --reason TEXT" if verb == "publish" else ""
    return f"`lakegate {verb} {ingestion.id}{needed} --despite {newer}`"


def require_unmended(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError MENDED while a mended version is to land that the ledger has not yet.

    Once the ledger has it, the decision gives way to it as to any newer version.
    """
    asked = "mending" in ingestion.times
    if not asked or newest_newer(adapters, ingestion, tuple(State)) is not None:
        return
    if ingestion.decisions.mending:
        message = (
            f"rows of {ingestion.name} are being mended{ingestion.by_whom('mending')}, and the"
            " mended file has not landed yet\n"
            f"To finish, repeat `lakegate mend`; to give it up, `lakegate discard {ingestion.id}`."
        )
        raise LakegateError("MENDED", message)
    if _has_newer_version(adapters, ingestion.landed):
        message = (
            f"a newer version of {ingestion.name} has landed, though its mending was given up\n"
            "Wait some minutes until `lakegate runs` lists it, then decide again."
        )
        raise LakegateError("MENDED", message)


def _has_newer_version(adapters: Adapters, landed: LandedObject) -> bool:
    newest = adapters.landing.newest(landed.key, bucket=landed.bucket).get(landed.key)
    return newest is not None and newest.version != landed.version


def require_original(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError where it cannot be replayed by its original contracts.

    NO_ORIGINAL_CONTRACT where one of them is gone, CONTRACT_OUTDATED where its rows would enter a
    table in another way than those of files that land now.
    """
    for key, version in ingestion.contracts:
        _require_version(adapters, key, version)
    if changed := outdated(adapters, [ingestion]):
        message = (
            f"its contract says otherwise now where rows go ({changed}): by the original one they "
            "could double others, or bring back columns\n"
            f"replay it by the contract in force: `lakegate replay {ingestion.id}`"
        )
        raise LakegateError("CONTRACT_OUTDATED", message)


def _require_version(adapters: Adapters, key: str, version: str) -> None:
    if not key:
        message = "its original contract is unknown: replay it with --contract current"
        raise LakegateError("NO_ORIGINAL_CONTRACT", message)
    if not version:
        message = (
            "the lake bucket keeps no versions of contracts: replay it with --contract current"
        )
        raise LakegateError("NO_ORIGINAL_CONTRACT", message)
    try:
        adapters.lake.contract_at(key, version)
    except Missing as error:
        message = f"its original contract is gone ({error.message}): replay with --contract current"
        raise LakegateError("NO_ORIGINAL_CONTRACT", message) from error
