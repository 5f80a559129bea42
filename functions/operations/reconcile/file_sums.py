"""Check that landed = published + rejected + errored + ignored + in flight, and main agrees.

It compares the landing bucket's listing, the ledger, and main's log and tables. A problem breaks
the invariant; a remark is informative.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import Published
from functions.operations.reconcile.row_balance import Balance, Finding
from lakegate.job.landing import LandedObject
from lakegate.text import count


class End(StrEnum):
    """A landed object's final state, or IN_FLIGHT; NOT_TAKEN_IN breaks the invariant."""

    PUBLISHED = "published"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"
    IN_FLIGHT = "in flight"
    NOT_TAKEN_IN = "not taken in"


@dataclass(frozen=True)
class Reconciliation:
    """All final states, all tables with their rows, and every mismatch.

    `ends` has the number of objects in each state and their rows, for all objects in the ledger or
    the landing bucket; `landed` counts the objects in the bucket. `since` is the commit on main up
    to which an earlier run found no problem, "" where every commit was read.
    """

    ends: Mapping[End, tuple[int, int]]
    landed: int
    balances: tuple[Balance, ...]
    problems: tuple[Finding, ...]
    remarks: tuple[Finding, ...]
    since: str = ""

    def ended(self, end: End) -> tuple[int, int]:
        """Return how many objects have this state, and their rows."""
        return self.ends.get(end, (0, 0))


def end_of(ingestion: Ingestion) -> End:
    """Return an ingestion's final state, or IN_FLIGHT."""
    return End(ingestion.state.value) if ingestion.ended else End.IN_FLIGHT


def is_new(landed: LandedObject, since: datetime) -> bool:
    """Return whether an object is so new that the ledger may still lack it."""
    return datetime.fromisoformat(landed.landed_at) >= since


def not_taken_in(id_: str, landed: LandedObject) -> Finding:
    """Return the problem that the ledger lacks an object."""
    message = (
        f"{_name(landed)} landed at {landed.landed_at} and is missing from the ledger: check that "
        "the sweep runs; its next run ingests the object"
    )
    return Finding("NOT_TAKEN_IN", message, ingestion=id_)


def published_twice(id_: str, commits: Sequence[tuple[Commit, Published]]) -> Iterator[Finding]:
    """Report an ingestion that several commits on main published; `commits` are newest first."""
    if len(commits) > 1:
        newest, published = commits[0]
        names = ", ".join(commit.hash for commit, _ in reversed(commits))
        message = (
            f"{published.object} (version {published.version}) was published {len(commits)} "
            f"times, with {count(published.rows, 'row')} each time, by these commits on main: "
            f"{names}"
        )
        yield Finding("PUBLISHED_TWICE", message, _tables(newest), id_, newest.hash)


def not_on_main(each: Ingestion) -> Finding:
    """Return the problem that no commit on main names a published ingestion."""
    tables = ", ".join(each.tables)
    message = (
        f"the ledger says that {_name(each.landed)} was published by commit {each.merge_hash}, but "
        f"no commit on main names it: its {each.audit.rows:,} rows are missing from {tables}. "
        f"Was main set back? `lakegate replay {each.id}` publishes them again, once; "
        f"`lakegate discard {each.id}` accepts the loss"
    )
    return Finding("NOT_ON_MAIN", message, tables, each.id, each.merge_hash)


def compared(
    commit: Commit, published: Published, ingestion: Ingestion | None, since: datetime
) -> Iterator[tuple[Finding, bool]]:
    """Yield contradictions between the ledger and a commit, each with whether it is a problem."""
    of = _tables(commit), published.id, commit.hash
    if not ingestion or ingestion.state is not State.PUBLISHED:
        late = commit.moment < since
        says = f"says {ingestion.state}" if ingestion else "lacks it"
        todo = _remedy(ingestion) if late else "this is normal for a few minutes"
        message = (
            f"commit {commit.hash} published {count(published.rows, 'row')} of {published.object} "
            f"(version {published.version}), but the ledger {says}: {todo}"
        )
        yield Finding("NOT_RECORDED", message, *of), late
    if ingestion and ingestion.audit.rows != published.rows:
        message = (
            f"commit {commit.hash} says {count(published.rows, 'row')} of {published.object} "
            f"(version {published.version}), the ledger says {ingestion.audit.rows:,}"
        )
        yield Finding("ROWS_DISAGREE", message, *of), True


def no_longer_listed(many: int) -> Iterator[Finding]:
    """Report how many objects of the ledger the landing bucket no longer has."""
    if many:
        message = (
            f"the ledger has {many:,} more objects that the landing bucket no longer has: a "
            "lifecycle rule or a person deleted them"
        )
        yield Finding("NO_LONGER_LISTED", message)


def _remedy(unrecorded: Ingestion | None) -> str:
    """Return what records an ingestion of main; the sweep leaves a final state as it is."""
    if unrecorded is None:
        return "`lakegate ledger rebuild` restores it"
    adopts = "`lakegate ledger realign` has the ledger follow main"
    return adopts if unrecorded.ended else "check that the sweep runs"


def _name(landed: LandedObject) -> str:
    return f"{landed.uri} (version {landed.version})"


def _tables(commit: Commit) -> str:
    return ", ".join(sorted(merge_commit.tables(commit)))
