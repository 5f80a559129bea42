"""A file's way through queues and limits, as a discrete-event simulation (SimPy).

Arrivals -> upload queue -> on_upload -> EMR Serverless -> job-run queue -> on_job_run -> main.
What only has a rate (Nessie, StartJobRun) is a server that takes one request after the other.
Two publishers of one table take turns here, where the real ones race and one repeats its work.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from itertools import islice
from typing import Any

import simpy

from benchmarks.parameters import ITEM, Aws, Load, Settings, Steps
from benchmarks.queueing import File, Message, Outcome, Queue, Server, Stage

Process = Generator[simpy.Event, Any, None]
Vary = Callable[[random.Random, float], float]

MOST_TOGETHER = 100  # files that one commit publishes (functions/adapters/ledger.py)
_SPREAD = 0.3


def lognormal(rng: random.Random, mean: float) -> float:
    """A time that varies as such times do: seldom much shorter, at times much longer."""
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
    """Let files land for the load's minutes; the same seed gives the same outcome.

    `until` is when to look, in seconds from the start: by default when the last file has landed.
    """
    gate = _Gate(load, settings, steps, aws, random.Random(seed), vary)  # noqa: S311
    end = load.minutes * 60 if until is None else until
    gate.start(end / 60)
    gate.env.run(until=end)
    gate.count()
    return gate.outcome


class _Gate:
    """All parts, and the files among them."""

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
        self._in_flight, self._on_their_way, self._counted_at = Counter[Stage](), 0, 0.0

    def start(self, samples: float) -> None:
        """Begin everything."""
        work = [
            (self._uploads, self._set.upload_batch, self._on_upload, self._set.upload_lambdas),
            (self._ended, self._set.run_batch, self._on_job_run, self._set.run_lambdas),
        ]
        for queue, batch, function, at_once in work:
            for _ in range(at_once):
                self.env.process(self._function(queue, batch, function))
        self.env.process(self._arrivals())
        self.env.process(self._samples(samples))

    def count(self, more: int = 0) -> None:
        """So many more files are on their way now."""
        self.outcome.area += self._on_their_way * (self.env.now - self._counted_at)
        self._counted_at = self.env.now
        self._on_their_way += more

    def _to(self, file: File, stage: Stage) -> None:
        self._in_flight[file.stage] -= 1
        self._in_flight[stage] += 1
        file.stage = stage

    def _arrivals(self) -> Process:
        between, last = 60 * self._load.burst / self._load.rate, self._load.minutes * 60
        while True:
            yield self.env.timeout(self._rng.expovariate(1 / between))
            if self.env.now > last:
                return
            for _ in range(self._load.burst):
                file = File(self._rng.randrange(self._load.tables), self.env.now)
                self.outcome.files.append(file)
                self._in_flight[Stage.UPLOADED] += 1
                self.count(1)
                self._later(self._uploads, Message([file]), self._aws.event)

    def _later(self, queue: Queue, message: Message, seconds: float) -> None:
        self.env.timeout(seconds).callbacks.append(lambda _: queue.put(message))

    def _function(
        self, queue: Queue, batch: int, work: Callable[[list[Message]], Process]
    ) -> Process:
        """One of the Lambdas that a queue may have at a time."""
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
        """It failed: it comes again, or is dead and waits for the sweep."""
        message.received += 1
        wait = self._set.visibility
        if message.received >= self._set.receives:
            message.received, wait = 0, self._next_sweep()
            self.outcome.dead += 1
        self._later(queue, message, wait)

    def _next_sweep(self, after: float = 0.0) -> float:
        """Seconds until the first sweep that is `after` seconds away or more."""
        return after + -(self.env.now + after) % self._set.sweep

    def _on_upload(self, messages: list[Message]) -> Process:
        for file in (file for message in messages for file in message.files):
            yield self.env.timeout(self._vary(self._rng, self._steps.upload))
            yield self._nessie.serve(self._steps.create)
            file.branched = self.env.now
            self._to(file, Stage.STARTED)
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
            began = self.env.now
            yield self.env.timeout(self._vary(self._rng, self._run_seconds(files, warm=warm)))
            for _ in files:
                yield self._nessie.serve(self._steps.commit)
            self.outcome.run_seconds += self.env.now - began
            self._warm += warm
        for file in files:
            self._to(file, Stage.ENDED)
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
        """Publish it, and all that wait for its table where main refuses it."""
        turn = self._turn.setdefault(file.table, simpy.Resource(self.env, 1))
        with turn.request() as mine:
            yield mine
            if file.stage is Stage.PUBLISHED:
                return
            refused = file.branched <= self._moved[file.table]
            del self._waiting[file.table][file]
            others = islice(self._waiting[file.table], MOST_TOGETHER - 1 if refused else 0)
            together = [file, *others]
            work = self._steps.merge + refused * self._steps.rebase
            work += self._aws.page * ITEM / 2**20 * self._on_their_way
            yield self.env.timeout(work + self._steps.member * (len(together) - 1))
            if refused:
                yield self._nessie.serve(self._steps.create + self._steps.commit)
            yield self._nessie.serve(self._steps.merged)
            self._published(file.table, together)
        yield self._nessie.serve(self._steps.delete * len(together))

    def _published(self, table: int, together: list[File]) -> None:
        self.outcome.commits += 1
        self._moved[table] = self.env.now
        self.count(-len(together))
        for file in together:
            self._waiting[table].pop(file, None)
            file.published = self.env.now
            self._to(file, Stage.PUBLISHED)

    def _samples(self, every: float) -> Process:
        while True:
            yield self.env.timeout(every)
            self.outcome.backlog.append(Counter(self._in_flight))
