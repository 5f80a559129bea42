"""The simulation's values, and the two kinds of waiting that SimPy has no ready name for."""

from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import simpy


class Stage(StrEnum):
    """Where a file is; the last one is the end."""

    UPLOADED = "upload queue"
    STARTED = "job runs"
    ENDED = "publishing"
    PUBLISHED = "published"


@dataclass(eq=False)
class File:
    """A landed file; `branched` is when its branch was cut, all in seconds since the start."""

    table: int
    landed: float
    branched: float = 0.0
    stage: Stage = Stage.UPLOADED
    published: float = 0.0


@dataclass(eq=False)
class Message:
    """Files that one message is about, and how often it was received in vain."""

    files: Sequence[File]
    received: int = 0


@dataclass
class Outcome:
    """What happened: every file, how many job runs, commits on main and dead letters there were.

    `backlog` is how many files were in each stage, one sample for each `every` seconds; `area` is
    the integral over time of all files on their way (file-seconds).
    """

    files: list[File] = field(default_factory=list)
    runs: int = 0
    run_seconds: float = 0.0
    commits: int = 0
    dead: int = 0
    backlog: list[Counter[Stage]] = field(default_factory=list)
    area: float = 0.0

    @property
    def latencies(self) -> list[float]:
        """Seconds from landing to main of all that got there, sorted."""
        done = (f for f in self.files if f.stage is Stage.PUBLISHED)
        return sorted(f.published - f.landed for f in done)


class Queue:
    """A queue whose messages are taken in batches."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env, self._messages = env, deque[Message]()
        self._waiting: deque[simpy.Event] = deque()

    def put(self, message: Message) -> None:
        """Have a message wait."""
        self._messages.append(message)
        if self._waiting:
            self._waiting.popleft().succeed()

    def take(self, most: int) -> Generator[simpy.Event, Any, list[Message]]:
        """The messages that wait longest, at most so many; waits for the first one."""
        while not self._messages:
            told = self._env.event()
            self._waiting.append(told)
            yield told
        return [self._messages.popleft() for _ in range(min(most, len(self._messages)))]


class Server:
    """Takes one request after the other, each for a known time."""

    def __init__(self, env: simpy.Environment, speed: float = 1.0) -> None:
        self._env, self._speed, self._free_at = env, speed, 0.0

    def serve(self, seconds: float) -> simpy.Event:
        """Done when the request is, after all that came before it."""
        self._free_at = max(self._env.now, self._free_at) + seconds / self._speed
        return self._env.timeout(self._free_at - self._env.now)
