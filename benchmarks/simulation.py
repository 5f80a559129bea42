"""Simulate files on their path through queues and limits, by discrete events (SimPy).

Arrivals -> upload queue -> on_upload -> EMR Serverless -> job-run queue -> on_job_run -> main.
Nessie and StartJobRun only have a rate: each is a server that takes one request after the other.
Two publishers of one table take turns here; the real ones race, and one repeats its work.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

import simpy

from benchmarks.parameters import ITEM, MOST_TOGETHER, Aws, Load, Settings, Steps

Process = Generator[simpy.Event, Any, None]
Vary = Callable[[random.Random, float], float]

_SPREAD = 0.3


class Stage(StrEnum):
    """A file's place on its path."""

    UPLOADED = "upload queue"
    STARTED = "job runs"
    ENDED = "publishing"
    PUBLISHED = "published"


@dataclass(eq=False)
class File:
    """A landed file and when it reached main; times are seconds since the start."""

    table: int
    landed: float
    branched: float = 0.0
    stage: Stage = Stage.UPLOADED
    published: float = 0.0


@dataclass(eq=False)
class Message:
    """The files of one message, and how often its handling failed."""

    files: Sequence[File]
    received: int = 0


@dataclass
class Outcome:
    """Every file, and how many job runs, commits on main and dead letters there were."""

    files: list[File] = field(default_factory=list)
    runs: int = 0
    commits: int = 0
    dead: int = 0

    @property
    def latencies(self) -> list[float]:
        """Return the seconds from landing to main of all published files, sorted."""
        done = (f for f in self.files if f.stage is Stage.PUBLISHED)
        return sorted(f.published - f.landed for f in done)


class Queue:
    """A queue whose messages are taken in batches."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env, self._messages = env, deque[Message]()
        self._waiting: deque[simpy.Event] = deque()

    def put(self, message: Message) -> None:
        """Add a message."""
        self._messages.append(message)
        if self._waiting:
            self._waiting.popleft().succeed()

    def take(self, most: int) -> Generator[simpy.Event, Any, list[Message]]:
        """Take the messages that wait longest, at most so many; wait for the first one."""
        while not self._messages:
            arrival = self._env.event()
            self._waiting.append(arrival)
            yield arrival
        return [self._messages.popleft() for _ in range(min(most, len(self._messages)))]


class Server:
    """A server that takes one request after the other, each for a known time."""

    def __init__(self, env: simpy.Environment, speed: float = 1.0) -> None:
        self._env, self._speed, self._free_at = env, speed, 0.0

    def serve(self, seconds: float) -> simpy.Event:
        """Return the event of the request's end, after all that came before it."""
        self._free_at = max(self._env.now, self._free_at) + seconds / self._speed
        return self._env.timeout(self._free_at - self._env.now)


def lognormal(rng: random.Random, mean: float) -> float:
    """Return a varied time: seldom much shorter, at times much longer."""
    return mean * rng.lognormvariate(-(_SPREAD**2) / 2, _SPREAD)


def simulate(
    load: Load,
    settings: Settings = Settings(),  # noqa: B008  a frozen value
    steps: Steps = Steps(),  # noqa: B008
    aws: Aws = Aws(),  # noqa: B008
    seed: int = 1,
    until: float | None = None,
    vary: Vary = lognormal,
) -> Outcome:
    """Simulate files that land for the load's minutes; a seed always gives the same outcome.

    It ends after `until` seconds, by default when the last file has landed.
    """
    gate = _Gate(load, settings, steps, aws, random.Random(seed), vary)  # noqa: S311
    gate.start()
    gate.env.run(until=load.minutes * 60 if until is None else until)
    return gate.outcome


class _Gate:
    """All parts of the deployment and the files in them."""

    def __init__(
        self, load: Load, settings: Settings, steps: Steps, aws: Aws, rng: random.Random, vary: Vary
    ) -> None:
        self.env, self.outcome = simpy.Environment(), Outcome()
        self._load, self._set, self._steps, self._aws = load, settings, steps, aws
        self._rng, self._vary = rng, vary
        self._uploads, self._ended = Queue(self.env), Queue(self.env)
        self._nessie = Server(self.env, settings.nessie)
        self._api = Server(self.env)
        self._lambdas = simpy.Resource(self.env, aws.lambdas)
        self._runs = simpy.Resource(self.env, settings.at_once(aws))
        self._warm = settings.warm_runs
        self._gathered: defaultdict[int, list[File]] = defaultdict(list)
        self._waiting: defaultdict[int, dict[File, None]] = defaultdict(dict)
        self._moved: defaultdict[int, float] = defaultdict(lambda: -1.0)
        self._turn: dict[int, simpy.Resource] = {}
        self._recording = simpy.Resource(self.env, 1)

    def start(self) -> None:
        """Start the functions and the arrivals."""
        work = [
            (self._uploads, self._set.upload_batch, self._on_upload, self._set.upload_lambdas),
            (self._ended, self._set.run_batch, self._on_job_run, self._set.run_lambdas),
        ]
        for queue, batch, function, at_once in work:
            for _ in range(at_once):
                self.env.process(self._function(queue, batch, function))
        self.env.process(self._arrivals())

    def _arrivals(self) -> Process:
        between, last = 60 * self._load.burst / self._load.rate, self._load.minutes * 60
        while True:
            yield self.env.timeout(self._rng.expovariate(1 / between))
            if self.env.now > last:
                return
            for _ in range(self._load.burst):
                file = File(self._rng.randrange(self._load.tables), self.env.now)
                self.outcome.files.append(file)
                self._later(self._uploads, Message([file]), self._aws.event)

    def _later(self, queue: Queue, message: Message, seconds: float) -> None:
        self.env.timeout(seconds).callbacks.append(lambda _: queue.put(message))

    def _function(
        self, queue: Queue, batch: int, work: Callable[[list[Message]], Process]
    ) -> Process:
        """Run one of the Lambdas that a queue may have at a time."""
        while True:
            messages = yield from queue.take(batch)
            with self._lambdas.request() as admitted:
                yield admitted
                good = [m for m in messages if self._rng.random() >= self._load.failing]
                yield from work(good)
            for message in messages:
                if message not in good:
                    self._again(queue, message)

    def _again(self, queue: Queue, message: Message) -> None:
        """Deliver a failed message again; a dead letter waits for the sweep."""
        message.received += 1
        wait = self._set.visibility
        if message.received >= self._set.receives:
            message.received, wait = 0, self._next_sweep()
            self.outcome.dead += 1
        self._later(queue, message, wait)

    def _next_sweep(self, after: float = 0.0) -> float:
        """Return the seconds until the first sweep that is `after` seconds away or more."""
        return after + -(self.env.now + after) % self._set.sweep

    def _on_upload(self, messages: list[Message]) -> Process:
        for file in (file for message in messages for file in message.files):
            yield self.env.timeout(self._vary(self._rng, self._steps.upload))
            yield self._nessie.serve(self._steps.create)
            file.branched = self.env.now
            file.stage = Stage.STARTED
            gathered = self._gathered[file.table]
            gathered.append(file)
            if len(gathered) == self._set.files_a_run:
                yield from self._start_run(file.table)
            elif len(gathered) == 1:
                self.env.process(self._linger(file.table, file))

    def _linger(self, table: int, first: File) -> Process:
        yield self.env.timeout(self._set.linger)
        if first in self._gathered[table]:
            yield from self._start_run(table)

    def _start_run(self, table: int) -> Process:
        files = self._gathered.pop(table)
        yield self._api.serve(1 / self._aws.starts)
        self.env.process(self._run(files))

    def _run(self, files: list[File]) -> Process:
        with self._runs.request() as free:
            yield free
            self.outcome.runs += 1
            warm = self._warm > 0
            self._warm -= warm
            yield self.env.timeout(self._vary(self._rng, self._run_seconds(files, warm=warm)))
            for _ in files:
                yield self._nessie.serve(self._steps.commit)
            self._warm += warm
        for file in files:
            file.stage = Stage.ENDED
        lost = self._rng.random() < self._load.lost
        wait = self._next_sweep(self._set.grace) if lost else self._aws.event
        self._later(self._ended, Message(files), wait)

    def _run_seconds(self, files: list[File], *, warm: bool) -> float:
        each = self._steps.job_file + self._steps.job_megabyte * self._load.megabytes
        begin = self._aws.warm if warm else self._aws.cold
        return begin + self._steps.session + each * len(files)

    def _on_job_run(self, messages: list[Message]) -> Process:
        files = [file for message in messages for file in message.files]
        for file in files:
            yield self.env.timeout(self._vary(self._rng, self._steps.judge))
            self._waiting[file.table][file] = None
        for file in files:
            while file.stage is not Stage.PUBLISHED:
                yield from self._publish(file)
        if files:
            with self._recording.request() as turn:
                yield turn
                yield self.env.timeout(self._steps.record)
                yield self._nessie.serve(self._steps.commit + self._steps.merged)

    def _publish(self, file: File) -> Process:
        """Publish a file; on a conflict with all others that wait for its table."""
        turn = self._turn.setdefault(file.table, simpy.Resource(self.env, 1))
        with turn.request() as mine:
            yield mine
            if file.stage is Stage.PUBLISHED:
                return
            conflict = file.branched <= self._moved[file.table]
            del self._waiting[file.table][file]
            others = islice(self._waiting[file.table], MOST_TOGETHER - 1 if conflict else 0)
            together = [file, *others]
            work = self._steps.merge + conflict * self._steps.rebase
            work += self._aws.page * ITEM / 2**20 * len(self._waiting[file.table])
            yield self.env.timeout(work + self._steps.member * (len(together) - 1))
            if conflict:
                yield self._nessie.serve(self._steps.create + self._steps.commit)
            yield self._nessie.serve(self._steps.merged)
            self._published(file.table, together)
        yield self._nessie.serve(self._steps.delete * len(together))

    def _published(self, table: int, together: list[File]) -> None:
        self.outcome.commits += 1
        self._moved[table] = self.env.now
        for file in together:
            self._waiting[table].pop(file, None)
            file.published = self.env.now
            file.stage = Stage.PUBLISHED
