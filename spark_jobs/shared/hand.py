"""What a shared run has in hand: attempts and their messages, which are hidden from other runs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread

from lakegate.errors import Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun, Turn
from lakegate.text import one_line
from spark_jobs.shared.work_queue import HIDDEN_SECONDS, Queues, Waiting


@dataclass(frozen=True)
class Taken:
    """An attempt in hand, with all its messages: the queue may deliver one twice."""

    spec: JobSpec
    messages: tuple[Waiting, ...]

    @property
    def comes_again(self) -> bool:
        """Return if it was taken before."""
        return any(message.taken > 1 for message in self.messages)


@dataclass
class Read:
    """The attempts that messages are about: single files by their names, and turns.

    `unreadable` are the messages that no release can read, with the reasons.
    """

    files: dict[str, Taken] = field(default_factory=dict)
    turns: list[list[Taken]] = field(default_factory=list)
    unreadable: list[tuple[Waiting, Exception]] = field(default_factory=list)

    def add(self, message: Waiting, run: SharedRun) -> None:
        """Read one more message. Raises ValueError or TypeError if it is unreadable."""
        if turn := Turn.from_argument(message.body):
            self.turns.append([Taken(_own(spec, run), (message,)) for spec in turn.specs])
            return
        new = Taken(_own(JobSpec.from_argument(message.body), run), (message,))
        known = self.files.get(new.spec.name, replace(new, messages=()))
        self.files[new.spec.name] = replace(new, messages=(*known.messages, message))


def read(messages: Iterable[Waiting], run: SharedRun) -> Read:
    """Return what the messages are about."""
    attempts = Read()
    for message in messages:
        try:
            attempts.add(message, run)
        except (ValueError, TypeError) as error:
            attempts.unreadable.append((message, error))
    return attempts


def _own(spec: JobSpec, run: SharedRun) -> JobSpec:
    """Return the job spec with the run's own places, whatever the message says of them."""
    return replace(
        spec,
        lake_bucket=run.lake_bucket,
        nessie_uri=run.nessie_uri,
        token_secret=run.token_secret,
    )


class Hand:
    """The messages that the run has in hand."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = Lock()
        self._messages: dict[str, Waiting] = {}

    def add(self, messages: Iterable[Waiting]) -> None:
        """Keep them hidden from now on."""
        with self._lock:
            self._messages |= {message.receipt: message for message in messages}

    def drop(self, messages: Iterable[Waiting]) -> None:
        """Hide them no longer."""
        with self._lock:
            for message in messages:
                self._messages.pop(message.receipt, None)

    def hide(self, queues: Queues) -> None:
        """Hide all of them anew. Raises Transient."""
        with self._lock:  # so that none is hidden again after it was put back
            queues.hide(list(self._messages.values()), HIDDEN_SECONDS)


@contextmanager
def hidden(queues: Queues, pause: float) -> Iterator[Hand]:
    """Yield a hand whose messages are hidden anew every `pause` seconds."""
    hand, ended = Hand(), Event()
    thread = Thread(target=_keep_hidden, args=(queues, hand, pause, ended), daemon=True)
    thread.start()
    try:
        yield hand
    finally:
        ended.set()


def _keep_hidden(queues: Queues, hand: Hand, pause: float, ended: Event) -> None:
    while not ended.wait(pause):
        try:
            hand.hide(queues)
        except Transient as error:
            say(error.message)


def say(text: str) -> None:
    """Print one line into the run's log."""
    print(one_line(text), flush=True)
