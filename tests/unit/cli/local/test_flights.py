import io
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from cli.local import flights
from lakegate.contract.model import parse

_FILE = Path(__file__).parents[4] / "contracts" / "nyc.flights.yaml"
_CONTRACT = parse(_FILE.read_text(encoding="utf-8"), "contract")
_NEW_YEAR = date(2013, 1, 1)


@pytest.fixture(scope="module")
def everything() -> pa.Table:
    return flights.read(_CONTRACT.columns)


def test_a_days_file_has_that_days_flights_typed_by_the_contract(everything: pa.Table) -> None:
    """New Year's Day had 842 flights, four without a departure; types are the contract's."""
    day = flights.day_flights(everything, _NEW_YEAR)
    schema = parquet.read_schema(io.BytesIO(flights.as_parquet(day)))

    assert everything.num_rows == 336_776
    assert schema.names == [column.name for column in _CONTRACT.columns]
    assert schema.field("dep_time").type == pa.int32()
    assert schema.field("carrier").type == pa.string()
    assert schema.field("time_hour").type == pa.timestamp("us", tz="UTC")
    assert day.num_rows == 842
    assert set(day["day"].to_pylist()) == {1}
    assert (day["dep_time"].null_count, day["dep_delay"].null_count) == (4, 4)


def test_the_broken_file_breaks_three_promises(everything: pa.Table) -> None:
    """The broken file keeps rows and types and has invalid values in three columns."""
    day = flights.day_flights(everything, _NEW_YEAR)

    broken = flights.broken(day)

    assert broken.schema == day.schema
    assert broken.num_rows == day.num_rows
    assert broken["carrier"].null_count == 12
    assert pc.sum(pc.equal(broken["origin"], "NYC")).as_py() == 7
    assert pc.sum(pc.equal(broken["dep_delay"], 99_999)).as_py() == 3
