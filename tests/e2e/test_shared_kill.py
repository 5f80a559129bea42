"""Shared runs that die or hang with files in hand: every file ends, each good row is on main once.

What a run had in hand comes again half a minute after it died. So three moments overlap: two runs
are killed, and a third is stopped until another one has done its files, and then goes on.
"""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion, State
from functions.pipeline.shared_runs import input_of
from lakegate.landing import LandedObject, ingestion_id, report_key
from tests.e2e.conftest import Gate, contract
from tests.e2e.killing import sparks
from tests.fakes.amounts import WHOLE_MATRIX
from tests.waiting import eventually

pytestmark = [
    pytest.mark.stack,
    pytest.mark.timeout(1800),  # on a busy machine
    pytest.mark.skipif(not WHOLE_MATRIX, reason="four minutes: `make test-long` runs it"),
]

_PATIENCE = 900
_PAUSE = 0.02  # between two looks for the moment of a kill
_TABLES = {"shares.orders": "parquet", "shares.returns": "csv"}  # registered, appended by Spark
_FILES, _ROWS = 5, 3  # files of each table at once, rows of each
_MOST_TRIES = 5
_RECENT = 20  # commits of main, of which a new branch has the newest


@dataclass
class Landings:
    """Files that landed for two tables: the rows of the good ones, and those that must fail."""

    gate: Gate
    good: dict[LandedObject, range] = field(default_factory=dict)
    bad: list[LandedObject] = field(default_factory=list)

    def drop(self) -> None:
        """Drop good files for both tables, and a bad one after them."""
        for _ in range(_FILES):
            for table in _TABLES:
                first = len(self.good) * _ROWS
                rows = range(first, first + _ROWS)
                self.good[self._put(table, f"good-{first}", rows, 1.5)] = rows
        self.bad.append(self._put("shares.orders", f"bad-{len(self.bad)}", range(_ROWS), -1.0))

    def _put(self, table: str, name: str, ids: range, amount: float) -> LandedObject:
        format_, body = _TABLES[table], BytesIO()
        if format_ == "csv":
            body.write("".join(["id,amount\n", *(f"{id_},{amount}\n" for id_ in ids)]).encode())
        else:
            pq.write_table(pa.table({"id": list(ids), "amount": [amount] * len(ids)}), body)
        return self.gate.drop(f"{table.replace('.', '/')}/{name}.{format_}", body.getvalue())

    def ended(self, landed: LandedObject) -> Ingestion | None:
        """Return its ingestion once nothing is due for it any more, else None."""
        found = self.gate.adapters.ledger.known([id_ := ingestion_id(landed)])
        ingestion = self.gate.adapters.ledger.get(id_) if found else None
        return ingestion if ingestion and ingestion.ended and not ingestion.unfinished else None

    def has_report(self, landed: LandedObject) -> bool:
        """Return whether the report of its first attempt exists."""
        ingestion = self.gate.adapters.ledger.get(ingestion_id(landed))
        try:
            self.gate.adapters.lake.report(report_key(ingestion.table, ingestion.id, 1))
        except Missing:
            return False
        return True

    def on_branch(self, branch: str) -> list[LandedObject]:
        """Return the good files that have not ended and whose rows are on a branch."""
        table = branch.split("/")[1]
        rows = {id_ for id_, _ in self.gate.rows(table, branch)}
        files = [landed for landed, ids in self.good.items() if rows.issuperset(ids)]
        return [landed for landed in files if not self.ended(landed)]

    def ends(self) -> dict[LandedObject, Ingestion]:
        """Return all ingestions at their ends."""

        def over() -> dict[LandedObject, Ingestion] | None:
            found = {landed: self.ended(landed) for landed in (*self.good, *self.bad)}
            done = {landed: ingestion for landed, ingestion in found.items() if ingestion}
            return done if len(done) == len(found) else None

        return eventually(over, _PATIENCE, "not all files have ended", 0.5)


@dataclass(frozen=True)
class Stopped:
    """Runs that are stopped, and files of theirs that are committed on a branch for no report."""

    runs: list[int]
    files: list[LandedObject]


@pytest.fixture
def landings(gate: Gate) -> Landings:
    """Return the landings of a stack whose shared run has published into both tables."""
    for table, format_ in _TABLES.items():
        gate.put_contract(contract(table, format_, "shared"))
    landings = Landings(gate)
    landings.drop()
    landings.ends()
    return landings


def test_runs_that_die_or_hang_lose_and_double_no_row(landings: Landings) -> None:
    """Each good file's rows are on main once; each bad file has its branch and its alert."""
    gate = landings.gate
    landings.drop()
    eventually(lambda: _in_hand(gate), _PATIENCE, "no run takes the files", _PAUSE)
    _send(signal.SIGKILL, _runs(gate))
    _send(signal.SIGKILL, _stopped_before_its_message(landings).runs)
    hung = _stopped_before_its_message(landings)
    _start_another_run(gate)
    late = "nobody takes the files of the run that hangs"
    eventually(lambda: any(map(landings.ended, hung.files)), _PATIENCE, late, _PAUSE)
    _send(signal.SIGCONT, hung.runs)
    landings.ends()
    _send(signal.SIGKILL, set(_runs(gate)) - set(hung.runs))
    landings.drop()  # for the run that hung, which has sent its late message before it takes these
    _check(landings)


def _check(landings: Landings) -> None:
    gate, ends = landings.gate, landings.ends()
    for table in _TABLES:
        rows = [row for k, rows in landings.good.items() if ends[k].table == table for row in rows]
        assert [id_ for id_, _ in gate.rows(table)] == sorted(rows)
        kept = gate.adapters.catalog.branches(f"ingest/{table}/", f"publish/{table}/")
        kept = [name for name in kept if "/group-" not in name]  # which expire
        assert set(kept) <= {ends[landed].branch for landed in landings.bad}
    for landed in landings.good:
        assert ends[landed].state is State.PUBLISHED
        assert not gate.alerts(ends[landed])
    for landed in landings.bad:
        assert ends[landed].state is State.REJECTED
        assert gate.alerts(ends[landed])
        assert -1.0 in [amount for _, amount in gate.rows(ends[landed].table, ends[landed].branch)]


def _stopped_before_its_message(landings: Landings) -> Stopped:
    """Drop files; stop the run that has a group's commit but has not written all its reports.

    The runs are stopped until the files wait, so that one takes them together.
    """
    gate = landings.gate
    for _ in range(_MOST_TRIES):
        before = set(_group_branches(gate))
        _send(signal.SIGSTOP, waiting := _runs(gate))
        landings.drop()
        eventually(
            lambda: gate.adapters.work.size() > len(_TABLES) * _FILES, _PATIENCE, "none waits"
        )
        _send(signal.SIGCONT, waiting)
        late = "no group is committed"
        branch = eventually(lambda: _committed(gate, before), _PATIENCE, late, _PAUSE)  # noqa: B023
        _send(signal.SIGSTOP, runs := _runs(gate))
        stopped = Stopped(runs, landings.on_branch(branch))
        if not all(map(landings.has_report, stopped.files)):
            return stopped
        _send(signal.SIGCONT, runs)
    pytest.fail(f"no run was stopped in time in {_MOST_TRIES} tries")


def _group_branches(gate: Gate) -> list[str]:
    return gate.adapters.catalog.branches(*(f"ingest/{table}/group-" for table in _TABLES))


def _committed(gate: Gate, before: set[str]) -> str:
    """Return a group's branch that is new and has a commit of its own, "" without one."""
    for name in set(_group_branches(gate)) - before:
        try:
            head = gate.adapters.catalog.head(name)
        except UnknownBranch:
            continue
        if head not in {commit.hash for commit in islice(gate.adapters.catalog.log(), _RECENT)}:
            return name
    return ""


def _in_hand(gate: Gate) -> bool:
    """Return whether a run has taken files from the work queue."""
    count = "ApproximateNumberOfMessagesNotVisible"
    found = boto3.client("sqs").get_queue_attributes(
        QueueUrl=gate.adapters.settings.work_queue, AttributeNames=[count]
    )
    return int(found["Attributes"][count]) > 0


def _runs(gate: Gate) -> list[int]:
    """Return the processes of all job runs."""
    return [spark["run"] for spark in sparks(gate) if "run" in spark]


def _send(signal_: signal.Signals, processes: Iterable[int]) -> None:
    for process in processes:
        os.kill(process, signal_)


def _start_another_run(gate: Gate) -> None:
    """Start a shared run beside the slot's one, which nobody can tell from a busy one."""
    gate.adapters.jobs.start_shared(input_of("shared-another", (), gate.adapters.settings))
