"""Existing files come through the gate, each once, however often a backfill is repeated."""

from collections import Counter

import pytest

from access.backfill import Backfill, Progress, Step, backfill, source_of
from functions.model.ingestion import State
from lakegate.errors import LakegateError
from lakegate.landing import ingestion_id
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.job import rejected

_OLD = "old"
_TARGET = "shop/orders/history/"


def _files(deployment: Deployment, *names: str) -> None:
    for name in names:
        deployment.landing.put_elsewhere(_OLD, f"orders/{name}", f"id\n{name}\n".encode())


def _run(deployment: Deployment, at_once: int = 200) -> Progress:
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once)
    *_, last = backfill(deployment.adapters, request, deployment.settle)
    return last


@pytest.fixture
def deployment() -> Deployment:
    deployment = Deployment()
    _files(deployment, "2024/a.csv", "2024/b.csv", "2025/a.csv", "_SUCCESS")
    return deployment


def test_every_file_is_published_under_its_own_key(deployment: Deployment) -> None:
    """Files keep their keys below the prefix, and are published; markers are left out."""
    progress = _run(deployment)
    assert progress.steps == {Step.COPIED: 3, Step.IGNORED: 1}
    assert progress.ended == {State.PUBLISHED: 3}
    assert not progress.in_flight
    assert [each.key for each in deployment.landing.landed()] == [
        f"{_TARGET}{name}" for name in ("2024/a.csv", "2024/b.csv", "2025/a.csv")
    ]


def test_a_repetition_copies_only_what_is_missing(deployment: Deployment) -> None:
    """Repeated, a backfill copies new and changed files only, and tells the ends of all."""
    _run(deployment)
    _files(deployment, "2026/c.csv")
    deployment.landing.put_elsewhere(_OLD, "orders/2024/a.csv", b"id\nother\n")
    progress = _run(deployment)
    assert progress.steps == {Step.BROUGHT: 2, Step.COPIED: 2, Step.IGNORED: 1}
    assert progress.ended.total() == 4
    assert len(list(deployment.landing.landed())) == 5


def test_an_interrupted_backfill_is_continued(deployment: Deployment) -> None:
    """What was copied before S3 refused is not copied again."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once=1)
    steps = backfill(deployment.adapters, request, deployment.settle)
    next(steps)
    del steps
    progress = _run(deployment)
    assert progress.steps == {Step.BROUGHT: 1, Step.COPIED: 2, Step.IGNORED: 1}
    assert len(list(deployment.landing.landed())) == 3


def test_few_files_are_in_flight(deployment: Deployment) -> None:
    """No more files than allowed are in flight at a time, and all of them come through."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once=2)
    seen = list(backfill(deployment.adapters, request, deployment.settle))
    assert max(len(each.in_flight) for each in seen) == 2
    assert seen[-1].ended == {State.PUBLISHED: 3}


def test_files_land_in_the_order_of_their_keys(deployment: Deployment) -> None:
    """Where the order matters, each file lands after the one whose key comes before its own."""
    for number in range(40):
        _files(deployment, f"2026/{number:02}.csv")
    request = Backfill(TABLE, _OLD, "orders/2026/", _TARGET, in_order=True)
    next(backfill(deployment.adapters, request, deployment.settle))
    landed = sorted(deployment.landing.landed(), key=lambda each: each.landed_at)
    assert [each.key for each in landed] == sorted(each.key for each in landed)


def test_a_foreign_file_is_never_replaced(deployment: Deployment) -> None:
    """A key where another file landed keeps that file, and the file that did not land is named."""
    deployment.land(f"{_TARGET}2024/a.csv")
    progress = _run(deployment)
    (left,) = progress.left
    assert (left.step, left.source.key) == (Step.TAKEN, "orders/2024/a.csv")
    assert progress.ended == {State.PUBLISHED: 2}
    assert len(list(deployment.landing.landed())) == 3


def test_a_file_deleted_after_the_listing_is_named(deployment: Deployment) -> None:
    """A file that is gone when its turn comes is told, and does not stop the others."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once=1)
    steps = backfill(deployment.adapters, request, deployment.settle)
    next(steps)
    deployment.landing.put_elsewhere(_OLD, "orders/2025/a.csv", None)
    *_, progress = steps
    assert [each.step for each in progress.left] == [Step.CHANGED]
    assert progress.ended == {State.PUBLISHED: 2}


def test_what_expired_is_not_published_again(deployment: Deployment) -> None:
    """After the landing bucket's copies expired, only changed and failed files are copied again."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET)
    steps = backfill(deployment.adapters, request, deployment.settle)
    next(steps)
    deployment.script(next(iter(deployment.landing.landed())), rejected)
    list(steps)
    for landed in list(deployment.landing.landed()):
        deployment.landing.delete(landed.key)
    deployment.landing.put_elsewhere(_OLD, "orders/2024/b.csv", b"id\nother\n")
    progress = _run(deployment)
    assert progress.steps == {Step.EXPIRED: 1, Step.COPIED: 2, Step.IGNORED: 1}
    assert progress.ended == {State.PUBLISHED: 3}


def test_a_table_has_one_backfill_at_a_time(deployment: Deployment) -> None:
    """A second one is refused while the first goes on; after a kill it may begin in a while."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once=1)
    first = backfill(deployment.adapters, request, deployment.settle)
    next(first)
    with pytest.raises(LakegateError, match="BACKFILL_RUNS"):
        _run(deployment)
    next(first)
    deployment.clock.pass_(901)
    assert _run(deployment).ended == {State.PUBLISHED: 3}
    del first  # which ends it
    assert _run(deployment).steps == {Step.BROUGHT: 3, Step.IGNORED: 1}


def test_hidden_folders_are_left_out(deployment: Deployment) -> None:
    """Files in folders of work in progress are not copied: the gate would ignore them."""
    _files(deployment, "_delta_log/0.json", "_year=2026/a.csv")
    assert _run(deployment).steps == {Step.COPIED: 4, Step.IGNORED: 2}


def test_failures_are_told(deployment: Deployment) -> None:
    """A file that the gate rejects is among the failed, with its ingestion."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET)
    steps = backfill(deployment.adapters, request, deployment.settle)
    next(steps)
    landed = next(iter(deployment.landing.landed()))
    deployment.script(landed, rejected)
    *_, progress = steps
    assert progress.ended == Counter({State.PUBLISHED: 2, State.REJECTED: 1})
    assert [each.id for each in progress.failed] == [ingestion_id(landed)]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("s3://old/orders/2024", ("old", "orders/2024")),
        ("s3://old", ("old", "")),
        ("s3://old/a b#1/ü.csv", ("old", "a b#1/ü.csv")),
        ("s3://old/what?/100%/[x", ("old", "what?/100%/[x")),
    ],
)
def test_a_source_is_a_prefix_in_s3(address: str, found: tuple[str, str]) -> None:
    """A source is a bucket and a prefix, which may have any characters."""
    assert source_of(address, "landing") == found


@pytest.mark.parametrize("address", ["/data/orders", "orders/", "s3:///orders", "s3://landing/a/"])
def test_other_places_are_refused(address: str) -> None:
    """A place outside S3 is refused, as is the landing bucket, whose files come in anyway."""
    with pytest.raises(LakegateError, match="BAD_SOURCE"):
        source_of(address, "landing")
