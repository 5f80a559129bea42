"""Dead-letter, alert and action queues behave alike in memory and on SQS."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from functions.adapters.sqs import ActionQueue, AlertQueue, DeadLetter, DeadLetters, QueuedAlert
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.model.messages.alert import Alert, Kind
from lakegate.errors import Permanent
from tests.fakes.alerts import FakeAlerts
from tests.fakes.queues import FakeDeadLetters
from tests.fakes.slack import FakeActions


@dataclass(frozen=True)
class Queue:
    """The adapter, and functions to add a message and to end visibility timeouts."""

    dead_letters: DeadLetters | FakeDeadLetters
    send: Callable[[str], object]
    comes_again: Callable[[DeadLetter], object]

    def bodies(self) -> list[str]:
        """Return the bodies of one reading."""
        return sorted(letter.body for letter in self.dead_letters.read())


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest, sqs: Any) -> Queue:
    """Return an empty queue; the test decides when its read messages come again."""
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
    """One reading yields all waiting messages, each once, on however many pages."""
    bodies = sorted(f"message {n} ü" for n in range(25))
    for body in bodies:
        queue.send(body)
    assert queue.bodies() == bodies


def test_a_reading_ends_although_one_stays(queue: Queue) -> None:
    """A message that returns before its deletion is left to the next reading."""
    queue.send("not to be dealt with now")
    for times, letter in enumerate(queue.dead_letters.read()):
        assert not times
        queue.comes_again(letter)
    queue.comes_again(letter)
    assert queue.bodies() == ["not to be dealt with now"]


def test_an_empty_queue_gives_nothing(queue: Queue) -> None:
    """Reading an empty queue ends at once."""
    assert queue.bodies() == []


def test_a_deleted_message_is_gone(queue: Queue) -> None:
    """A deleted message does not come again; another one does."""
    queue.send("done")
    queue.send("not done")
    for letter in list(queue.dead_letters.read()):
        if letter.body == "done":
            queue.dead_letters.delete(letter)
        else:
            queue.comes_again(letter)
    assert queue.bodies() == ["not done"]


def test_forgetting_twice_is_no_error(queue: Queue) -> None:
    """Deleting a message twice is no error."""
    queue.send("x")
    (letter,) = queue.dead_letters.read()
    queue.dead_letters.delete(letter)
    queue.dead_letters.delete(letter)
    assert queue.bodies() == []


def fifo(sqs: Any) -> str:
    """Return the address of a new FIFO queue."""
    name, attributes = f"{uuid.uuid4().hex}.fifo", {"FifoQueue": "true"}
    return str(sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


@dataclass(frozen=True)
class Alerts:
    """The queue of alerts, and a function that reads it."""

    queue: AlertQueue | FakeAlerts
    received: Callable[[], list[tuple[str, Alert]]]


@pytest.fixture(params=["in memory", "SQS"])
def alerts(request: pytest.FixtureRequest, sqs: Any) -> Alerts:
    """Return an empty queue of alerts."""
    if request.param == "in memory":
        fake = FakeAlerts()
        return Alerts(fake, lambda: fake.posted)
    url = fifo(sqs)

    def received() -> list[tuple[str, Alert]]:
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [seen(message["Body"]) for message in got]

    return Alerts(AlertQueue(sqs, url), received)


def seen(body: str) -> tuple[str, Alert]:
    """Return the channel and the alert in a message's body."""
    queued = QueuedAlert.from_json(body)
    return queued.channel, queued.alert


def rejected(nth: int) -> Alert:
    """Return the alert of one rejected file."""
    return Alert(f"Rejected: {nth} ü", ({"type": "divider"}, {"type": "divider"}), f"id {nth}")


def test_alerts_keep_their_order(alerts: Alerts) -> None:
    """A channel's alerts come in order, and all of them."""
    sent = [("#orders ü", rejected(n)) for n in range(5)]
    for channel, alert in sent:
        alerts.queue.post(channel, alert)
    assert alerts.received() == sent


def test_an_alert_that_is_sent_again_is_queued_once(alerts: Alerts) -> None:
    """An alert sent again after a crash is queued once; a different one is not dropped."""
    first, second = rejected(1), replace(rejected(1), about="id 1, replayed")
    for alert in (first, first, second):
        alerts.queue.post("", alert)
    assert alerts.received() == [("", first), ("", second)]


def test_no_text_of_a_file_keeps_an_alert_back(sqs: Any) -> None:
    """Of Unicode SQS refuses U+FFFE and U+FFFF, which a garbled file may have: they go escaped."""
    url, alert = fifo(sqs), Alert("found \ufffe and \uffff", (), "id 1")
    AlertQueue(sqs, url).post("", alert)
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert not {"\ufffe", "\uffff"} & {*message["Body"]}
    assert seen(message["Body"]) == ("", alert)


def test_failures_wait_for_no_warning(sqs: Any) -> None:
    """A channel's warnings have a separate group."""
    url = fifo(sqs)
    for alert in (rejected(1), replace(rejected(2), kind=Kind.WARNING), rejected(3)):
        AlertQueue(sqs, url).post("#orders", alert)
    got = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"]
    )["Messages"]
    groups = {seen(m["Body"])[1].about: m["Attributes"]["MessageGroupId"] for m in got}
    assert groups["id 1"] == groups["id 3"] != groups["id 2"]


def test_an_alert_of_an_older_shape_is_read() -> None:
    """An alert of an older release is posted."""
    body = '{"channel": "#a", "text": "t", "blocks": []}'
    assert QueuedAlert.from_json(body) == QueuedAlert("#a", Alert("t", ()))


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"channel": "#a"}', "nonsense"])
def test_a_message_without_an_alert_is_refused(body: str) -> None:
    """A message that is not an alert is a clear error."""
    with pytest.raises(Permanent, match="BAD_ALERT"):
        QueuedAlert.from_json(body)


@dataclass(frozen=True)
class Actions:
    """The queue of actions, and a function that reads it."""

    queue: ActionQueue | FakeActions
    received: Callable[[], list[ActionRequest]]


@pytest.fixture(params=["in memory", "SQS"])
def actions(request: pytest.FixtureRequest, sqs: Any) -> Actions:
    """Return an empty queue of actions."""
    if request.param == "in memory":
        fake = FakeActions()
        return Actions(fake, lambda: fake.sent)
    url = fifo(sqs)

    def received() -> list[ActionRequest]:
        got: list[ActionRequest] = []
        while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            got += [ActionRequest.of(message["Body"]) for message in found]
            for message in found:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return got

    return Actions(ActionQueue(sqs, url), received)


def test_one_persons_request_is_queued_once(actions: Actions) -> None:
    """Fifty presses, or another reason, are one request; other people's are separate."""
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
