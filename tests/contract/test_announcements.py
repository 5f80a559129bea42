"""Announcements go through the queues to consumers and onto EventBridge."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from functions.adapters.sqs import AnnouncementQueue
from functions.downstream.announce import (
    ConsumerRefresh,
    Consumers,
    EventBus,
    announce,
    detail,
    refresh,
)
from functions.downstream.queues import RefreshDeadLetters, RefreshQueue
from functions.model.commits import Tip
from functions.model.decisions import Approval, Decisions
from functions.model.ingestion import State
from functions.model.messages.announcement import Announcement, announcements
from functions.model.messages.refresh import Refresh
from lakegate.errors import LakegateError, Permanent, Transient
from tests.contract.aws import ACCOUNT
from tests.fakes.announcements import FakeAnnouncements
from tests.fakes.examples import INGESTION
from tests.fakes.schema import validate_announcement

PUBLISHED = replace(
    INGESTION,
    state=State.PUBLISHED,
    merge_hash="c0ffee",
    audit=replace(INGESTION.audit, rows=7),
    reason=None,
).step("published", "2026-11-22T01:00:00.000+00:00")
(ANNOUNCED,) = announcements(
    PUBLISHED, Tip("c0ffee", 5), {INGESTION.table: "s3://lake/warehouse/5.json"}
)
(REJECTED,) = announcements(INGESTION)


@dataclass(frozen=True)
class Aws:
    """SQS and EventBridge in this process."""

    sqs: Any
    events: Any

    def queue(self, *, fifo: bool = False) -> str:
        """Return the address of a new, empty queue."""
        name = uuid.uuid4().hex + (".fifo" if fifo else "")
        attributes = {"FifoQueue": "true"} if fifo else {}
        return str(self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def consumers(self, bus: Any, url: str) -> Consumers:
        """Return a bus and one consumer with its queue."""
        return Consumers(EventBus(bus, "default", "dev"), (RefreshQueue(self.sqs, url),))

    def bodies(self, url: str, most: int = 10) -> list[str]:
        """Return the waiting bodies of a queue."""
        return [message["Body"] for message in self._received(url, most)]

    def redrive(self, dead: str, url: str) -> None:
        """Retry dead letters: SQS moves each with its group."""
        for letter in self._received(dead, 10):
            self.sqs.send_message(
                QueueUrl=url,
                MessageBody=letter["Body"],
                MessageGroupId=letter["Attributes"]["MessageGroupId"],
                MessageDeduplicationId=letter["Attributes"]["MessageDeduplicationId"],
            )

    def _received(self, url: str, most: int) -> list[Any]:
        asked = {"QueueUrl": url, "MaxNumberOfMessages": most}
        got = self.sqs.receive_message(**asked, MessageSystemAttributeNames=["All"])
        return list(got.get("Messages", []))


@pytest.fixture
def aws() -> Iterator[Aws]:
    """Yield SQS and EventBridge in this process."""
    with mock_aws():
        yield Aws(boto3.client("sqs", **ACCOUNT), boto3.client("events", **ACCOUNT))


@dataclass(frozen=True)
class Queue:
    """The queue of announcements, and a function that reads it."""

    queue: AnnouncementQueue | FakeAnnouncements
    received: Callable[[], list[Announcement]]


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest, aws: Aws) -> Queue:
    """Return an empty queue of announcements."""
    if request.param == "in memory":
        fake = FakeAnnouncements()
        return Queue(fake, lambda: fake.sent)
    url = aws.queue()
    real = AnnouncementQueue(aws.sqs, url)
    return Queue(
        real, lambda: [Announcement.read(body) for _ in range(3) for body in aws.bodies(url)]
    )


def test_announcements_are_read_as_sent(queue: Queue) -> None:
    """Announcements come out as they went in, with any characters."""
    odd = replace(REJECTED, reason="a 'quoted' ü\n\"line\" <!channel>")
    sent = [odd, *(replace(ANNOUNCED, id=f"{number}") for number in range(20))]
    queue.queue.send(sent)
    assert sorted(queue.received(), key=str) == sorted(sent, key=str)


def test_an_announcement_that_is_not_queued_is_an_error() -> None:
    """SQS may refuse some messages of a request that it takes."""
    sqs = boto3.client("sqs", **ACCOUNT)
    failed = {"Id": "0", "Code": "InternalError", "SenderFault": False}
    queue = AnnouncementQueue(sqs, "https://sqs/000000000000/announcements")
    with Stubber(sqs) as stubber:
        stubber.add_response("send_message_batch", {"Successful": [], "Failed": [failed]})
        with pytest.raises(Transient, match="InternalError"):
            queue.send([ANNOUNCED])


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"state": "lost"}', "nonsense"])
def test_an_invalid_announcement_is_refused(body: str) -> None:
    """A message that is not an announcement, or not a refresh, is a clear error."""
    with pytest.raises(Permanent, match="BAD_ANNOUNCEMENT"):
        Announcement.read(body)
    with pytest.raises(Permanent, match="BAD_REFRESH"):
        Refresh.read(body)


def test_a_newer_releases_fields_are_ignored() -> None:
    """Unknown fields of a newer release are ignored."""
    assert Announcement.read(ANNOUNCED.text()[:-1] + ', "new": 1}') == ANNOUNCED


@pytest.mark.parametrize(
    "announcement", [ANNOUNCED, REJECTED], ids=lambda announcement: announcement.state
)
def test_each_event_fits_the_published_schema(announcement: Announcement) -> None:
    """Each event matches docs/announcement-1.schema.json."""
    validate_announcement(json.loads(detail(announcement, "dev")))


def test_fields_that_do_not_apply_are_empty() -> None:
    """A rejection has a branch and a reason, a publication a commit."""
    assert (ANNOUNCED.commit, ANNOUNCED.position, ANNOUNCED.branch, ANNOUNCED.reason) == (
        "c0ffee",
        5,
        "",
        "",
    )
    assert (REJECTED.commit, REJECTED.position, REJECTED.metadata_location) == ("", 0, "")
    assert REJECTED.branch == INGESTION.branch
    assert INGESTION.reason
    assert REJECTED.reason_code == INGESTION.reason.code


def test_an_approval_is_announced() -> None:
    """An announcement names the person and the reason of a publication in spite of the audit."""
    approval = Approval("Ada", "a refund", "2026-11-22T01:00:00.000+00:00", ())
    (announcement,) = announcements(replace(PUBLISHED, decisions=Decisions(approval=approval)))
    assert (announcement.approved_by, announcement.approved_because) == ("Ada", "a refund")


def test_another_end_has_another_id() -> None:
    """A repeated announcement has the same id; another attempt or state has another."""
    ends = [
        PUBLISHED,
        replace(PUBLISHED, attempt=PUBLISHED.attempt + 1),
        replace(PUBLISHED, state=State.REJECTED),
    ]
    assert (
        len({announcement.id for end in [*ends, *ends] for announcement in announcements(end)}) == 3
    )


@dataclass
class Bus:
    """EventBridge as the adapter sees it; refuses on demand."""

    refuses: bool = False
    entries: tuple[dict[str, Any], ...] = ()

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        if self.refuses:
            failed = {"ErrorCode": "InternalFailure", "ErrorMessage": "later"}
            return {"FailedEntryCount": 1, "Entries": [failed]}
        self.entries += tuple(Entries)
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}


def test_an_event_says_what_it_is() -> None:
    """Rules can match by source, by final state, and by everything in the detail."""
    bus = Bus()
    for announcement in (ANNOUNCED, REJECTED, replace(REJECTED, state=State.ERRORED)):
        EventBus(bus, "default", "dev").put(announcement)
    kinds = [entry["DetailType"] for entry in bus.entries]
    assert kinds == [f"Lakegate Ingestion {end}" for end in ("Published", "Rejected", "Errored")]
    assert {entry["Source"] for entry in bus.entries} == {"lakegate"}
    assert json.loads(bus.entries[0]["Detail"])["table"] == INGESTION.table


def test_eventbridge_takes_the_event(aws: Aws) -> None:
    """The real client accepts the entry."""
    EventBus(aws.events, "default", "dev").put(ANNOUNCED)


def test_a_bus_that_refuses_is_tried_again() -> None:
    """A refused entry is transient, and the next try repeats it."""
    with pytest.raises(Transient, match=r"BUS_UNAVAILABLE.*InternalFailure"):
        EventBus(Bus(refuses=True), "mine", "dev").put(ANNOUNCED)


def test_a_bus_that_refuses_holds_up_no_warehouse(aws: Aws) -> None:
    """Consumers get their refresh once, however often the event is retried."""
    url = aws.queue(fifo=True)
    bus = Bus(refuses=True)
    consumers = aws.consumers(bus, url)
    for _ in range(3):
        with pytest.raises(Transient):
            announce(consumers, ANNOUNCED.text())
    assert [Refresh.read(body) for body in aws.bodies(url)] == [
        Refresh(INGESTION.table, 5, "s3://lake/warehouse/5.json")
    ]
    bus.refuses = False
    announce(consumers, ANNOUNCED.text())
    assert len(bus.entries) == 1


def test_files_of_one_commit_are_one_refresh(aws: Aws) -> None:
    """If one commit publishes several files, each is announced and one refresh is sent."""
    url = aws.queue(fifo=True)
    bus = Bus()
    consumers = aws.consumers(bus, url)
    for number in range(5):
        announce(consumers, replace(ANNOUNCED, id=f"{number}", ingestion=f"{number}").text())
    assert len(bus.entries) == 5
    assert len(aws.bodies(url)) == 1


@pytest.mark.parametrize("announcement", [REJECTED, replace(ANNOUNCED, metadata_location="")])
def test_warehouses_are_asked_only_after_main_moved(aws: Aws, announcement: Announcement) -> None:
    """A rejection, or a table that was dropped since, sends no refresh."""
    url = aws.queue(fifo=True)
    announce(aws.consumers(Bus(), url), announcement.text())
    assert aws.bodies(url) == []


@dataclass
class Refusing:
    """A consumer that answers with an error."""

    error: LakegateError = field(default_factory=lambda: Permanent("REFUSED", "no such table"))

    def refresh(self, refresh: Refresh) -> bool:
        """Raise the error."""
        raise self.error


def test_a_permanently_refused_refresh_is_given_up_at_once(aws: Aws) -> None:
    """A refused refresh goes to the dead-letter queue at once, unchanged, and blocks nothing."""
    url = aws.queue(fifo=True)
    body = Refresh("a.b", 1, "s3://x").text()
    refresh(ConsumerRefresh(Refusing(), RefreshDeadLetters(aws.sqs, url)), body)
    assert aws.bodies(url) == [body]


def test_of_one_table_refreshes_that_are_tried_again_are_worked_on_one_by_one(aws: Aws) -> None:
    """A redrive never runs two refreshes of one table at once: an older one could end last."""
    url, dead = aws.queue(fifo=True), aws.queue(fifo=True)
    tried = [Refresh("a.b", 2, "s3://x"), Refresh("a.c", 1, "s3://x"), Refresh("a.b", 1, "s3://x")]
    bodies = [each.text() for each in tried]
    refusing = ConsumerRefresh(Refusing(), RefreshDeadLetters(aws.sqs, dead))
    for body in bodies:
        refresh(refusing, body)
    aws.redrive(dead, url)
    at_once = [body for _ in bodies for body in aws.bodies(url, most=1)]
    assert at_once == bodies[:2]


def test_a_message_that_is_refused_again_is_kept_again(aws: Aws) -> None:
    """A message that is refused again is kept again: each has its own id."""
    dead = aws.queue(fifo=True)
    body = Refresh("a.b", 1, "s3://x").text()
    for _ in range(2):
        RefreshDeadLetters(aws.sqs, dead).keep(body)
    assert aws.bodies(dead) == [body, body]


def test_an_unreadable_message_holds_up_nothing(aws: Aws) -> None:
    """An unreadable message goes to the dead-letter queue and blocks no other."""
    dead = aws.queue(fifo=True)
    unread = ConsumerRefresh(
        Refusing(Transient("AWAY", "never asked")), RefreshDeadLetters(aws.sqs, dead)
    )
    for body in ("one", "two"):
        refresh(unread, body)
    assert [body for _ in range(2) for body in aws.bodies(dead, most=1)] == ["one", "two"]


def test_a_refresh_of_an_unavailable_consumer_comes_again(aws: Aws) -> None:
    """An unavailable consumer fails the message, which SQS delivers again."""
    url = aws.queue(fifo=True)
    away = ConsumerRefresh(Refusing(Transient("AWAY", "later")), RefreshDeadLetters(aws.sqs, url))
    with pytest.raises(Transient, match="AWAY"):
        refresh(away, Refresh("a.b", 1, "s3://x").text())
    assert aws.bodies(url) == []
