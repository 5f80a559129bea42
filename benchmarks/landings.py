"""Land many files in a running stack, and measure their way to main."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyiceberg.catalog.rest import RestCatalog

from benchmarks.small_files import Kind
from functions.model import steps
from functions.model.ingestion import Ingestion, State
from lakegate.job.landing import LandedObject, ingestion_id
from tests.e2e.conftest import Gate, started
from tests.waiting import eventually

_UPLOADERS = 8
_LOOK = 100  # ingestions that one read of the ledger returns
_PAUSE = 0.5
_PATIENCE = 600.0
_PATIENCE_A_FILE = 2.0
Drop = Callable[[], Sequence[LandedObject]]
_WARM_UP = Kind("bench.warm", "parquet", 900)


@dataclass(frozen=True)
class Figures:
    """What became of files that landed together.

    `judged` are the files that the audit accepted or rejected, `again` the attempts beyond each
    file's first, `job_runs` the runs that were up or started meanwhile. `seconds` are those from
    the first drop to the last publish, `seconds_to_end` those to the last final state;
    `dropping` are the seconds that the uploads took.
    """

    files: int
    judged: int
    states: Mapping[str, int]
    again: int
    job_runs: int
    commits: int
    dropping: float
    seconds: float
    seconds_to_end: float
    p50: float
    p95: float

    @property
    def a_file(self) -> float:
        """Return the seconds to the last publish, for each published file."""
        return self.seconds / max(1, self.states.get(State.PUBLISHED, 0))

    def told(self) -> dict[str, object]:
        """Return the figures for a report."""
        return {**asdict(self), "seconds_a_file": self.a_file}


def figures(began: datetime, dropping: float, ended: Sequence[Ingestion], job_runs: int) -> Figures:
    """Return the figures of ingestions that ended, by the ledger's times."""
    states = Counter(each.state.value for each in ended)
    published = [each for each in ended if each.state is State.PUBLISHED]
    latencies = waits(published)
    return Figures(
        files=len(ended),
        judged=states[State.PUBLISHED] + states[State.REJECTED],
        states=dict(states),
        again=sum(each.attempt - 1 for each in ended),
        job_runs=job_runs,
        commits=len({each.merge_hash for each in published}),
        dropping=dropping,
        seconds=_longest(began, [each.times["published"] for each in published]),
        seconds_to_end=_longest(began, [each.ended_at for each in ended]),
        p50=percentile(latencies, 0.5),
        p95=percentile(latencies, 0.95),
    )


def waits(published: Sequence[Ingestion]) -> list[float]:
    """Return the seconds of each file from landing to main."""
    return [
        (_moment(each.times["published"]) - _moment(each.landed.landed_at)).total_seconds()
        for each in published
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all do not exceed; NaN if there are none."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else math.nan


def _longest(began: datetime, ends: Sequence[str]) -> float:
    return max(((_moment(end) - began).total_seconds() for end in ends), default=math.nan)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@contextmanager
def warm(home: Path) -> Iterator[Gate]:
    """Yield a local stack of its own, in which a shared run waits for files."""
    with started(home) as gate:
        gate.put_contract(_WARM_UP.contract)
        at_once(gate, _WARM_UP, 2)
        at_once(gate, _WARM_UP, 2, first=2)  # into a table that exists
        yield gate


def at_once(gate: Gate, kind: Kind, files: int, first: int = 0) -> Figures:
    """Land files of one kind as quickly as possible; return their figures once all have ended.

    Main must have exactly the good files' rows then, and the table no other files. Raises
    SystemExit.
    """
    gate.put_contract(kind.contract)
    found, _ = measured(gate, dropped_at_once(gate, kind, range(first, first + files)))
    check_rows(gate, kind, first + files)
    return found


def dropped_at_once(gate: Gate, kind: Kind, numbers: range) -> Drop:
    """Return what drops these files of a kind as quickly as possible; they are made before."""
    bodies = {kind.key(number): kind.body(number) for number in numbers}

    def drop() -> list[LandedObject]:
        with ThreadPoolExecutor(_UPLOADERS) as uploaders:
            return list(uploaders.map(gate.drop, bodies.keys(), bodies.values()))

    return drop


def each_second(seconds: int) -> Iterator[int]:
    """Yield so many numbers from 0 on, one a second; one that is late comes at once."""
    began = time.monotonic()
    for second in range(seconds):
        time.sleep(max(0.0, began + second - time.monotonic()))
        yield second


def measured(gate: Gate, drop: Drop) -> tuple[Figures, list[Ingestion]]:
    """Land files; return their figures, and their ingestions once all have ended."""
    ended_before = {run.id for run in gate.adapters.jobs.runs() if run.has_ended}
    began, clock = datetime.now(UTC), time.perf_counter()
    landed = drop()
    dropping = time.perf_counter() - clock
    ended = _ended(gate, [ingestion_id(each) for each in landed])
    runs = {run.id for run in gate.adapters.jobs.runs()} - ended_before
    return figures(began, dropping, ended, len(runs)), ended


def check_rows(gate: Gate, kind: Kind, files: int) -> None:
    """Raise SystemExit unless main has each row of the good ones among so many files once."""
    found, wanted = rows_on_main(gate, kind.table), kind.good_rows(files)
    if found != wanted:
        raise SystemExit(f"{kind.table} has {found} rows on main instead of {wanted}")


def rows_on_main(gate: Gate, table: str) -> int:
    """Return how many rows a table has, by its snapshot's summary."""
    snapshot = main(gate.stack.nessie, gate.stack.reader_token).load_table(table).current_snapshot()
    return int(snapshot.summary["total-records"]) if snapshot and snapshot.summary else 0


def main(nessie: str, token: str) -> RestCatalog:
    """Return the Iceberg catalog of a Nessie at main, with the rights of a token."""
    return RestCatalog(
        "lake",
        uri=f"{nessie}/iceberg/main",
        token=token,
        **{"s3.access-key-id": "test", "s3.secret-access-key": "test"},
    )


@dataclass
class _Remaining:
    """The files that have not ended, of which each look reads only the first ones."""

    gate: Gate
    ids: list[str]
    ended: list[Ingestion] = field(default_factory=list)

    def look(self) -> bool:
        """Move those that ended; return whether all have."""
        while self.ids:
            found = self.gate.adapters.ledger.together(self.ids[:_LOOK])
            done = {each.id: each for each in found if each.ended and not steps.unfinished(each)}
            self.ended += done.values()
            self.ids = [id_ for id_ in self.ids if id_ not in done]
            if len(done) < _LOOK:
                break
        return not self.ids


def _ended(gate: Gate, ids: Sequence[str]) -> list[Ingestion]:
    remaining = _Remaining(gate, list(ids))
    patience = _PATIENCE + _PATIENCE_A_FILE * len(ids)
    eventually(remaining.look, patience, "not all files have ended", _PAUSE)
    return remaining.ended
