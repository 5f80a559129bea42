"""Keys that are looked up through digests, compared with plain Python on generated rows."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import boto3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from lakegate.audit.report import DataFile
from spark_jobs.audit.keys.arrow_keys import HashRows
from spark_jobs.audit.keys.column_hashes import mixed
from spark_jobs.audit.keys.counts import Keys
from spark_jobs.audit.keys.key_columns import KeyColumns, Unreadable
from spark_jobs.audit.keys.known_keys import KeyFiles, OwnKeys
from spark_jobs.lake.storage import Storage
from tests.key_files import FOLDER, TYPES, Rows, columns_of, data_file, schema_of, tables
from tests.spark.measuring import NO_RUN

SLOW = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def weak(columns: Sequence[pa.ChunkedArray]) -> Any:
    """Return hashes of which many are equal."""
    return mixed(columns) % np.uint64(3)


def all_equal(columns: Sequence[pa.ChunkedArray]) -> Any:
    """Return one hash for all keys."""
    return np.zeros(len(columns[0]), np.uint64)


@pytest.fixture
def storage() -> Iterator[Storage]:
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="lake")
        yield Storage(replace(NO_RUN, table="tests.rows", lake_bucket="lake"), s3, None)


def plain(value: Any) -> Any:
    """Return a value that compares in Python as keys do."""
    return ("NaN" if math.isnan(value) else value + 0.0) if isinstance(value, float) else value


def keys_of(rows: Rows) -> list[tuple[Any, ...]]:
    """Return the keys of the rows that have one."""
    return [tuple(map(plain, row)) for row in rows if None not in row]


@SLOW
@given(of=tables(), hash_rows=st.sampled_from([mixed, weak]))
def test_known_keys_are_counted_as_plain_python_counts_them(
    storage: Storage, of: tuple[list[str], list[Rows]], hash_rows: HashRows
) -> None:
    """Exactly the equal keys are found, even where different keys have equal hashes."""
    types, rows = of
    of_key = KeyFiles(storage, columns_of(types), hash_rows)
    own, *others = (data_file(storage, str(n), types, each) for n, each in enumerate(rows))
    for file in others:
        of_key.put_digest(file, of_key.hashes(file))
    read = OwnKeys.read(of_key, [own])
    found = read.count_in(read.suspects(None, others))  # type: ignore[arg-type] # not needed
    mine, *theirs = map(keys_of, rows)
    assert found == len(set(mine) & {key for each in theirs for key in each})
    several = [n for n in Counter(mine).values() if n > 1]
    assert read.counted in (Keys(len(set(mine)), len(several), sum(several)), None)
    assert read.counted or (len(rows[0]) > 5 and several) or hash_rows is weak


def test_a_file_without_an_equal_hash_is_not_read(storage: Storage) -> None:
    """Of several data files only the one with the key is read."""
    of_key = KeyFiles(storage, columns_of(["string"]))
    own = OwnKeys.read(of_key, [data_file(storage, "own", ["string"], [("a",), ("b",)])])
    one, two = (data_file(storage, n, ["string"], [(n,), (f"{n}{n}",)]) for n in ("b", "x"))
    for file in (one, two):
        of_key.put_digest(file, of_key.hashes(file))
    storage.put(storage.key(two.path), b"")
    suspects = own.suspects(None, [one, two])  # type: ignore[arg-type] # every digest is there
    assert (suspects.seen, suspects.unread) == ((one,), ())
    assert own.count_in(suspects) == 1


def test_a_row_with_a_null_has_no_key(storage: Storage) -> None:
    """A null among numbers is never taken for the number 0.0, which its place in memory holds."""
    types = ["binary", "double"]
    of_key = KeyFiles(storage, columns_of(types), all_equal)
    own = OwnKeys.read(of_key, [data_file(storage, "own", types, [(b"a", 0.0), (b"", 0.0)])])
    other = data_file(storage, "other", types, [(b"", None), (None, 0.0), (b"a", 0.0)])
    of_key.put_digest(other, of_key.hashes(other))
    assert own.count_in(own.suspects(None, [other])) == 1  # type: ignore[arg-type] # not needed


def test_data_files_without_a_digest_are_left_to_spark(storage: Storage) -> None:
    """A re-audit makes no digest, and a key in a file that has none is never said to be new."""
    reaudit = Storage(replace(storage.spec, reaudit_base="b" * 64), storage.s3, None)
    of_key = KeyFiles(reaudit, columns_of(["string"]))
    own = OwnKeys.read(of_key, [data_file(storage, "own", ["string"], [("a",)])])
    seen, unread = (data_file(storage, n, ["string"], [("a",)]) for n in ("seen", "unread"))
    of_key.put_digest(seen, of_key.hashes(seen))
    suspects = own.suspects(None, [seen, unread])  # type: ignore[arg-type] # it starts no task
    assert (suspects.seen, suspects.unread) == ((seen,), (unread,))
    with pytest.raises(Unreadable):
        own.count_in(suspects)
    with pytest.raises(Unreadable):
        own.count_in(replace(suspects, unread=(), seen=(replace(seen, rows=10**9),)))


def test_a_wider_type_keeps_the_keys(storage: Storage) -> None:
    """A digest that was made before a column became wider is found and right after it."""
    narrow, wide = ["int", "float", "decimal(9,2)"], ["long", "double", "decimal(38,2)"]
    assert columns_of(narrow) == columns_of(wide)
    TYPES["decimal(38,2)"] = pa.decimal128(38, 2), []
    rows: Rows = [(7, 0.5, Decimal("1.50"))]
    of_key = KeyFiles(storage, columns_of(wide))
    old, new = data_file(storage, "old", narrow, rows), data_file(storage, "new", wide, rows)
    assert of_key.hashes(old).parts[0] == of_key.hashes(new).parts[0]


def test_the_order_in_which_a_check_names_columns_is_the_same_key() -> None:
    """A key over (a, b) has the digests of a key over (b, a)."""
    schema = schema_of(["int", "string"])
    assert KeyColumns.find(schema, ["c2", "C1"]) == KeyColumns.find(schema, ["c1", "c2"])


@pytest.mark.parametrize(
    "field",
    [{"type": {"type": "list"}}, {"type": "uuid"}, {"type": "int", "initial-default": 3}],
    ids=str,
)
def test_a_column_that_arrow_may_read_in_another_way_has_no_digests(field: Any) -> None:
    """Spark compares nested columns, rare types and columns with a default."""
    schema = {"fields": [{"id": 1, "name": "a", **field}]}
    assert KeyColumns.find(schema, ["a"]) is None
    assert KeyColumns.find(schema, ["b"]) is None


def test_a_data_file_that_is_older_than_a_column_has_no_keys(storage: Storage) -> None:
    """No row of a file without one of the key's columns has a key."""
    file = data_file(storage, "old", ["int"], [(1,)])
    assert KeyFiles(storage, columns_of(["int", "string"])).hashes(file).parts == ()


@pytest.mark.parametrize("body", [b"ORC", b"PAR1" * 5])
def test_a_file_that_is_no_parquet_is_left_to_spark(storage: Storage, body: bytes) -> None:
    """A data file that Arrow cannot read has no digest."""
    storage.put("warehouse/a.parquet", body)
    with pytest.raises(Unreadable):
        list(columns_of(["int"]).read(storage, DataFile("s3://lake/warehouse/a.parquet", 1, 20)))


@pytest.mark.parametrize(
    "path",
    [
        "s3://other/warehouse/tests/rows_0a1b2c3d-1/a.parquet",
        "s3://lake/warehouse/tests/rows_old_0a1b2c3d-1/a.parquet",
        "s3://lake/elsewhere/a.parquet",
        f"s3://lake/{FOLDER}/a.orc",
    ],
)
def test_a_digest_is_only_put_where_the_run_may_write(storage: Storage, path: str) -> None:
    """Files outside of the table's folders, or of another format, are left to Spark."""
    of_key = KeyFiles(storage, columns_of(["int"]))
    assert of_key.may_have_digest(DataFile(f"s3://lake/{FOLDER}/a.parquet", 1, 1))
    assert not of_key.may_have_digest(DataFile(path, 1, 1))
    assert not of_key.may_have_digest(DataFile(f"s3://lake/{FOLDER}/a.parquet", 10**9, 1))
