"""Serve a shared run: take waiting files, ingest them in groups, name their reports.

A file whose report exists is only named: its message is a copy, or comes again. How often a message
was taken tells of a crash. Files that were taken once are ingested in groups, and a group is tried
twice. A file that comes again is ingested alone, after a marker is written beside its report. If it
comes again and the marker is still there, a run died of it, and it gets a run of its own. While
Nessie or S3 does not answer, files stay in hand, so that they do not come again.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Protocol

from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.jobspec import JobSpec
from lakegate.landing import run_name
from lakegate.shared_run import Judged, SharedRun
from lakegate.text import one_line
from spark_jobs.shared.work_queue import HIDDEN_SECONDS, Queues, Waiting

_MARGIN_MINUTES = 10
_PAUSE = 10.0  # seconds after which what is in hand is hidden anew
_COMES_AGAIN = 5  # seconds
_LONGEST_REST = 60.0


class Files(Protocol):
    """The work of a shared run, as `taken_files.TakenFiles`. Every method raises LakegateError."""

    def seconds_left(self) -> float:
        """Return for how many seconds the run has access to Nessie."""

    def reported(self, specs: Sequence[JobSpec]) -> Collection[str]:
        """Return the names of the attempts that have a report, by one request for each."""

    def is_marked(self, spec: JobSpec) -> bool:
        """Return if a run called `mark` for the attempt, and ended before `unmark`."""

    def mark(self, spec: JobSpec) -> None:
        """Note that the attempt comes again, and that a run begins to ingest it alone."""

    def unmark(self, spec: JobSpec) -> None:
        """Note that the run survived: what failed was not the file."""

    def ingest_together(self, specs: Sequence[JobSpec]) -> Collection[str]:
        """Ingest files of one group; return the names of attempts that have their report now."""

    def ingest_alone(self, spec: JobSpec) -> None:
        """Ingest one file; afterwards it has its report."""


@dataclass(frozen=True)
class Clock:
    """The clock of a run: the time in seconds, and a way to wait."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Taken:
    """An attempt in hand, with all its messages: the queue may deliver one twice."""

    spec: JobSpec
    messages: tuple[Waiting, ...]

    @property
    def comes_again(self) -> bool:
        """Return if it was taken before."""
        return any(message.taken > 1 for message in self.messages)

    @property
    def name(self) -> str:
        """Return the attempt's name."""
        return run_name(self.spec.ingestion, self.spec.attempt)


def serve(
    run: SharedRun, queues: Queues, files: Files, clock: Clock = Clock(), pause: float = _PAUSE
) -> None:
    """Ingest waiting files until none came for a while, or the run's time or token nears its end.

    What is in hand is hidden from other runs every `pause` seconds. Raises whatever but
    LakegateError a file raises that is ingested alone, as Spark itself has ended: its message comes
    again then.
    """
    with _hidden(queues, pause) as hand:
        _Server(run, queues, files, clock, hand).serve()


class _Hand:
    """The messages that the run has in hand."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._messages: dict[str, Waiting] = {}

    def add(self, messages: Iterable[Waiting]) -> None:
        with self._lock:
            self._messages |= {message.receipt: message for message in messages}

    def drop(self, messages: Iterable[Waiting]) -> None:
        with self._lock:
            for message in messages:
                self._messages.pop(message.receipt, None)

    def hide(self, queues: Queues) -> None:
        with self._lock:  # so that none is hidden again after it was put back
            queues.hide(list(self._messages.values()), HIDDEN_SECONDS)


@contextmanager
def _hidden(queues: Queues, pause: float) -> Iterator[_Hand]:
    hand, ended = _Hand(), Event()
    thread = Thread(target=_keep_hidden, args=(queues, hand, pause, ended), daemon=True)
    thread.start()
    try:
        yield hand
    finally:
        ended.set()


def _keep_hidden(queues: Queues, hand: _Hand, pause: float, ended: Event) -> None:
    while not ended.wait(pause):
        try:
            hand.hide(queues)
        except Transient as error:
            _say(error.message)


@dataclass
class _Server:
    run: SharedRun
    queues: Queues
    files: Files
    clock: Clock
    hand: _Hand
    failures: int = 0  # in a row

    def serve(self) -> None:
        margin = 60 * min(_MARGIN_MINUTES, self.run.timeout_minutes / 4)
        self.end = self.clock.now() + 60 * self.run.timeout_minutes - margin
        idle_since = self.clock.now()
        while (left := self._left(idle_since)) >= 1:
            messages = self._take(left, margin)
            if messages is None:
                return
            if messages:
                self.hand.add(messages)
                self._work(messages)
                idle_since = self.clock.now()

    def _left(self, idle_since: float) -> float:
        return min(idle_since + self.run.idle_seconds, self.end) - self.clock.now()

    def _take(self, seconds: float, margin: float) -> list[Waiting] | None:
        """Return what waits; None when the run's access to Nessie ends soon."""
        try:
            if self.files.seconds_left() <= margin:
                return None
            return self.queues.take(seconds)
        except Transient as error:
            self._rest(error)
            return []

    def _work(self, messages: Sequence[Waiting]) -> None:
        readable = self._readable(messages)
        taken = [each for each in readable if self._may_share(each.spec)]
        self._tell((), alone=[each for each in readable if each not in taken])
        reported = self._reported(taken)
        self._tell([each for each in taken if each.name in reported])
        new = [each for each in taken if each.name not in reported]
        for group in _groups(each for each in new if not each.comes_again):
            self._in_time(self._work_on_group, group)
        for each in new:
            if each.comes_again:
                self._in_time(self._work_on_one, [each])

    def _reported(self, taken: Sequence[Taken]) -> Collection[str]:
        """Return the names of those that have a report; none at the end of the run's time."""
        while self.clock.now() < self.end:
            try:
                return self.files.reported([each.spec for each in taken])
            except Transient as error:
                self._rest(error)
        return ()

    def _in_time(self, work: Callable[[Sequence[Taken]], None], taken: Sequence[Taken]) -> None:
        """Begin the work once Nessie answers; none at the end of the run's time.

        The files come again soon after it, as nobody hides their messages any more.
        """
        if self.failures:
            self._outlast()
        if self.clock.now() < self.end:
            work(taken)

    def _outlast(self) -> None:
        """Wait while Nessie does not answer."""
        while self.clock.now() < self.end:
            try:
                self.files.seconds_left()
            except Transient as error:
                self._rest(error)
            else:
                return

    def _readable(self, messages: Sequence[Waiting]) -> list[Taken]:
        """Return the attempts of the messages; delete those that no release can read."""
        found: dict[str, Taken] = {}
        for message in messages:
            try:
                spec = _own(JobSpec.from_argument(message.body), self.run)
            except (ValueError, TypeError) as error:
                _say(f"a message of the work queue is deleted, as it is no job spec: {error}")
                self._delete([message])
                continue
            new = Taken(spec, (message,))
            known = found.get(new.name, replace(new, messages=()))
            found[new.name] = replace(new, messages=(*known.messages, message))
        return list(found.values())

    def _work_on_group(self, group: Sequence[Taken]) -> None:
        """Ingest the files together, and those alone that did not pass cleanly."""
        try:
            reported = self._together([each.spec for each in group])
        except LakegateError as error:
            self._fail(group, error)
            return
        self._tell([each for each in group if each.name in reported])
        for each in group:
            if each.name not in reported:
                self._in_time(self._alone, [each])

    def _together(self, specs: Sequence[JobSpec]) -> Collection[str]:
        """Ingest files of one group, at the second try if need be. Raises LakegateError.

        The trouble often passes in a moment, and one by one the files would take far longer.
        """
        if len(specs) == 1:
            return ()
        try:
            return self._tried_together(specs)
        except Transient as error:
            self._rest(error)
            self._outlast()
            return self._tried_together(specs)

    def _tried_together(self, specs: Sequence[JobSpec]) -> Collection[str]:
        try:
            return self.files.ingest_together(specs)
        except LakegateError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one alone may do it, or none
            kind = type(error).__name__  # its text may have confidential cells
            _say(f"{len(specs)} files are ingested one by one, as together they fail: {kind}")
            return ()

    def _work_on_one(self, taken: Sequence[Taken]) -> None:
        """Ingest a file that comes again alone, once."""
        (one,) = taken
        try:
            if self.files.is_marked(one.spec):
                self._tell((), alone=taken)
            else:
                self.files.mark(one.spec)
                self._alone(taken, marked=True)
        except LakegateError as error:
            self._fail(taken, error)

    def _may_share(self, spec: JobSpec) -> bool:
        is_file = not (spec.change or spec.parts or spec.probe or spec.reaudit_base)
        return is_file and self.run.may_touch(spec.table)

    def _alone(self, taken: Sequence[Taken], *, marked: bool = False) -> None:
        spec = taken[0].spec
        try:
            self.files.ingest_alone(spec)
        except Permanent as error:  # it would come again and again
            _say(error.message)
            self._tell((), alone=taken)
        except LakegateError as error:
            self._fail(taken, error)
            if marked:
                self.files.unmark(spec)
        else:
            self._tell(taken)

    def _tell(self, reported: Sequence[Taken], alone: Sequence[Taken] = ()) -> None:
        """Name reports, and files for runs of their own; then delete their messages."""
        if not (reported or alone):
            return
        reports = tuple(each.spec.report_key for each in reported)
        names = tuple(each.name for each in alone)
        try:
            self.queues.send(Judged(self.run.name, reports, names))
        except Transient as error:
            self._fail([*reported, *alone], error)
            return
        self._delete([message for each in (*reported, *alone) for message in each.messages])
        self.failures = 0

    def _delete(self, messages: Sequence[Waiting]) -> None:
        if not messages:
            return
        self.hand.drop(messages)
        try:
            self.queues.delete(messages)
        except Transient as error:  # it comes again, and its report is there
            _say(error.message)

    def _fail(self, taken: Sequence[Taken], error: LakegateError) -> None:
        """Put the files back, and wait."""
        messages = [message for each in taken for message in each.messages]
        self.hand.drop(messages)
        try:
            self.queues.hide(messages, _COMES_AGAIN)
        except Transient as late:  # they come again later
            _say(late.message)
        self._rest(error)

    def _rest(self, error: LakegateError) -> None:
        """Wait after a failure, the longer the more there were in a row."""
        _say(error.message)
        self.clock.wait(min(2.0**self.failures, _LONGEST_REST))
        self.failures += 1


def _groups(taken: Iterable[Taken]) -> list[list[Taken]]:
    found: dict[object, list[Taken]] = defaultdict(list)
    for each in taken:
        spec = each.spec
        contract = (spec.table, spec.contract_key, spec.contract_version)
        found[(*contract, spec.limits, spec.null_unreadable)].append(each)
    return list(found.values())


def _own(spec: JobSpec, run: SharedRun) -> JobSpec:
    """Return the job spec with the run's own places, whatever the message says of them."""
    return replace(
        spec,
        lake_bucket=run.lake_bucket,
        nessie_uri=run.nessie_uri,
        token_secret=run.token_secret,
    )


def _say(text: str) -> None:
    print(one_line(text), flush=True)
