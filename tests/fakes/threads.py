"""The threads, in memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from functions.model.messages.alert import Alert
from functions.notifications.alert_text import digest, member
from functions.notifications.slack import Place, ThreadGone
from functions.notifications.threads import Known, Thread
from lakegate.errors import Transient

_LEASE, _MOST = 120, 1000


@dataclass
class _Cause:
    holder: str
    claimed: float
    place: Place | None = None
    opened: float = 0


@dataclass
class FakeThreads:
    """See Threads."""

    window: float
    now: Callable[[], float]
    subjects: dict[str, Known] = field(default_factory=dict)
    causes: dict[str, _Cause] = field(default_factory=dict)
    threads: dict[Place, Thread] = field(default_factory=dict)
    last: dict[Place, tuple[str, str]] = field(default_factory=dict)

    def known(self, subject: str) -> Known:
        return self.subjects.get(subject, Known())

    def remember(
        self, subject: str, about: str, place: Place | None = None, revision: int = 0
    ) -> None:
        known = self.known(subject)
        posted = known.posted | {digest(about)}
        self.subjects[subject] = Known(place or known.place, posted, revision or known.newest)

    def claim(self, cause: str, holder: str, gone: Place | None = None) -> Place | None:
        found, now = self.causes.get(cause), self.now()
        if found and found.place:
            if found.place != gone and found.opened > now - self.window:
                return found.place
        elif found and found.holder != holder and found.claimed > now - _LEASE:
            raise Transient(
                "THREAD_TAKEN", "another process is posting an alert with the same cause"
            )
        self.causes[cause] = _Cause(holder, now)
        return None

    def open(self, cause: str, alert: Alert, place: Place, subject: str) -> None:
        self.threads[place] = Thread(place, alert, frozenset({member(subject)}))
        held = self.causes.get(cause)
        if held and held.holder == alert.about and not held.place:
            self.causes[cause] = replace(held, place=place, opened=self.now())
        self.remember(subject, alert.about, place, alert.revision)

    def join(
        self, place: Place, subject: str, *, closed: bool | None = None, outcome: str = ""
    ) -> Thread:
        thread = self.threads.get(place)
        one = frozenset({member(subject)})
        if not thread or (len(thread.members) >= _MOST and not one <= thread.members):
            raise ThreadGone
        last = (member(subject), outcome) if closed and outcome else self.last.get(place, ("", ""))
        self.last[place] = last
        joined = replace(
            thread,
            members=thread.members | one,
            closed={
                True: thread.closed | one,
                False: thread.closed - one,
                None: thread.closed,
            }[closed],
        )
        joined = replace(joined, outcome=last[1] if last[0] in joined.closed else "")
        self.threads[place] = joined
        return joined

    def close(self, thread: Thread, ingestions: Iterable[str]) -> Thread:
        others = thread.members.intersection(ingestions)
        closed = replace(thread, closed=thread.closed | others)
        if others:
            self.threads[thread.place] = closed
        return closed

    def drop(self, place: Place) -> None:
        self.threads.pop(place, None)
