"""Existing files come through the gate, each once, however often a backfill is repeated."""

from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from access.files.backfill import Backfill, Progress, Step, backfill, source_of
from functions.model.ingestion import State
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.faults import Fault, ProcessDied, When, die
from tests.fakes.job import rejected

_OLD = "old"
_TARGET = "shop/orders/history/"


def _files(deployment: Deployment, *names: str) -> None:
    for name in names:
        deployment.landing.put_elsewhere(_OLD, f"orders/{name}", f"id\n{name}\n".encode())


def _run(deployment: Deployment, prefix: str = "orders/", table: str = TABLE) -> Progress:
    request = Backfill(table, _OLD, prefix, _TARGET)
    *_, last = backfill(deployment.adapters, request, deployment.settle)
    return last


def _expire(deployment: Deployment, *, expired: bool) -> None:
    """Let the copies expire from the landing bucket, if they do."""
    for landed in list(deployment.landing.landed()) if expired else ():
        deployment.landing.delete(landed.key)


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
    assert progress.steps == {Step.PUBLISHED: 2, Step.COPIED: 2, Step.IGNORED: 1}
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


def test_a_file_that_landed_since_is_not_replaced(deployment: Deployment) -> None:
    """A newer state of a source does not land on what somebody put under its key meanwhile."""
    _run(deployment)
    deployment.land(f"{_TARGET}2024/a.csv")
    deployment.landing.put_elsewhere(_OLD, "orders/2024/a.csv", b"id\nother\n")
    assert [each.step for each in _run(deployment).left] == [Step.TAKEN]


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
    assert progress.steps == {Step.PUBLISHED: 1, Step.COPIED: 2, Step.IGNORED: 1}
    assert progress.ended == {State.PUBLISHED: 3}


@pytest.mark.parametrize("prefix", ["orders/2024/", "orders/20", "ord", ""])
@pytest.mark.parametrize("expired", [False, True], ids=["still landed", "expired"])
def test_another_prefix_doubles_no_row(deployment: Deployment, prefix: str, expired: bool) -> None:
    """A file is known by its source, wherever it would land by the prefix of the repetition."""
    _run(deployment)
    rows = deployment.tables.rows(TABLE, "main").live
    _expire(deployment, expired=expired)
    progress = _run(deployment, prefix)
    assert Step.COPIED not in progress.steps
    assert progress.left == ()
    assert deployment.tables.rows(TABLE, "main").live == rows


def test_a_source_lands_where_it_landed_first(deployment: Deployment) -> None:
    """A newer state of a source is a newer version of the same key, whatever the prefix."""
    _run(deployment)
    deployment.landing.put_elsewhere(_OLD, "orders/2024/a.csv", b"id\nother\n")
    assert _run(deployment, "orders/2024/").steps == {Step.COPIED: 1, Step.PUBLISHED: 1}
    keys = [each.key for each in deployment.landing.landed()]
    assert keys.count(f"{_TARGET}2024/a.csv") == 2
    assert f"{_TARGET}a.csv" not in keys


@pytest.mark.parametrize("expired", [False, True], ids=["still landed", "expired"])
def test_a_corrected_source_of_the_same_size_is_copied(
    deployment: Deployment, expired: bool
) -> None:
    """A source is known by its content, not by its size, also after LandingDays."""
    _run(deployment)
    _expire(deployment, expired=expired)
    deployment.landing.put_elsewhere(_OLD, "orders/2024/a.csv", b"id\n2024/z.csv\n")
    progress = _run(deployment)
    assert progress.steps == {Step.COPIED: 1, Step.PUBLISHED: 2, Step.IGNORED: 1}


def test_another_sources_copy_is_not_replaced(deployment: Deployment) -> None:
    """Two sources that would have one key are not versions of one file: the second is left."""
    _files(deployment, "a.csv")
    _run(deployment)
    rows = deployment.tables.rows(TABLE, "main").live
    for expired in (False, True):
        _expire(deployment, expired=expired)
        _files(deployment, "2026/a.csv")
        (left,) = _run(deployment, "orders/2026/").left
        assert (left.step, left.key) == (Step.TAKEN, f"{_TARGET}a.csv")
    assert deployment.tables.rows(TABLE, "main").live == rows


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_backfill_that_was_killed_copies_each_file_once(
    deployment: Deployment, when: When
) -> None:
    """Whether the copy ended is read from the landing bucket, where the ledger does not say."""
    deployment.journal.strike("landing.bring", Fault(die, when, 1))
    with pytest.raises(ProcessDied):
        _run(deployment)
    progress = _run(deployment, "orders/2024/")
    assert not progress.left
    _run(deployment)
    keys = [each.key for each in deployment.landing.landed()]
    assert len(keys) == len(set(keys)) == 3
    _expire(deployment, expired=True)
    assert Step.COPIED not in _run(deployment).steps


def test_a_copy_that_expired_after_a_kill_is_not_brought_again(deployment: Deployment) -> None:
    """A file that was published doubles no row, though the backfill died before it noted it."""
    deployment.journal.strike("landing.bring", Fault(die, "after", 1))
    with pytest.raises(ProcessDied):
        _run(deployment)
    deployment.settle()
    _expire(deployment, expired=True)
    _run(deployment)
    landed = Counter(each.landed.key for each in deployment.ledger.all())
    assert len(landed) == landed.total() == 3


def test_a_table_has_its_own_copies(deployment: Deployment) -> None:
    """A source that was brought to one table is brought to another one, too."""
    _run(deployment)
    request = Backfill("shop.returns", _OLD, "orders/", "shop/returned/")
    *_, progress = backfill(deployment.adapters, request, deployment.settle)
    assert progress.steps == {Step.COPIED: 3, Step.IGNORED: 1}


@pytest.mark.parametrize(("changed", "step"), [(False, Step.PUBLISHED), (True, Step.TAKEN)])
def test_what_an_older_release_brought_is_known_by_its_content(
    deployment: Deployment, changed: bool, step: Step
) -> None:
    """What expired, and of which the ledger has no copy, is skipped if the bytes are the same.

    Otherwise it is left, and told: it may be another file, or a newer one.
    """
    _run(deployment)
    _expire(deployment, expired=True)
    deployment.ledger.forget_copies()
    if changed:
        deployment.landing.put_elsewhere(_OLD, "orders/2024/a.csv", b"id\n2024/z.csv\n")
    progress = _run(deployment)
    assert next(f.step for f in progress.skipped if f.source.key == "orders/2024/a.csv") is step
    assert Step.COPIED not in progress.steps
    assert bool(progress.left) is changed


def test_what_is_skipped_is_told_with_its_reason(deployment: Deployment) -> None:
    """Every file that is not copied is listed, also one that needs no decision."""
    _run(deployment)
    deployment.landing.put_elsewhere(_OLD, "orders/2024/b.csv", b"id\nother\n")
    skipped = _run(deployment).skipped
    assert {(file.source.key, file.step) for file in skipped} == {
        ("orders/2024/a.csv", Step.PUBLISHED),
        ("orders/2025/a.csv", Step.PUBLISHED),
        ("orders/_SUCCESS", Step.IGNORED),
    }


def test_a_table_has_one_backfill_at_a_time(deployment: Deployment) -> None:
    """A second one is refused while the first goes on; after a kill it may begin in a while."""
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, at_once=1)
    first = backfill(deployment.adapters, request, deployment.settle)
    next(first)
    with pytest.raises(LakegateError, match="BACKFILL_RUNS"):
        _run(deployment)
    deployment.clock.pass_(800)
    next(first)
    begun = deployment.clock.now()
    deployment.clock.pass_(800)
    with pytest.raises(LakegateError, match="BACKFILL_RUNS") as refused:
        _run(deployment)
    end = times.moment(times.earlier(begun, timedelta(minutes=-15)))
    assert f"if it was killed, repeat the command after {end}" in refused.value.message
    deployment.clock.pass_(101)
    assert _run(deployment).ended == {State.PUBLISHED: 3}
    del first  # which ends it
    assert _run(deployment).steps == {Step.PUBLISHED: 3, Step.IGNORED: 1}


@pytest.mark.parametrize("prefix", ["orders/", "orders/2024/", ""])
@pytest.mark.parametrize("call", ["ledger.brought", "ledger.save_brought", "landing.bring"])
def test_a_backfill_that_hung_for_long_copies_no_file_twice(
    deployment: Deployment, call: str, prefix: str
) -> None:
    """While it hung another one brought its files: it finds them, or is refused."""

    def hang() -> None:
        deployment.clock.pass_(1000)
        assert _run(deployment, prefix).ended[State.PUBLISHED] >= 2

    deployment.journal.strike(call, Fault(hang, "before", 1))
    request = Backfill(TABLE, _OLD, "orders/", _TARGET, in_order=True)
    with suppress(LakegateError):
        list(backfill(deployment.adapters, request, deployment.settle))
    assert _run(deployment).left == ()
    keys = Counter(each.key for each in deployment.landing.landed())
    assert len(keys) == keys.total() == 3


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
    assert source_of(address, ["landing"]) == found


@pytest.mark.parametrize("address", ["/data/orders", "orders/", "s3:///orders", "s3://landing/a/"])
def test_other_places_are_refused(address: str) -> None:
    """A place outside S3 is refused, as is the landing bucket, whose files come in anyway."""
    with pytest.raises(LakegateError, match="BAD_SOURCE"):
        source_of(address, ["landing"])
