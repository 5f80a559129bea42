"""A compaction reaches main with the same rows, or leaves no trace; no file waits for it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from functions.adapters.emr import RunState
from functions.adapters.iceberg.files import TableSize
from functions.adapters.nessie import MAIN, UnknownBranch
from functions.model.budget import Use
from functions.model.ingestion import State
from functions.model.notes.compactions import Compaction
from functions.operations.compaction import compact as compaction
from functions.operations.compaction.compact import Need, Progress, Step
from functions.operations.reconcile.compare import reconciled
from lakegate.audit.audit_tables import RESULTS
from lakegate.errors import Permanent, Transient
from lakegate.job.upkeep import FEWEST
from tests.fakes.catalog import FakeTable
from tests.fakes.compaction import run_compaction
from tests.fakes.deployment import ORDERS, TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.scenario import FOREVER, Scenario

DAY = 24 * 60 * 60


A_LITTLE, A_LOT = Use(0.01), Use(99.0)


class Upkeep(Scenario):
    """A deployment whose table has so many small files that it is to be compacted."""

    def __init__(self) -> None:
        super().__init__()
        for number in range(FEWEST):
            self.land(f"shop/orders/{number}.parquet")
            self.settle()

    def begin(self) -> Compaction:
        """Start a compaction; return it as the ledger has it."""
        (need,) = compaction.needs(self.adapters, TABLE)
        assert need.why_not == ""
        assert compaction.start(self.adapters, need).step is Step.STARTED
        return self.now()

    def start(self, *, loses: int = 0) -> Compaction:
        """Start a compaction and run both of its jobs; return it as the ledger has it."""
        self.rewritten(loses=loses)
        self.settle_it()
        self.run_job()
        return self.now()

    def rewritten(self, *, loses: int = 0) -> Compaction:
        """Start a compaction and run its first job; return it as the ledger has it."""
        self.begin()
        self.run_job(loses=loses)
        return self.now()

    def run_job(self, *, loses: int = 0) -> None:
        (run,) = (each for each in self.jobs.runs() if not each.has_ended)
        run_compaction(run.id, self.catalog, self.lake, self.jobs, loses=loses)

    def run_jobs_that_can(self) -> None:
        """Run the jobs; one whose branch is gone fails."""
        for run in [each for each in self.jobs.runs() if not each.has_ended]:
            try:
                run_compaction(run.id, self.catalog, self.lake, self.jobs)
            except UnknownBranch:
                self.jobs.end(run.id, RunState.FAILED)

    def now(self) -> Compaction:
        (begun,) = compaction.under_way(self.adapters)
        return begun

    def settled(self, *, loses: int = 0) -> Progress:
        """Compact the table, to the end."""
        self.start(loses=loses)
        return self.settle_it()

    def settle_it(self) -> Progress:
        return compaction.settle(self.adapters, self.now())

    def nothing_left(self) -> bool:
        """Return whether no compaction is under way, and no branch of one is left."""
        branches = self.catalog.branches("upkeep/", "publish/")
        return not branches and not list(compaction.under_way(self.adapters))

    @property
    def main_table(self) -> FakeTable:
        found = self.catalog.table(MAIN, TABLE)
        assert found
        return found

    @property
    def rows(self) -> int:
        return self.tables.rows(TABLE, MAIN).live

    def why_not(self) -> str:
        (need,) = compaction.needs(self.adapters, TABLE)
        return need.why_not


@pytest.fixture
def lake() -> Upkeep:
    return Upkeep()


def test_small_files_become_one(lake: Upkeep) -> None:
    """Main has one data file with all rows, its log says so, and no branch is left."""
    before = lake.rows
    done = lake.settled()
    assert done.step is Step.PUBLISHED
    assert len(lake.main_table.files) == 1
    assert lake.rows == before
    assert next(lake.catalog.log()).message == f"Compact {FEWEST} data files of {TABLE} to 1"
    assert lake.catalog.branches("upkeep/", "publish/") == []


def test_consumers_follow_it(lake: Upkeep) -> None:
    """Consumers are told to read main's new state, as the old data files will be deleted."""
    lake.settled()
    (told,) = lake.announcements.refreshes
    assert (told.table, told.metadata) == (
        TABLE,
        lake.catalog.metadata(lake.catalog.head(MAIN), TABLE),
    )
    assert told.position == lake.catalog.tip().position


def test_the_schedule_compacts_what_needs_it(lake: Upkeep) -> None:
    """The daily start and the sweep after the jobs' end do all of it; the next day has no work."""
    started = list(compaction.start_due(lake.adapters))
    assert [(each.table, each.step) for each in started] == [
        (RESULTS.name, Step.STARTED),
        (TABLE, Step.STARTED),
    ]
    assert list(compaction.start_due(lake.adapters)) == []
    for _ in ("rewrite", "compare"):
        for run in [each for each in lake.jobs.runs() if not each.has_ended]:
            run_compaction(run.id, lake.catalog, lake.lake, lake.jobs)
        assert lake.sweep()["compactions"] == 2
    assert len(lake.main_table.files) == 1
    assert [told.table for told in lake.announcements.refreshes] == [TABLE]
    assert list(compaction.start_due(lake.adapters)) == []
    assert lake.sweep()["compactions"] == 0


def test_two_processes_begin_one_compaction(lake: Upkeep) -> None:
    """If both found that the table needs it, the second one starts nothing."""
    (need,) = compaction.needs(lake.adapters, TABLE)
    lake.begin()
    begun = lake.now()
    second = compaction.start(lake.adapters, need)
    assert (second.step, second.why) == (Step.WAITS, "another process has begun it")
    assert lake.now() == begun


def test_a_refused_job_leaves_no_branch(lake: Upkeep) -> None:
    """If no job can be started, the error is raised and nothing is under way."""
    lake.journal.strike("jobs.start", Fault(_refuse, times=FOREVER))
    with pytest.raises(Permanent):
        list(compaction.start_due(lake.adapters))
    assert lake.catalog.branches("upkeep/") == []


def _refuse() -> None:
    raise Permanent("JOB_REFUSED", "EMR Serverless refused")


def test_reconcile_finds_nothing_to_blame(lake: Upkeep) -> None:
    """A compaction is neither a problem nor another writer's commit."""
    lake.settled()
    found = reconciled(lake.adapters, full=True)
    assert not found.problems
    assert not found.remarks


def test_a_file_that_was_published_meanwhile_stays(lake: Upkeep) -> None:
    """If main's table has grown, the new data file is registered there in place of the old ones."""
    lake.start()
    lake.run("shop/orders/late.parquet")
    lake.deliver()
    before = lake.rows
    assert lake.settle_it().step is Step.PUBLISHED
    assert len(lake.main_table.files) == 2
    assert lake.rows == before


def test_a_file_whose_branch_is_older_is_published_after_it(lake: Upkeep) -> None:
    """A file that was audited before the compaction is registered after it, without another run."""
    landed = lake.run("shop/orders/late.parquet")
    lake.start()
    assert lake.settle_it().step is Step.PUBLISHED
    ingestion = lake.end_of(landed)
    assert ingestion.state is State.PUBLISHED
    assert ingestion.attempt == 1
    assert len(lake.main_table.files) == 2


def test_it_is_dropped_if_its_files_are_gone(lake: Upkeep) -> None:
    """If main has replaced one of the old data files, main stays as it is."""
    lake.start()
    table = lake.main_table
    changed = replace(table, files=table.files[1:]).append("rewritten")
    lake.catalog.commit(MAIN, TABLE, changed)
    head = lake.catalog.head(MAIN)
    done = lake.settle_it()
    assert (done.step, lake.catalog.head(MAIN)) == (Step.DROPPED, head)
    assert lake.catalog.branches("upkeep/", "publish/") == []


def test_a_drop_that_died_is_ended_by_the_next_look(lake: Upkeep) -> None:
    """A compaction whose branch was deleted, and whose end was not saved, does not wait a day."""
    lake.start()
    table = lake.main_table
    changed = replace(table, files=table.files[1:]).append("rewritten")
    lake.catalog.commit(MAIN, TABLE, changed)
    lake.fail("ledger.save_compactions")
    with pytest.raises(Transient):
        lake.settle_it()
    assert lake.settle_it().step is Step.DROPPED
    assert lake.nothing_left()


def test_lost_rows_never_reach_main(lake: Upkeep) -> None:
    """If the fingerprints differ, the branch is dropped and main stays as it is."""
    head = lake.catalog.head(MAIN)
    done = lake.settled(loses=1)
    assert done.step is Step.DROPPED
    assert "the rows differ" in done.why
    assert lake.catalog.head(MAIN) == head


@pytest.mark.parametrize("table", [TABLE, "shop.others"])
def test_another_commit_on_its_branch_never_reaches_main(lake: Upkeep, table: str) -> None:
    """Main gets the data files that were compared, whatever came to the branch after them."""
    begun, before = lake.start(), lake.rows
    lake.catalog.append(begun.branch, table, "foreign")
    assert lake.settle_it().step is Step.PUBLISHED
    assert lake.rows == before
    assert "foreign" not in str(lake.catalog.tables_at(MAIN))


def test_main_set_back_stays_set_back(lake: Upkeep) -> None:
    """If main lost the commit at which the branch was created, nothing comes back."""
    earlier = list(lake.catalog.log())[3].hash
    lake.start()
    lake.catalog.reset(MAIN, earlier)
    assert lake.settle_it().step is Step.DROPPED
    assert lake.catalog.head(MAIN) == earlier


def test_it_waits_for_its_jobs_and_no_longer(lake: Upkeep) -> None:
    """It waits for both of its job runs, and is dropped after a day."""
    branch = lake.begin().branch
    assert lake.settle_it().step is Step.WAITS
    assert lake.why_not() == "it is being compacted"
    lake.run_job()
    for _ in range(2):
        assert lake.settle_it() == Progress(
            TABLE, branch, Step.WAITS, "its rows are being compared"
        )
    lake.clock.pass_(DAY)
    assert lake.settle_it().step is Step.DROPPED
    assert lake.nothing_left()


def test_what_main_has_already_counts_as_published(lake: Upkeep) -> None:
    """If the process dies after the merge, the next one says that it is published."""
    lake.start()
    lake.kill("announcements.send")
    with suppress(ProcessDied):
        lake.settle_it()
    assert len(lake.main_table.files) == 1
    assert lake.settle_it().step is Step.PUBLISHED
    assert lake.nothing_left()


def test_a_step_that_another_process_took_is_not_taken_again(lake: Upkeep) -> None:
    """A process with an older state of the compaction changes nothing, and this is no error."""
    begun = lake.rewritten()
    compaction.settle(lake.adapters, begun)
    now = lake.now()
    second = compaction.settle(lake.adapters, begun)
    assert (second.step, second.why) == (Step.WAITS, "another process takes its next step")
    assert lake.now() == now


def test_four_run_at_a_time(lake: Upkeep) -> None:
    """A fifth compaction waits, and leaves no trace."""
    needs = [Need(f"shop.t{number}", TableSize()) for number in range(5)]
    steps = [compaction.start(lake.adapters, each).step for each in needs]
    assert steps == [Step.STARTED] * 4 + [Step.WAITS]
    assert len(list(compaction.under_way(lake.adapters))) == 4
    assert len(lake.catalog.branches("upkeep/")) == 4


def test_no_table_waits_for_ever_behind_others(lake: Upkeep) -> None:
    """Of five that need it each day, of which four may start, the fifth is the next day's first.

    That holds though it has the fewest small files, and whatever became of the others.
    """
    needs = [Need(f"shop.t{number}", TableSize(scattered=90 - number)) for number in range(5)]
    days = []
    for _ in range(2):
        begun = list(compaction.start_due(lake.adapters, needs))
        days.append([each.table for each in begun if each.step is Step.STARTED])
        lake.clock.pass_(DAY)
        for each in list(compaction.under_way(lake.adapters)):
            compaction.settle(lake.adapters, each)
    assert days == [
        ["shop.t0", "shop.t1", "shop.t2", "shop.t3"],
        ["shop.t4", "shop.t0", "shop.t1", "shop.t2"],
    ]


def test_a_start_that_died_is_dropped_after_the_grace_time(lake: Upkeep) -> None:
    """What a process began and did not start waits no longer than events do."""
    lake.kill("jobs.start")
    with suppress(ProcessDied):
        lake.begin()
    assert lake.settle_it().step is Step.WAITS
    lake.clock.pass_(lake.settings.grace_seconds)
    assert lake.settle_it().step is Step.DROPPED
    assert lake.nothing_left()


def test_nothing_to_rewrite_is_nothing_to_compare(lake: Upkeep) -> None:
    """If the first run commits nothing, no second one is started."""
    lake.jobs.end(lake.begin().rewriting, RunState.SUCCESS)
    assert lake.settle_it().step is Step.DROPPED
    assert all(run.has_ended for run in lake.jobs.runs())


def test_a_change_in_flight_comes_first(lake: Upkeep) -> None:
    """A merge would make a change run again, so the compaction waits, and is dropped in the end."""
    lake.start()
    lake.change()
    lake.deliver()
    assert lake.settle_it().step is Step.WAITS
    lake.clock.pass_(DAY)
    assert lake.settle_it().step is Step.DROPPED


@pytest.mark.parametrize(
    "asks",
    [Upkeep.look_beyond, lambda lake: lake.replace_rows("overwrite")],
    ids=["checks the whole table", "replaces rows"],
)
def test_a_file_that_would_run_again_comes_first(
    lake: Upkeep, asks: Callable[[Upkeep], None]
) -> None:
    """A merge would make such a file run again, so the compaction waits until it is published."""
    lake.start()
    asks(lake)
    landed = lake.land("shop/orders/late.parquet")
    lake.deliver()
    before = lake.main_table
    assert "late.parquet" in lake.settle_it().why
    assert lake.main_table == before
    assert lake.end_of(landed).attempt == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{property: compaction, value: never}", "compaction: never"),
        ("{property: onNewVersion, value: replace}", "replaces its data files"),
    ],
)
def test_a_contract_can_keep_its_files(lake: Upkeep, line: str, why: str) -> None:
    """A table is left alone if its contract says so, or needs each file's own data files."""
    text = ORDERS.replace("value: allowed}]", f"value: allowed}}, {line}]")
    lake.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())
    assert why in lake.why_not()


@pytest.mark.parametrize("line", ["compaction: never", "onNewVersion: replace"])
def test_a_contract_keeps_its_files_from_the_moment_it_says_so(lake: Upkeep, line: str) -> None:
    """A compaction that began under an earlier contract is dropped, and main's files stay."""
    lake.start()
    before = lake.main_table.files
    name, _, value = line.partition(": ")
    lake.ask(**{name: value})
    assert lake.settle_it().step is Step.DROPPED
    assert lake.main_table.files == before
    assert lake.nothing_left()


def test_a_few_small_files_are_no_reason() -> None:
    """A table with few small files is not compacted."""
    lake = Scenario()
    lake.ended()
    (need,) = compaction.needs(lake.adapters, TABLE)
    assert "small files" in need.why_not


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grown", [False, True])
def test_a_fault_at_any_call_changes_no_row(kind: str, grown: bool) -> None:
    """Whatever call fails, main has its rows once, and the next tries finish."""
    for number in range(_calls(grown=grown)):
        lake = _prepared(grown=grown)
        before = lake.rows
        lake.journal.strike_at(number, Fault(*KINDS[kind]))
        with suppress(Transient, ProcessDied):
            lake.settle_it()
        assert lake.rows == before
        with suppress(ProcessDied):
            for begun in compaction.under_way(lake.adapters):
                compaction.settle(lake.adapters, begun)
        assert lake.rows == before
        assert lake.catalog.branches("upkeep/") == []
        assert len(lake.main_table.files) == (2 if grown else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_before_that_costs_at_most_its_work(kind: str) -> None:
    """Whatever call of its start or of the next step fails, it is published or leaves no trace."""
    for first in (True, False):
        for number in range(_calls_before(first=first)):
            lake = _at_step(first=first)
            before = lake.rows
            lake.journal.strike_at(number, Fault(*KINDS[kind]))
            with suppress(Transient, ProcessDied):
                _step(lake, first=first)
            lake.clock.pass_(lake.settings.grace_seconds)
            for _ in range(3):
                lake.run_jobs_that_can()
                lake.sweep()
            assert lake.rows == before
            assert lake.nothing_left()


def _at_step(*, first: bool) -> Upkeep:
    lake = Upkeep()
    if not first:
        lake.rewritten()
    lake.journal.calls.clear()
    return lake


def _step(lake: Upkeep, *, first: bool) -> None:
    if first:
        lake.begin()
    else:
        lake.settle_it()


def _calls_before(*, first: bool) -> int:
    lake = _at_step(first=first)
    _step(lake, first=first)
    return len(lake.journal.calls)


@pytest.mark.parametrize("grown", [False, True])
def test_two_processes_at_once_publish_it_once(grown: bool) -> None:
    """At whatever call a second process settles it too, main has its rows once."""
    for number in range(_calls(grown=grown)):
        lake = _prepared(grown=grown)
        before, begun = lake.rows, lake.now()
        second = partial(compaction.settle, lake.adapters, begun)
        lake.journal.strike_at(number, Fault(second))
        with suppress(Transient):
            compaction.settle(lake.adapters, begun)
        assert lake.rows == before
        assert len(lake.main_table.files) == (2 if grown else 1)
        assert lake.nothing_left()


def _prepared(*, grown: bool) -> Upkeep:
    lake = Upkeep()
    lake.start()
    if grown:
        lake.run("shop/orders/late.parquet")
        lake.deliver()
    lake.journal.calls.clear()
    return lake


def _calls(*, grown: bool) -> int:
    """Return how many calls it takes to settle a compaction."""
    lake = _prepared(grown=grown)
    lake.settle_it()
    return len(lake.journal.calls)


@pytest.fixture
def used_up() -> Upkeep:
    """Return a lake whose compaction is to be compared, without room in the day's budget."""
    lake = Upkeep()
    lake.adapters = replace(lake.adapters, settings=replace(lake.settings, daily_budget_usd=1))
    lake.jobs.bill = A_LITTLE
    lake.begin()
    lake.jobs.bill = A_LOT
    lake.run_job()
    return lake


def test_a_compaction_waits_for_room_in_the_days_budget(used_up: Upkeep) -> None:
    """Neither of its runs is started without room; the next day it goes on."""
    lake = used_up
    waits = lake.settle_it()
    assert waits.step is Step.WAITS
    assert "the day's budget is used up" in waits.why
    (again,) = compaction.needs(lake.adapters, TABLE)
    assert compaction.start(lake.adapters, again).step is Step.WAITS
    lake.clock.pass_(12 * 60 * 60)
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.PUBLISHED


def test_a_day_that_ends_meanwhile_ends_no_compaction(used_up: Upkeep) -> None:
    """If there is room as soon as a run was refused for lack of it, the compaction still waits."""
    lake = used_up
    midnight = Fault(partial(lake.clock.pass_, 12 * 60 * 60), "after")
    lake.journal.strike_later("ledger.save_charge", midnight, skipped=1)
    assert lake.settle_it().step is Step.WAITS
    lake.settle_it()
    lake.run_job()
    assert lake.settle_it().step is Step.PUBLISHED
