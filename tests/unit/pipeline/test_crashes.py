"""Faults at every call to an outside system, which never change a final state.

Each story is run once undisturbed, and then with a fault at each of its calls: one kind of fault
each time, all kinds by `make test-long`. Messages come again, the sweep runs, and every final state
must be that of the undisturbed run, with every promise kept. A moment that is both after a call and
before the next one (Journal.following) is tried once.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.fakes.amounts import some
from tests.fakes.deployment import OTHER_TABLE, TABLE
from tests.fakes.faults import KINDS, Fault, When
from tests.fakes.job import crashed, rejected
from tests.fakes.job import warned as warns
from tests.fakes.promises import check_promises, ends, left_behind
from tests.fakes.scenario import FIRST, KEY, Scenario

pytestmark = pytest.mark.usefixtures("quiet")


Story = Callable[[Scenario], None]
BATCH = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
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
    "landing.page",
    "ledger.search",
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


def published(deployment: Scenario) -> None:
    """Land a good file."""
    deployment.ended()


def refused(deployment: Scenario) -> None:
    """Land a file whose rows break the contract."""
    deployment.ended(script=rejected)


def warned(deployment: Scenario) -> None:
    """Land a file that is published with a warning."""
    deployment.ended(script=warns)


def crashing(deployment: Scenario) -> None:
    """Land a file whose job run crashes."""
    deployment.ended(script=crashed)


def unclaimed(deployment: Scenario) -> None:
    """Land a file that no contract claims."""
    deployment.ended("elsewhere/a.parquet")


def swept(deployment: Scenario) -> None:
    """Land a good and a bad file without any event."""
    deployment.loses_events = True
    deployment.land(KEY)
    deployment.ended("shop/orders/b.parquet", script=rejected)


def rebased(deployment: Scenario) -> None:
    """Land a file for a table that another file changes while the job runs."""
    first = deployment.ended(FIRST)
    assert first.state == "published"
    deployment.land(KEY)
    deployment.ended("shop/orders/b.parquet")


def run_again(deployment: Scenario) -> None:
    """Land two first files for a new table, of which the second must run its job again."""
    deployment.land(KEY)
    deployment.ended("shop/orders/b.parquet")


def together(deployment: Scenario) -> None:
    """Publish files that wait for one table by one commit."""
    deployment.wait_together(2)
    deployment.settle()


def in_line(deployment: Scenario) -> None:
    """Land several files at once whose keys must be unique in the whole table."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.land_with(KEY, "2")
    deployment.land_with("shop/orders/b.parquet", "3")
    deployment.settle()


def dead(deployment: Scenario) -> None:
    """Let messages fail until they are dead letters."""
    deployment.fail("catalog.create_branch", times=5)
    deployment.fail("catalog.merge", times=5)
    deployment.ended()


def repeated(deployment: Scenario) -> None:
    """Land the same bytes under another key, which is reported."""
    deployment.ended(body=b"the same")
    deployment.ended("shop/orders/b.parquet", body=b"the same")


def held(deployment: Scenario) -> None:
    """Land the same bytes under another key, where the contract holds known duplicates."""
    deployment.ask(onDuplicate="hold")
    repeated(deployment)


def replaced(deployment: Scenario) -> None:
    """Land a second version of a key, which replaces the first one."""
    deployment.ask(onNewVersion="replace")
    for _ in range(2):
        deployment.ended()


def corrected(deployment: Scenario) -> None:
    """Land a file that fails, and its corrected version, which supersedes the failure."""
    deployment.ended(script=rejected)
    deployment.ended()


def changed(deployment: Scenario) -> None:
    """Request a change of the table that a file created."""
    deployment.ended()
    deployment.end_of(deployment.change())


def changed_in_a_stream(deployment: Scenario) -> None:
    """Request a change that main refuses because of an earlier file, while the next one waits."""
    deployment.ended(FIRST)
    deployment.land(KEY)
    deployment.deliver()
    deployment.change()
    deployment.run_jobs()
    deployment.ended("shop/orders/b.parquet")


def one_by_one(deployment: Scenario) -> None:
    """Land files that replace rows at once, of which one breaks its contract."""
    deployment.replace_rows("overwrite")
    _land_three(deployment)


def merged(deployment: Scenario) -> None:
    """Do the same where a column decides between rows, so that no order is needed."""
    deployment.replace_rows("upsert", latestBy="id")
    _land_three(deployment)


def _land_three(deployment: Scenario) -> None:
    deployment.land(FIRST)
    deployment.land(KEY, script=rejected)
    deployment.ended("shop/orders/b.parquet")


def batch(deployment: Scenario) -> None:
    """Land the first files of two tables in one batch."""
    deployment.end_of(deployment.batch("monday", BATCH))


def batch_refused(deployment: Scenario) -> None:
    """Land a batch with one file that breaks its contract."""
    deployment.end_of(deployment.batch("monday", BATCH, rejected))


def batch_rebased(deployment: Scenario) -> None:
    """Land a batch, of whose tables a file changes one while the batch's job runs."""
    deployment.ended(FIRST)
    deployment.batch("monday", {"a.parquet": TABLE, "b.parquet": TABLE})
    deployment.ended()


def batch_in_line(deployment: Scenario) -> None:
    """Land a batch whose keys must be unique in the whole table, after another file."""
    deployment.look_beyond()
    deployment.land_with("shop/orders/first.parquet", "1")
    deployment.settle()
    deployment.batch("monday", BATCH)
    deployment.deliver()
    deployment.land_with(KEY, "2")
    deployment.settle()


def everything_again(deployment: Scenario) -> None:
    """Deliver all messages again, and sweep everything that looks forgotten."""
    deployment.send_all_again()
    deployment.settle()


def another_file(deployment: Scenario) -> None:
    """Land another file of the table, and complete everything that can be completed."""
    deployment.ended("shop/orders/another.parquet")


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
    merged,
    batch,
    batch_refused,
    batch_rebased,
    batch_in_line,
]

# The number of job runs that a fault may add, by letting a file come before a whole run.
OVERTAKEN: dict[Story, int] = {changed_in_a_stream: 1, batch_in_line: 1}


@pytest.mark.parametrize("story", [*STORIES, held, one_by_one])
def test_a_fault_anywhere_changes_no_end(story: Story) -> None:
    """A failure at any call leads to the same final states, without an additional job run."""
    undisturbed = told(story)
    for number in range(len(undisturbed.journal.calls)):
        for kind in some(_kinds(undisturbed, number), "fault", story.__name__, number):
            disturbed = told(story, number, partial(fault, kind))
            where = f"{kind} at call {number}, {undisturbed.journal.calls[number]}"
            assert ends(disturbed) == ends(undisturbed), where
            most = len(undisturbed.jobs.runs()) + OVERTAKEN.get(story, 0)
            assert len(disturbed.jobs.runs()) <= most, where
            assert not left_behind(disturbed), where


@pytest.mark.parametrize("story", [*STORIES, held])
def test_a_pause_anywhere_changes_no_end(story: Story) -> None:
    """A process that hangs at any call, while others finish its work, changes no final state."""
    undisturbed = told(story)
    for number in range(len(undisturbed.journal.calls)):
        for others, when in some(_pauses(undisturbed, number), "pause", story.__name__, number):
            disturbed = told(story, number, partial(pause, others, when))
            where = f"{others.__name__}, {when} call {number}, {undisturbed.journal.calls[number]}"
            assert ends(disturbed).items() >= ends(undisturbed).items(), where


def fault(kind: str, _: Scenario) -> Fault:
    return Fault(*KINDS[kind])


def pause(others: Callable[[Scenario], object], when: When, deployment: Scenario) -> Fault:
    """Return a fault by which a process hangs while others work."""
    return Fault(partial(others, deployment), when)


def _kinds(undisturbed: Scenario, number: int) -> list[str]:
    """Return the kinds of faults that differ at a call from those at the call before."""
    journal = undisturbed.journal
    kinds = [kind for kind, (_, when) in KINDS.items() if when == "before"]
    if number in journal.following:
        kinds.remove("died before")  # it died after the one before
    if journal.calls[number] not in READS:
        kinds += [kind for kind, (_, when) in KINDS.items() if when == "after"]
    return kinds


def _pauses(undisturbed: Scenario, number: int) -> list[tuple[Story, When]]:
    """Return the things that others may do meanwhile, before or after a call."""
    followed: list[When] = ["after"]  # before it is after the one before
    both: list[When] = ["before", "after"]
    whens = followed if number in undisturbed.journal.following else both
    return [(others, when) for others in (everything_again, another_file) for when in whens]


def told(
    story: Story, number: int = -1, struck: Callable[[Scenario], Fault] | None = None
) -> Scenario:
    """Return a deployment after a story, with a fault at one of its calls."""
    deployment = Scenario()
    if struck:
        deployment.journal.strike_at(number, struck(deployment))
    story(deployment)
    check_promises(deployment)
    return deployment
