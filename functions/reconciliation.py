"""The invariant: landing = published + rejected + errored + ignored + in flight, and main agrees.

Three records are held against each other: what the landing bucket lists, what the ledger says, and
what main's log and tables say. A problem breaks the invariant; a remark is worth knowing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from functions import commits
from functions.balance import Balance, changed_by_others, wrong_rows
from functions.commits import Published
from functions.finding import Finding
from functions.history import Commit
from functions.ingestion import Ingestion, State
from lakegate.landing import LandedObject

OnMain = Mapping[str, Sequence[tuple[Commit, Published]]]


class End(StrEnum):
    """How a landed object ended. NOT_TAKEN_IN is no end: it is what must never be."""

    PUBLISHED = "published"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"
    IN_FLIGHT = "in flight"
    NOT_TAKEN_IN = "not taken in"


@dataclass(frozen=True)
class Account:
    """A landed object and its end.

    `ingestion` is None where the ledger does not know the object, `listed` False where the bucket
    no longer has it.
    """

    id: str
    landed: LandedObject
    end: End
    ingestion: Ingestion | None = None
    listed: bool = True

    @property
    def rows(self) -> int:
        """The rows that its audit counted, 0 where there was none."""
        return self.ingestion.rows if self.ingestion else 0


@dataclass(frozen=True)
class Reconciliation:
    """Every landed object with its end, every table with its rows, and what does not fit."""

    accounts: tuple[Account, ...]
    balances: tuple[Balance, ...]
    problems: tuple[Finding, ...]
    remarks: tuple[Finding, ...]

    @property
    def landed(self) -> int:
        """How many objects are in the landing bucket."""
        return sum(account.listed for account in self.accounts)

    def ended(self, end: End) -> tuple[int, int]:
        """How many of these ended so, and their rows."""
        rows = [each.rows for each in self.accounts if each.listed and each.end is end]
        return len(rows), sum(rows)


def reconcile(
    landed: Mapping[str, LandedObject],
    ingestions: Mapping[str, Ingestion],
    log: Sequence[Commit],
    balances: Sequence[Balance],
    since: datetime,
) -> Reconciliation:
    """Hold the records against each other; landed objects and ingestions go by ingestion id.

    They must have been read in this order, or what happens meanwhile looks wrong. What landed or
    was merged after `since` may still be under way from one record to the next.
    """
    accounts = tuple(_accounts(landed, ingestions, since))
    on_main = _on_main(log)
    late = dict(_late(ingestions, on_main, since))
    problems = (
        *_not_taken_in(accounts),
        *_published_twice(on_main),
        *_not_on_main(ingestions, on_main),
        *(finding for finding, in_time in late.items() if not in_time),
        *_rows_disagree(ingestions, on_main),
        *(finding for each in balances for finding in wrong_rows(each)),
    )
    remarks = (
        *(finding for finding, in_time in late.items() if in_time),
        *_no_longer_listed(accounts),
        *(finding for each in balances for finding in changed_by_others(each)),
    )
    return Reconciliation(accounts, tuple(balances), problems, remarks)


def _accounts(
    landed: Mapping[str, LandedObject], ingestions: Mapping[str, Ingestion], since: datetime
) -> Iterator[Account]:
    for id_, found in landed.items():
        ingestion = ingestions.get(id_)
        yield Account(id_, found, _end(ingestion, found, since), ingestion)
    for id_, gone in ingestions.items():
        if id_ not in landed:
            # What landed since the bucket was listed is no less there.
            new = _is_new(gone.landed, since)
            yield Account(id_, gone.landed, _end(gone, gone.landed, since), gone, listed=new)


def _end(ingestion: Ingestion | None, landed: LandedObject, since: datetime) -> End:
    if ingestion and ingestion.ended:
        return End(ingestion.state.value)
    return End.IN_FLIGHT if ingestion or _is_new(landed, since) else End.NOT_TAKEN_IN


def _is_new(landed: LandedObject, since: datetime) -> bool:
    return datetime.fromisoformat(landed.landed_at) >= since


def _on_main(log: Sequence[Commit]) -> OnMain:
    found: defaultdict[str, list[tuple[Commit, Published]]] = defaultdict(list)
    for commit in log:
        for published in commits.published(commit):
            found[published.id].append((commit, published))
    return found


def _not_taken_in(accounts: Sequence[Account]) -> Iterator[Finding]:
    for each in accounts:
        if each.end is End.NOT_TAKEN_IN:
            message = (
                f"{_name(each.landed)} landed at {each.landed.landed_at}, and the ledger does not "
                "know it: is the sweep running? Its next run takes the object in"
            )
            yield Finding("NOT_TAKEN_IN", message, ingestion=each.id)


def _published_twice(on_main: OnMain) -> Iterator[Finding]:
    for id_, found in on_main.items():
        if len(found) > 1:
            (newest, published), *others = found
            names = ", ".join(commit.hash for commit, _ in [*reversed(others), (newest, None)])
            message = (
                f"{published.object} (version {published.version}) was published {len(found)} "
                f"times, its {published.rows:,} rows each time, by these commits on main: {names}"
            )
            yield Finding("PUBLISHED_TWICE", message, _table(newest), id_, newest.hash)


def _not_on_main(ingestions: Mapping[str, Ingestion], on_main: OnMain) -> Iterator[Finding]:
    for each in ingestions.values():
        if each.state is State.PUBLISHED and each.id not in on_main:
            tables = ", ".join(each.tables)
            message = (
                f"the ledger says that {_name(each.landed)} was published by commit "
                f"{each.merge_hash}, but no commit on main names it: its {each.rows:,} rows are "
                f"missing from {tables}. Was main put back?"
            )
            yield Finding("NOT_ON_MAIN", message, tables, each.id, each.merge_hash)


def _late(
    ingestions: Mapping[str, Ingestion], on_main: OnMain, since: datetime
) -> Iterator[tuple[Finding, bool]]:
    """What main has and the ledger does not call published, and whether it still has time to."""
    for id_, found in on_main.items():
        ingestion, (commit, published) = ingestions.get(id_), found[0]
        if ingestion and ingestion.state is State.PUBLISHED:
            continue
        in_time = datetime.fromisoformat(commit.time) >= since
        says = f"calls it {ingestion.state}" if ingestion else "does not know it"
        todo = "which is soon put right" if in_time else _REMEDY[ingestion is not None]
        message = (
            f"commit {commit.hash} published {published.rows:,} rows of {published.object} "
            f"(version {published.version}), but the ledger {says}: {todo}"
        )
        yield Finding("NOT_RECORDED", message, _table(commit), id_, commit.hash), in_time


_REMEDY = {True: "is the sweep running?", False: "`lakegate ledger rebuild` restores it"}


def _rows_disagree(ingestions: Mapping[str, Ingestion], on_main: OnMain) -> Iterator[Finding]:
    for id_, found in on_main.items():
        for commit, published in found:
            ingestion = ingestions.get(id_)
            if ingestion and ingestion.rows != published.rows:
                message = (
                    f"commit {commit.hash} says {published.rows:,} rows of {published.object} "
                    f"(version {published.version}), the ledger says {ingestion.rows:,}"
                )
                yield Finding("ROWS_DISAGREE", message, _table(commit), id_, commit.hash)


def _no_longer_listed(accounts: Sequence[Account]) -> Iterator[Finding]:
    gone = Counter(each.end for each in accounts if not each.listed)
    if gone:
        ends = ", ".join(f"{gone[end]:,} {end}" for end in End if gone[end])
        message = (
            f"the ledger knows {gone.total():,} more objects ({ends}) that the landing bucket no "
            "longer has: a lifecycle rule or a person removed them"
        )
        yield Finding("NO_LONGER_LISTED", message)


def _name(landed: LandedObject) -> str:
    return f"{landed.uri} (version {landed.version})"


def _table(commit: Commit) -> str:
    return ", ".join(sorted(commits.tables(commit)))
