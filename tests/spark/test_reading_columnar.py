"""Parquet, ORC and Avro are read exactly or refused."""

import io
import random
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.spark.conftest import Job, Read, orc_file, parquet

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]
Columns = list[Any]

PYARROW_DATA = Path(pa.__file__).parent / "tests" / "data"
TIMES: Columns = [("t", "timestamp"), ("n", "timestamp", "timestamp_ntz")]
NEW_YEAR = datetime(2013, 1, 1)  # noqa: DTZ001 a wall clock's time, as Spark hands out any


def test_nanoseconds_are_read_where_none_is_lost(reading: Reading) -> None:
    """Times in nanoseconds are read; a value with too many digits makes its row bad."""
    moments = [1_356_998_400_000_000_000, None, 1_356_998_400_000_000_001]
    body = parquet(
        {
            "t": pa.array(moments, pa.timestamp("ns", "UTC")),
            "n": pa.array(moments, pa.timestamp("ns")),
        }
    )
    found = reading(body, "parquet", TIMES)
    assert found.rows == [(NEW_YEAR, NEW_YEAR), (None, None)]
    assert found.bad == ["t: 1356998400000000001"]


@pytest.mark.parametrize("write", [parquet, orc_file])
def test_a_time_without_a_zone_is_utc_s(reading: Reading, write: Callable[..., bytes]) -> None:
    """A time without a zone in a column of instants is in UTC, whatever the machine's zone."""
    times = pa.array([NEW_YEAR], pa.timestamp("us"))
    found = reading(write({"t": times, "n": times}), write.__name__.split("_")[0], TIMES)
    assert found.rows == [(NEW_YEAR, NEW_YEAR)]


def test_days_by_an_unknown_calendar_are_refused(reading: Reading) -> None:
    """Ancient days are refused in ORC, which names no calendar, and read in Arrow's Parquet."""
    days = {"d": [date(1, 1, 1), date(1582, 10, 15)]}
    column = [("d", "date")]
    assert reading(parquet(days), "parquet", column).rows == [(day,) for day in days["d"]]
    found = reading(orc_file(days), "orc", column)
    assert (found.rows, len(found.bad)) == ([(days["d"][1],)], 1)


@pytest.mark.parametrize("write", [parquet, orc_file])
def test_years_that_others_cannot_read_are_bad_rows(
    reading: Reading, write: Callable[..., bytes]
) -> None:
    """A date in the year 10000 makes its row bad, within a list too; the last of 9999 is read."""
    days = pa.array([2_932_896, 2_932_897, None], pa.int32()).cast(pa.date32())
    listed = pa.ListArray.from_arrays([0, 1, 2, 3], days)
    item = {"name": "i", "logicalType": "date"}
    columns = [("d", "date"), {"name": "l", "logicalType": "array", "items": item}]
    format_ = write.__name__.split("_")[0]
    found = reading(write({"d": days, "l": pa.nulls(3, pa.list_(pa.date32()))}), format_, columns)
    assert (found.rows, len(found.bad)) == ([(date.max, None), (None, None)], 1)
    found = reading(write({"d": pa.nulls(3, pa.date32()), "l": listed}), format_, columns)
    assert (found.rows, len(found.bad)) == ([(None, [date.max]), (None, [None])], 1)


def test_nested_days_by_an_unknown_calendar_are_refused(reading: Reading) -> None:
    """Ancient days in ORC are refused within structs and lists, too, with a time or without."""
    days, moment = [date(1, 1, 1), date(1582, 10, 15)], pa.timestamp("us")
    body = orc_file({
        "l": pa.array([days[:1], days[1:], None], pa.list_(pa.date32())),
        "s": pa.array([None, {"t": NEW_YEAR}, {"t": datetime(1500, 1, 1)}],  # noqa: DTZ001
                      pa.struct({"t": moment})),
    })  # fmt: skip
    columns: Columns = [
        {"name": "l", "logicalType": "array", "items": {"name": "i", "logicalType": "date"}},
        {
            "name": "s",
            "logicalType": "object",
            "properties": [{"name": "t", "logicalType": "timestamp"}],
        },
    ]
    found = reading(body, "orc", columns)
    assert found.rows == [(days[1:], (NEW_YEAR,))]
    assert [bad[:2] for bad in found.bad] == ["l:", "s:"]


def test_moments_that_others_cannot_read_are_bad_rows(reading: Reading) -> None:
    """A moment before the year 1 or after 9999 makes its row bad, with a zone or without."""
    moments = [-62_135_596_800_000_001, 253_402_300_800_000_000, 253_402_300_799_999_999]
    body = parquet({
        "t": pa.array(moments, pa.timestamp("us", "UTC")),
        "n": pa.array(moments, pa.timestamp("us")),
    })  # fmt: skip
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
    found = reading(body, "parquet", TIMES)
    assert (found.rows, len(found.bad)) == ([(last, last)], 2)


@pytest.mark.parametrize("write", [parquet, orc_file])
def test_nested_columns_are_read_by_name(reading: Reading, write: Callable[..., bytes]) -> None:
    """Fields of structs, also within arrays, may come in any order."""
    pair = pa.struct([("b", pa.int64()), ("a", pa.string())])
    body = write({
        "s": pa.array([{"b": 1, "a": "x"}, None], pair),
        "l": pa.array([[{"b": 2, "a": "y"}], []], pa.list_(pair)),
    })  # fmt: skip
    parts = [{"name": "a", "logicalType": "string"}, {"name": "b", "logicalType": "integer"}]
    columns = [
        {"name": "s", "logicalType": "object", "properties": parts},
        {"name": "l", "logicalType": "array",
         "items": {"name": "i", "logicalType": "object", "properties": parts}},
    ]  # fmt: skip
    found = reading(body, write.__name__.split("_")[0], columns)
    assert found.rows == [(("x", 1), [("y", 2)]), (None, [])]


def test_types_that_do_not_fit_are_refused(reading: Reading) -> None:
    """Unsigned 64-bit numbers do not fit a bigint, and Spark cannot read ORC's instants."""
    big = parquet({"id": pa.array([2**64 - 1], pa.uint64())})
    assert reading(big, "parquet", [("id", "integer")]).code == "TYPE_MISMATCH"
    wide = reading(big, "parquet", [("id", "integer", "decimal(20)")])
    assert wide.rows == [(Decimal(2**64 - 1),)]
    instants = orc_file({"t": pa.array([NEW_YEAR], pa.timestamp("us", "UTC"))})
    assert reading(instants, "orc", TIMES[:1]).code == "UNREADABLE_TYPE"
    days = parquet({"d": pa.array([[1]], pa.list_(pa.timestamp("ns")))})
    assert reading(days, "parquet", [("d", "date")]).code == "UNREADABLE_TYPE"
    twice = parquet({"id": [1], "ID": [2]})
    assert reading(twice, "parquet", [("id", "integer")]).code == "DUPLICATE_COLUMN"


def _pair(nested: pa.Array) -> bytes:
    """Return a column `id`, and a struct with a field of the same name."""
    return parquet({"id": [1, 300], "s": pa.StructArray.from_arrays([nested], ["id"])})


def test_a_nested_column_may_have_the_name_of_another(reading: Reading) -> None:
    """What holds for a field of a struct alone, such as its 8 bits, holds for no other column."""
    inner = {"name": "id", "logicalType": "integer"}
    columns = [("id", "integer"), {"name": "s", "logicalType": "object", "properties": [inner]}]
    found = reading(_pair(pa.array([1, 2], pa.uint8())), "parquet", columns)
    assert (found.rows, found.bad) == ([(1, (1,)), (300, (2,))], [])
    times = _pair(pa.array([1000, 2000], pa.timestamp("ns")))
    assert reading(times, "parquet", columns).code == "UNREADABLE_TYPE"


def test_avro_is_read_and_counted(reading: Reading, job: Job, tmp_path: Path) -> None:
    """An Avro file has the rows that its blocks declare; a truncated or damaged one is refused."""
    rows = job.warm_spark.range(500).selectExpr("id", "concat('n', id) AS name")
    rows.coalesce(1).write.format("avro").save(str(tmp_path / "avro"))
    (file,) = (tmp_path / "avro").glob("*.avro")
    body, columns = file.read_bytes(), [("id", "integer"), ("name", "string")]
    found = reading(body, "avro", columns)
    assert (len(found.rows), found.promised, found.rows[-1]) == (500, 500, (499, "n499"))
    assert reading(body[:-1], "avro", columns).code == "TRUNCATED_FILE"
    assert reading(body[:-30] + b"\xff" + body[-29:], "avro", columns).code == "CORRUPT_FILE"
    assert reading(b"id,name\n", "avro", columns).code == "NOT_AVRO"


@pytest.mark.parametrize("write", [parquet, orc_file])
def test_a_file_cut_short_anywhere_is_refused(
    reading: Reading, write: Callable[..., bytes]
) -> None:
    """A file that is truncated anywhere is refused as such."""
    body = write({"id": list(range(2000))})
    format_ = write.__name__.split("_")[0]
    for length in (5, len(body) // 2, len(body) - 20, len(body) - 1):
        assert reading(body[:length], format_, [("id", "integer")]).code == "TRUNCATED_FILE"
    assert reading(b"", format_, [("id", "integer")]).code == "EMPTY_OBJECT"
    for other in (b"id,name\n1,n1\n", b"PK\x03\x04 and so on"):
        assert reading(other, format_, [("id", "integer")]).code == f"NOT_{format_.upper()}"
    none = write({"id": pa.array([], pa.int64())})
    assert reading(none, format_, [("id", "integer")]) == Read([], [], 0)


SAMPLE: dict[str, Any] = {
    "id": list(range(300)),
    "name": [f"n{i % 7}" for i in range(300)],
    "x": [None if i % 11 == 0 else i / 3 for i in range(300)],
    "long": ["z" * (i % 50) + str(i) for i in range(300)],
}
SAMPLE_COLUMNS: Columns = [
    ("id", "integer"),
    ("name", "string"),
    ("x", "number"),
    ("long", "string"),
]


def _by_arrow(format_: str, body: bytes) -> list[tuple[Any, ...]] | None:
    """Return the rows as Arrow reads them, without Spark's code; None where it cannot."""
    file = io.BytesIO(body)
    try:
        if format_ == "orc":
            return [tuple(row.values()) for row in orc.ORCFile(file).read().to_pylist()]
        table = pq.ParquetFile(file, page_checksum_verification=True).read()
        return [tuple(row.values()) for row in table.to_pylist()]
    except (OSError, ValueError, pa.ArrowException):
        return None


DAMAGED = {
    "parquet": parquet(SAMPLE, row_group_size=100, write_page_checksum=True),
    "orc": orc_file(SAMPLE, compression="zlib"),
}


@pytest.mark.parametrize(("format_", "body"), DAMAGED.items(), ids=DAMAGED)
def test_a_flipped_bit_never_changes_a_row_unseen(
    reading: Reading, format_: str, body: bytes
) -> None:
    """With one bit wrong a file is refused, rows are bad, or all rows are what Arrow reads.

    Arrow also refuses files for damage to its own metadata; there the rows must be intact.
    """
    intact = [tuple(row) for row in zip(*SAMPLE.values(), strict=True)]
    places = random.Random(2)  # noqa: S311 no secret
    for _ in range(10):
        place = places.randrange(4, len(body) - 8)
        damaged = bytearray(body)
        damaged[place] ^= 1 << places.randrange(8)
        found = reading(bytes(damaged), format_, SAMPLE_COLUMNS)
        refused = found.code or found.bad or found.promised != len(found.rows)
        assert found.code != "JOB_FAULT", place
        assert refused or found.rows in (_by_arrow(format_, bytes(damaged)), intact), place


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("parquet/v0.7.1.all-named-index.parquet",
         [("carat", "number"), ("depth", "number"), ("table", "number"), ("price", "integer"),
          ("x", "number"), ("y", "number"), ("z", "number"),
          ("cut", "string"), ("color", "string"), ("clarity", "string")]),
        ("orc/decimal.orc", [("_col0", "number", "decimal(10,5)")]),
        ("orc/TestOrcFile.testDate1900.orc", [("time", "timestamp"), ("date", "date")]),
    ],
)  # fmt: skip
def test_old_files_are_read_as_arrow_reads_them(
    reading: Reading, name: str, columns: Columns
) -> None:
    """Arrow's own test files of old writers are read row by row as Arrow reads them."""
    format_, body = name.partition("/")[0], (PYARROW_DATA / name).read_bytes()
    found = reading(body, format_, columns)
    assert (found.bad, found.code, found.promised) == ([], "", len(found.rows))
    assert found.rows == _by_arrow(format_, body)
