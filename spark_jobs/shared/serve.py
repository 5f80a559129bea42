"""Serve a shared run: take waiting files, ingest them in groups, name their reports.

A file whose report exists is only named: its message is a copy, or comes again. How often a message
was taken tells of a crash. Files that were taken once are ingested in groups, and a group is tried
twice. A file that comes again is ingested alone, after a marker is written beside its report. If it
comes again and the marker is still there, a run died of it, and it gets a run of its own. While
Nessie or S3 does not answer, files stay in hand, so that they do not come again.

A turn is one message about several files: those at its beginning are ingested as if one after the
other, or the first of them alone. The others, and all but the first of a turn that comes again, are
named as files for a later turn.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import Judged, SharedRun
from spark_jobs.shared.hand import Hand, Taken, hidden, read, say
from spark_jobs.shared.work_queue import Queues, Waiting

_MARGIN_MINUTES = 10
_PAUSE = 10.0  # seconds after which what is in hand is hidden anew
_COMES_AGAIN = 5  # seconds
_LONGEST_REST = 60.0
_Answer = TypeVar("_Answer")
_Ingest = Callable[[Sequence[JobSpec]], Collection[str]]


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

    def ingest_in_order(self, specs: Sequence[JobSpec]) -> Collection[str]:
        """Ingest a turn's first files; return the names of attempts that have their report now."""

    def ingest_alone(self, spec: JobSpec) -> None:
        """Ingest one file; afterwards it has its report."""


@dataclass(frozen=True)
class Clock:
    """The clock of a run: the time in seconds, and a way to wait."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


def serve(
    run: SharedRun, queues: Queues, files: Files, clock: Clock = Clock(), pause: float = _PAUSE
) -> None:
    """Ingest waiting files until none came for a while, or the run's time or token nears its end.

    What is in hand is hidden from other runs every `pause` seconds. Raises whatever but
    LakegateError a file raises that is ingested alone, as Spark itself has ended: its message comes
    again then.
    """
    with hidden(queues, pause) as hand:
        _Server(run, queues, files, clock, hand).serve()


@dataclass
class _Server:
    run: SharedRun
    queues: Queues
    files: Files
    clock: Clock
    hand: Hand
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
        attempts = read(messages, self.run)
        for message, error in attempts.unreadable:
            say(f"a message of the work queue is deleted, as it is no job spec: {error}")
            self._delete([message])
        self._work_on_files(list(attempts.files.values()))
        for turn in attempts.turns:
            self._in_time(self._work_on_turn, turn)

    def _work_on_turn(self, turn: Sequence[Taken]) -> None:
        """Ingest the first files of a turn, at least one, and name the others for a later turn."""
        if not all(self._may_share(each.spec) for each in turn):
            self._tell((), alone=turn)
            return
        reported = self._reported(turn)
        first, rest = turn[0], turn[1:]
        try:
            if not (reported or first.comes_again):
                specs = [each.spec for each in turn]
                reported = _first_of(turn, self._tried(self.files.ingest_in_order, specs))
        except LakegateError as error:
            self._fail([first], error)
            return
        told = [each for each in turn if each.spec.name in reported]
        if told:
            self._tell(told, again=[each for each in turn if each.spec.name not in reported])
        elif first.comes_again:
            self._work_on_one([first], rest)
        else:
            self._alone([first], rest)

    def _work_on_files(self, files: Sequence[Taken]) -> None:
        taken = [each for each in files if self._may_share(each.spec)]
        self._tell((), alone=[each for each in files if each not in taken])
        reported = self._reported(taken)
        self._tell([each for each in taken if each.spec.name in reported])
        new = [each for each in taken if each.spec.name not in reported]
        for group in _groups(each for each in new if not each.comes_again):
            self._in_time(self._work_on_group, group)
        for each in new:
            if each.comes_again:
                self._in_time(self._work_on_one, [each])

    def _reported(self, taken: Sequence[Taken]) -> Collection[str]:
        """Return the names of those that have a report; none at the end of the run's time."""
        specs = [each.spec for each in taken]
        return self._outlast(lambda: self.files.reported(specs)) or ()

    def _in_time(self, work: Callable[[Sequence[Taken]], None], taken: Sequence[Taken]) -> None:
        """Begin the work once Nessie answers; none at the end of the run's time.

        The files come again soon after it, as nobody hides their messages any more.
        """
        if self.failures:
            self._outlast(self.files.seconds_left)
        if self.clock.now() < self.end:
            work(taken)

    def _outlast(self, ask: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer, once Nessie or S3 gives one; None at the end of the run's time."""
        while self.clock.now() < self.end:
            try:
                return ask()
            except Transient as error:
                self._rest(error)
        return None

    def _work_on_group(self, group: Sequence[Taken]) -> None:
        """Ingest the files together, and those alone that did not pass cleanly."""
        try:
            reported = self._together([each.spec for each in group])
        except LakegateError as error:
            self._fail(group, error)
            return
        self._tell([each for each in group if each.spec.name in reported])
        for each in group:
            if each.spec.name not in reported:
                self._in_time(self._alone, [each])

    def _together(self, specs: Sequence[JobSpec]) -> Collection[str]:
        """Ingest files of one group, at the second try if need be. Raises LakegateError.

        The trouble often passes in a moment, and one by one the files would take far longer.
        """
        if len(specs) == 1:
            return ()
        return self._tried(self.files.ingest_together, specs)

    def _tried(self, ingest: _Ingest, specs: Sequence[JobSpec]) -> Collection[str]:
        try:
            return self._ingest_once(ingest, specs)
        except Transient as error:
            self._rest(error)
            self._outlast(self.files.seconds_left)
            return self._ingest_once(ingest, specs)

    def _ingest_once(self, ingest: _Ingest, specs: Sequence[JobSpec]) -> Collection[str]:
        try:
            return ingest(specs)
        except LakegateError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one alone may do it, or none
            kind = type(error).__name__  # its text may have confidential cells
            say(f"{len(specs)} files are ingested one by one, as together they fail: {kind}")
            return ()

    def _work_on_one(self, taken: Sequence[Taken], rest: Sequence[Taken] = ()) -> None:
        """Ingest a file that comes again alone, once; `rest` are the others of its turn."""
        (one,) = taken
        try:
            if self.files.is_marked(one.spec):
                self._tell((), alone=taken, again=rest)
            else:
                self.files.mark(one.spec)
                self._alone(taken, rest, marked=True)
        except LakegateError as error:
            self._fail(taken, error)

    def _may_share(self, spec: JobSpec) -> bool:
        is_file = not (spec.change or spec.parts or spec.probe or spec.reaudit_base)
        reads_unknown = spec.reads_others and bool(self.run.apart)
        return is_file and self.run.may_touch(spec.table) and not reads_unknown

    def _alone(
        self, taken: Sequence[Taken], rest: Sequence[Taken] = (), *, marked: bool = False
    ) -> None:
        spec = taken[0].spec
        try:
            self.files.ingest_alone(spec)
        except Permanent as error:  # it would come again and again
            say(error.message)
            self._tell((), alone=taken, again=rest)
        except LakegateError as error:
            self._fail(taken, error)
            if marked:
                self.files.unmark(spec)
        else:
            self._tell(taken, again=rest)

    def _tell(
        self,
        reported: Sequence[Taken],
        alone: Sequence[Taken] = (),
        again: Sequence[Taken] = (),
    ) -> None:
        """Name reports, and files for runs of their own or a later turn; delete their messages."""
        if not (reported or alone):
            return
        reports = tuple(each.spec.report_key for each in reported)
        others = (tuple(each.spec.name for each in named) for named in (alone, again))
        try:
            self.queues.send(Judged(self.run.name, reports, *others))
        except Transient as error:
            self._fail([*reported, *alone], error)
            return
        self._delete(_messages([*reported, *alone]))
        self.failures = 0

    def _delete(self, messages: Sequence[Waiting]) -> None:
        if not messages:
            return
        self.hand.drop(messages)
        try:
            self.queues.delete(messages)
        except Transient as error:  # it comes again, and its report is there
            say(error.message)

    def _fail(self, taken: Sequence[Taken], error: LakegateError) -> None:
        """Put the files back, and wait."""
        messages = _messages(taken)
        self.hand.drop(messages)
        try:
            self.queues.hide(messages, _COMES_AGAIN)
        except Transient as late:  # they come again later
            say(late.message)
        self._rest(error)

    def _rest(self, error: LakegateError) -> None:
        """Wait after a failure, the longer the more there were in a row."""
        say(error.message)
        self.clock.wait(min(2.0**self.failures, _LONGEST_REST))
        self.failures += 1


def _messages(taken: Iterable[Taken]) -> list[Waiting]:
    """Return all messages about the attempts, once each: those of a turn have one together."""
    return list(dict.fromkeys(message for each in taken for message in each.messages))


def _groups(taken: Iterable[Taken]) -> list[list[Taken]]:
    by_kind: dict[object, list[Taken]] = defaultdict(list)
    for each in taken:
        by_kind[each.spec.kind].append(each)
    return list(by_kind.values())


def _first_of(turn: Sequence[Taken], reported: Collection[str]) -> Collection[str]:
    """Return the names of attempts if they are the first of the turn and no others, else none.

    A group of others could never be published, and would come again in the same turn for ever.
    """
    first = {each.spec.name for each in turn[: len(reported)]}
    return reported if first == set(reported) else ()
