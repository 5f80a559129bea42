"""What must hold before people have something done with a failed ingestion, or what is said."""

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from functions.model.ingestion import ALERTED, Ingestion, State, standing
from functions.pipeline.duplicates import LIKELY_DUPLICATE, brought_besides
from functions.pipeline.versions import SUPERSEDED, newest_newer
from lakegate.errors import LakegateError


def require_failed(now: Ingestion, done: str) -> None:
    """Refuses what neither was rejected nor errored; `done` is what cannot be done with it then.

    Raises LakegateError NOT_FAILED.
    """
    if now.state not in ALERTED:
        message = f"only what was rejected or errored can be {done}: {standing(now)}"
        raise LakegateError("NOT_FAILED", message)


def require_publishable(adapters: Adapters, ingestion: Ingestion, despite: str = "") -> None:
    """Raise LakegateError where its rows cannot be published anyway, as it stands now."""
    require_rows(ingestion)
    require_branch(adapters, ingestion)
    require_new(adapters, ingestion)
    command = f"publish {ingestion.id} --by NAME --reason TEXT"
    require_newest(adapters, ingestion, despite, command)


def require_rows(now: Ingestion) -> None:
    """Refuses to publish anyway where no audited rows wait for that.

    Raises LakegateError NOT_FAILED, DISCARDED or NO_ROWS.
    """
    require_failed(now, "published anyway")
    if now.discarded:
        message = (
            f"it was discarded, and its rows with it: `lakegate replay {now.id}` reads them anew"
        )
        raise LakegateError("DISCARDED", message)
    if now.state is State.ERRORED:
        message = "it could not be judged, so there are no audited rows to publish: mend what its"
        raise LakegateError("NO_ROWS", f"{message} reason names, then `lakegate replay {now.id}`")
    if not now.has_audited_rows:
        message = "it was rejected before any row was written: correct the contract, then"
        other = "ask for another change" if now.change else "drop a corrected file"
        todo = f"`lakegate replay {now.id}`, or {other}"
        raise LakegateError("NO_ROWS", f"{message} {todo}")


def require_new(adapters: Adapters, ingestion: Ingestion) -> None:
    """Of a batch, no file may be on main already; what was rejected for just that, people know.

    Raises LakegateError LIKELY_DUPLICATE.
    """
    known = ingestion.reason and ingestion.reason.code == LIKELY_DUPLICATE
    if not ingestion.parts or known:
        return
    other = brought_besides(ingestion, adapters.ledger.versions(ingestion.landed))
    if other:
        message = f"some of its files came with another manifest, too ({other.id}, {other.state})"
        todo = "discard this one, and land what is missing as a batch of its own"
        raise LakegateError(LIKELY_DUPLICATE, f"{message}, and must not come twice: {todo}")


def require_branch(adapters: Adapters, ingestion: Ingestion) -> None:
    """Refuses where the branch with its rows is gone. Raises LakegateError BRANCH_GONE."""
    try:
        adapters.catalog.head(ingestion.branch)
    except UnknownBranch as error:
        require_rows(adapters.ledger.get(ingestion.id))  # somebody may just have been faster
        message = f"its branch {ingestion.branch} is gone: `lakegate replay {ingestion.id}`"
        raise LakegateError("BRANCH_GONE", f"{message} makes it anew") from error


def require_newest(adapters: Adapters, ingestion: Ingestion, despite: str, command: str) -> None:
    """Raise LakegateError SUPERSEDED where a newer version of its key is published, or may be.

    A person who means it names that one as `despite`. `command` is what they then give.
    """
    newer = newest_newer(adapters, ingestion)
    if newer is None or (newer.id == despite and not ingestion.replaces):
        return
    is_there = newer.state is State.PUBLISHED
    if ingestion.replaces and not is_there:
        return  # whichever is published last, the newest version's rows stay
    stands = "is published" if is_there else f"is on its way ({newer.state})"
    first = f"a newer version of {ingestion.name} {stands}, as ingestion {newer.id}"
    todo = "its contract has a newer version replace it: drop it again to have its rows on main"
    if not ingestion.replaces:
        first += ": with both on main, rows may be there twice"
        wait = "" if is_there else "wait for how that one ends; or "
        todo = f"{wait}to have both, `lakegate {command} --despite {newer.id}`"
    raise LakegateError(SUPERSEDED, f"{first}\n{todo}")


def require_contract(adapters: Adapters, ingestion: Ingestion) -> None:
    """Refuses where a contract that it went by cannot be had any more.

    Raises LakegateError NO_ORIGINAL_CONTRACT.
    """
    for key, version in ingestion.contracts:
        _require_original(adapters, key, version)


def _require_original(adapters: Adapters, key: str, version: str) -> None:
    if not key:
        message = "it went by no contract that is known: replay it with --contract current"
        raise LakegateError("NO_ORIGINAL_CONTRACT", message)
    if not version:
        message = "the lake bucket keeps no versions of contracts: replay it with --contract"
        raise LakegateError("NO_ORIGINAL_CONTRACT", f"{message} current")
    try:
        adapters.lake.contract_at(key, version)
    except Missing as error:
        message = f"{error.message} any more: replay it with --contract current"
        raise LakegateError("NO_ORIGINAL_CONTRACT", message) from error
