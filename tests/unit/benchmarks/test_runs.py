"""The measurements of many small files: the files, their figures, and the ledger's write units."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq

from benchmarks.landings import Figures, figures, percentile
from benchmarks.ledger_writes import Charged, units_a_file
from benchmarks.runs import before
from benchmarks.small_files import Kind
from functions.adapters.ledger.items import to_item
from functions.model.ingestion import Ingestion, State
from lakegate.contract.model import parse
from lakegate.contract.sharing import why_alone
from lakegate.job.landing import LandedObject
from tests.fakes.clock import FakeClock
from tests.fakes.write_units import Index, units
from tests.template import resource

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
KINDS = [Kind("a.b", "parquet", 900), Kind("a.b", "csv", 450), Kind("a.b", "csv.gz", 450)]


def at(second: float) -> str:
    return f"2026-03-01T12:00:{second:06.3f}+00:00"


def ended(number: int, landed: float, state: State, end: float, attempt: int = 1) -> Ingestion:
    file = LandedObject(
        "landing", f"a/{number}.parquet", "v", f"e{number}", 1, landed_at=at(landed)
    )
    ingestion = Ingestion(f"i{number}", file, state, attempt=attempt, merge_hash=f"m{number // 2}")
    return ingestion.step(state.value, at(end))


@pytest.fixture
def four() -> list[Ingestion]:
    """Return three published files, one of them at its second attempt, and a rejected one."""
    return [
        ended(0, 0.5, State.PUBLISHED, 3.5),
        ended(1, 1.0, State.PUBLISHED, 5.0),
        ended(2, 1.0, State.PUBLISHED, 11.0, attempt=2),
        ended(3, 1.0, State.REJECTED, 20.0),
    ]


def test_the_figures_are_those_of_the_ledger(four: list[Ingestion]) -> None:
    """Times run from the first drop, percentiles from each file's own landing."""
    assert figures(BEGAN, 0.7, four, job_runs=2) == Figures(
        files=4,
        judged=4,
        states={"published": 3, "rejected": 1},
        again=1,
        job_runs=2,
        commits=2,
        dropping=0.7,
        seconds=11.0,
        seconds_to_end=20.0,
        p50=4.0,
        p95=10.0,
    )


def test_an_errored_file_is_not_judged(four: list[Ingestion]) -> None:
    """Only what the audit accepted or rejected counts, and only published files have a cost."""
    found = figures(BEGAN, 0.7, [*four, ended(4, 1.0, State.ERRORED, 2.0)], job_runs=1)
    assert (found.files, found.judged) == (5, 4)
    assert found.told()["seconds_a_file"] == 11.0 / 3


def test_figures_without_a_published_file_are_no_times(four: list[Ingestion]) -> None:
    """Nothing was published: the seconds to the last publish are not a number."""
    assert math.isnan(figures(BEGAN, 0.0, four[3:], job_runs=0).seconds)


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50.0), (0.95, 95.0), (0.951, 96.0), (1.0, 100.0)]
)
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    """So many of all values do not exceed it."""
    assert percentile([float(n) for n in range(100, 0, -1)], share) == value
    assert percentile([3.0], share) == 3.0


def test_files_before_the_kill_are_told_apart(four: list[Ingestion]) -> None:
    """Only files that were on main before the run was killed show how a run without a kill does."""
    found = before(datetime.fromisoformat(at(6.0)), four)
    assert found == {
        "published_before_the_kill": 2,
        "p50_before_the_kill": 3.0,
        "p95_before_the_kill": 4.0,
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.ending)
def test_files_have_rows_of_their_own(kind: Kind) -> None:
    """A file is the same each time, and no two have the same bytes."""
    bodies = {kind.body(number) for number in (0, 0, 1)}
    assert len(bodies) == 2
    assert kind.body(0) != replace(kind, table="a.c").body(0)
    assert rows(kind, 0).num_rows == kind.rows


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.ending)
def test_one_file_in_a_hundred_breaks_its_contract(kind: Kind) -> None:
    """A bad file has one value below the minimum; main gets the rows of the good ones only."""
    some_bad = replace(kind, some_bad=True)
    assert [n for n in range(250) if some_bad.is_bad(n)] == [0, 100, 200]
    assert [sum(v < 0 for v in rows(some_bad, n)["value"].to_pylist()) for n in (0, 1)] == [1, 0]
    assert not any(kind.is_bad(n) for n in range(250))
    assert (some_bad.good_rows(250), kind.good_rows(250)) == (247 * kind.rows, 250 * kind.rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.ending)
def test_files_may_share_an_append(kind: Kind) -> None:
    """Their contract is valid, and nothing in it makes a file stay alone."""
    contract = parse(kind.contract, "test")
    assert why_alone(contract) == ""
    assert [column.name for column in contract.columns] == rows(kind, 0).column_names


def rows(kind: Kind, number: int) -> pa.Table:
    body = pa.BufferReader(kind.body(number))
    if kind.ending == "parquet":
        return pq.read_table(body)
    return csv.read_csv(pa.CompressedInputStream(body, "gzip") if "gz" in kind.ending else body)


@pytest.fixture
def ledger() -> Charged:
    return Charged(FakeClock().now)


def test_a_write_is_charged_by_its_items(ledger: Charged) -> None:
    """A first write takes the units of the new item; the same ingestion once more takes none."""
    new = Ingestion("i", LandedObject("landing", "a", "v", "e", 1, landed_at=at(0)))
    begun = ledger.begin(new)
    assert ledger.units == sum(units(None, to_item(begun), indexes()).values()) > 0
    once = ledger.units
    ledger.begin(new)
    assert ledger.units == once


def test_a_transaction_takes_the_tables_units_twice(ledger: Charged) -> None:
    """Two ingestions that are saved together cost one unit each more than saved alone."""
    landed = [LandedObject("landing", key, "v", key, 1, landed_at=at(0)) for key in "ab"]
    begun = [ledger.begin(Ingestion(each.key, each)) for each in landed]
    first = ledger.units
    saved = [ledger.save(each) for each in begun]
    alone = ledger.units - first
    ledger.save_all(saved)
    assert ledger.units - first - alone == alone + 2


def test_what_a_large_group_shares_is_charged(ledger: Charged) -> None:
    """The items that its members share are written before them in a transaction, each time."""
    landed = [LandedObject("landing", f"{n}", "v", "e", 1, landed_at=at(0)) for n in range(30)]
    begun = [ledger.begin(Ingestion(f"{each.key:0>32}", each)) for each in landed]
    group = tuple(each.id for each in begun)
    first = ledger.units
    plain = ledger.save_all(begun)
    without = ledger.units - first
    ledger.save_all([each.but(group=group) for each in plain])
    assert ledger.units - first - 2 * without == 2 + 1  # two kilobytes of ids, and the rest


def test_a_file_in_a_group_costs_less_than_one_alone() -> None:
    """What members have alike is paid for once, and the more there are, the less each costs."""
    assert units_a_file(100) < units_a_file(10) < units_a_file(1)


@pytest.mark.parametrize(("files", "most"), [(1, 24), (10, 12), (100, 12)])
def test_a_file_takes_few_write_units(files: int, most: float) -> None:
    """No save pays for more index entries than docs/adr/0035-ledger-indexes.md says."""
    assert units_a_file(files) <= most


def indexes() -> list[Index]:
    return [Index.of(each) for each in resource("LedgerTable")["GlobalSecondaryIndexes"]]
