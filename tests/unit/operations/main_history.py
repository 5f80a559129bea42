"""A landing bucket, a ledger and main's log of one table, made by hand, right or wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from json import dumps
from types import SimpleNamespace
from typing import Any, cast

from functions.adapters.all import Adapters
from functions.adapters.iceberg.files import DoubledFile, TableChange, TableRows
from functions.adapters.s3 import Missing
from functions.model.audit_outcome import AuditOutcome
from functions.model.commits import Commit
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import INGESTIONS, TABLE, Published
from functions.model.notes.checkpoint import Checkpoint
from functions.model.notes.upkeep_note import UpkeepNote
from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import Reconciliation
from lakegate import times
from lakegate.audit.report import AuditReport, DataFile
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.examples import REPORT
from tests.fakes.storage import FakeLake

ORDERS = "shop.orders"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = START + timedelta(days=1)


GRACE = 60
_BEGIN = Commit("", "", "Begin", {}, "set-up", times.text(START - timedelta(days=9999)))


@dataclass
class History:
    """A sequence of events; later ones than `since` may still be in progress.

    `reports` are the files that audit reports name, `files` those that commits really added.
    """

    since: datetime = LATER
    landed: dict[str, LandedObject] = field(default_factory=dict)
    ingestions: dict[str, Ingestion] = field(default_factory=dict)
    log: list[Commit] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    at: dict[str, TableRows] = field(default_factory=lambda: {"": TableRows()})
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reports: dict[str, AuditReport] = field(default_factory=dict)
    doubled: tuple[DoubledFile, ...] = ()
    lake: FakeLake = field(default_factory=FakeLake)
    reads: list[str] = field(default_factory=list)
    note: UpkeepNote = field(default_factory=UpkeepNote)
    is_whole: bool = True

    def land(self, at: datetime = START) -> LandedObject:
        """Land an object that no event reports."""
        number = len(self.landed) + 1
        key = f"shop/orders/{number}.csv"
        found = LandedObject("landing", key, f"v{number}", "e", 9, landed_at=times.text(at))
        self.landed[ingestion_id(found)] = found
        return found

    def taken_in(self, state: State, rows: int = 0) -> Ingestion:
        """Land an object, with its ingestion in this state."""
        landed = self.land()
        made = Ingestion(
            ingestion_id(landed),
            landed,
            state=state,
            terms=ContractTerms(table=ORDERS),
            audit=AuditOutcome(rows=rows),
        )
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
        """Publish files with so many rows by one commit, which changes main by `gain`.

        `replaced` rows belong to the first one's earlier version.
        """
        members = [self.taken_in(State.AUDITED, each) for each in rows]
        named = [_published(each) for each in members]
        named[0] = replace(named[0], replaced_rows=replaced)
        right = sum(rows) - replaced
        commit = self.merge(named, right if gain is None else gain, at)
        for each in members:
            done = each.step(state.value, times.text(at), state=state, merge_hash=commit.hash)
            self.ingestions[each.id] = done
        return commit

    def merge(self, named: Sequence[Published], gain: int, at: datetime = START) -> Commit:
        """Add a commit of Lakegate that names these and changes the table by `gain`."""
        properties = {TABLE: ORDERS, INGESTIONS: dumps([asdict(each) for each in named])}
        commit = self.commit(gain, properties, at=at)
        self.changed.add(commit.hash)
        files = (file.path for each in named for file in self._report(each).files)
        self.files[commit.hash] = tuple(files)
        return commit

    def by_others(self, gain: int, *files: str, at: datetime = START) -> Commit:
        """Change the table as another writer."""
        commit = self.commit(gain, {}, author="ann", at=at)
        self.changed.add(commit.hash)
        self.files[commit.hash] = files
        return commit

    def commit(
        self,
        gain: int = 0,
        properties: dict[str, str] | None = None,
        author: str = "lakegate",
        at: datetime = START,
    ) -> Commit:
        """Add a commit on main without metadata about its changes."""
        parent = self.log[-1].hash if self.log else ""
        hash_ = f"{len(self.log) + 1:064x}"
        made = Commit(hash_, parent, "a commit", properties or {}, author, times.text(at))
        self.log.append(made)
        self.at[hash_] = TableRows("uuid", self.at[parent].records + gain)
        return made

    def forget(self, since: datetime) -> None:
        """Delete the metadata of what main was before, except for the state at that time."""
        self.note = UpkeepNote(kept_since=times.text(since))
        old = [each.hash for each in self.log if datetime.fromisoformat(each.time) < since]
        for hash_ in ("", *old[:-1]):
            del self.at[hash_]

    def cut(self, at: Commit) -> None:
        """Cut main's history: the log begins with that commit."""
        del self.log[: self.log.index(at)]
        self.is_whole = False

    def put_back(self, to: Commit) -> None:
        """Set main back to an earlier commit."""
        del self.log[self.log.index(to) + 1 :]

    def reconcile(self, *, thorough: bool = False, full: bool = False) -> Reconciliation:
        """Return reconcile's result; `reads` are the commits that were asked for."""
        self.reads.clear()
        return reconciled(self.adapters(), thorough=thorough, full=full)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint that the last run wrote."""
        return self.lake.checkpoint()[0]

    def adapters(self) -> Adapters:
        """Return the records as reconcile reads them."""
        parts: dict[str, Any] = {
            "settings": SimpleNamespace(grace_seconds=GRACE),
            "now": lambda: times.text(self.since + timedelta(seconds=2 * GRACE)),
            "landing": SimpleNamespace(landed=lambda: iter(self.landed.values())),
            "lake": SimpleNamespace(
                report=self._read,
                changes=lambda: iter(()),
                checkpoint=self.lake.checkpoint,
                put_checkpoint=self.lake.put_checkpoint,
                is_gone=self.lake.is_gone,
            ),
            "ledger": SimpleNamespace(
                all=lambda: iter(self.ingestions.values()),
                together=lambda ids: [self.ingestions[i] for i in ids if i in self.ingestions],
                known=lambda ids: {i for i in ids if i in self.ingestions},
                upkeep=lambda: self.note,
            ),
            "catalog": SimpleNamespace(
                log=self._log, history=self._history, branches=lambda *prefixes: []
            ),
            "tables": lambda: SimpleNamespace(
                rows=self.rows,
                change=self.change,
                listed=self.listed,
                doubled=lambda table, reference: list(self.doubled),
            ),
        }
        return cast(Adapters, SimpleNamespace(**parts))

    def rows(self, table: str, reference: str) -> TableRows:
        assert table == ORDERS
        return self.at[reference.removeprefix("main@")]

    def change(self, table: str, before: str, after: str) -> TableChange:
        hash_ = after.removeprefix("main@")
        self.reads.append(hash_)
        rows = self.rows(table, after).live - self.rows(table, before).live
        hidden = self.rows(table, before).hidden
        return TableChange(rows, dict.fromkeys(self.files[hash_], 1), hidden=hidden)

    def listed(self, table: str, reference: str, most: int = 0) -> Iterator[str]:
        assert (table, reference) == (ORDERS, f"main@{self.log[-1].hash}")
        found = [file for commit in self.log for file in self.files.get(commit.hash, ())]
        yield from found[: most or None]

    def _log(self) -> Iterator[Commit]:
        yield from reversed([_BEGIN, *self.log] if self.is_whole else self.log)

    def _history(self) -> Iterator[tuple[Commit, frozenset[str]]]:
        for commit in self._log():
            yield commit, frozenset({ORDERS} if commit.hash in self.changed else ())

    def _read(self, key: str) -> AuditReport:
        if key not in self.reports:
            raise Missing("MISSING_OBJECT", f"there is no object {key}")
        return self.reports[key]

    def _report(self, published: Published) -> AuditReport:
        path = f"s3://lake/{published.object.rpartition('/')[2]}.parquet"
        files = (DataFile(path, published.rows, 1),) if published.rows else ()
        found = replace(REPORT, table=ORDERS, rows_written=published.rows, files=files)
        return self.reports.setdefault(published.report, found)


def _published(ingestion: Ingestion) -> Published:
    """Return a commit's properties about an ingestion."""
    landed = ingestion.landed
    return Published(
        id=ingestion.id,
        object=landed.uri,
        version=landed.version,
        rows=ingestion.audit.rows,
        report=f"reports/{ingestion.id}.json",
        contract="contracts/c.yaml@v1",
        job_run="00run",
        audited_hash="a" * 64,
    )
