"""The demo's contract, which every day of its data meets and every broken day fails."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from access.contract.check import check
from cli.local import flights
from lakegate.contract.model import Contract
from spark_jobs.audit.arrow import tier_arrow

PATH = Path(__file__).parents[3] / "contracts" / "nyc.flights.yaml"
# A check, the column to break in every row of a day, and the broken value.
BROKEN = [
    ("origin.invalidValues", "origin", "ewr"),
    ("carrier.invalidValues", "carrier", "UA\n"),
    ("carrier.nullValues", "carrier", None),
    ("one_departure", "flight", 1),
    ("month.invalidValues", "month", 13),
    ("hour.invalidValues", "hour", -1),
    ("distance.invalidValues", "distance", 0),
    ("tailnum.missingValues", "tailnum", "N/A"),
    ("tailnum.invalidValues", "tailnum", "N1"),
    ("dep_delay.plausible", "dep_delay", -121),
    ("dep_delay.few_cancelled", "dep_delay", None),
    ("time_hour.invalidValues", "time_hour", datetime(2014, 1, 2, tzinfo=UTC)),
]


@pytest.fixture(scope="module")
def contract() -> Contract:
    return check(PATH.read_text(), PATH.name)


@pytest.fixture(scope="module")
def year(contract: Contract) -> pa.Table:
    return flights.read(contract.columns)


@pytest.fixture(scope="module")
def day(year: pa.Table) -> pa.Table:
    return flights.day_flights(year, date(2013, 1, 1))


def failing(rows: pa.Table, contract: Contract) -> set[str]:
    """Return the ids of the checks that a file's rows fail."""
    found = tier_arrow.measures(tier_arrow.measure(rows, contract), contract)
    met = {c.id: c.expect.met(found[c.id].value, found[c.id].rows) for c in contract.checks}
    return {id_ for id_, is_met in met.items() if not is_met}


def test_every_day_of_2013_meets_every_check(year: pa.Table, contract: Contract) -> None:
    """All 365 files of the demo pass every check, warnings included."""
    months, days_of_month = year["month"].to_pylist(), year["day"].to_pylist()
    days = {date(2013, *pair) for pair in zip(months, days_of_month, strict=True)}
    assert len(days) == 365
    broken = {day: failing(flights.day_flights(year, day), contract) for day in days}
    assert not {day: ids for day, ids in broken.items() if ids}


@pytest.mark.parametrize(("id_", "column", "value"), BROKEN)
def test_a_broken_day_fails_the_check_that_it_breaks(
    id_: str, column: str, value: Any, day: pa.Table, contract: Contract
) -> None:
    """Each kind of check fails for a day that breaks it."""
    index = day.schema.get_field_index(column)
    field = day.schema.field(index)
    broken = day.set_column(index, field, pa.array([value] * len(day), field.type))
    assert failing(day, contract) == set()
    assert id_ in failing(broken, contract)


def test_a_day_with_too_few_rows_fails(day: pa.Table, contract: Contract) -> None:
    """A file with only 99 good flights fails."""
    assert failing(day.slice(0, 99), contract) == {"a_days_flights"}


def test_the_days_that_the_demo_breaks_fail(day: pa.Table, contract: Contract) -> None:
    """The demo's broken file fails exactly the intended checks."""
    ids = {"carrier.nullValues", "origin.invalidValues", "dep_delay.plausible"}
    assert failing(flights.broken(day), contract) == ids
