"""Files that Arrow reads and writes; what only Spark can judge is left to it."""

import gzip
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from lakegate.audit.drift import Baselines
from lakegate.contract.model import Contract, parse
from lakegate.errors import Permanent, Transient
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.audit.run import RowCounts
from spark_jobs.files.arrow.parquet import ArrowFile, MustRewrite
from spark_jobs.files.source import LocalFile
from spark_jobs.groups.group_arrow import Judge, sort_out
from spark_jobs.one_pass.examined import require_all
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.write.files import DataFiles, Rows
from tests.fakes.lakes import MemoryLake, data_files, layout_for
from tests.fakes.parquet_files import ROWS, declared, footer_of, written
from tests.spark.measuring import NO_RUN, contract_of, custom, options

_SOME: dict[str, Any] = {"metric": "rowCount", "mustBeGreaterThan": 0}
_APART = options(onBadRow="quarantine")
_MANY: Any = {"maxRows": 9}


class Landed(LocalFile):
    """A landed file of a run without history."""

    spec = NO_RUN

    def new_object(self, address: str) -> AbstractContextManager[BinaryIO]:
        """Provide a stream to an object that nobody reads."""
        return MemoryLake().new_object(address)

    def baselines(self) -> Baselines:
        """Return the measures of earlier files: none."""
        return Baselines("")


def contract(format_: str, *quality: dict[str, Any], **given: Any) -> Contract:
    """Return the contract of a number and a name, with these rules of the whole object.

    What is `given` are settings, or else keys of the name.
    """
    of = {key: value for key, value in given.items() if key.endswith("Columns")}
    of_name = {key: value for key, value in given.items() if key not in of}
    columns = [declared("id", "bigint"), {**declared("name", "string"), **of_name}]
    text = contract_of(columns, [_SOME, *quality], format=format_, quarantine=_MANY, **of)
    return parse(text, "a test")


def parquet(*names: str | bytes) -> bytes:
    """Return a file with these names, of which none need be UTF-8."""
    text = pa.array([each.encode() if isinstance(each, str) else each for each in names])
    ids = pa.array(range(len(names)), pa.int64())
    return written(pa.table({"id": ids, "name": text.view(pa.string())}))


@pytest.fixture
def landed(tmp_path: Path) -> Any:
    """Return a function that lands a file with a body."""

    def land(body: bytes, name: str = "file") -> Landed:
        (tmp_path / name).write_bytes(body)
        return Landed(tmp_path / name)

    return land


def why_left(landed: Landed, asked: Contract, limits: Limits = DEFAULTS) -> str:
    """Return why a file is left to Spark, "" if it is not."""
    try:
        prepared(landed, asked, limits).examined()
    except MustRewrite as why:
        return str(why)
    return ""


_SHORT = {"logicalTypeOptions": {"maxLength": 3}, **_APART}


@pytest.mark.parametrize(("format_", "body"), [("parquet", b""), ("csv", b"x,b\n")])
def test_rows_that_break_a_rule_stay_out(landed: Any, format_: str, body: bytes) -> None:
    """A check that quarantines rows counts all rows, and every other check those that are left."""
    asked = contract(format_, **_SHORT, unique=True)
    names = ["abcd", "a", "abcd", "b", "c"]
    text = b"id,name\n" + "".join(f"{n},{name}\n" for n, name in enumerate(names)).encode() + body
    lake, files = data_files(asked)
    file = landed(text if format_ == "csv" else parquet(*names))
    found = prepared(file, asked, DEFAULTS).examined(files)
    bad = 1 if body else 0
    assert found.rows == RowCounts(5 + bad, bad, 2 + bad)
    measured = {id_: (each.value, each.rows) for id_, each in found.measured.items()}
    assert measured["name.invalidValues"] == (2, 5)
    assert measured["name.duplicateValues"] == (0, 3)
    (written_,) = found.files
    assert lake.rows(written_)["id"].to_pylist() == [1, 3, 4]
    assert [row["id"] for each in found.apart.part.broken for row in each.to_pylist()] == [0, 2]


@pytest.mark.parametrize("dictionaries", [True, False])
@pytest.mark.parametrize("lengths", [(0, 2, 2), (2, 0, 2), (2, 2, 0)])
def test_a_row_group_without_rows_is_no_damage(
    landed: Any, dictionaries: bool, lengths: tuple[int, ...]
) -> None:
    """A writer that gets no rows at some time makes such a row group, whose pages are nowhere."""
    rows = ROWS.append_column("id", pa.array(range(len(ROWS)), pa.int64()))
    body = io.BytesIO()
    with pq.ParquetWriter(body, rows.schema, use_dictionary=dictionaries) as to:
        for at, length in zip((0, *accumulate(lengths)), lengths, strict=False):
            to.write_table(rows.slice(at, length))
    file = ArrowFile(landed(body.getvalue()), footer_of(body.getvalue())[1])
    groups = [file.row_group(number, rows.column_names) for number in range(3)]
    assert str(pa.concat_tables(groups).to_pylist()) == str(rows.slice(0, 4).to_pylist())


def test_parts_without_rows_are_examined_with_the_others(landed: Any) -> None:
    """The rows of a file that has a row group without any are measured, and written."""
    asked, body = contract("parquet", unique=True, **_SHORT), io.BytesIO()
    rows = pq.read_table(io.BytesIO(parquet("a", "b", "c")))
    with pq.ParquetWriter(body, rows.schema) as to:
        for part in (rows.slice(0, 0), rows, rows.slice(0, 0)):
            to.write_table(part)
    lake, files = data_files(asked)
    found = prepared(landed(body.getvalue()), asked, DEFAULTS).examined(files)
    assert found.rows == RowCounts(3, 0, 0)
    assert found.measured["name.duplicateValues"].value == 0
    assert [lake.rows(each)["name"].to_pylist() for each in found.files] == [["a", "b", "c"]]


def test_a_rule_that_only_spark_knows_quarantines_by_spark(landed: Any) -> None:
    """A file is left at once if Arrow cannot tell which of its rows may enter the table."""
    own = {**custom("rowExpression", expression="id > 0"), **_APART, "id": "own"}
    asked = contract("csv", own)
    assert (
        why_left(landed(b"id,name\n1,a\n"), asked) == "only Spark knows which rows own quarantines"
    )


def test_a_file_with_very_many_rows_to_quarantine_is_left(landed: Any) -> None:
    """Rows that stay out are in memory until they are written, so there may not be very many."""
    asked = contract("parquet", **_SHORT)
    for count, why in ((7, ""), (8, "very many of its rows stay out of its table")):
        rows = pa.table(
            {"id": pa.array(range(count), pa.int64()), "name": ["x" * (8 << 20)] * count}
        )
        body = written(rows, use_dictionary=False, compression="zstd", row_group_size=1)
        assert why_left(landed(body), asked) == why


def test_a_text_that_is_no_text_is_left(landed: Any) -> None:
    """A Parquet file with a name that is not UTF-8 is not entered, as readers would differ."""
    asked = contract("parquet")
    assert why_left(landed(parquet("a", "é")), asked) == ""
    assert why_left(landed(parquet("a", b"\xff\xfe")), asked) == "name is not UTF-8"


def test_a_text_that_is_left_out_is_text(landed: Any) -> None:
    """A file is left if a column that stays out of the table is not UTF-8, as Spark finds that."""
    asked, ids = contract("parquet", extraColumns="drop"), pa.array([1], pa.int64())
    for text, why in ((b"\xc3\xa9", ""), (b"\xff", "more is not UTF-8")):
        more = pa.array([text]).view(pa.string())
        body = written(pa.table({"id": ids, "name": ["a"], "more": more}))
        assert why_left(landed(body), asked) == why


_POLICIES = {
    "drop": ([{"id": 1, "name": "a"}, {"id": 2, "name": None}], "left out"),
    "add": (
        [{"id": 1, "name": "a", "more": "007"}, {"id": 2, "name": None, "more": None}],
        "added",
    ),
}


@pytest.mark.parametrize("policy", _POLICIES)
def test_columns_of_a_text_are_left_out_or_added(landed: Any, policy: str) -> None:
    """A column that the contract lacks stays out, or comes last, as text."""
    rows, change = _POLICIES[policy]
    asked = contract("csv", extraColumns=policy)
    file = prepared(landed(b"more,id,name\n007,1,a\n,2,\n"), asked, DEFAULTS)
    lake, files = data_files(file.contract)
    found = file.examined(files)
    assert lake.rows(found.files[0]).to_pylist() == rows
    assert [change in each for each in found.changes] == [True]


def test_a_column_that_a_file_lacks_is_null(landed: Any) -> None:
    """With `missingColumns: null` the rows have null in it, of its type."""
    asked = contract("csv", missingColumns="null")
    lake, files = data_files(asked)
    found = prepared(landed(b"name\na\n"), asked, DEFAULTS).examined(files)
    assert lake.rows(found.files[0]).to_pylist() == [{"id": None, "name": "a"}]
    assert found.changes == ("column id is not in the file: its rows have null",)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('"m":1,"k":"x"', ""),
        ('"m":null', ""),
        ('"m":[]', "keys whose values"),
        ('"m":{"a":1}', "keys whose values"),
        ('"m":NaN', "keys whose values"),
        (f'"m":0.{"0" * 300}1', "keys whose values"),
        ('"m":1,"m":2', "does not read"),
        ('"ID":2', "only Spark tells apart"),
        ('"m":1,"M":2', "only Spark tells apart"),
    ],
)
def test_keys_are_left_out_if_spark_would_read_the_object(landed: Any, more: str, why: str) -> None:
    """An object with other keys is Arrow's where no parser could find it to be bad."""
    asked = contract("json", extraColumns="drop")
    found = why_left(landed(f'{{"id":1,"name":"a",{more}}}\n'.encode()), asked)
    assert why in found
    assert bool(why) == bool(found)


def test_a_key_that_is_a_former_name_is_left_to_spark(landed: Any) -> None:
    """Arrow does not leave out the values of a renamed column; beside the present name it does."""
    loose = {"extraColumns": "drop", "missingColumns": "null"}
    asked = contract("json", **loose, **options(formerName="label"))
    assert "only Spark tells apart" in why_left(landed(b'{"id":1,"Label":"a"}\n'), asked)
    assert why_left(landed(b'{"id":1,"label":"a","name":"b"}\n'), asked) == ""
    asked, text = replace(asked, format="csv", options=contract("csv").options), b"id,label\n1,a\n"
    assert "not those that the contract allows" in why_left(landed(text), asked)


def test_objects_without_any_column_of_the_contract_are_left_to_spark(landed: Any) -> None:
    """Arrow makes no rows of nulls of another table's objects; of empty ones it does."""
    asked = contract("json", extraColumns="drop")
    assert "only Spark tells apart" in why_left(
        landed(b'{"sku":1}\n{"sku":2,"name":null}\n'), asked
    )
    assert why_left(landed(b'{"sku":1,"id":2}\n'), asked) == ""
    assert why_left(landed(b'{}\n{"name":null}\n'), asked) == ""


def test_many_keys_are_left_to_spark(landed: Any) -> None:
    """The limit of columns counts those that are left out."""
    file, asked = landed(b'{"id":1,"name":"a","m":1}'), contract("json", extraColumns="drop")
    assert why_left(file, asked, Limits(most_columns=3)) == ""
    assert why_left(file, asked, Limits(most_columns=2))
    text, asked = landed(b"id,name,m\n1,a,1\n", "text"), contract("csv", extraColumns="drop")
    assert why_left(text, asked, Limits(most_columns=3)) == ""
    assert why_left(text, asked, Limits(most_columns=2))


def test_what_unpacks_to_too_much_is_left(landed: Any) -> None:
    """A small gzip file is left once more than the limit came out of it, not decoded to its end."""
    body = b"id,name\n" + b"1,a\n" * 200
    file, most = landed(gzip.compress(body)), len(body)
    asked = contract("csv")
    assert why_left(file, asked, Limits(largest_unpacked=most)) == ""
    assert "too large" in why_left(file, asked, Limits(largest_unpacked=most - 1))


def passed_together(asked: Contract, *files: Any) -> list[Any]:
    """Return the files that passed cleanly."""
    judge = Judge(asked, lambda: Baselines(""))
    return [each.storage for each in sort_out(files, judge, lambda: layout_for(asked))]


def test_files_of_a_group_are_sorted_out(landed: Any) -> None:
    """A file that failed is not in the group, nor one that Arrow does not read."""
    asked = contract("csv", custom("stddev", column="id", mustBeLessThan=5))
    unanswered = landed(b"id,name\n1,a\n2,b\n")
    assert passed_together(asked, unanswered) == [unanswered]
    good, bad = landed(b"id,name\n1,a\n", "good"), landed(b"id,name\n1,a\nx,b\n", "bad")
    odd = landed(b"id,more\n1,a\n", "odd")
    assert passed_together(contract("csv"), good, bad, odd) == [good]
    long = landed(b"id,name\n1,abcd\n2,a\n", "long")
    assert passed_together(contract("csv", **_SHORT), good, long) == [good]
    rule = {"metric": "invalidValues", "arguments": {"maxLength": 3}, "mustBeLessThan": 5, **_APART}
    allowing = contract("csv", quality=[rule])
    assert passed_together(allowing, good, long) == [good]


def test_rows_that_are_many_are_no_part_of_a_group(tmp_path: Path) -> None:
    """A small file whose rows would fill the driver's memory is ingested alone, by parts."""
    asked = contract("parquet")
    small, large = (
        _repeated(tmp_path / name, rows) for name, rows in (("s", 10), ("l", 1_500_000))
    )
    assert large.size < 1 << 20
    assert passed_together(asked, large, small) == [small]


def _repeated(path: Path, rows: int) -> Any:
    """Return a file with one text of 100 bytes in all of its rows."""
    columns = {"id": pa.repeat(pa.scalar(1, pa.int64()), rows), "name": pa.repeat("n" * 100, rows)}
    pq.write_table(pa.table(columns), path, row_group_size=100_000, compression="zstd")
    return Landed(path)


def test_what_passed_is_written(landed: Any) -> None:
    """The data files hold the rows that were read, without those that cannot be."""
    asked = contract("csv")
    lake, files = data_files(asked)
    found = prepared(landed(b"id,name\n1,a\nx,b\n2,\n"), asked, DEFAULTS).examined(files)
    assert (found.rows.read, found.rows.bad, found.rows.written) == (3, 1, 2)
    (file,) = found.files
    assert lake.rows(file).to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert (file.rows, file.size) == (2, len(lake.objects[file.location]))


def test_a_file_of_bad_rows_has_no_data_file(landed: Any) -> None:
    """Where no row can be read, nothing is written."""
    asked = contract("csv")
    lake, files = data_files(asked)
    found = prepared(landed(b"id,name\nx,b\n"), asked, DEFAULTS).examined(files)
    assert (found.files, lake.objects, found.rows.bad) == ((), {}, 1)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_large_files_become_several(landed: Any, size: int) -> None:
    """Row groups are written in parts, each a data file, that hold all rows in order."""
    ids = pa.table({"id": pa.array(range(100), pa.int64()), "name": [f"n{n}" for n in range(100)]})
    asked = contract("parquet")
    lake, files = data_files(asked)
    body = landed(written(ids, row_group_size=size))
    found = prepared(body, asked, DEFAULTS).examined(files)
    assert pa.concat_tables(map(lake.rows, found.files)).to_pylist() == ids.to_pylist()


def test_a_new_object_that_cannot_be_put_is_no_data_file(landed: Any) -> None:
    """An error of the lake ends the file; its rows are not taken for written."""
    asked = contract("parquet")

    class Full(MemoryLake):
        @contextmanager
        def new_object(self, address: str) -> Iterator[BinaryIO]:
            raise Transient("STORAGE_UNAVAILABLE", "the lake is full")
            yield

    files = DataFiles(Full(), layout_for(asked), asked, NO_RUN)
    with pytest.raises(Transient, match="full"):
        prepared(landed(parquet("a")), asked, DEFAULTS).examined(files)


def test_files_and_row_groups_have_the_tables_sizes() -> None:
    """A file ends once it has the table's size; its row groups are no larger than the table's."""
    asked, rows = contract("parquet"), 1000
    ids = pa.array(range(rows), pa.int64())
    tables = [Rows(pa.table({"id": ids, "name": pa.array(["x"] * rows)})) for _ in range(6)]
    lake, files = data_files(asked, row_group=1, target=1)
    assert [file.rows for file in files.write(tables)] == [rows] * 6
    lake, files = data_files(asked, row_group=1)
    (file,) = files.write(tables)
    assert (file.rows, len(file.offsets)) == (6 * rows, 6)
    lake, files = data_files(asked)
    (file,) = files.write(tables)
    assert (len(file.offsets), lake.rows(file).num_rows) == (1, 6 * rows)


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_too_large_for_the_driver_is_left(landed: Any, packed: bool) -> None:
    """Without Spark's tasks no file is decoded that unpacks to more than the driver may hold."""
    text = b"id,name\n" + b"1,a\n" * 200
    files = [
        (landed(gzip.compress(text) if packed else text, "text"), contract("csv")),
        (landed(parquet(*["a"] * 200), "parquet"), contract("parquet")),
    ]
    for file, asked in files:
        prepared(file, asked, DEFAULTS)
        with pytest.raises(MustRewrite, match="too large"):
            prepared(file, asked, DEFAULTS, most_here=100).examined()


def test_no_row_is_lost_in_silence(landed: Any) -> None:
    """Data files with fewer rows than were read end the run."""
    asked = contract("parquet")
    _, files = data_files(asked)
    found = prepared(landed(parquet("a", "b")), asked, DEFAULTS).examined(files)
    require_all(found, found.files)
    for held in ([], [replace(found.files[0], rows=1)]):
        with pytest.raises(Permanent, match="2 rows were read, but the data files hold"):
            require_all(found, held)
