"""Shared runs that die or hang with files in hand: every file ends, each good row is on main once.

What a run had in hand comes again half a minute after it died. So three moments overlap: two runs
are killed, and a third is stopped until another one has done its files, and then goes on. That is
so for tables whose files come together in any order, and for those whose files take turns.
"""

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from functions.adapters.nessie import UnknownBranch
from functions.adapters.s3 import Missing
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from functions.pipeline.start.shared_runs import input_of
from lakegate.job.landing import LandedObject, ingestion_id, report_key
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
_TOGETHER = {"shares.orders": "parquet", "shares.returns": "csv"}
_UPSERTED = "shares.clients"
_IN_TURNS = {_UPSERTED: "parquet", "shares.invoices": "csv"}
_SAME = -1  # the id of a row that is in every file for the upserted table
_FILES, _ROWS = 5, 3  # files of each table at once, rows of each
_MOST_TRIES = 5
_RECENT = 20  # commits of main, of which a new branch has the newest


@dataclass
class Landings:
    """Files that landed for two tables: the rows of the good ones, and those that must fail."""

    gate: Gate
    tables: Mapping[str, str]
    good: dict[LandedObject, range] = field(default_factory=dict)
    bad: list[LandedObject] = field(default_factory=list)

    def drop(self) -> None:
        """Drop good files for both tables, and a bad one after them for the first."""
        for _ in range(_FILES):
            for table in self.tables:
                number = len(self.good)
                ids = range(number * _ROWS, (number + 1) * _ROWS)
                self.good[self._put(table, f"good-{number}", ids, amount_of(number))] = ids
        first = next(iter(self.tables))
        self.bad.append(self._put(first, f"bad-{len(self.bad)}", range(_ROWS), -1.0))

    def _put(self, table: str, name: str, own: range, amount: float) -> LandedObject:
        format_, body = self.tables[table], BytesIO()
        ids = [*own, _SAME] if table == _UPSERTED else list(own)
        if format_ == "csv":
            body.write("".join(["id,amount\n", *(f"{id_},{amount}\n" for id_ in ids)]).encode())
        else:
            pq.write_table(pa.table({"id": ids, "amount": [amount] * len(ids)}), body)
        return self.gate.drop(f"{table.replace('.', '/')}/{name}.{format_}", body.getvalue())

    def ended(self, landed: LandedObject) -> Ingestion | None:
        """Return its ingestion once nothing is due for it any more, else None."""
        found = self.gate.adapters.ledger.known([id_ := ingestion_id(landed)])
        ingestion = self.gate.adapters.ledger.get(id_) if found else None
        return None if ingestion is None or steps.unfinished(ingestion) else ingestion

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


def amount_of(number: int) -> float:
    """Return the amount in all rows of the file with this number."""
    return float(number % 100)


@pytest.fixture(params=[_TOGETHER, _IN_TURNS], ids=["together", "in turns"])
def landings(gate: Gate, request: pytest.FixtureRequest) -> Landings:
    """Return the landings of a stack whose shared run has published into both tables."""
    for table, format_ in request.param.items():
        gate.put_contract(_agreed(table, format_))
    landings = Landings(gate, request.param)
    landings.drop()
    landings.ends()
    return landings


def _agreed(table: str, format_: str) -> str:
    """Return a table's contract; one in turns has a key to upsert by, or that must be new."""
    agreed = contract(table, format_, "shared")
    if table in _TOGETHER:
        return agreed
    if table == _UPSERTED:
        by_key = agreed.replace("unique: true", "primaryKey: true")
        return by_key.replace(
            "customProperties:", "customProperties:\n  - {property: writeMode, value: upsert}"
        )
    new = (
        "{metric: duplicateValues, mustBe: 0, customProperties: [{property: scope, value: table}]}"
    )
    return agreed.replace("unique: true", f"quality: [{new}]")


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
    for table in landings.tables:
        rows = [row for k, rows in landings.good.items() if ends[k].table == table for row in rows]
        on_main = dict(gate.rows(table))
        assert on_main.pop(_SAME, None) == (_last(landings) if table == _UPSERTED else None)
        assert list(on_main) == sorted(rows) == [id_ for id_, _ in gate.rows(table) if id_ >= 0]
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


def _last(landings: Landings) -> float:
    """Return the amount in the last good file for the upserted table."""
    numbers = (
        n for n, each in enumerate(landings.good) if f"/{_UPSERTED.partition('.')[2]}/" in each.key
    )
    return amount_of(max(numbers))


def _stopped_before_its_message(landings: Landings) -> Stopped:
    """Drop files; stop the run that has a group's commit but has not written all its reports.

    The runs are stopped until the files wait, so that one takes them together.
    """
    gate = landings.gate
    for _ in range(_MOST_TRIES):
        before = set(_group_branches(landings))
        _send(signal.SIGSTOP, waiting := _runs(gate))
        landings.drop()
        wait = len(landings.tables) * (_FILES if landings.tables == _TOGETHER else 1)
        eventually(lambda: gate.adapters.work.size() >= wait, _PATIENCE, "none waits")  # noqa: B023
        _send(signal.SIGCONT, waiting)
        late = "no group is committed"
        branch = eventually(lambda: _committed(landings, before), _PATIENCE, late, _PAUSE)  # noqa: B023
        _send(signal.SIGSTOP, runs := _runs(gate))
        stopped = Stopped(runs, landings.on_branch(branch))
        if not all(map(landings.has_report, stopped.files)):
            return stopped
        _send(signal.SIGCONT, runs)
    pytest.fail(f"no run was stopped in time in {_MOST_TRIES} tries")


def _group_branches(landings: Landings) -> list[str]:
    groups = (f"ingest/{table}/group-" for table in landings.tables)
    return landings.gate.adapters.catalog.branches(*groups)


def _committed(landings: Landings, before: set[str]) -> str:
    """Return a group's branch that is new and has a commit of its own, "" without one."""
    gate = landings.gate
    for name in set(_group_branches(landings)) - before:
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
        with suppress(ProcessLookupError):  # its time was over
            os.kill(process, signal_)


def _start_another_run(gate: Gate) -> None:
    """Start a shared run beside the slot's one, which nobody can tell from a busy one."""
    gate.adapters.jobs.start(input_of("shared-another", (), gate.adapters.settings))
