"""The invariant: landing = published + rejected + errored + ignored + in flight, and main agrees.

Three records are held against each other: what the landing bucket lists, what the ledger says, and
what main's log and tables say. A problem breaks the invariant; a remark is worth knowing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import Published
from functions.operations.row_balance import Balance, Finding
from lakegate.landing import LandedObject


class End(StrEnum):
    """How a landed object ended. NOT_TAKEN_IN is no end: it is what must never be."""

    PUBLISHED = "published"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"
    IN_FLIGHT = "in flight"
    NOT_TAKEN_IN = "not taken in"


@dataclass(frozen=True)
class Reconciliation:
    """How everything ended, every table with its rows, and what does not fit.

    `ends` has how many ended so, and their rows, of all that the ledger or the landing bucket
    knows; `landed` is how many objects are in the bucket. `since` is the commit on main up to which
    an earlier run found all to be right, "" where every commit was looked at.
    """

    ends: Mapping[End, tuple[int, int]]
    landed: int
    balances: tuple[Balance, ...]
    problems: tuple[Finding, ...]
    remarks: tuple[Finding, ...]
    since: str = ""

    def ended(self, end: End) -> tuple[int, int]:
        """How many ended so, and their rows."""
        return self.ends.get(end, (0, 0))


def end_of(ingestion: Ingestion) -> End:
    """Return how an ingestion ended, as far as it has."""
    return End(ingestion.state.value) if ingestion.ended else End.IN_FLIGHT


def is_new(landed: LandedObject, since: datetime) -> bool:
    """Return whether an object may still be on its way to the ledger."""
    return datetime.fromisoformat(landed.landed_at) >= since


def not_taken_in(id_: str, landed: LandedObject) -> Finding:
    """Return the problem that the ledger does not know an object."""
    message = (
        f"{_name(landed)} landed at {landed.landed_at}, and the ledger does not know it: is the "
        "sweep running? Its next run takes the object in"
    )
    return Finding("NOT_TAKEN_IN", message, ingestion=id_)


def published_twice(id_: str, found: Sequence[tuple[Commit, Published]]) -> Iterator[Finding]:
    """Find an ingestion that several commits on main, here the newest first, published."""
    if len(found) > 1:
        newest, published = found[0]
        names = ", ".join(commit.hash for commit, _ in reversed(found))
        message = (
            f"{published.object} (version {published.version}) was published {len(found)} "
            f"times, its {published.rows:,} rows each time, by these commits on main: {names}"
        )
        yield Finding("PUBLISHED_TWICE", message, _tables(newest), id_, newest.hash)


def not_on_main(each: Ingestion) -> Finding:
    """Return the problem that no commit on main names what the ledger calls published."""
    tables = ", ".join(each.tables)
    message = (
        f"the ledger says that {_name(each.landed)} was published by commit {each.merge_hash}, but "
        f"no commit on main names it: its {each.rows:,} rows are missing from {tables}. Was main "
        f"put back? `lakegate replay {each.id}` brings them back, once; `lakegate discard "
        f"{each.id}` accepts that they are gone"
    )
    return Finding("NOT_ON_MAIN", message, tables, each.id, each.merge_hash)


def compared(
    commit: Commit, published: Published, ingestion: Ingestion | None, since: datetime
) -> Iterator[tuple[Finding, bool]]:
    """Find what the ledger says otherwise than a commit, each with whether it is a problem."""
    of = _tables(commit), published.id, commit.hash
    if not ingestion or ingestion.state is not State.PUBLISHED:
        late = datetime.fromisoformat(commit.time) < since
        says = f"calls it {ingestion.state}" if ingestion else "does not know it"
        todo = _REMEDY[ingestion is not None] if late else "which is soon put right"
        message = (
            f"commit {commit.hash} published {published.rows:,} rows of {published.object} "
            f"(version {published.version}), but the ledger {says}: {todo}"
        )
        yield Finding("NOT_RECORDED", message, *of), late
    if ingestion and ingestion.rows != published.rows:
        message = (
            f"commit {commit.hash} says {published.rows:,} rows of {published.object} "
            f"(version {published.version}), the ledger says {ingestion.rows:,}"
        )
        yield Finding("ROWS_DISAGREE", message, *of), True


def no_longer_listed(many: int) -> Iterator[Finding]:
    """Say how many objects the ledger knows that the landing bucket no longer has."""
    if many:
        message = (
            f"the ledger knows {many:,} more objects that the landing bucket no longer has: a "
            "lifecycle rule or a person removed them"
        )
        yield Finding("NO_LONGER_LISTED", message)


_REMEDY = {True: "is the sweep running?", False: "`lakegate ledger rebuild` restores it"}


def _name(landed: LandedObject) -> str:
    return f"{landed.uri} (version {landed.version})"


def _tables(commit: Commit) -> str:
    return ", ".join(sorted(merge_commit.tables(commit)))
