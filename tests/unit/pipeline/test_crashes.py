"""Faults at every call to an outside system, which never change a final state.

Each story is run once undisturbed, and then with a fault at each of its calls: one kind of fault
each time, all kinds by `make test-long`. Messages come again, the sweep runs, and every final state
must be that of the undisturbed run, with every promise kept. A moment that is both after a call and
before the next one (Journal.following) is tried once.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest

from tests.fakes.amounts import some
from tests.fakes.deployment import OTHER_TABLE, TABLE, Deployment, wait_together
from tests.fakes.faults import Fault, die, unavailable
from tests.fakes.job import crashed, rejected
from tests.fakes.job import warned as warns
from tests.fakes.promises import check_promises, ends, left_behind

pytestmark = pytest.mark.usefixtures("quiet")


When = Literal["before", "after"]
Story = Callable[[Deployment], None]
KEY = "shop/orders/a.parquet"
BATCH = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
KINDS: dict[str, tuple[Callable[[], None], When]] = {
    "unavailable": (unavailable, "before"),
    "died before": (die, "before"),
    "timed out although done": (unavailable, "after"),
    "died after": (die, "after"),
}
# Reads whose whole answer comes at once: a fault after one of them is the same as a fault before
# it.
READS = {
    "landing.newest",
    "landing.manifest",
    "lake.contracts",
    "lake.change",
    "lake.report",
    "lake.baselines",
    "ledger.get",
    "ledger.together",
    "ledger.waiting",
    "ledger.going_first",
    "ledger.versions",
    "ledger.known",
    "catalog.head",
    "catalog.tip",
    "catalog.metadata",
    "catalog.branches",
    "jobs.get",
    "jobs.spec",
    "jobs.runs",
}


def published(deployment: Deployment) -> None:
    """Land a good file."""
    deployment.land(KEY)
    deployment.settle()


def refused(deployment: Deployment) -> None:
    """Land a file whose rows break the contract."""
    deployment.land(KEY, script=rejected)
    deployment.settle()


def warned(deployment: Deployment) -> None:
    """Land a file that is published with a warning."""
    deployment.land(KEY, script=warns)
    deployment.settle()


def crashing(deployment: Deployment) -> None:
    """Land a file whose job run crashes."""
    deployment.land(KEY, script=crashed)
    deployment.settle()


def unclaimed(deployment: Deployment) -> None:
    """Land a file that no contract claims."""
    deployment.land("elsewhere/a.parquet")
    deployment.settle()


def swept(deployment: Deployment) -> None:
    """Land a good and a bad file without any event."""
    deployment.loses_events = True
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.settle()


def rebased(deployment: Deployment) -> None:
    """Land a file for a table that another file changes while the job runs."""
    first = deployment.land("shop/orders/first.parquet")
    deployment.settle()
    assert deployment.ingestion(first).state == "published"
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def run_again(deployment: Deployment) -> None:
    """Land two first files for a new table, of which the second must run its job again."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def together(deployment: Deployment) -> None:
    """Publish files that wait for one table by one commit."""
    wait_together(deployment, 3)
    deployment.settle()


def in_line(deployment: Deployment) -> None:
    """Land several files at once whose keys must be unique in the whole table."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.land_with(KEY, "2")
    deployment.land_with("shop/orders/b.parquet", "3")
    deployment.land_with("shop/orders/c.parquet", "4")
    deployment.settle()


def dead(deployment: Deployment) -> None:
    """Let messages fail until they are dead letters."""
    deployment.journal.strike("catalog.create_branch", Fault(unavailable, times=5))
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=5))
    deployment.land(KEY)
    deployment.settle()


def repeated(deployment: Deployment) -> None:
    """Land the same bytes under another key, which is reported."""
    deployment.land(KEY, body=b"the same")
    deployment.settle()
    deployment.land("shop/orders/b.parquet", body=b"the same")
    deployment.settle()


def held(deployment: Deployment) -> None:
    """Land the same bytes under another key, where the contract holds known duplicates."""
    deployment.ask(onDuplicate="hold")
    repeated(deployment)


def replaced(deployment: Deployment) -> None:
    """Land a second version of a key, which replaces the first one."""
    deployment.ask(onNewVersion="replace")
    for _ in range(2):
        deployment.land(KEY)
        deployment.settle()


def corrected(deployment: Deployment) -> None:
    """Land a file that fails, and its corrected version, which supersedes the failure."""
    deployment.land(KEY, script=rejected)
    deployment.settle()
    deployment.land(KEY)
    deployment.settle()


def changed(deployment: Deployment) -> None:
    """Request a change of the table that a file created."""
    deployment.land(KEY)
    deployment.settle()
    deployment.change()
    deployment.settle()


def changed_in_a_stream(deployment: Deployment) -> None:
    """Request a change that main refuses because of an earlier file, while the next one waits."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.land(KEY)
    deployment.deliver()
    deployment.change()
    deployment.run_jobs()
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def batch(deployment: Deployment) -> None:
    """Land the first files of two tables in one batch."""
    deployment.batch("monday", BATCH)
    deployment.settle()


def batch_refused(deployment: Deployment) -> None:
    """Land a batch with one file that breaks its contract."""
    deployment.batch("monday", BATCH, rejected)
    deployment.settle()


def batch_rebased(deployment: Deployment) -> None:
    """Land a batch, of whose tables a file changes one while the batch's job runs."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": TABLE})
    deployment.land(KEY)
    deployment.settle()


def batch_in_line(deployment: Deployment) -> None:
    """Land a batch whose keys must be unique in the whole table, after another file."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.batch("monday", BATCH)
    deployment.deliver()
    deployment.land_with(KEY, "2")
    deployment.settle()


def everything_again(deployment: Deployment) -> None:
    """Deliver all messages again, and sweep everything that looks forgotten."""
    deployment.send_all_again()
    deployment.settle()


def another_file(deployment: Deployment) -> None:
    """Land another file of the table, and complete everything that can be completed."""
    deployment.land("shop/orders/another.parquet")
    deployment.settle()


STORIES = [
    published,
    refused,
    warned,
    crashing,
    unclaimed,
    swept,
    rebased,
    run_again,
    together,
    in_line,
    dead,
    repeated,
    replaced,
    corrected,
    changed,
    changed_in_a_stream,
    batch,
    batch_refused,
    batch_rebased,
    batch_in_line,
]

# The number of job runs that a fault may add, by letting a file come before a whole run.
OVERTAKEN: dict[Story, int] = {changed_in_a_stream: 1, batch_in_line: 1}


@pytest.mark.parametrize("story", [*STORIES, held])
def test_a_fault_anywhere_changes_no_end(story: Story) -> None:
    """A failure at any call leads to the same final states, without an additional job run."""
    undisturbed = _told(story)
    for number in range(len(undisturbed.journal.calls)):
        for kind in some(_kinds(undisturbed, number), "fault", story.__name__, number):
            effect, when = KINDS[kind]
            disturbed = _told(story, number, partial(_fault, effect, when))
            where = f"{kind} at call {number}, {undisturbed.journal.calls[number]}"
            assert ends(disturbed) == ends(undisturbed), where
            most = len(undisturbed.jobs.runs()) + OVERTAKEN.get(story, 0)
            assert len(disturbed.jobs.runs()) <= most, where
            assert not left_behind(disturbed), where


@pytest.mark.parametrize("story", [*STORIES, held])
def test_a_pause_anywhere_changes_no_end(story: Story) -> None:
    """A process that hangs at any call, while others finish its work, changes no final state."""
    undisturbed = _told(story)
    for number in range(len(undisturbed.journal.calls)):
        for others, when in some(_pauses(undisturbed, number), "pause", story.__name__, number):
            disturbed = _told(story, number, partial(_pause, others, when))
            where = f"{others.__name__}, {when} call {number}, {undisturbed.journal.calls[number]}"
            assert ends(disturbed).items() >= ends(undisturbed).items(), where


def _fault(effect: Callable[[], None], when: When, _: Deployment) -> Fault:
    return Fault(effect, when)


def _pause(others: Story, when: When, deployment: Deployment) -> Fault:
    return Fault(partial(others, deployment), when)


def _kinds(undisturbed: Deployment, number: int) -> list[str]:
    """Return the kinds of faults that differ at a call from those at the call before."""
    journal = undisturbed.journal
    kinds = [kind for kind, (_, when) in KINDS.items() if when == "before"]
    if number in journal.following:
        kinds.remove("died before")  # it died after the one before
    if journal.calls[number] not in READS:
        kinds += [kind for kind, (_, when) in KINDS.items() if when == "after"]
    return kinds


def _pauses(undisturbed: Deployment, number: int) -> list[tuple[Story, When]]:
    """Return the things that others may do meanwhile, before or after a call."""
    followed: list[When] = ["after"]  # before it is after the one before
    both: list[When] = ["before", "after"]
    whens = followed if number in undisturbed.journal.following else both
    return [(others, when) for others in (everything_again, another_file) for when in whens]


def _told(
    story: Story, number: int = -1, fault: Callable[[Deployment], Fault] | None = None
) -> Deployment:
    deployment = Deployment()
    if fault:
        deployment.journal.strike_at(number, fault(deployment))
    story(deployment)
    check_promises(deployment)
    return deployment
