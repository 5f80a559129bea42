"""The table reader's errors."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from access.evidence.trace import matching
from access.tables.file_rows import FileRows
from access.tables.reader import Reader
from lakegate.contract.model import parse
from lakegate.contract.reading.other_columns import Provenance
from lakegate.errors import LakegateError
from tests.fakes.deployment import ORDERS
from tests.fakes.iceberg import iceberg_table
from tests.fakes.wire import answering

_JSON = b'{"defaults": {}, "overrides": {}, "namespaces": []}'
_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


@pytest.fixture
def empty() -> Iterator[Reader]:
    """Return a reader of main without tables."""
    with answering(_EMPTY % (len(_JSON), _JSON)) as address:
        yield Reader(address, "token", "main")


@pytest.mark.parametrize("name", ["orders", "shop.", ".", "shop./../x", "shop.orders@other"])
def test_a_name_without_a_namespace_is_no_table(empty: Reader, name: str) -> None:
    """A name that is not `namespace.table` raises an error that lists the tables."""
    with pytest.raises(LakegateError, match=r"UNKNOWN_TABLE.*its tables are: none"):
        empty.state(name)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM default.orders", r'"default"\ndefault is a word .* quotes, "default"$'),
        ("SELECT * FROM Group.orders", r'quotes, "Group"$'),
        ("SELECT * FRM orders", r'near "orders"$'),
    ],
)
def test_a_name_that_is_a_word_of_sql_is_told(empty: Reader, sql: str, said: str) -> None:
    """A table without a namespace is in `default`, which SQL takes for something else."""
    with pytest.raises(LakegateError, match=said) as caught, empty.answer(sql):
        pass
    assert caught.value.code == "BAD_SQL"


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC])
def test_output_that_cannot_be_written_is_no_fault_of_the_data(empty: Reader, number: int) -> None:
    """Rows may be printed into `head`, which takes only the first, or onto a full disk."""
    with pytest.raises(OSError, match=f"Errno {number}"), empty.answer("SELECT 1"):
        raise OSError(number, "printing failed")


def test_a_state_whose_files_are_deleted_says_how_long_states_are_kept() -> None:
    """A read of a state of main that is too old says that upkeep deleted its files."""
    body = json.dumps({**json.loads(_JSON), "metadata-location": "", "metadata": _TABLE}).encode()
    with answering(_EMPTY % (len(body), body)) as address:
        reader = Reader(address, "token", "main@abc")
        with pytest.raises(LakegateError, match=r"FILE_GONE.*for KeepDays"):
            reader.all_rows("shop.orders")


@pytest.fixture
def with_data(tmp_path: Path) -> Iterator[Reader]:
    """Return a reader to which every table has one row."""
    table = iceberg_table(tmp_path, Schema(NestedField(1, "id", LongType())), pa.table({"id": [1]}))
    known = {"metadata-location": "", "metadata": json.loads(table.metadata.model_dump_json())}
    body = json.dumps({**json.loads(_JSON), **known}).encode()
    with answering(_EMPTY % (len(body), body)) as address:
        yield Reader(address, "token", "main@abc")


@pytest.fixture
def without_data(with_data: Reader, tmp_path: Path) -> Reader:
    """Return a reader of a table whose data file was deleted."""
    for file in tmp_path.glob("data/*.parquet"):
        file.unlink()
    return with_data


@pytest.mark.parametrize("namespace", ["temp", "system", "memory"])
def test_a_namespace_that_is_a_database_of_duckdb_can_be_queried(
    with_data: Reader, namespace: str
) -> None:
    """The error about `temp.orders` says how to write it, and so written it is read."""
    in_full = f'memory."{namespace}"'
    with with_data.answer(f"SELECT id FROM {in_full}.orders") as answer:
        assert answer.read_all().to_pydict() == {"id": [1]}
    query = with_data.answer(f"SELECT id FROM {namespace}.orders")
    with pytest.raises(LakegateError, match=r"use a fully qualified path like 'mem"), query:
        pass


def test_a_query_of_a_deleted_file_is_no_bad_sql(without_data: Reader) -> None:
    """What fails while duckdb reads a table is told as such, without a traceback."""
    query = without_data.answer("SELECT id FROM shop.orders")
    with pytest.raises(LakegateError, match="for KeepDays") as caught, query as answer:
        answer.read_all()
    assert caught.value.code == "FILE_GONE"
    assert "Traceback" not in caught.value.message


def test_rows_of_a_deleted_file_are_told_as_such(without_data: Reader) -> None:
    """The same holds where the rows that break a check are sought, and those of a condition."""
    contract = parse(ORDERS, "orders")
    (check, *_) = contract.checks
    rows, opened = without_data.rows("a.b", whole=True), without_data.opened("a.b")
    with pytest.raises(LakegateError, match=r"^FILE_GONE: [^\n]* for KeepDays"), rows as evidence:
        evidence.broken(check, contract, 5, lambda _: False)
    with pytest.raises(LakegateError, match=r"^FILE_GONE: [^\n]* for KeepDays"), opened as table:
        matching(FileRows.all(table), "id = 1", Provenance())


def test_a_value_that_cannot_be_converted_is_bad_sql(empty: Reader) -> None:
    """An error in a row is the statement's, though Arrow raises it while rows are taken."""
    query = empty.answer("SELECT CAST(i || 'x' AS INTEGER) FROM range(30000) t(i)")
    with pytest.raises(LakegateError, match="Could not convert") as caught, query as answer:
        answer.read_all()
    assert caught.value.code == "BAD_SQL"


def test_a_statement_that_was_stopped_is_no_fault(empty: Reader) -> None:
    """Where Ctrl-C comes while duckdb works, it raises an error of its own."""
    with pytest.raises(KeyboardInterrupt), empty.answer("SELECT 1"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="another"), empty.answer("SELECT 1"):
        raise RuntimeError("another")


_TABLE = {
    "format-version": 2,
    "table-uuid": "0f0e0d0c-1111-2222-3333-444455556666",
    "location": "file:///nowhere",
    "last-sequence-number": 1,
    "last-updated-ms": 1,
    "last-column-id": 1,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
        }
    ],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "current-snapshot-id": 7,
    "snapshots": [
        {
            "snapshot-id": 7,
            "sequence-number": 1,
            "timestamp-ms": 1,
            "summary": {"operation": "append"},
            "manifest-list": "file:///nowhere/metadata/snap-7.avro",
            "schema-id": 0,
        }
    ],
}
