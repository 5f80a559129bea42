"""Files that other programs wait for: the newest version of a key, and what main gained since."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from functions.adapters.ledger.ledger import Ledger
from functions.adapters.ledger.reads import UnknownIngestion
from functions.adapters.nessie import Catalog, UnknownBranch
from functions.model.commits import Commit, line_and_base
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.model.merge_commit import published, tables
from functions.pipeline.outcome.versions import is_newer
from lakegate.errors import LakegateError, Permanent
from lakegate.job.landing import ID_PART, LandedObject

_S3 = "s3://"


class NotPublished(Permanent):
    """A file that is waited for will not be published, unless somebody decides so."""


@dataclass(frozen=True)
class Arrival:
    """A file on main: its ingestion, its address, and the rows by which its table grew.

    For a batch it is the manifest's address, for a change the statement's. `commit` is main's
    commit, which may have brought several files.
    """

    ingestion: str
    object: str
    rows: int
    commit: str


def landed(ledger: Ledger, bucket: str, key: str) -> Ingestion | None:
    """Return the ingestion of the newest version under a key; None before anything landed.

    The key is one in `bucket`, or an address (`s3://bucket/key`) in any landing bucket.
    """
    if key.startswith(_S3):
        bucket, _, key = key.removeprefix(_S3).partition("/")
    newest = None
    for each in ledger.versions(LandedObject(bucket, key, "", "", 0)):
        newest = each if newest is None or is_newer(each, newest) else newest
    return newest


def known(ledger: Ledger, ingestion: str) -> Ingestion | None:
    """Return an ingestion by its whole id; None before its event came."""
    try:
        return ledger.get(ingestion)
    except UnknownIngestion:
        return None


def is_published(ingestion: Ingestion | None, *, patient: bool) -> bool:
    """Return if a file that is waited for is on main.

    Raises NotPublished for one that ended otherwise. With `patient`, a rejected or errored one is
    waited for as long as somebody may replay or approve it.
    """
    if ingestion is None or not ingestion.ended or (patient and ingestion.is_open):
        return False
    if ingestion.state is State.PUBLISHED:
        return True
    why = f": {ingestion.reason.message} ({ingestion.reason.code})" if ingestion.reason else ""
    message = f"{ingestion.landed.key} is not published: {status_text(ingestion)}{why}"
    advice = f"Look at it with `lakegate show {ingestion.id[:ID_PART]}`."
    raise NotPublished("NOT_PUBLISHED", f"{message}\n{advice}")


def gained(catalog: Catalog, table: str, since: str) -> tuple[list[Arrival], str]:
    """Return the files that a table gained after main's commit `since`, and main's newest commit.

    The earliest comes first. Without `since` there is no file: the wait begins now. Where main was
    put back behind `since`, it goes on from the newest commit that main still has. Compactions and
    what other programs wrote are no files. Raises LakegateError CURSOR_UNKNOWN.
    """
    log = catalog.log()
    newest = next(log, None)
    if not newest or since in ("", newest.hash):
        return [], newest.hash if newest else ""
    try:
        fresh, base = line_and_base(chain([newest], log), catalog.log_of(since))
    except UnknownBranch as error:
        message = f"Nessie has no commit {since}, where the last look ended: it was restored"
        advice = f"Set the sensor's cursor to the commit of `lakegate log {table}` to go on from."
        raise LakegateError("CURSOR_UNKNOWN", f"{message}\n{advice}") from error
    arrived = [each for commit in reversed(fresh) for each in _arrivals(commit, table)]
    return arrived, fresh[0].hash if fresh else base


def _arrivals(commit: Commit, table: str) -> Iterator[Arrival]:
    if table not in tables(commit):
        return
    for each in published(commit):
        rows = {part.table: 0 for part in each.parts} or {table: each.rows - each.replaced_rows}
        for part in each.parts:
            rows[part.table] += part.rows
        if table in rows:
            yield Arrival(each.id, each.object, rows[table], commit.hash)
