"""Files that Arrow reads and writes; what only Spark can judge is left to it."""

import gzip
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from lakegate.contract.model import Contract, parse
from lakegate.drift import Baselines
from lakegate.errors import Permanent, Transient
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.source import LocalFile
from spark_jobs.group_arrow import Judge, sort_out
from spark_jobs.one_pass.examined import require_all
from spark_jobs.one_pass.prepare import prepared
from spark_jobs.write.files import DataFiles, Rows
from tests.fakes.lakes import MemoryLake, data_files, layout_for
from tests.fakes.parquet_files import declared, written
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


def contract(format_: str, *quality: dict[str, Any], **of_name: Any) -> Contract:
    """Return the contract of a number and a name, with these rules of the whole object."""
    columns = [declared("id", "bigint"), {**declared("name", "string"), **of_name}]
    text = contract_of(columns, [_SOME, *quality], format=format_, quarantine=_MANY)
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


def test_rows_are_kept_out_by_spark_alone(landed: Any) -> None:
    """A file is left if a check that quarantines rows finds one."""
    short = {"logicalTypeOptions": {"maxLength": 3}, **_APART}
    file = landed(parquet("a", "abc"))
    assert why_left(file, contract("parquet", **short)) == ""
    assert "quarantines" in why_left(landed(parquet("abcd")), contract("parquet", **short))


def test_rows_are_kept_out_for_one_reason_at_once(landed: Any) -> None:
    """A text with unreadable rows is left if others could be quarantined by a check, too."""
    short = {"logicalTypeOptions": {"maxLength": 3}, **_APART}
    text, good = landed(b"id,name\n1,a\nx,b\n"), landed(b"id,name\n1,a\n", "good")
    assert why_left(good, contract("csv", **short)) == ""
    assert why_left(text, contract("csv")) == ""
    assert "other reasons" in why_left(text, contract("csv", **short))


def test_a_text_that_is_no_text_is_left(landed: Any) -> None:
    """A Parquet file with a name that is not UTF-8 is not entered, as readers would differ."""
    asked = contract("parquet")
    assert why_left(landed(parquet("a", "é")), asked) == ""
    assert why_left(landed(parquet("a", b"\xff\xfe")), asked) == "name is not UTF-8"


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

    files = DataFiles.of(Full(), layout_for(asked), asked, NO_RUN)
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
