"""What a dead-letter queue and the queues of alerts and actions do, in memory and on SQS."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from functions.adapters.sqs import AlertQueue, DeadLetter, DeadLetters, Queued
from functions.model.alert import (
    Alert,
    Kind,
)
from functions.notifications.interactions import ActionQueue, ActionRequest
from functions.notifications.slack_buttons import Seen, Verb
from lakegate.errors import Permanent, Transient
from tests.fakes.alerts import FakeAlerts
from tests.fakes.queues import FakeDeadLetters
from tests.fakes.slack import FakeActions

ACCOUNT = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


@dataclass(frozen=True)
class Queue:
    """The adapter, how SQS puts a message there that was received too often, and gives it again."""

    dead_letters: DeadLetters | FakeDeadLetters
    send: Callable[[str], object]
    comes_again: Callable[[DeadLetter], object]

    def bodies(self) -> list[str]:
        """What one reading gives."""
        return sorted(letter.body for letter in self.dead_letters.read())


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    """SQS in this process."""
    with mock_aws():
        yield boto3.client("sqs", **ACCOUNT)


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest, sqs: Any) -> Queue:
    """An empty queue whose messages, once read, come again when a test says so."""
    name = f"dead-{uuid.uuid4().hex}"
    if request.param == "in memory":
        fake = FakeDeadLetters(name)
        return Queue(fake, fake.send, lambda _: None)
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "3600"})["QueueUrl"]
    real = DeadLetters(sqs, url)
    assert real.name == name
    return Queue(
        real,
        lambda body: sqs.send_message(QueueUrl=url, MessageBody=body),
        lambda letter: sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=letter.receipt, VisibilityTimeout=0
        ),
    )


def test_one_reading_gives_all(queue: Queue) -> None:
    """All messages that wait are read, more than SQS hands out at a time, each of them once."""
    bodies = sorted(f"message {n} ü" for n in range(25))
    for body in bodies:
        queue.send(body)
    assert queue.bodies() == bodies


def test_a_reading_ends_although_one_stays(queue: Queue) -> None:
    """What is there again before it was dealt with is left to the next reading."""
    queue.send("not to be dealt with now")
    for times, letter in enumerate(queue.dead_letters.read()):
        assert not times
        queue.comes_again(letter)
    queue.comes_again(letter)
    assert queue.bodies() == ["not to be dealt with now"]


def test_an_empty_queue_gives_nothing(queue: Queue) -> None:
    """Where nothing waits the reading ends at once."""
    assert queue.bodies() == []


def test_what_is_forgotten_is_gone(queue: Queue) -> None:
    """A message that was dealt with does not come again; one that was not does."""
    queue.send("done")
    queue.send("not done")
    for letter in list(queue.dead_letters.read()):
        if letter.body == "done":
            queue.dead_letters.forget(letter)
        else:
            queue.comes_again(letter)
    assert queue.bodies() == ["not done"]


def test_forgetting_twice_is_no_error(queue: Queue) -> None:
    """Who deletes a message that is gone already is content."""
    queue.send("x")
    (letter,) = queue.dead_letters.read()
    queue.dead_letters.forget(letter)
    queue.dead_letters.forget(letter)
    assert queue.bodies() == []


@pytest.mark.parametrize("code", ["ThrottlingException", "AWS.SimpleQueueService.NonExistentQueue"])
def test_what_sqs_refuses_is_tried_again(code: str) -> None:
    """Refusals of SQS's are transient, and name the queue."""
    client = boto3.client("sqs", **ACCOUNT)
    with Stubber(client) as stubber:
        stubber.add_client_error("receive_message", code)
        stubber.add_client_error("delete_message", code)
        for call in calls(client):
            with pytest.raises(Transient, match=rf"QUEUE_UNAVAILABLE.*uploads-dead.*{code}"):
                call()


def test_an_sqs_that_is_away_is_tried_again() -> None:
    """Where nothing answers, every call says so as a transient error."""
    once = Config(retries={"total_max_attempts": 1})
    for call in calls(
        boto3.client("sqs", endpoint_url="http://127.0.0.1:9", config=once, **ACCOUNT)
    ):
        with pytest.raises(Transient, match="QUEUE_UNAVAILABLE"):
            call()


def calls(client: Any) -> list[Callable[[], object]]:
    """Each of the adapter's methods, ready to be called."""
    queue = DeadLetters(client, "https://sqs/000000000000/uploads-dead")
    return [lambda: list(queue.read()), lambda: queue.forget(DeadLetter("", "r"))]


@dataclass(frozen=True)
class Alerts:
    """The queue of alerts, and what whoever reads it is given."""

    queue: AlertQueue | FakeAlerts
    received: Callable[[], list[tuple[str, Alert]]]


@pytest.fixture(params=["in memory", "SQS"])
def alerts(request: pytest.FixtureRequest, sqs: Any) -> Alerts:
    """An empty queue of alerts."""
    if request.param == "in memory":
        fake = FakeAlerts()
        return Alerts(fake, lambda: fake.posted)
    name = f"alerts-{uuid.uuid4().hex}.fifo"
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]

    def received() -> list[tuple[str, Alert]]:
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [seen(message["Body"]) for message in got]

    return Alerts(AlertQueue(sqs, url), received)


def seen(body: str) -> tuple[str, Alert]:
    """The channel and the alert in a message's body."""
    queued = Queued.from_json(body)
    return queued.channel, queued.alert


def rejected(nth: int) -> Alert:
    """The alert of one file's end."""
    return Alert(f"Rejected: {nth} ü", ({"type": "divider"}, {"type": "divider"}), f"id {nth}")


def test_alerts_keep_their_order(alerts: Alerts) -> None:
    """What is told of one channel comes in the order in which it was told, all of it."""
    told = [("#orders ü", rejected(n)) for n in range(5)]
    for channel, alert in told:
        alerts.queue.post(channel, alert)
    assert alerts.received() == told


def test_what_is_told_again_is_told_once(alerts: Alerts) -> None:
    """Who died after telling and tells again is heard once; what only looks the same is not it."""
    first, second = rejected(1), replace(rejected(1), about="id 1, replayed")
    for alert in (first, first, second):
        alerts.queue.post("", alert)
    assert alerts.received() == [("", first), ("", second)]


def test_failures_wait_for_no_warning(sqs: Any) -> None:
    """A channel's warnings, which may be many, are in a group of their own."""
    name = f"alerts-{uuid.uuid4().hex}.fifo"
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
    for alert in (rejected(1), replace(rejected(2), kind=Kind.WARNING), rejected(3)):
        AlertQueue(sqs, url).post("#orders", alert)
    got = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"]
    )["Messages"]
    groups = {seen(m["Body"])[1].about: m["Attributes"]["MessageGroupId"] for m in got}
    assert groups["id 1"] == groups["id 3"] != groups["id 2"]


def test_an_alert_of_an_older_shape_is_read() -> None:
    """What was queued before alerts were named is shown all the same."""
    body = '{"channel": "#a", "text": "t", "blocks": []}'
    assert Queued.from_json(body) == Queued("#a", Alert("t", ()))


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"channel": "#a"}', "nonsense"])
def test_what_is_no_alert_is_refused(body: str) -> None:
    """A message that is no alert is an error that says so."""
    with pytest.raises(Permanent, match="BAD_ALERT"):
        Queued.from_json(body)


def test_an_alert_that_sqs_refuses_is_told_again() -> None:
    """A refusal of SQS's is transient: the ledger still says that nobody was told."""
    client = boto3.client("sqs", **ACCOUNT)
    with Stubber(client) as stubber:
        stubber.add_client_error("send_message", "ThrottlingException")
        with pytest.raises(Transient, match="QUEUE_UNAVAILABLE"):
            AlertQueue(client, "https://sqs/000000000000/alerts.fifo").post("", rejected(1))


@dataclass(frozen=True)
class Actions:
    """The queue of actions, and what whoever reads it is given."""

    queue: ActionQueue | FakeActions
    received: Callable[[], list[ActionRequest]]


@pytest.fixture(params=["in memory", "SQS"])
def actions(request: pytest.FixtureRequest, sqs: Any) -> Actions:
    """An empty queue of actions."""
    if request.param == "in memory":
        fake = FakeActions()
        return Actions(fake, lambda: fake.sent)
    name = f"actions-{uuid.uuid4().hex}.fifo"
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]

    def received() -> list[ActionRequest]:
        got: list[ActionRequest] = []
        while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            got += [ActionRequest.of(message["Body"]) for message in found]
            for message in found:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return got

    return Actions(ActionQueue(sqs, url), received)


def test_what_one_person_wants_is_there_once(actions: Actions) -> None:
    """Pressed fifty times, or with another reason, it is one wish; others' are their own."""
    first = ActionRequest(Verb.PUBLISH, Seen("a" * 32, "1:ffff"), "ada ü (U1)", "it's known")
    others = [
        replace(first, by="bob (U2)"),
        replace(first, what=Verb.DISCARD, reason=""),
        replace(first, seen=Seen("a" * 32, "2:ffff")),
        replace(first, seen=Seen("b" * 32, "1:ffff")),
    ]
    for _ in range(50):
        actions.queue.send(first)
    actions.queue.send(replace(first, reason="another"))
    for other in others:
        actions.queue.send(other)
    assert sorted(map(repr, actions.received())) == sorted(map(repr, [first, *others]))


def test_a_wish_that_sqs_refuses_is_an_error() -> None:
    """A refusal of SQS's is told to whoever pressed: nothing was promised."""
    client = boto3.client("sqs", **ACCOUNT)
    with Stubber(client) as stubber:
        stubber.add_client_error("send_message", "ThrottlingException")
        queue = ActionQueue(client, "https://sqs/000000000000/actions.fifo")
        with pytest.raises(Transient, match="QUEUE_UNAVAILABLE"):
            queue.send(ActionRequest(Verb.REPLAY, Seen("a" * 32, "1:"), "ada (U1)"))
