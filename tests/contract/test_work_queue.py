"""The local SQS gives a shared run what it counts on, as does moto's SQS, made by other people."""

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.deploy.account import Account

_HOUR = 3600
_AT_ONCE = 10  # at most, of one request


@dataclass(frozen=True)
class Work:
    """A queue from which runs take files; taken ones stay hidden until the test shows them."""

    sqs: Any
    url: str

    def send(self, *bodies: str) -> None:
        """Queue files."""
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def take(self, most: int = _AT_ONCE, wait: int = 0) -> list[dict[str, Any]]:
        """Take what waits; with `wait` the request lasts until a file comes, or so many seconds."""
        taken = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait,
            AttributeNames=["ApproximateReceiveCount"],
        )
        return list(taken.get("Messages", []))

    def show(self, message: dict[str, Any]) -> None:
        """End the time for which a message is hidden, as when its run died."""
        handle = message["ReceiptHandle"]
        self.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=handle, VisibilityTimeout=0
        )

    def counts(self) -> tuple[int, int]:
        """Return how many files wait, and how many are in work."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        waiting, in_work = (int(found["Attributes"][name]) for name in names)
        return waiting, in_work


@pytest.fixture(scope="module")
def local(account: Account) -> Any:
    """Return the local stack's SQS, a process of its own."""
    return account.client("sqs")


@pytest.fixture(params=["sqs", pytest.param("local", marks=pytest.mark.stack)])
def work(request: pytest.FixtureRequest) -> Work:
    """Return an empty queue that hides what is taken for an hour."""
    sqs = request.getfixturevalue(request.param)
    attributes = {"VisibilityTimeout": str(_HOUR)}
    made = sqs.create_queue(QueueName=f"work-{uuid.uuid4().hex}", Attributes=attributes)
    return Work(sqs, made["QueueUrl"])


def bodies(messages: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(message["Body"] for message in messages)


def received(message: dict[str, Any]) -> int:
    return int(message["Attributes"]["ApproximateReceiveCount"])


def test_a_file_is_taken_by_one_run(work: Work) -> None:
    """What a run has taken, no other takes; it counts as in work until it is deleted."""
    sent = [f"file {n:02} ü" for n in range(25)]
    work.send(*sent)
    assert work.counts() == (25, 0)
    taken = [message for _ in range(3) for message in work.take()]
    assert bodies(taken) == sent
    assert work.take() == []
    assert work.counts() == (0, 25)


def test_a_run_that_died_returns_its_files(work: Work) -> None:
    """A file comes again when it is hidden no longer, and counts how often it was taken."""
    work.send("a", "b")
    first = work.take()
    assert [received(message) for message in first] == [1, 1]
    for message in first:
        work.show(message)
    again = work.take()
    assert bodies(again) == ["a", "b"]
    assert [received(message) for message in again] == [2, 2]


def test_a_run_that_lives_keeps_its_files_hidden(work: Work) -> None:
    """The time for which files are hidden is extended for ten in one request."""
    work.send(*map(str, range(_AT_ONCE)))
    for message in work.take():
        work.show(message)
    taken = work.take()
    entries = [
        {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": _HOUR}
        for n, m in enumerate(taken)
    ]
    answer = work.sqs.change_message_visibility_batch(QueueUrl=work.url, Entries=entries)
    assert len(answer["Successful"]) == _AT_ONCE
    assert work.take() == []
    assert work.counts() == (0, _AT_ONCE)


def test_a_deleted_file_does_not_come_again(work: Work) -> None:
    """Files are deleted by tens; one that was deleted twice is no error."""
    work.send("a", "b", "c")
    taken = {message["Body"]: message for message in work.take()}
    entries = [{"Id": n, "ReceiptHandle": taken[n]["ReceiptHandle"]} for n in ("a", "b")]
    for _ in range(2):
        work.sqs.delete_message_batch(QueueUrl=work.url, Entries=entries)
    work.show(taken["c"])
    assert bodies(work.take()) == ["c"]
    assert work.counts() == (0, 1)


def test_a_run_that_waits_gets_a_file_when_it_comes(work: Work) -> None:
    """A request that waits for files gets one that comes later."""
    taken: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: taken.extend(work.take(wait=20)))
    waiting.start()
    work.send("late")
    waiting.join()
    assert bodies(taken) == ["late"]


def test_files_that_are_sent_together_are_all_there(work: Work) -> None:
    """Ten files may be sent in one request."""
    entries = [{"Id": str(n), "MessageBody": f"file {n}"} for n in range(_AT_ONCE)]
    sent = work.sqs.send_message_batch(QueueUrl=work.url, Entries=entries)
    assert len(sent["Successful"]) == _AT_ONCE
    assert bodies(work.take()) == [f"file {n}" for n in range(_AT_ONCE)]
