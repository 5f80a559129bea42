"""Parts killed with kill -9 in the middle of the work: every file ends correctly, once on main.

Each process of this machine is killed at an observed moment. The local S3, DynamoDB and SQS keep
everything that they have acknowledged, as AWS does. A kill takes the events of the last two
seconds: the sweep has to replace them. `make test-long` kills more processes at more moments.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from functions.adapters.ledger.reads import UnknownIngestion
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Missing
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from infra.local.parts import NAMES
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import Gate, contract, started
from tests.e2e.killing import (
    calm,
    freeze,
    frozen,
    kill,
    request_waits,
    spark,
    start,
    sweep,
    sweep_grace,
    sweeping,
    up,
)
from tests.fakes.amounts import WHOLE_MATRIX
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]  # on a busy machine

_PATIENCE = 900  # a file may have to wait for all others that were dropped, and for a new Spark
_GRACE_SECONDS = 2
_MOST_TRIES = 5
_SECONDS_BETWEEN_SWEEPS = 1  # more often they would only hold up what they wait for
_SECONDS_BETWEEN_SWEEPS_AT_KILLS = 3  # leaves the files' own events most of the time
_WAY = tuple(State)
_PAUSE = 0.05  # between two looks for the moment of a kill
_MANY = 500_000  # more than any other file has
_BUCKETS = 64  # data files of one landed file: it takes a while from the first to the commit


@dataclass
class Case:
    """One table, and the files that were dropped for it."""

    gate: Gate
    table: str
    files: dict[LandedObject, pa.Table] = field(default_factory=dict)

    def drop(self, count: int = 100) -> LandedObject:
        """Drop a file with rows of its own."""
        number = len(self.files)
        rows = _rows(first=number * _MANY, count=count)
        body = BytesIO()
        pq.write_table(rows, body, compression="none", use_dictionary=False)
        landed = self.gate.drop(f"{self.table.replace('.', '/')}/{number}.parquet", body.getvalue())
        self.files[landed] = rows
        return landed

    def look(self, landed: LandedObject) -> Ingestion | None:
        """Return the file's ingestion, or None while the ledger does not have it."""
        try:
            return self.gate.adapters.ledger.get(ingestion_id(landed))
        except UnknownIngestion:
            return None

    def reaches(self, landed: LandedObject, state: State) -> Ingestion:
        """Wait until the file is in that state, or a later one."""

        def there() -> Ingestion | None:
            found = self.look(landed)
            return found if found and _WAY.index(found.state) >= _WAY.index(state) else None

        return eventually(there, _PATIENCE, f"{landed.key} is never {state}", _PAUSE)

    def head(self) -> str:
        """Return main's hash."""
        return self.gate.adapters.catalog.head(MAIN)

    def data_files(self) -> int:
        """Return the number of the table's data files in the lake."""
        prefix = f"warehouse/{self.table.replace('.', '/')}_"
        found = boto3.client("s3").list_objects_v2(
            Bucket=self.gate.stack.lake_bucket, Prefix=prefix
        )
        return sum("/data/" in each["Key"] for each in found.get("Contents", []))

    def ends(self) -> dict[LandedObject, Ingestion]:
        """Return all ingestions once nothing is due any more; meanwhile sweep often."""

        def over() -> dict[LandedObject, Ingestion] | None:
            found = {landed: self.look(landed) for landed in self.files}
            done = {k: i for k, i in found.items() if i and i.ended and not steps.unfinished(i)}
            if len(done) == len(found):
                return done
            sweep(self.gate)
            return None

        late = f"not all files for {self.table} have ended"
        return eventually(over, _PATIENCE, late, _SECONDS_BETWEEN_SWEEPS)

    def check(self) -> dict[LandedObject, Ingestion]:
        """Assert that main has each published row once and that all other files were alerted."""
        ends = self.ends()
        published = {k for k, i in ends.items() if i.state is State.PUBLISHED}
        _assert_same(self.gate.table(self.table), [self.files[landed] for landed in published])
        # The alert queue delivers again what a killed part had received.
        alerted = ends.keys() - published
        late = f"not all failed files for {self.table} are alerted"
        eventually(lambda: all(self.gate.alerts(ends[k]) for k in alerted), _PATIENCE, late, _PAUSE)
        assert not any(self.gate.alerts(ends[k]) for k in published)
        left = self.gate.adapters.catalog.branches("")
        left = [name for name in left if f"/{self.table}/" in name]
        assert set(left) <= {ends[landed].branch for landed in alerted}
        return ends


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """Yield a stack that no other test shares, which need not recover from these kills."""
    with started(tmp_path_factory.mktemp("killed")) as gate:
        yield gate


@pytest.fixture(scope="module", autouse=True)
def hasty(gate: Gate) -> Iterator[None]:
    with sweep_grace(gate, _GRACE_SECONDS):
        yield


@pytest.fixture
def case(gate: Gate, request: pytest.FixtureRequest) -> Case:
    name = "".join(c if c.isalnum() else "_" for c in request.node.name.removeprefix("test_"))
    table = f"kill.{name.strip('_')}"
    gate.put_contract(contract(table, "parquet", "own"))
    return Case(gate, table)


# tests/spark/test_spark_driver.py: the driver tells the death of its run or JVM as a failed run.
@pytest.mark.parametrize("victim", ["driver", "run", "jvm"] if WHOLE_MATRIX else ["driver"])
def test_spark_is_killed_in_a_write(case: Case, victim: str) -> None:
    """A job runs again if it dies after it wrote data files, during their commit."""
    case.gate.put_contract(_in_buckets(contract(case.table, "parquet", "own")))
    for _ in range(_MOST_TRIES):  # a quick job is done before the kill
        ended = _killed_in_a_write(case, victim)
        assert ended.state is State.PUBLISHED
        if ended.attempt > 1:
            assert ended.attempt == 2
            return
    pytest.fail(f"no job was killed in {_MOST_TRIES} tries")


def _killed_in_a_write(case: Case, victim: str) -> Ingestion:
    """Kill Spark while a commit of a job waits for Nessie; return the ingestion at its end."""
    calm(case.gate)
    before = case.data_files()
    landed = case.drop(_MANY)
    eventually(lambda: case.data_files() > before, _PATIENCE, "no data file was written", _PAUSE)
    with frozen(case.gate, "nessie"):
        eventually(lambda: request_waits(case.gate, "nessie"), _PATIENCE, "nothing is committed")
        if pid := spark(case.gate).get(victim):
            with suppress(ProcessLookupError):  # a quick job ended in between
                os.kill(pid, signal.SIGKILL)
    return case.check()[landed]


def test_nessie_is_killed_at_merges(case: Case) -> None:
    """Every file is published once although Nessie dies before, during and after merges.

    This includes a file that lands while Nessie is down.
    """
    for moment in (_merge_is_asked_for, _audited, _merged, _published):
        moment(case)
        kill(case.gate, "nessie")
        if moment is _published:
            case.reaches(case.drop(), State.LANDED)
        start(case.gate, "nessie")
        case.ends()  # a file whose job fails in two outages is given up, and alerted
    assert {i.state for i in case.check().values()} == {State.PUBLISHED}


def test_the_runner_is_killed_anywhere(case: Case) -> None:
    """`lakegate up` recovers from the death of any part of the local runner during an ingestion.

    Main keeps each commit made before a kill.
    """
    heads = []
    with sweeping(case.gate, _SECONDS_BETWEEN_SWEEPS_AT_KILLS):
        for moment, victims in _ANYWHERE + (_ELSEWHERE if WHOLE_MATRIX else ()):
            moment(case)
            heads.append(case.head())
            kill(case.gate, *victims)
            up(case.gate)
    assert State.PUBLISHED in {i.state for i in case.check().values()}
    assert set(heads) <= {commit.hash for commit in case.gate.adapters.catalog.log()}


def _under_way(case: Case) -> None:
    """Bring three files to their states: data written, job waiting, just landed."""
    before = case.data_files()
    case.drop()
    waiting = case.drop()
    eventually(lambda: case.data_files() > before, _PATIENCE, "no data file was written", _PAUSE)
    case.reaches(waiting, State.SUBMITTED)
    case.drop()


def _merge_is_asked_for(case: Case) -> None:
    """Wait until Nessie has received the request to merge, without having read it."""
    landed = case.drop()
    report = case.reaches(landed, State.SUBMITTED).report_key
    lake = case.gate.adapters.lake
    eventually(lambda: _is_there(lambda: lake.report(report)), _PATIENCE, "no report", _PAUSE)
    freeze(case.gate, "nessie")
    case.reaches(landed, State.AUDITED)
    eventually(lambda: request_waits(case.gate, "nessie"), _PATIENCE, "nothing is merged")


def _audited(case: Case) -> None:
    case.drop()
    case.reaches(case.drop(), State.AUDITED)


def _merged(case: Case) -> None:
    before = case.head()
    case.drop()
    case.drop()
    eventually(lambda: case.head() != before, _PATIENCE, "nothing was merged", _PAUSE)


def _published(case: Case) -> None:
    case.drop()
    case.reaches(case.drop(), State.PUBLISHED)


_Kill = tuple[Callable[[Case], None], tuple[str, ...]]
_ANYWHERE: tuple[_Kill, ...] = (
    (_under_way, ("emr",)),
    (_audited, ("ministack",)),
    (_merged, NAMES),
)
_ELSEWHERE: tuple[_Kill, ...] = (
    (_under_way, ("ministack",)),
    (_published, ("ministack",)),
)


def _is_there(read: Callable[[], object]) -> bool:
    try:
        read()
    except Missing:
        return False
    return True


def _in_buckets(text: str) -> str:
    """Return a contract whose table keeps the rows of one landed file in many data files."""
    found = yaml.safe_load(text)
    transform = {"property": "partitionTransform", "value": f"bucket[{_BUCKETS}]"}
    found["schema"][0]["properties"][0] |= {
        "partitioned": True,
        "partitionKeyPosition": 1,
        "customProperties": [transform],
    }
    return yaml.safe_dump(found)


def _rows(first: int, count: int) -> pa.Table:
    chance = np.random.default_rng(first)
    ids = first + chance.permutation(count)
    return pa.table({"id": ids, "amount": chance.integers(0, 100 * 1024, count) / 1024})


def _assert_same(found: pa.Table, files: list[pa.Table]) -> None:
    wanted = pa.concat_tables(files).sort_by("id")
    assert found.num_rows == wanted.num_rows
    found = found.sort_by("id")
    for name in wanted.column_names:
        assert found[name].to_numpy().tolist() == wanted[name].to_numpy().tolist()
