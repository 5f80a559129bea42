"""Land a mended file: the next version of a rejected file's key, with corrected rows.

    the rejected ingestion is told → nobody publishes its rows, or runs it again, meanwhile
    S3 takes the file only over the rejected version → one mended file lands, whoever else tries
    the ledger has the new version → it is a file like any other, and main's log will name both

Each step can be repeated: the mark of a mended file tells that it landed. docs/adr/0069 has the
whole argument.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, Overwritten
from functions.model.decisions import Mends
from functions.model.ingestion import Ingestion, State, landing
from functions.model.ingestion_summary import status_text
from functions.operations.decisions.failed import save_decision
from functions.pipeline.outcome.versions import SUPERSEDED
from functions.pipeline.start.landing_order import OUT_OF_ORDER, newest_on_main
from lakegate.errors import LakegateError, Transient
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.refusals import RightMissing


def require_mendable(adapters: Adapters, now: Ingestion) -> None:
    """Raise LakegateError unless it is one rejected file that waits for a decision.

    The codes are NOT_REJECTED, NOT_ONE_FILE and OUT_OF_ORDER.
    """
    if now.change or now.parts:
        what = "a change" if now.change else "a batch"
        message = f"{what} cannot be mended row by row: correct it, and request or drop it again"
        raise LakegateError("NOT_ONE_FILE", message)
    if now.state is not State.REJECTED or not now.is_open:
        message = (
            f"only a rejected file that waits for a decision can be mended: {status_text(now)}\n"
            f"Details: `lakegate show {now.id}`"
        )
        raise LakegateError("NOT_REJECTED", message)
    if landing(now) < newest_on_main(adapters, now):
        message = (
            f"a file that landed after {now.name} is on main already, whose rows its older ones "
            "would replace\nIf they are to win, drop the corrected file as a new one."
        )
        raise LakegateError(OUT_OF_ORDER, message)


def land(adapters: Adapters, rejected: Ingestion, file: Path, mends: Mends) -> Ingestion:
    """Put a mended file as the next version of a rejected one's key; return its ingestion.

    The same file again is put no second time. Raises LakegateError as `require_mendable`,
    SUPERSEDED where another version has landed meanwhile, and MISSING_OBJECT where the rejected one
    was deleted.
    """
    mark = _mark(file, mends)
    landed = _there(adapters, rejected, mark) or _put(adapters, rejected, file, mends, mark)
    return _begun(adapters, landed, mends)


def _mark(file: Path, mends: Mends) -> str:
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashlib.sha256(f"{mends.ingestion}\0{content}".encode()).hexdigest()


def _there(adapters: Adapters, rejected: Ingestion, mark: str) -> LandedObject | None:
    """Return the newest version of the key if it is the mended file, else None."""
    try:
        landed, its_mark = adapters.landing.brought(rejected.landed.key, rejected.landed.bucket)
    except Missing:
        return None
    return landed if its_mark == mark else None


def _put(
    adapters: Adapters, rejected: Ingestion, file: Path, mends: Mends, mark: str
) -> LandedObject:
    claimed = save_decision(adapters, rejected, lambda now: _claimed(adapters, now, mends.by))
    try:
        return adapters.landing.put_over(rejected.landed, file, mark)
    except Overwritten as error:
        if landed := _there(adapters, rejected, mark):
            return landed  # the answer to an earlier try was lost
        message = (
            f"a newer version of {rejected.name} has landed: nothing was put over it\n"
            "`lakegate runs` lists it. If it was rejected too, mend that one."
        )
        raise LakegateError(SUPERSEDED, message) from error
    except LakegateError as error:
        if not isinstance(error, Transient) or isinstance(error, RightMissing):
            save_decision(adapters, claimed, _given_up)  # it surely did not land
        raise


def _claimed(adapters: Adapters, now: Ingestion, by: str) -> Ingestion:
    require_mendable(adapters, now)
    at = adapters.now()
    decisions = now.decisions.acted("mend", by.strip(), at, now.attempt)
    return now.step("mending", at, decisions=replace(decisions, mending=True))


def _given_up(now: Ingestion) -> Ingestion:
    return now.but(decisions=replace(now.decisions, mending=False))


def _begun(adapters: Adapters, landed: LandedObject, mends: Mends) -> Ingestion:
    """Return the ingestion of a mended file, in the ledger with what it is made of.

    Its event may have begun it. What has ended stays as it is.
    """
    listed = adapters.landing.newest(landed.key, bucket=landed.bucket).get(landed.key)
    is_newest = listed is not None and listed.version == landed.version
    at = listed.landed_at if listed and is_newest else adapters.now()
    timed = replace(landed, landed_at=at)
    first = Ingestion(id=ingestion_id(landed), landed=timed, mends=mends).step("landed", at)
    ingestion = adapters.ledger.begin(first)
    return save_decision(
        adapters, ingestion, lambda now: now if now.ended or now.mends else now.but(mends=mends)
    )
