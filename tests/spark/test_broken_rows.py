"""Every broken row of a file is found again, with its number and each of its reasons."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from access.mending.csv_rows import CsvRows
from access.mending.json_rows import JsonItems
from access.mending.records import Text
from infra.local.contract_test import broken_rows
from lakegate.audit import broken_rows as limits
from lakegate.audit.report import READABLE
from lakegate.contract.model import Contract, parse
from lakegate.errors import LakegateError
from lakegate.limits import DEFAULTS
from tests.spark.conftest import Job
from tests.spark.measuring import bookings

pytestmark = pytest.mark.spark

BODY = "id,hotel,nights\n1,Adler,2\n2,,-3\nx,Ulm,y\n\n4,Ulm,1,2\n1,Ulm,200\n5,Ulm,7\n"
JSON = (
    '{"id": 1, "hotel": "Adler", "nights": 2}\n{"id": 2, "nights": -3}\n'
    '{"id": "x", "hotel": "Ulm", "nights": "y"}\n\n[4]\n'
    '{"id": 1, "hotel": "Ulm", "nights": 200}\n{"id": 5, "hotel": "Ulm", "nights": 7}\n'
)
BITS = "not a whole number of at most 64 bits"
WHOLE, HALF = f"id: {BITS}", f"nights: {BITS}"
TWICE = "a row that repeats another row's id"
REASONS = {
    2: (TWICE,),
    3: ("a row whose nights is not at least 0", "a row without hotel"),
    4: (WHOLE, HALF),
    6: ("4 cells, but the header has 3",),
    7: ("a row for which nights < 100 is false", TWICE),
}


def contract(format_: str, settings: str = "") -> Contract:
    """Return a contract with a rule of each kind that rows may break."""
    more = "- {metric: rowCount, mustBeGreaterThan: 100}"
    text = bookings(format_, settings, ", classification: restricted", more)
    return parse(text, "bookings.yaml")


def found(job: Job, file: Path, by: Contract) -> tuple[str, Mapping[int, tuple[str, ...]]]:
    """Return the unit and the reasons of all rows that break any check."""
    every = {READABLE, *(check.id for check in by.checks)}
    rows = broken_rows(job.warm_spark, by, file, every, DEFAULTS)
    return rows.unit, {number: tuple(sorted(each)) for number, each in rows.reasons.items()}


@pytest.mark.parametrize("packed", [False, True])
def test_each_broken_line_of_csv_is_found(job: Job, tmp_path: Path, packed: bool) -> None:
    """Lines are counted with the header and blank ones; a line may have several reasons."""
    file = tmp_path / "a.csv"
    file.write_bytes(gzip.compress(BODY.encode()) if packed else BODY.encode())
    assert found(job, file, contract("csv")) == ("line", REASONS)


def test_each_broken_line_of_json_is_found(job: Job, tmp_path: Path) -> None:
    """A line that is no object, and each value that is not of its type, has its reason."""
    file = tmp_path / "a.jsonl"
    file.write_text(JSON)
    unit, reasons = found(job, file, contract("json"))
    assert (unit, list(reasons)) == ("line", [1, 2, 3, 5, 6])
    assert reasons[3] == tuple(f"{each}, without quotes" for each in (WHOLE, HALF))
    assert reasons[5] == ("not exactly one JSON object, with each key once",)


def test_each_broken_item_of_an_array_is_found(job: Job, tmp_path: Path) -> None:
    """Items are counted as they are cut for a correction, however they are written."""
    file, by = tmp_path / "a.json", contract("json")
    objects = [json.loads(line) for line in JSON.splitlines() if line]
    file.write_text(f"\ufeff{json.dumps(objects, indent=1)}")
    unit, reasons = found(job, file, by)
    assert (unit, list(reasons)) == ("item", [1, 2, 3, 4, 5])
    text = Text.of(file, "UTF-8")
    with text.read(file) as lines:
        items = [each for each in JsonItems(by).records(lines) if each.number]
    assert [json.loads(each.text) for each in items] == objects
    assert reasons[4] == ("not exactly one JSON object, with each key once",)


def test_many_partitions_are_counted_through(job: Job, tmp_path: Path) -> None:
    """Numbers are those of the file where Spark reads it in several parts."""
    file = tmp_path / "a.csv"
    file.write_text("id,hotel,nights\n" + "".join(f"{n},{'Ulm' * 20},1\n" for n in range(150_000)))
    with file.open("a") as more:
        more.write("150000,,1\n")
    assert job.warm_spark.read.text(str(file)).rdd.getNumPartitions() > 1
    assert list(found(job, file, contract("csv"))[1]) == [150_002]


def test_only_the_failed_checks_count(job: Job, tmp_path: Path) -> None:
    """Rows that break nothing of what failed are not at fault."""
    file, by = tmp_path / "a.csv", contract("csv")
    file.write_text(BODY)
    rows = broken_rows(job.warm_spark, by, file, {"hotel.nullValues"}, DEFAULTS)
    assert list(rows.reasons) == [3]


def test_too_many_broken_rows_are_refused(job: Job, tmp_path: Path) -> None:
    """More rows than somebody corrects one by one are no task of this kind, and it is said."""
    file = tmp_path / "a.csv"
    file.write_text("id,hotel,nights\n" + "x,Ulm,1\n" * (limits.MOST + 1))
    with pytest.raises(LakegateError, match=r"TOO_MANY_ROWS.*100,000 rows.*\nCorrect"):
        found(job, file, contract("csv"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("within", ["", "\n", "\r\n"])
def test_numbers_lead_to_the_rows_as_they_are_written(
    job: Job, tmp_path: Path, end: str, within: str
) -> None:
    """Whatever ends lines and rows, a number is that of the row's own text in the file."""
    file, by = tmp_path / "a.csv", contract("csv")
    rows = [f"{n},U{within}lm,1" if within == "" else f'{n},"U{within}lm",1' for n in range(9)]
    rows[3:3] = ["", "x,Ulm,1"]
    rows[7:7] = ["", "", "y,Ulm,2"]
    file.write_bytes(end.join(["\ufeffid,hotel,nights", "", *rows]).encode())
    unit, reasons = found(job, file, by)
    text = Text.of(file, "UTF-8")
    with text.read(file) as lines:
        records = list(CsvRows(by, text, bool(within)).records(lines))
    assert [each.text for each in records if each.number in reasons] == ["x,Ulm,1", "y,Ulm,2"]
    assert unit == "line"
