"""What a dead-letter queue does, in memory and on SQS."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from functions.queues import DeadLetter, DeadLetters
from lakegate.errors import Transient
from tests.fakes.queues import FakeDeadLetters
from tests.waiting import eventually

ACCOUNT = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


@dataclass(frozen=True)
class Queue:
    """The adapter, and how SQS puts a message there that was received too often."""

    dead_letters: DeadLetters | FakeDeadLetters
    send: Callable[[str], object]

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
    """An empty queue whose messages, once read, come again after a second."""
    name = f"dead-{uuid.uuid4().hex}"
    if request.param == "in memory":
        fake = FakeDeadLetters(name)
        return Queue(fake, fake.send)
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "1"})["QueueUrl"]
    real = DeadLetters(sqs, url)
    assert real.name == name
    return Queue(real, lambda body: sqs.send_message(QueueUrl=url, MessageBody=body))


def test_one_reading_gives_all(queue: Queue) -> None:
    """All messages that wait are read, more than SQS hands out at a time, each of them once."""
    bodies = sorted(f"message {n} ü" for n in range(25))
    for body in bodies:
        queue.send(body)
    assert queue.bodies() == bodies


def test_an_empty_queue_gives_nothing(queue: Queue) -> None:
    """Where nothing waits the reading ends at once."""
    assert queue.bodies() == []


def test_what_is_forgotten_is_gone(queue: Queue) -> None:
    """A message that was dealt with does not come again; one that was not does."""
    queue.send("done")
    queue.send("not done")
    for letter in queue.dead_letters.read():
        if letter.body == "done":
            queue.dead_letters.forget(letter)
    assert eventually(queue.bodies, timeout=10) == ["not done"]


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
