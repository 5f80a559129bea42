"""Simulate files on their path through queues and limits, by discrete events (SimPy).

Arrivals -> upload queue -> on_upload -> a run of its own, or the work queue and a shared run
-> job-run queue -> on_job_run -> main. Nessie and StartJobRun only have a rate: each is a server
that takes one request after the other, StartJobRun many at once after a pause. Two publishers of
one table take turns here; the real ones race, and one repeats its work.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from math import ceil, inf
from typing import Any

import simpy

from benchmarks.parameters import (
    ITEM,
    LOOK,
    MOST_TOGETHER,
    PER_RUN,
    Aws,
    Load,
    Settings,
    Shared,
    Steps,
)

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
    stage: Stage = Stage.UPLOADED
    published: float = 0.0


@dataclass(eq=False)
class Message:
    """Files of one table and of one branch, once it is created; and how often handling failed."""

    files: Sequence[File]
    branched: float = 0.0
    received: int = 0

    @property
    def table(self) -> int:
        """Return the table of its files."""
        return self.files[0].table

    def reaches(self, stage: Stage) -> None:
        """Move all its files on."""
        for file in self.files:
            file.stage = stage


@dataclass
class Outcome:
    """Every file, and how many job runs, commits on main and dead letters there were.

    `queued` is how many files waited for a job run at most.
    """

    files: list[File] = field(default_factory=list)
    runs: int = 0
    commits: int = 0
    dead: int = 0
    queued: int = 0

    @property
    def latencies(self) -> list[float]:
        """Return the seconds from landing to main of all published files, sorted."""
        done = (f for f in self.files if f.stage is Stage.PUBLISHED)
        return sorted(f.published - f.landed for f in done)


class Server:
    """A server that takes one request after the other, each for a known time.

    After a pause it does `ahead` seconds of work at once.
    """

    def __init__(self, env: simpy.Environment, speed: float = 1.0, ahead: float = 0.0) -> None:
        self._env, self._speed, self._ahead, self._free_at = env, speed, ahead, 0.0

    def serve(self, seconds: float) -> simpy.Event:
        """Return the event of the request's end, after all that came before it."""
        self._free_at = max(self._env.now, self._free_at) + seconds / self._speed
        return self._env.timeout(max(0.0, self._free_at - self._ahead - self._env.now))


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
        self._rng, self._vary, self._shared = rng, partial(vary, rng), Shared()
        self._uploads, self._work, self._ended = (simpy.Store(self.env) for _ in range(3))
        self._nessie = Server(self.env, settings.nessie)
        self._api = Server(self.env, ahead=aws.starts_at_once / aws.starts)
        self._runs = simpy.Resource(self.env, settings.at_once(aws))
        self._warm = settings.warm_runs
        self._up: set[int] = set()
        self._next_look = 0.0
        self._waiting: defaultdict[int, dict[Message, None]] = defaultdict(dict)
        self._moved: defaultdict[int, float] = defaultdict(lambda: -1.0)
        self._turn = defaultdict[int, simpy.Resource](lambda: simpy.Resource(self.env))

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
        self.env.process(self._sweep())

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

    def _later(self, queue: simpy.Store, message: Message, seconds: float) -> None:
        def put(_: simpy.Event) -> None:
            queue.put(message)

        self.env.timeout(seconds).callbacks.append(put)

    def _taken(
        self, queue: simpy.Store, most: int, seconds: float = inf
    ) -> Generator[simpy.Event, Any, list[Message]]:
        """Take what waits longest; wait so many seconds for the first message, if need be."""
        first = queue.get()
        yield first if seconds == inf else first | self.env.timeout(seconds)
        if not first.triggered:
            first.cancel()
            return []
        others = queue.items[: most - 1]
        del queue.items[: most - 1]
        return [first.value, *others]

    def _function(
        self, queue: simpy.Store, batch: int, work: Callable[[list[Message]], Process]
    ) -> Process:
        """Run one of the Lambdas that a queue may have at a time."""
        while True:
            messages = yield from self._taken(queue, batch)
            good = [m for m in messages if self._rng.random() >= self._load.failing]
            yield from work(good)
            for message in messages:
                if message not in good:
                    self._again(queue, message)

    def _again(self, queue: simpy.Store, message: Message) -> None:
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
        for message in messages:
            yield self.env.timeout(self._vary(self._steps.upload))
            message.reaches(Stage.STARTED)
            if self._set.shared_runs:
                self._work.put(message)
                self._look()
            else:
                yield from self._branch(message)
                yield self._api.serve(1 / self._aws.starts)
                self.env.process(self._own_run(message))
            waiting = len(self._work.items) + len(self._runs.queue)
            self.outcome.queued = max(self.outcome.queued, waiting)

    def _branch(self, message: Message) -> Process:
        yield self._nessie.serve(self._steps.create)
        message.branched = self.env.now

    def _own_run(self, message: Message) -> Process:
        yield from self._run(self._append(message, self._steps.file(self._load.megabytes)))
        lost = self._rng.random() < self._load.lost
        wait = self._next_sweep(self._set.grace) if lost else self._aws.event
        self._later(self._ended, message, wait)

    def _run(self, work: Process) -> Process:
        """Do the work in a job run, once there is room for it and its workers are there."""
        with self._runs.request() as free:
            yield free
            self.outcome.runs += 1
            warm = self._warm > 0
            self._warm -= warm
            begin = self._aws.warm if warm else self._aws.cold
            yield self.env.timeout(self._vary(begin + self._steps.session))
            yield from work
            self._warm += warm

    def _append(self, message: Message, seconds: float) -> Process:
        yield self.env.timeout(self._vary(seconds))
        yield self._nessie.serve(self._steps.commit)
        message.reaches(Stage.ENDED)

    def _look(self) -> None:
        """Start shared runs for files that wait, as functions/pipeline/shared_runs.py does."""
        self._keep_up(0)
        if self.env.now >= self._next_look:
            self._next_look = self.env.now + LOOK
            self._keep_all_up()

    def _sweep(self) -> Process:
        while True:
            yield self.env.timeout(self._set.sweep)
            self._keep_all_up()

    def _keep_all_up(self) -> None:
        needed = ceil(len(self._work.items) / PER_RUN)
        for slot in range(min(needed, self._set.shared_runs)):
            self._keep_up(slot)

    def _keep_up(self, slot: int) -> None:
        if slot not in self._up:
            self._up.add(slot)
            self.env.process(self._slot(slot))

    def _slot(self, slot: int) -> Process:
        """Have one shared run after the other, while files wait when one has ended."""
        while self._work.items:
            yield self._api.serve(1 / self._aws.starts)
            yield from self._run(self._shared_run())
            yield self.env.timeout(self._aws.event)
        self._up.remove(slot)

    def _shared_run(self) -> Process:
        """Ingest what waits, by groups, until no file came for a while or the time is over."""
        end = self.env.now + 60 * self._set.run_minutes
        while (left := min(self._set.idle, end - self.env.now)) > 0:
            groups: defaultdict[int, list[File]] = defaultdict(list)
            for message in (yield from self._taken(self._work, MOST_TOGETHER, left)):
                groups[message.table] += message.files
            if not groups:
                return
            for files in groups.values():
                yield from self._group(files)

    def _group(self, files: list[File]) -> Process:
        """Ingest the files of one table together, then those alone that did not pass cleanly."""
        alone = [file for file in files if self._rng.random() < self._load.unclean]
        clean = [file for file in files if file not in alone]
        work = [(clean, self._shared.seconds(len(files)))] if clean else []
        work += [([file], self._steps.file(self._load.megabytes)) for file in alone]
        for part, seconds in work:
            message = Message(part)
            yield from self._branch(message)
            yield from self._append(message, seconds)
            self._ended.put(message)

    def _on_job_run(self, messages: list[Message]) -> Process:
        for message in messages:
            judge = self._steps.judge + self._steps.report * (len(message.files) - 1)
            yield self.env.timeout(self._vary(judge))
            self._waiting[message.table][message] = None
        for message in messages:
            while message in self._waiting[message.table]:
                yield from self._publish(message)
        if messages:  # if another records at the same time, one has nothing left to do at the end
            yield self.env.timeout(self._steps.record)
            yield self._nessie.serve(self._steps.commit + self._steps.merged)

    def _publish(self, message: Message) -> Process:
        """Publish a message's files; on a conflict with others that wait for their table."""
        waiting = self._waiting[message.table]
        with self._turn[message.table].request() as mine:
            yield mine
            if message not in waiting:
                return
            conflict = message.branched <= self._moved[message.table]
            together = self._together(message) if conflict else [message]
            files = _count(together)
            work = self._steps.merge + self._aws.page * ITEM / 2**20 * len(waiting)
            work += conflict * (self._steps.rebase + self._steps.member * (files - 1))
            yield self.env.timeout(work)
            if conflict:
                yield self._nessie.serve(self._steps.create + self._steps.commit)
            yield self._nessie.serve(self._steps.merged)
            self._published(message.table, together)
        yield self._nessie.serve(self._steps.delete * len(together))

    def _together(self, message: Message) -> list[Message]:
        """Return the message and others of its table, as many files as one commit takes."""
        found = [message]
        for other in islice(self._waiting[message.table], MOST_TOGETHER):
            if other is not message and _count([*found, other]) <= MOST_TOGETHER:
                found.append(other)
        return found

    def _published(self, table: int, together: list[Message]) -> None:
        self.outcome.commits += 1
        self._moved[table] = self.env.now
        for message in together:
            del self._waiting[table][message]
            message.reaches(Stage.PUBLISHED)
            for file in message.files:
                file.published = self.env.now


def _count(messages: Sequence[Message]) -> int:
    return sum(len(message.files) for message in messages)
