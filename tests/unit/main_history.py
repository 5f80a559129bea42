"""A landing bucket, a ledger and main's log of one table, made by hand, right or wrong."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from json import dumps

from functions.balance import Balance, Change, balance
from functions.commits import INGESTIONS, TABLE, Published
from functions.history import Commit
from functions.ingestion import Ingestion, State
from functions.reconciliation import Reconciliation, reconcile
from functions.table_rows import DoubledFile, TableRows
from lakegate import times
from lakegate.landing import LandedObject, ingestion_id

ORDERS = "shop.orders"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = START + timedelta(days=1)


@dataclass
class History:
    """What happened; `since` is the time after which things may still be under way."""

    since: datetime = LATER
    landed: dict[str, LandedObject] = field(default_factory=dict)
    ingestions: dict[str, Ingestion] = field(default_factory=dict)
    log: list[Commit] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    at: dict[str, TableRows] = field(default_factory=lambda: {"": TableRows()})
    doubled: tuple[DoubledFile, ...] = ()
    reads: list[str] = field(default_factory=list)

    def land(self, at: datetime = START) -> LandedObject:
        """An object lands, and nobody has noticed it yet."""
        number = len(self.landed) + 1
        key = f"shop/orders/{number}.csv"
        found = LandedObject("landing", key, f"v{number}", "e", 9, landed_at=times.text(at))
        self.landed[ingestion_id(found)] = found
        return found

    def taken_in(self, state: State, rows: int = 0, at: datetime = START) -> Ingestion:
        """An object landed, and the ledger has come so far with it."""
        landed = self.land(at)
        made = Ingestion(ingestion_id(landed), landed, state=state, table=ORDERS, rows=rows)
        self.ingestions[made.id] = made
        return made

    def publish(
        self,
        rows: Sequence[int],
        gain: int | None = None,
        replaced: int = 0,
        at: datetime = START,
        state: State = State.PUBLISHED,
    ) -> Commit:
        """Files of so many rows are published by one commit, which changes main by `gain`.

        Of the first one's earlier version that many rows are `replaced`.
        """
        members = [self.taken_in(State.AUDITED, each) for each in rows]
        named = [_published(each) for each in members]
        named[0] = replace(named[0], replaced_rows=replaced)
        right = sum(rows) - replaced
        commit = self.merge(named, right if gain is None else gain, at)
        for each in members:
            self.ingestions[each.id] = replace(each, state=state, merge_hash=commit.hash)
        return commit

    def merge(self, named: Sequence[Published], gain: int, at: datetime = START) -> Commit:
        """A commit of ours that names these, and changes main's table by `gain`."""
        properties = {TABLE: ORDERS, INGESTIONS: dumps([asdict(each) for each in named])}
        commit = self.commit(gain, properties, at=at)
        claimed = sum(each.rows - each.replaced_rows for each in named)
        self.changes.append(Change(commit, claimed))
        return commit

    def by_others(self, gain: int) -> Commit:
        """Somebody else changes the table."""
        commit = self.commit(gain, {}, author="ann")
        self.changes.append(Change(commit))
        return commit

    def commit(
        self,
        gain: int = 0,
        properties: dict[str, str] | None = None,
        author: str = "lakegate",
        at: datetime = START,
    ) -> Commit:
        """A commit on main that nobody says has changed the table."""
        parent = self.log[-1].hash if self.log else ""
        hash_ = f"{len(self.log) + 1:064x}"
        made = Commit(hash_, parent, "a commit", properties or {}, author, times.text(at))
        self.log.append(made)
        self.at[hash_] = TableRows("uuid", self.at[parent].records + gain)
        return made

    def balance(self, *, thorough: bool = False) -> Balance:
        """The balance of the table; `reads` are the commits that were asked for."""
        self.reads.clear()
        head = self.log[-1].hash if self.log else ""
        found = balance(ORDERS, head, self.changes, self._rows_at(), thorough=thorough)
        return replace(found, doubled=self.doubled)

    def reconcile(self, *, thorough: bool = False) -> Reconciliation:
        """What reconcile makes of it."""
        balances = [self.balance(thorough=thorough)]
        return reconcile(self.landed, self.ingestions, self.log[::-1], balances, self.since)

    def _rows_at(self) -> Callable[[str], TableRows]:
        def rows_at(at: str) -> TableRows:
            self.reads.append(at)
            return self.at[at]

        return rows_at


def _published(ingestion: Ingestion) -> Published:
    """What a commit says of an ingestion."""
    landed = ingestion.landed
    return Published(
        id=ingestion.id,
        object=landed.uri,
        version=landed.version,
        rows=ingestion.rows,
        report="reports/r.json",
        contract="contracts/c.yaml@v1",
        job_run="00run",
        audited_hash="a" * 64,
    )
