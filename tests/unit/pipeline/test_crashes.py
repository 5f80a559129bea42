"""A fault at each call to an outside system, in several stories: the end is always the same.

Each story is run once undisturbed; then again for each of its calls with a fault at that call: one
kind of fault each time, all kinds by `make test-long`. Messages come again, the sweep runs, and
everything must end as in the undisturbed run, with every promise kept. A moment that is both after
a call and before the next one (Journal.following) is tried once.
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
# Calls that change nothing, and whose whole answer comes at once: failing or dying after one of
# them is failing or dying before it.
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
    """A good file."""
    deployment.land(KEY)
    deployment.settle()


def refused(deployment: Deployment) -> None:
    """A file whose rows break the contract."""
    deployment.land(KEY, script=rejected)
    deployment.settle()


def warned(deployment: Deployment) -> None:
    """A file that is published with a warning."""
    deployment.land(KEY, script=warns)
    deployment.settle()


def crashing(deployment: Deployment) -> None:
    """A file whose job run crashes."""
    deployment.land(KEY, script=crashed)
    deployment.settle()


def unclaimed(deployment: Deployment) -> None:
    """A file that no contract claims."""
    deployment.land("elsewhere/a.parquet")
    deployment.settle()


def swept(deployment: Deployment) -> None:
    """A good and a bad file, and no event at all."""
    deployment.loses_events = True
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet", script=rejected)
    deployment.settle()


def rebased(deployment: Deployment) -> None:
    """A file for a table that another file moves while the job runs."""
    first = deployment.land("shop/orders/first.parquet")
    deployment.settle()
    assert deployment.ingestion(first).state == "published"
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def run_again(deployment: Deployment) -> None:
    """Two first files for a table that is not there yet: the second must be written anew."""
    deployment.land(KEY)
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def together(deployment: Deployment) -> None:
    """Files that wait for one table at once, published by one commit."""
    wait_together(deployment, 3)
    deployment.settle()


def in_line(deployment: Deployment) -> None:
    """Files whose keys must not be in the table yet, at once."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.land_with(KEY, "2")
    deployment.land_with("shop/orders/b.parquet", "3")
    deployment.land_with("shop/orders/c.parquet", "4")
    deployment.settle()


def dead(deployment: Deployment) -> None:
    """Messages that failed until they were dead letters."""
    deployment.journal.strike("catalog.create_branch", Fault(unavailable, times=5))
    deployment.journal.strike("catalog.merge", Fault(unavailable, times=5))
    deployment.land(KEY)
    deployment.settle()


def repeated(deployment: Deployment) -> None:
    """The same bytes under another key, which people are told of."""
    deployment.land(KEY, body=b"the same")
    deployment.settle()
    deployment.land("shop/orders/b.parquet", body=b"the same")
    deployment.settle()


def held(deployment: Deployment) -> None:
    """The same bytes under another key, where the contract holds them: as far as is known."""
    deployment.ask(onDuplicate="hold")
    repeated(deployment)


def replaced(deployment: Deployment) -> None:
    """A second version of a key, which takes the first one's place."""
    deployment.ask(onNewVersion="replace")
    for _ in range(2):
        deployment.land(KEY)
        deployment.settle()


def corrected(deployment: Deployment) -> None:
    """A file that fails, and its corrected version, which closes the failure."""
    deployment.land(KEY, script=rejected)
    deployment.settle()
    deployment.land(KEY)
    deployment.settle()


def changed(deployment: Deployment) -> None:
    """A person changes the table that a file made."""
    deployment.land(KEY)
    deployment.settle()
    deployment.change()
    deployment.settle()


def changed_in_a_stream(deployment: Deployment) -> None:
    """A change that main refuses, for a file came first: the next one waits for it."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.land(KEY)
    deployment.deliver()
    deployment.change()
    deployment.run_jobs()
    deployment.land("shop/orders/b.parquet")
    deployment.settle()


def batch(deployment: Deployment) -> None:
    """The first files of two tables, in one batch."""
    deployment.batch("monday", BATCH)
    deployment.settle()


def batch_refused(deployment: Deployment) -> None:
    """A batch of which one file breaks its contract."""
    deployment.batch("monday", BATCH, rejected)
    deployment.settle()


def batch_rebased(deployment: Deployment) -> None:
    """A batch of whose tables a file moves one while its job runs."""
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": TABLE})
    deployment.land(KEY)
    deployment.settle()


def batch_in_line(deployment: Deployment) -> None:
    """A batch with keys that must not be in the table yet, and a file that comes first."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.batch("monday", BATCH)
    deployment.deliver()
    deployment.land_with(KEY, "2")
    deployment.settle()


def everything_again(deployment: Deployment) -> None:
    """All messages come once more, and the sweep takes over what looks forgotten."""
    deployment.send_all_again()
    deployment.settle()


def another_file(deployment: Deployment) -> None:
    """Another file of the table lands, and everything that can be finished is."""
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

# How often a fault may let a file come before what then has to run once more as a whole.
OVERTAKEN: dict[Story, int] = {changed_in_a_stream: 1, batch_in_line: 1}


@pytest.mark.parametrize("story", [*STORIES, held])
def test_a_fault_anywhere_changes_no_end(story: Story) -> None:
    """Whichever call fails, and however, all final states are the same, with no job run more."""
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
    """Whichever call a process hangs at while others finish its work, all final states are same."""
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
    """Return what others may do meanwhile, before or after a call."""
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
