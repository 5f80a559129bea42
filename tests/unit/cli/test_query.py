"""Rows are printed for people and for programs."""

import csv
import io

import pyarrow as pa
import pytest

from cli.query import print_csv, print_table


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


def test_null_is_an_empty_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """A null in CSV is an empty cell."""
    schema = pa.schema([("id", pa.int64()), ("words", pa.string())])
    batch = pa.record_batch([[1], [None]], schema)
    print_csv(pa.RecordBatchReader.from_batches(schema, [batch]))
    assert capsys.readouterr().out == "id,words\n1,\n"
