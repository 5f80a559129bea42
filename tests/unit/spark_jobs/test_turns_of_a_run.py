"""A shared run's turns: files of one table that come in one message, in their order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import Turn
from spark_jobs.shared.work_queue import HIDDEN_SECONDS
from tests.fakes.served_files import RUN, Died, World, spec_of

FIRST, SECOND, THIRD = SPECS = tuple(map(spec_of, range(3)))


@pytest.fixture
def world() -> World:
    return World()


def names(*specs: JobSpec) -> list[str]:
    return [spec.name for spec in specs]


def keys(*specs: JobSpec) -> list[str]:
    return [spec.report_key for spec in specs]


def test_a_turn_is_ingested_in_its_order_and_named_once(world: World) -> None:
    """All files of a turn are ingested together, and one message names their reports."""
    world.put_turn(*SPECS)
    world.serve()
    assert world.files.groups == [[spec.ingestion for spec in SPECS]]
    (judged,) = world.queues.judged
    assert (list(judged.reports), judged.alone, judged.again) == (keys(*SPECS), (), ())
    assert world.queues.waiting == 0


def test_the_others_of_a_turn_come_again(world: World) -> None:
    """Files after the first that does not pass cleanly are named, and the run leaves them alone."""
    world.files.odd = {SECOND.ingestion}
    world.put_turn(*SPECS)
    world.serve()
    assert (world.named, world.alone, world.again) == (keys(FIRST), [], names(SECOND, THIRD))
    assert world.files.reports == keys(FIRST)
    assert world.queues.waiting == 0


@pytest.mark.parametrize("why", ["odd", "deadly", "leaving"])
def test_a_first_file_that_goes_alone_goes_first(world: World, why: str) -> None:
    """If the first file cannot be ingested with others it is ingested alone, and no other is."""
    if why == "odd":
        world.files.odd = {FIRST.ingestion}
    else:
        setattr(world.files, why, {THIRD.ingestion})
    world.put_turn(*SPECS)
    world.serve()
    assert (world.named, world.alone, world.again) == (keys(FIRST), [], names(SECOND, THIRD))


def test_only_the_first_files_of_a_turn_count_as_ingested(world: World) -> None:
    """If others than the first are reported, the first is ingested alone and the others wait."""
    world.files.ingest_in_order = lambda specs: {*names(SECOND)}  # type: ignore[method-assign]
    world.put_turn(*SPECS)
    world.serve()
    assert (world.named, world.again) == (keys(FIRST), names(SECOND, THIRD))


def test_a_turn_whose_run_died_goes_on_with_its_first_file_alone(world: World) -> None:
    """After a death the first file is ingested alone; after two it gets a run of its own."""
    world.files.deadly = {FIRST.ingestion}
    world.put_turn(*SPECS)
    for _ in range(2):
        with pytest.raises(Died):
            world.serve()
        world.clock.at += HIDDEN_SECONDS
    world.serve()
    assert (world.named, world.alone) == ([], names(FIRST))
    assert world.again == names(SECOND, THIRD)
    assert world.queues.waiting == 0


def test_what_a_dead_run_reported_is_named(world: World) -> None:
    """If a run died after it had stored reports, these are named, and nothing is ingested."""
    world.put_turn(*SPECS)
    world.queues.take(0)
    world.files.reports = keys(FIRST, SECOND)
    world.clock.at += HIDDEN_SECONDS
    world.serve()
    assert (world.named, world.again) == (keys(FIRST, SECOND), names(THIRD))
    assert world.files.groups == []


def test_a_copy_of_a_turn_ingests_nothing_twice(world: World) -> None:
    """A turn that the queue delivers twice at once is ingested once."""
    for _ in range(2):
        world.put_turn(*SPECS)
    world.serve()
    assert world.files.reports == keys(*SPECS)
    assert set(world.named) == set(keys(*SPECS))
    assert world.queues.waiting == 0


def test_a_turn_is_tried_once_more_after_a_transient_error(world: World) -> None:
    """A turn outlasts one error of Nessie or S3 whole."""
    world.files.failures[SECOND.ingestion] = 1
    world.put_turn(*SPECS)
    world.serve()
    assert (world.named, world.again) == (keys(*SPECS), [])


def test_a_turn_that_fails_twice_comes_again(world: World) -> None:
    """After two errors the message comes again, with all files of the turn."""
    world.files.failures[THIRD.ingestion] = 2
    world.put_turn(*SPECS)
    world.serve()
    assert (world.named, world.again) == (keys(FIRST), names(SECOND, THIRD))
    assert world.queues.waiting == 0


def test_a_turn_with_a_file_that_cannot_share_is_split(world: World) -> None:
    """All files of a table that the run may not touch get runs of their own, one by one."""
    world.put_turn(*SPECS)
    world.serve(replace(RUN, apart=(FIRST.table,)))
    assert (world.named, world.alone, world.again) == ([], names(*SPECS), [])
    assert world.files.groups == []


def test_the_runs_own_places_hold_in_a_turn(world: World) -> None:
    """Whatever a turn's message says, the run uses its own lake, Nessie and secret."""
    seen = list[JobSpec]()
    ingest = world.files.ingest_in_order

    def ingest_and_see(specs: Sequence[JobSpec]) -> set[str]:
        seen.extend(specs)
        return ingest(specs)

    world.files.ingest_in_order = ingest_and_see  # type: ignore[method-assign]
    world.put_turn(*(replace(spec, lake_bucket="x", token_secret="x") for spec in SPECS))
    world.serve()
    assert {(each.lake_bucket, each.token_secret, each.nessie_uri) for each in seen} == {
        (RUN.lake_bucket, RUN.token_secret, RUN.nessie_uri)
    }


@pytest.mark.parametrize("body", ['{"turn": []}', '{"turn": 1}', '{"turn": [{}]}'])
def test_a_turn_that_nobody_can_read_is_deleted(world: World, body: str) -> None:
    """A message without a readable turn is deleted, so that it does not come again for ever."""
    world.queues.put(body)
    world.serve()
    assert (world.queues.judged, world.queues.waiting) == ([], 0)


def test_a_turn_of_two_tables_is_none(world: World) -> None:
    """Files of several tables in one turn are nobody's, as no commit could take them."""
    world.queues.put(Turn((FIRST, spec_of(7, "shop.other"))).to_argument())
    world.serve()
    assert (world.files.reports, world.queues.waiting) == ([], 0)
