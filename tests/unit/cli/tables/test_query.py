"""Rows are printed for people and for programs."""

import csv
import io
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from cli.tables.query import print_csv, print_json, print_table
from lakegate.errors import LakegateError


def answer(rows: int) -> pa.RecordBatchReader:
    """Return the answer to a query, in batches of 150 rows."""
    batch = pa.record_batch({"id": list(range(rows)), "words": ['a "b", c\nd'] * rows})
    table = pa.Table.from_batches([batch])
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(150))


@pytest.mark.parametrize(
    ("rows", "shown", "said"),
    [
        (0, 0, "0 rows"),
        (1, 1, "1 row"),
        (200, 200, "200 rows"),
        (201, 200, "only the first 200 rows; --csv or --json prints all"),
    ],
)
def test_a_table_is_followed_by_its_number_of_rows(
    capsys: pytest.CaptureFixture[str], rows: int, shown: int, said: str
) -> None:
    """The number of rows is printed beside the table, which ends after 200 rows."""
    print_table(answer(rows))
    printed = capsys.readouterr()
    assert printed.out.count('a "b"') == shown
    assert printed.err == f"{said}\n"


@pytest.mark.parametrize("rows", [0, 1, 400])
def test_csv_has_every_row(capsys: pytest.CaptureFixture[str], rows: int) -> None:
    """CSV has a header and all rows, with quotes where a value needs them."""
    print_csv(answer(rows))
    printed = capsys.readouterr()
    read = list(csv.reader(io.StringIO(printed.out)))
    assert read == [["id", "words"], *([str(n), 'a "b", c\nd'] for n in range(rows))]
    assert printed.err == f"{rows} {'row' if rows == 1 else 'rows'}\n"


def test_json_loses_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    """Two columns of one name, as of a join, are refused before anything is printed."""
    batch = pa.record_batch([[1], [2]], ["id", "id"])
    with pytest.raises(LakegateError, match="2 columns are named id"):
        print_json(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
    assert capsys.readouterr().out == ""


def test_null_is_an_empty_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """A null in CSV is an empty cell."""
    schema = pa.schema([("id", pa.int64()), ("words", pa.string())])
    batch = pa.record_batch([[1], [None]], schema)
    print_csv(pa.RecordBatchReader.from_batches(schema, [batch]))
    assert capsys.readouterr().out == "id,words\n1,\n"


def test_json_holds_nan_and_infinities_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Every JSON reader takes the answer (RFC 8259 has no NaN), nested values included."""
    numbers = [float("nan"), float("-inf"), 1.5]
    batch = pa.record_batch({"x": numbers, "y": [[each] for each in numbers]})
    print_json(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
    wanted = [{"x": each, "y": [each]} for each in ("NaN", "-Infinity", 1.5)]
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == wanted


def test_json_holds_exact_numbers_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """Sums of integers, which duckdb makes decimals, and decimals are numbers where they can be."""
    exact = ["38", "-1.50", "0.1", "99999999999999999999999999999999999999"]
    inexact = "1234567890123456.12345"
    values = [*map(Decimal, [*exact, inexact]), None]
    batch = pa.record_batch({"x": pa.array(values, pa.decimal256(50, 5)), "y": [values] * 6})
    print_json(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
    rows = json.loads(capsys.readouterr().out, parse_float=Decimal)
    assert [row["x"] for row in rows] == [*map(Decimal, exact), inexact, None]
    assert rows[0]["y"] == [row["x"] for row in rows]


def test_bytes_are_base64(capsys: pytest.CaptureFixture[str]) -> None:
    """Binary values are printed as a landed file may have them."""
    batch = pa.record_batch({"x": [b"a\xff", None], "y": [{"z": b"a\xff"}, None]})
    print_json(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
    wanted = [{"x": "Yf8=", "y": {"z": "Yf8="}}, {"x": None, "y": None}]
    assert json.loads(capsys.readouterr().out) == wanted
    print_csv(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
    assert capsys.readouterr().out.splitlines()[1].startswith("Yf8=,")


def test_times_that_python_has_not_are_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever another writer put into a table is shown: years before 1 and after 9999, nested."""
    moments = pa.array([253_402_300_800_000_000, -62_135_596_800_000_001, 0, None, 2**63 - 1])
    days = pa.array([2_932_897, -719_163, 0, None, 2**31 - 1], pa.int32()).cast(pa.date32())
    zoned = moments.cast(pa.timestamp("us", "UTC"))
    nested = pa.StructArray.from_arrays([days, moments], ["day", "id"])
    listed = pa.ListArray.from_arrays([0, 2, 3, 3, 4, 5], days)
    keys = pa.array(["a"] * 5)
    columns = {
        "wall": moments.cast(pa.timestamp("us")),
        "zoned": zoned,
        "day": days,
        "nested": nested,
        "listed": listed,
        "mapped": pa.MapArray.from_arrays([0, 1, 2, 3, 4, 5], keys, days),
    }
    table = pa.table(columns)
    print_csv(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    first, second, third, fourth, _ = csv.reader(
        io.StringIO(capsys.readouterr().out.split("\n", 1)[1])
    )
    assert first[:3] == [
        "10000-01-01 00:00:00.000000",
        "10000-01-01 00:00:00.000000+00:00",
        "10000-01-01",
    ]
    assert second[2] == "0000-12-31"
    assert third[:3] == ["1970-01-01 00:00:00", "1970-01-01 00:00:00+00:00", "1970-01-01"]
    assert fourth[:3] == ["", "", ""]
    assert "'day': '10000-01-01'" in first[3]
    assert first[4] == "['10000-01-01', '0000-12-31']"
    assert first[5] == "[('a', '10000-01-01')]"
