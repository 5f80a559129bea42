"""Backfills in stories: another bucket's files, commands for some of them, and their promises."""

from collections import Counter
from dataclasses import dataclass
from itertools import count

from access.files.backfill import Backfill, Progress, Step, backfill
from functions.model.ingestion import State
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import ProcessDied
from tests.fakes.processes import pause
from tests.fakes.stage import Stage

TARGET = "shop/orders/history/"
NAMES = ("2024/a.csv", "2024/b.csv", "2025/a.csv", "_SUCCESS")
_OLD, _FOLDER = "old", "orders/"
# Wider and narrower; files of the last two have the same key. Few files are in flight at a time.
REQUESTS = tuple(
    Backfill(TABLE, _OLD, f"{_FOLDER}{prefix}", TARGET, at_once=2, in_order=True)
    for prefix in ("", "20", "2024/", "2025/")
)
_PATIENCE = 4  # looks at what is in flight, after which a person stops the command
_LEASE = 1000.0  # seconds, after which a killed one is no obstacle


@dataclass(frozen=True)
class Source:
    """A file of the other bucket is there, or has another content."""

    name: str = NAMES[0]

    def happen(self, stage: Stage) -> None:
        """Put it there."""
        stage.sources += 1
        body = f"{self.name}, content {stage.sources}".encode()
        stage.deployment.landing.put_elsewhere(_OLD, _FOLDER + self.name, body)


@dataclass(frozen=True)
class Expire:
    """The published copies expire from the landing bucket.

    It does not happen while a copy is about to be made: a process that hangs there for longer than
    landed files are kept lands what had expired once more.
    """

    def happen(self, stage: Stage) -> None:
        """Delete them."""
        if any(each.call == "landing.bring" and not each.ended for each in stage.processes):
            return
        landing = stage.deployment.landing
        ended = [i for i in stage.deployment.ledger.all() if i.state is State.PUBLISHED]
        for each in ended:
            if landing.mark(each.landed):
                landing.delete(each.landed.key)


def bring(stage: Stage, request: Backfill) -> None:
    """Carry out the command until its end, or until nobody waits for it any more."""
    looks = count(1)

    def rest() -> None:
        pause("backfill.rest")
        if next(looks) == _PATIENCE:
            raise ProcessDied

    stage.backfills[request] = None
    for _ in backfill(stage.deployment.adapters, request, rest):
        pass


def check_backfills(stage: Stage) -> None:
    """Repeat each backfill to its end. Raise AssertionError if it lost, doubled or hid a file."""
    deployment = stage.deployment
    if not stage.backfills:
        return
    deployment.clock.pass_(_LEASE)
    for request in stage.backfills:
        *_, progress = backfill(deployment.adapters, request, deployment.settle)
        _has_all(deployment, request, progress)
    deployment.settle()
    _none_comes_twice(deployment)


def _has_all(deployment: Deployment, request: Backfill, progress: Progress) -> None:
    """Raise AssertionError unless each file landed, or is listed with a reason why it did not."""
    assert not progress.in_flight
    found = {each.mark: each for each in deployment.landing.sources(_OLD, request.prefix)}
    skipped = {each.source.mark for each in progress.skipped}
    assert len(skipped) == len(progress.skipped), "a file is listed twice"
    assert skipped <= found.keys(), "a file is listed that is not there"
    copied = progress.steps[Step.COPIED]
    assert copied + len(skipped) == len(found), f"not all are told of: {progress}"
    excused = {f.source.mark for f in progress.skipped if f.is_left or f.step is Step.IGNORED}
    landed = {deployment.landing.mark(each) for each in deployment.landing.landed()}
    lost = found.keys() - excused - landed
    assert not lost, f"never landed: {[found[mark] for mark in lost]}"


def _none_comes_twice(deployment: Deployment) -> None:
    """Raise AssertionError if two copies of one content of a file were published."""
    copies = {ingestion_id(each): each for each in deployment.landing.landed()}
    ended = [i for i in deployment.ledger.all() if i.state is State.PUBLISHED]
    marks = Counter(deployment.landing.mark(copies[i.id]) for i in ended if i.id in copies)
    twice = [mark for mark, times in marks.items() if mark and times > 1]
    doubled = [each for each in copies.values() if deployment.landing.mark(each) in twice]
    assert not doubled, f"a backfill doubled {doubled}"
