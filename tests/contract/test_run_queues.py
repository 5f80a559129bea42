"""The queues of a shared run behave alike in memory, on moto's SQS, and on the local stack's."""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from functions.adapters.sqs import Backlog
from lakegate.job.shared_run import MOST_FILES, Judged
from spark_jobs.shared.work_queue import Queues, SqsQueues, Waiting
from tests.deploy.account import Account
from tests.fakes.work_queue import FakeQueues, FakeSeconds


@dataclass(frozen=True)
class Pair:
    """Both queues, with functions to put a message into the one and to read the other.

    A message that is `put_late` can be taken after a second; `size` counts those in hand, too.
    """

    queues: Queues
    put: Callable[[str], object]
    put_late: Callable[[str], object]
    size: Callable[[], int]
    judged: Callable[[], Sequence[Judged]]

    def again(self, messages: Sequence[Waiting]) -> list[Waiting]:
        """Let messages come again at once, and take what is there."""
        self.queues.hide(messages, 0)
        return self.queues.take(0)


@pytest.fixture(scope="module")
def local(account: Account) -> Any:
    """Return the local stack's SQS, a process of its own."""
    return account.client("sqs")


@pytest.fixture(params=["fake", "sqs", pytest.param("local", marks=pytest.mark.stack)])
def pair(request: pytest.FixtureRequest) -> Pair:
    """Return empty queues."""
    if request.param == "fake":
        fake = FakeQueues(FakeSeconds())
        late = partial(fake.put, after=1)
        return Pair(fake, fake.put, late, lambda: fake.waiting, lambda: fake.judged)
    sqs = request.getfixturevalue(request.param)
    work, verdicts = (
        sqs.create_queue(QueueName=f"{name}-{uuid.uuid4().hex}")["QueueUrl"]
        for name in ("work", "verdicts")
    )

    def judged() -> list[Judged]:
        found = sqs.receive_message(QueueUrl=verdicts, MaxNumberOfMessages=10)
        bodies = [Judged.from_message(json.loads(each["Body"])) for each in found["Messages"]]
        return [each for each in bodies if each]

    return Pair(
        SqsQueues(sqs, work, verdicts),
        lambda body: sqs.send_message(QueueUrl=work, MessageBody=body),
        lambda body: sqs.send_message(QueueUrl=work, MessageBody=body, DelaySeconds=1),
        Backlog(sqs, work).size,
        judged,
    )


def test_one_taking_has_what_is_there(pair: Pair) -> None:
    """A taking has up to 100 messages; the next has the others."""
    bodies = [f"{n} ü" for n in range(MOST_FILES + 7)]
    for body in bodies:
        pair.put(body)
    first, second = pair.queues.take(0), pair.queues.take(0)
    assert (len(first), len(second)) == (MOST_FILES, 7)
    assert sorted(each.body for each in (*first, *second)) == sorted(bodies)
    assert {each.taken for each in (*first, *second)} == {1}
    assert pair.queues.take(0) == []


def test_a_message_that_comes_again_counts_its_takings(pair: Pair) -> None:
    """A message has the same id each time that it comes, a new receipt, and a higher count."""
    pair.put("it")
    (first,) = pair.queues.take(0)
    (second,) = pair.again([first])
    (third,) = pair.again([second])
    assert [each.taken for each in (first, second, third)] == [1, 2, 3]
    assert {each.id for each in (first, second, third)} == {first.id}
    assert len({each.receipt for each in (first, second, third)}) == 3


def test_hidden_messages_do_not_come(pair: Pair) -> None:
    """A message that is hidden for longer stays away, and one that is deleted for ever.

    To delete it twice is no error.
    """
    for n in range(25):
        pair.put(str(n))
    taken = pair.queues.take(0)
    pair.queues.hide(taken[:12], 100)
    for _ in range(2):
        pair.queues.delete(taken[12:])
    assert pair.queues.take(0) == []
    assert pair.size() == 12
    assert sorted(each.body for each in pair.again(taken)) == sorted(t.body for t in taken[:12])


def test_a_taking_waits_for_a_message(pair: Pair) -> None:
    """A taking that waits gets a message that comes meanwhile."""
    pair.put_late("late")
    assert pair.queues.take(0) == []
    assert [each.body for each in pair.queues.take(20)] == ["late"]


def test_verdicts_are_sent(pair: Pair) -> None:
    """A message of the verdict queue says what was sent."""
    judged = Judged("run", ("reports/shop.orders/1.json",), ("a-1",))
    pair.queues.send(judged)
    assert list(pair.judged()) == [judged]


def test_nothing_is_done_with_nothing(pair: Pair) -> None:
    """Hiding or deleting no message asks nothing of SQS, which would refuse it."""
    pair.queues.hide([], 5)
    pair.queues.delete([])
