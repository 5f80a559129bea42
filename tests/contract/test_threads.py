"""Threads and notifications are recorded in DynamoDB."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from functions.model.messages.alert import Kind
from functions.notifications.alert_text import alert, digest, member
from functions.notifications.slack import Place, ThreadGone
from functions.notifications.threads import Known, Threads
from lakegate.errors import Transient
from tests.contract.aws import table_of
from tests.fakes.examples import INGESTION, REPORT

ALERT = alert(INGESTION, REPORT)
HERE, THERE = Place("C1", "1.0"), Place("C1", "2.0")
HOUR = 3600.0


@dataclass
class Memory:
    """The adapter, and its clock."""

    table: Any
    seconds: float = 1_800_000_000.0

    @property
    def threads(self) -> Threads:
        """Return the adapter; a thread accepts alerts for an hour."""
        return Threads(self.table, HOUR, 30 * 24 * HOUR, lambda: self.seconds)

    def fill(self, subjects: Sequence[str]) -> None:
        """Let many subjects join the thread, by one write but for the last."""
        self.table.update_item(
            Key={"id": f"thread {digest(f'{HERE.channel} {HERE.ts}')}"},
            UpdateExpression="ADD members :members",
            ExpressionAttributeValues={":members": set(map(member, subjects[:-1]))},
        )
        self.threads.join(HERE, subjects[-1])


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Yield an empty record."""
    with table_of("ThreadsTable") as table:
        yield Memory(table)


def opened(memory: Memory, cause: str = "cause") -> None:
    """Open the thread of a cause with a first message."""
    assert memory.threads.claim(cause, ALERT.about) is None
    memory.threads.open(cause, ALERT, HERE, "a")


def test_nothing_is_known_at_first(memory: Memory) -> None:
    """A subject without notifications has no record."""
    assert memory.threads.known("a") == Known()


def test_notifications_are_remembered(memory: Memory) -> None:
    """Each notification is recorded, with the latest place and revision."""
    memory.threads.remember("a", "first", HERE, 7)
    memory.threads.remember("a", "second " * 9999)
    posted = frozenset({digest("first"), digest("second " * 9999)})
    assert memory.threads.known("a") == Known(HERE, posted, 7)
    assert memory.threads.known("b") == Known()


def test_one_opens_the_thread_of_a_cause(memory: Memory) -> None:
    """The first process opens the thread; later ones get its place."""
    opened(memory)
    assert memory.threads.claim("cause", "another") == HERE
    assert memory.threads.claim("cause", ALERT.about) == HERE
    assert memory.threads.claim("another cause", "another") is None
    posted = frozenset({digest(ALERT.about)})
    assert memory.threads.known("a") == Known(HERE, posted, ALERT.revision)


def test_two_at_once_do_not_both_open_one(memory: Memory) -> None:
    """While one process is opening a thread others wait; after a crash they wait no longer."""
    assert memory.threads.claim("cause", "one") is None
    with pytest.raises(Transient, match="THREAD_TAKEN"):
        memory.threads.claim("cause", "two")
    assert memory.threads.claim("cause", "one") is None
    memory.seconds += 121
    assert memory.threads.claim("cause", "two") is None


def test_a_lost_claim_is_not_taken_back(memory: Memory) -> None:
    """A process that posts after its claim expired keeps its thread, but not the cause."""
    assert memory.threads.claim("cause", "other") is None
    memory.seconds += 121
    opened(memory)
    memory.threads.open("cause", replace(ALERT, about="other"), THERE, "b")
    assert memory.threads.claim("cause", "third") == HERE
    assert memory.threads.known("b").place == THERE
    assert memory.threads.join(THERE, "b").alert.about == "other"


def test_a_window_ends(memory: Memory) -> None:
    """An hour after a thread was opened, one process opens another for its cause."""
    opened(memory)
    memory.seconds += HOUR - 1
    assert memory.threads.claim("cause", "another") == HERE
    memory.seconds += 1
    assert memory.threads.claim("cause", "another") is None
    with pytest.raises(Transient, match="THREAD_TAKEN"):
        memory.threads.claim("cause", "third")


def test_a_place_that_is_gone_takes_no_cause(memory: Memory) -> None:
    """After the first message was deleted, the next alert opens a new thread."""
    opened(memory)
    assert memory.threads.claim("cause", "another", gone=HERE) is None
    memory.threads.open("cause", replace(ALERT, about="another"), THERE, "b")
    assert memory.threads.claim("cause", "third", gone=HERE) == THERE


def test_a_thread_counts_each_once(memory: Memory) -> None:
    """Members are counted once; the first message is kept."""
    opened(memory)
    for subject in ("b", "c", "b"):
        thread = memory.threads.join(HERE, subject)
    assert thread.members == {"a", "b", "c"}
    assert thread.closed == frozenset()
    assert thread.alert == ALERT
    assert thread.alert.kind is Kind.FAILED


def test_a_thread_knows_who_recovered(memory: Memory) -> None:
    """A recovered member is closed, and open again after a new failure."""
    opened(memory)
    memory.threads.join(HERE, "b")
    assert memory.threads.join(HERE, "a", closed=True).closed == {"a"}
    assert memory.threads.join(HERE, "b", closed=True).closed == {"a", "b"}
    assert memory.threads.join(HERE, "b").closed == {"a", "b"}
    assert memory.threads.join(HERE, "a", closed=False).closed == {"b"}


def test_several_are_resolved_at_once(memory: Memory) -> None:
    """Of many ingestions only those in the thread are counted as resolved there."""
    opened(memory)
    thread = memory.threads.join(HERE, "b")
    closed = frozenset({"a", "b"})
    assert memory.threads.close(thread, ("a", "b", "elsewhere")).closed == closed
    assert memory.threads.join(HERE, "c").closed == closed
    assert memory.threads.close(thread, ()).closed == frozenset()


def test_a_thread_knows_how_the_last_one_was_resolved(memory: Memory) -> None:
    """The outcome of the last member that was closed is kept until that one is open again."""
    opened(memory)
    memory.threads.join(HERE, "b")
    assert memory.threads.join(HERE, "a", closed=True, outcome="by Ada").outcome == "by Ada"
    assert memory.threads.join(HERE, "b", closed=True, outcome="by Bob").outcome == "by Bob"
    assert memory.threads.join(HERE, "a").outcome == "by Bob"
    assert memory.threads.join(HERE, "b", closed=False, outcome="no").outcome == ""


def test_a_thread_takes_no_more_than_people_can_read(memory: Memory) -> None:
    """After a thousand members the next alert opens a new thread; members stay in theirs."""
    opened(memory)
    memory.fill([f"member {number}" for number in range(999)])
    with pytest.raises(ThreadGone):
        memory.threads.join(HERE, "one more")
    assert memory.threads.join(HERE, "member 7", closed=True).closed == {"member 7"}


def test_a_thread_that_is_not_remembered_is_gone(memory: Memory) -> None:
    """A deleted or unknown thread accepts nothing; deleting twice is no error."""
    opened(memory)
    memory.threads.drop(HERE)
    memory.threads.drop(HERE)
    for place in (HERE, THERE):
        with pytest.raises(ThreadGone):
            memory.threads.join(place, "b")


def test_every_record_expires(memory: Memory) -> None:
    """Every item has the expiry attribute that the template names."""
    opened(memory)
    memory.threads.join(HERE, "y")
    items = memory.table.scan()["Items"]
    assert len(items) >= 3
    assert all(item["expires"] == 1_800_000_000 + 30 * 24 * 3600 for item in items)


def test_the_largest_alert_is_kept(memory: Memory) -> None:
    """The longest possible alert fits into an item."""
    failed = replace(REPORT.checks[1], found="\U0001f600" * 9000)
    huge = alert(INGESTION, replace(REPORT, checks=(failed,) * 99))
    memory.threads.claim("huge", huge.about)
    memory.threads.open("huge", huge, THERE, "a")
    assert memory.threads.join(THERE, "b").alert == huge


def test_long_subjects_fit_into_a_thread(memory: Memory) -> None:
    """A long subject is shortened in a thread."""
    opened(memory)
    events = [f"{number} {'x' * 200_000}" for number in range(4)]
    for event in events * 2:
        thread = memory.threads.join(HERE, event, closed=True)
    assert (len(thread.members), len(thread.closed)) == (5, 4)
    assert memory.threads.join(HERE, events[0], closed=False).closed < thread.closed
