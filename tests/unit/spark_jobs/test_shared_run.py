"""A shared run's loop over its work queue."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from threading import Event
from typing import Any

import pytest

from lakegate.errors import Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import MOST_FILES
from lakegate.limits import Limits
from spark_jobs.shared.work_queue import HIDDEN_SECONDS, Waiting
from tests.fakes.served_files import RUN, Died, World, spec_of
from tests.waiting import eventually


@pytest.fixture
def world() -> World:
    return World()


def test_what_waits_is_ingested_in_groups_and_named_once(world: World) -> None:
    """Groups have files of one table and contract, at most 100; each report is named once."""
    specs = [spec_of(n, f"shop.t{n % 2}") for n in range(250)]
    world.put(*specs)
    world.serve()
    assert max(map(len, world.files.groups)) <= MOST_FILES
    tables = {spec.ingestion: spec.table for spec in specs}
    assert all(len({tables[id_] for id_ in group}) == 1 for group in world.files.groups)
    assert sorted(world.named) == sorted(spec.report_key for spec in specs)
    assert world.queues.waiting == 0
    assert {judged.run for judged in world.queues.judged} == {"run-1"}


@pytest.mark.parametrize(
    "other",
    [
        {"contract_version": "c2"},
        {"contract_key": "contracts/other.yaml"},
        {"limits": Limits(longest_line=5)},
        {"null_unreadable": True},
    ],
)
def test_files_with_other_terms_are_in_another_group(world: World, other: dict[str, Any]) -> None:
    """Files share a group only if everything that decides how they are read is the same."""
    world.put(spec_of(1), spec_of(2), spec_of(3, **other), spec_of(4, **other))
    world.serve()
    assert [len(group) for group in world.files.groups] == [2, 2]


def test_a_file_that_does_not_pass_together_is_ingested_alone(world: World) -> None:
    """Files that passed together are named first, at once; the others follow."""
    world.files.odd = {spec_of(2).ingestion}
    world.put(spec_of(1), spec_of(2), spec_of(3))
    world.serve()
    keys = [spec_of(n).report_key for n in (1, 3, 2)]
    assert [judged.reports for judged in world.queues.judged] == [(keys[0], keys[1]), (keys[2],)]
    assert world.files.markers == set()


def test_a_run_ends_when_no_file_came_for_a_while(world: World) -> None:
    """A run waits for files, 20 seconds at a time and never beyond its idle time."""
    world.queues.put(spec_of(1).to_argument(), after=50)
    world.serve()
    assert world.named == [spec_of(1).report_key]
    assert world.clock.at == 50 + RUN.idle_seconds
    assert all(poll <= RUN.idle_seconds for poll in world.queues.polls)
    assert world.queues.polls[-1] <= 20


@pytest.mark.parametrize(("minutes", "taken"), [(60, 50), (8, 6)])
def test_a_run_takes_no_file_near_its_end(world: World, minutes: int, taken: int) -> None:
    """The last ten minutes, or the last quarter of a short run, are for what is in hand."""
    for minute in range(minutes):
        world.queues.put(spec_of(minute).to_argument(), after=60 * minute)
    world.serve(replace(RUN, timeout_minutes=minutes))
    assert len(world.named) == taken
    assert world.clock.at <= 60 * taken


def test_a_run_takes_no_file_when_its_token_ends(world: World) -> None:
    """A run whose token lasts no longer than its last ten minutes takes nothing."""
    world.put(spec_of(1))
    world.files.lasts = 599
    world.serve()
    assert (world.named, world.queues.waiting) == ([], 1)


def test_a_group_is_tried_once_more_after_a_transient_error(world: World) -> None:
    """After a moment the same files are ingested together again, and no message is put back."""
    world.files.failures[spec_of(1).ingestion] = 1
    specs = [spec_of(number) for number in range(5)]
    world.put(*specs)
    world.serve()
    assert world.files.groups == [[spec.ingestion for spec in specs]] * 2
    assert [judged.reports for judged in world.queues.judged] == [
        tuple(spec.report_key for spec in specs)
    ]
    assert (world.queues.hidden, world.clock.waits[0]) == ([], 1)


def test_a_second_transient_error_puts_a_group_back(world: World) -> None:
    """After two errors in a row the files come again soon, and each is reported once."""
    world.files.failures[spec_of(1).ingestion] = 2
    world.put(spec_of(1), spec_of(2), spec_of(3, "shop.other"))
    world.serve()
    assert world.named[0] == spec_of(3, "shop.other").report_key
    assert sorted(world.named) == sorted(world.files.reports)
    assert Counter(seconds for _, seconds in world.queues.hidden) == {5: 2}
    assert len(world.files.reports) == 3


def test_transient_errors_alone_give_no_file_a_run_of_its_own(world: World) -> None:
    """A file whose tries all end with a transient error stays with the shared run."""
    world.files.failures[spec_of(1).ingestion] = 9
    world.put(spec_of(1))
    world.serve()
    assert (world.named, world.alone) == ([spec_of(1).report_key], [])


def test_a_file_without_hope_of_a_report_here_gets_a_run_of_its_own(world: World) -> None:
    """A permanent error is not tried again in the run, which goes on with the others at once."""
    world.files.hopeless = {spec_of(1).ingestion}
    world.put(spec_of(1), spec_of(2, "shop.other"))
    world.serve()
    assert world.alone == [spec_of(1).name]
    assert (world.named, world.queues.waiting) == ([spec_of(2, "shop.other").report_key], 0)
    assert world.clock.waits == []


def test_a_program_that_ends_itself_ends_no_run(world: World) -> None:
    """If reading files together calls for the process's end, they are ingested one by one."""
    world.files.leaving = {spec_of(1).ingestion}
    world.put(spec_of(1), spec_of(2))
    world.serve()
    assert sorted(world.named) == sorted(spec_of(n).report_key for n in (1, 2))


def test_many_transient_errors_do_not_spin(world: World) -> None:
    """The run rests after each error in a row, longer each time, up to a minute."""
    world.put(*(spec_of(n, f"shop.t{n}") for n in range(9)))
    for n in range(9):
        world.files.failures[spec_of(n).ingestion] = 1
    world.serve()
    assert world.clock.waits[:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_same_file_twice_in_hand_is_ingested_once(world: World) -> None:
    """A file that two messages name is ingested once, and both messages are deleted."""
    world.put(spec_of(1), spec_of(2), spec_of(1))
    world.serve()
    assert world.files.groups == [[spec_of(1).ingestion, spec_of(2).ingestion]]
    assert (len(world.named), world.queues.waiting) == (2, 0)


def test_a_copy_of_a_message_spoils_no_group(world: World) -> None:
    """A file whose message comes twice, the second time with others, is ingested once."""
    first, others = spec_of(1), [spec_of(number) for number in (2, 3)]
    world.files.meanwhile = lambda: (
        world.put(first, *others) if len(world.files.groups) == 1 else None
    )
    world.put(first, spec_of(4))
    world.serve()
    assert world.files.groups == [
        [first.ingestion, spec_of(4).ingestion],
        [s.ingestion for s in others],
    ]
    assert (world.files.reports.count(first.report_key), world.queues.waiting) == (1, 0)


def test_a_copy_that_comes_after_the_report_is_only_named(world: World) -> None:
    """Whatever run takes it: files are not ingested again, and nobody waits behind them."""
    specs = [spec_of(number) for number in range(5)]
    world.put(*specs)
    world.serve()
    groups, looked_up = len(world.files.groups), world.files.looked_up
    world.put(*specs, spec_of(5), spec_of(6))
    world.serve()
    assert [len(group) for group in world.files.groups[groups:]] == [2]
    assert world.files.looked_up - looked_up == 7
    assert sorted(world.files.reports) == sorted(spec_of(n).report_key for n in range(7))
    assert world.queues.waiting == 0


def test_files_in_hand_outlast_an_outage_of_nessie(world: World) -> None:
    """They stay in hand, and are ingested together once Nessie answers again."""
    tables = ("shop.orders", "shop.returns", "shop.stock")
    specs = [spec_of(10 * n + m, table) for n, table in enumerate(tables) for m in range(4)]
    world.files.meanwhile = lambda: setattr(world.files, "outage", (0, 1000))
    world.put(*specs)
    world.serve()
    assert Counter(map(len, world.files.groups)) == {4: 4}  # the first was tried twice
    assert world.queues.hidden == []
    assert sorted(world.named) == sorted(spec.report_key for spec in specs)
    assert world.clock.at < 1000 + 60 + RUN.idle_seconds + 1


def test_an_outage_of_nessie_puts_back_one_file_at_most(world: World) -> None:
    """What failed by itself is put back; what is still to be begun waits for Nessie in hand."""
    specs = [spec_of(number, f"shop.t{number}") for number in range(4)]
    world.files.meanwhile = lambda: setattr(world.files, "outage", (0, 1000))
    world.put(*specs)
    world.serve()
    assert world.queues.hidden == [("m0", 5)]
    assert sorted(world.named) == sorted(spec.report_key for spec in specs)


def test_an_outage_that_outlasts_the_run_loses_no_file(world: World) -> None:
    """The run ends in time, and what it had in hand waits for the next one."""
    specs = [spec_of(1), spec_of(2), spec_of(3, "shop.other"), spec_of(4, "shop.other")]
    world.files.meanwhile = lambda: setattr(world.files, "outage", (0, inf))
    world.put(*specs)
    world.serve()
    world.clock.at += HIDDEN_SECONDS
    assert (world.named, world.queues.waiting) == ([], 4)
    assert world.clock.at <= 60 * RUN.timeout_minutes
    assert len(world.files.groups) == 2
    world.files.meanwhile = lambda: None
    world.files.outage = (inf, inf)
    world.serve()
    assert sorted(world.named) == sorted(spec.report_key for spec in specs)


def test_reports_are_looked_up_until_s3_answers(world: World) -> None:
    """Files stay in hand, and go together, although their reports could not be looked up."""
    times = iter([Transient("STORAGE_UNAVAILABLE", "S3 did not answer")] * 3)
    look_up = world.files.reported

    def reported(specs: Sequence[JobSpec]) -> set[str]:
        if error := next(times, None):
            raise error
        return look_up(specs)

    world.files.reported = reported  # type: ignore[method-assign]
    world.put(spec_of(1), spec_of(2))
    world.serve()
    assert [len(group) for group in world.files.groups] == [2]
    assert (world.queues.hidden, world.clock.waits[:3]) == ([], [1, 2, 4])


def test_an_unreadable_message_is_deleted(world: World) -> None:
    """A message that is no job spec is deleted, and the others are ingested."""
    for text in ("", "[]", "{", '{"ingestion": 1}'):
        world.queues.put(text)
    world.put(spec_of(1))
    world.serve()
    assert (world.named, world.queues.waiting) == ([spec_of(1).report_key], 0)


def test_a_file_with_no_place_in_a_shared_run_gets_its_own(world: World) -> None:
    """A change, a batch's manifest or a re-audit is left to a run of its own."""
    world.put(spec_of(1, change=True), spec_of(2, reaudit_base="b" * 64))
    world.serve()
    assert sorted(world.alone) == sorted(spec_of(n).name for n in (1, 2))
    assert world.files.groups == []


@pytest.mark.parametrize("pattern", ["shop.orders", "shop.*", "*"])
def test_a_file_of_a_table_that_is_apart_gets_a_run_of_its_own(world: World, pattern: str) -> None:
    """A run neither reads nor ingests it, not even where its report exists."""
    world.put(spec_of(1), spec_of(2), spec_of(3, "hr.salaries"), spec_of(4, "hr.salaries"))
    world.files.reports.append(spec_of(2).report_key)
    world.files.failures[spec_of(1).ingestion] = 99
    world.serve(replace(RUN, apart=(pattern,)))
    others = [3, 4] if pattern == "*" else []
    assert sorted(world.alone) == sorted(spec_of(n).name for n in (1, 2, *others))
    assert len(world.named) == 2 - len(others)


@pytest.mark.parametrize(("apart", "alone"), [((), 0), (("shop.other",), 1)])
def test_a_file_that_reads_other_tables_may_read_them_all(
    world: World, apart: tuple[str, ...], alone: int
) -> None:
    """If the run has no rights to some table, such a file gets a run of its own, with rights."""
    world.put(spec_of(1, reads_others=True))
    world.serve(replace(RUN, apart=apart))
    assert (len(world.alone), len(world.named)) == (alone, 1 - alone)


def test_a_file_that_ends_runs_holds_up_nobody(world: World) -> None:
    """A file that ends two runs gets a run of its own; all others are reported once.

    In the first run it was in a group, in the second it was alone in work.
    """
    bad = spec_of(5)
    world.files.deadly = {bad.ingestion}
    world.put(*(spec_of(n) for n in range(10)))
    for _ in range(2):
        with pytest.raises(Died):
            world.serve()
        world.clock.at += HIDDEN_SECONDS
    world.serve()
    assert world.alone == [bad.name]
    others = {spec_of(n).report_key for n in range(10) if n != 5}
    assert set(world.named) == others
    assert sorted(world.files.reports) == sorted(others)
    assert world.queues.waiting == 0


def test_a_file_with_a_report_is_not_ingested_again(world: World) -> None:
    """A file that comes again after its report was written is named, and not ingested."""
    world.put(spec_of(1))
    world.queues.take(0)  # a run that died after it wrote the report
    world.files.reports.append(spec_of(1).report_key)
    world.clock.at += HIDDEN_SECONDS
    world.serve()
    assert world.named == world.files.reports == [spec_of(1).report_key]


def test_what_is_in_hand_stays_hidden(world: World) -> None:
    """A message is hidden again and again while its file is in work, and not after it."""
    world.files.meanwhile = lambda: eventually(lambda: len(world.queues.hidden) > 3)
    world.put(spec_of(1))
    world.serve(pause=0.001)
    assert {seconds for _, seconds in world.queues.hidden} == {HIDDEN_SECONDS}
    assert world.named == [spec_of(1).report_key]


def test_what_was_put_back_is_not_hidden_again(world: World) -> None:
    """A message that was put back comes again after its five seconds, whatever else is in work."""
    world.files.failures[spec_of(1).ingestion] = 1
    world.put(spec_of(1), spec_of(2, "shop.other"))
    after: list[list[tuple[str, int]]] = []

    def meanwhile() -> None:
        if ("m0", 5) in (hidden := world.queues.hidden) and not after:
            at = hidden.index(("m0", 5))
            eventually(lambda: len(hidden) > at + 3)
            after.append(hidden[at + 1 :])

    world.files.meanwhile = meanwhile
    world.serve(pause=0.001)
    assert {id_ for id_, _ in after[0]} == {"m1"}


def test_what_is_done_is_not_hidden_any_more(world: World) -> None:
    """While messages are being hidden anew, none of them is deleted or put back."""
    hiding, deleted, overlaps = Event(), Event(), list[bool]()
    hide, delete = world.queues.hide, world.queues.delete

    def slow_hide(messages: Sequence[Waiting], seconds: int) -> None:
        hiding.set()
        overlaps.append(deleted.wait(0.05 if messages else 0))
        hide(messages, seconds)

    def delete_and_say(messages: Sequence[Waiting]) -> None:
        deleted.set()
        delete(messages)

    world.queues.hide = slow_hide  # type: ignore[method-assign]
    world.queues.delete = delete_and_say  # type: ignore[method-assign]
    world.files.meanwhile = hiding.wait
    world.put(spec_of(1))
    world.serve(pause=0.001)
    assert not overlaps[0]


def test_the_runs_own_places_hold(world: World) -> None:
    """Whatever a message says, the run uses its own lake, Nessie and secret."""
    seen: list[JobSpec] = []
    world.files.ingest_alone = seen.append  # type: ignore[method-assign,assignment]
    world.put(spec_of(1, lake_bucket="theirs", token_secret="theirs", nessie_uri="http://theirs"))
    world.serve()
    assert [(s.lake_bucket, s.nessie_uri, s.token_secret) for s in seen] == [
        ("lake", "http://nessie", "secret")
    ]
