"""A shared run's queues, files and clock in memory, for its loop alone."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from typing import Any

from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import report_key
from lakegate.job.shared_run import SharedRun, Turn
from spark_jobs.shared.serve import Clock, serve
from tests.fakes.work_queue import FakeQueues, FakeSeconds
from tests.unit.lakegate.test_jobspec import SPEC

RUN = SharedRun("run-1", "work", "verdicts", "lake", "http://nessie", "secret", 60, 120)


class Died(Exception):
    """The end of a run's process."""


def spec_of(number: int, table: str = "shop.orders", **other: Any) -> JobSpec:
    """Return the job spec of a file."""
    id_ = f"{number:032x}"
    made = replace(SPEC, ingestion=id_, attempt=1, table=table, branch="", base_hash="")
    return replace(made, report_key=report_key(table, id_, 1), **other)


@dataclass
class FakeFiles:
    """The lake of several runs: `odd` files do not pass together, `deadly` ones end the process.

    Code of `leaving` files ends as a program does. For `hopeless` ones there can be no report.
    `failures` are the numbers of calls that fail, by ingestion, as storage is not there. `outage`
    are the seconds between which Nessie does not answer; `looked_up` how many reports were sought.
    """

    clock: FakeSeconds = field(default_factory=FakeSeconds)

    odd: set[str] = field(default_factory=set)
    deadly: set[str] = field(default_factory=set)
    hopeless: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)
    markers: set[str] = field(default_factory=set)
    groups: list[list[str]] = field(default_factory=list)
    lasts: float = inf
    meanwhile: Callable[[], object] = lambda: None
    outage: tuple[float, float] = (inf, inf)
    looked_up: int = 0

    def seconds_left(self) -> float:
        self._reach_nessie()
        return self.lasts

    def reported(self, specs: Sequence[JobSpec]) -> set[str]:
        self.looked_up += len(specs)
        found = [spec for spec in specs if spec.report_key in self.reports]
        return {spec.name for spec in found}

    def is_marked(self, spec: JobSpec) -> bool:
        return spec.report_key in self.markers

    def mark(self, spec: JobSpec) -> None:
        self.markers.add(spec.report_key)

    def unmark(self, spec: JobSpec) -> None:
        self.markers.remove(spec.report_key)

    def ingest_together(self, specs: Sequence[JobSpec]) -> set[str]:
        self._begin(specs)
        return self._pass([spec for spec in specs if spec.ingestion not in self.odd])

    def ingest_in_order(self, specs: Sequence[JobSpec]) -> set[str]:
        self._begin(specs)
        return self._pass(list(takewhile(lambda spec: spec.ingestion not in self.odd, specs)))

    def _begin(self, specs: Sequence[JobSpec]) -> None:
        self.groups.append([spec.ingestion for spec in specs])
        self.meanwhile()
        self._reach_nessie()
        self._fail(specs)
        if any(spec.ingestion in self.deadly for spec in specs):
            raise RuntimeError("Spark cannot")
        if any(spec.ingestion in self.leaving for spec in specs):
            raise SystemExit(1)

    def _pass(self, specs: Sequence[JobSpec]) -> set[str]:
        self.reports += [spec.report_key for spec in specs]
        return {spec.name for spec in specs}

    def ingest_alone(self, spec: JobSpec) -> None:
        self.meanwhile()
        self._reach_nessie()
        self._fail([spec])
        if spec.ingestion in self.deadly:
            raise Died
        if spec.ingestion in self.hopeless:
            raise Permanent("UNFORESEEN", "KeyError")
        self.reports.append(spec.report_key)

    def _reach_nessie(self) -> None:
        if self.outage[0] <= self.clock.at < self.outage[1]:
            raise Transient("CATALOG_UNAVAILABLE", "Nessie did not respond")

    def _fail(self, specs: Sequence[JobSpec]) -> None:
        for spec in specs:
            if self.failures[spec.ingestion] > 0:
                self.failures[spec.ingestion] -= 1
                raise Transient("STORAGE_UNAVAILABLE", "S3 did not answer")


@dataclass
class World:
    """Queues, files and clock of a test."""

    clock: FakeSeconds = field(default_factory=FakeSeconds)
    files: FakeFiles = field(default_factory=FakeFiles)

    def __post_init__(self) -> None:
        self.queues = FakeQueues(self.clock)
        self.files.clock = self.clock

    def put(self, *specs: JobSpec) -> None:
        for spec in specs:
            self.queues.put(spec.to_argument())

    def serve(self, run: SharedRun = RUN, pause: float = 3600.0) -> None:
        serve(run, self.queues, self.files, Clock(self.clock.now, self.clock.wait), pause)

    def put_turn(self, *specs: JobSpec) -> None:
        self.queues.put(Turn(specs).to_argument())

    @property
    def named(self) -> list[str]:
        """Return the keys of all reports that were named."""
        return [key for judged in self.queues.judged for key in judged.reports]

    @property
    def alone(self) -> list[str]:
        return [name for judged in self.queues.judged for name in judged.alone]

    @property
    def again(self) -> list[str]:
        """Return the names of all attempts that wait for a later turn."""
        return [name for judged in self.queues.judged for name in judged.again]
