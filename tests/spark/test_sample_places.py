"""Sample rows have their place in the landed file, whoever wrote them and however."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.local.contract_test import audit
from lakegate.audit.failing_rows import told
from lakegate.audit.report import AuditReport
from lakegate.contract.model import parse
from tests.spark.conftest import Job
from tests.spark.measuring import bookings

pytestmark = pytest.mark.spark

ROWS: list[tuple[int, str | None, int]] = [(number, "Adler", 2) for number in range(1, 301)]
ROWS[9] = (10, None, 2)
ROWS[20] = (21, "Adler", -3)
ROWS[250] = (250, "Adler", 2)
ROWS[280] = (281, "Ulm", 120)
NAMES = ("id", "hotel", "nights")


def lines(text: str = "") -> list[str]:
    """Return the rows as CSV, with a header and `text` before the fifth row."""
    found = [f"{id_},{hotel or ''},{nights}" for id_, hotel, nights in ROWS]
    return ["id,hotel,nights", *found[:4], *([text] if text else []), *found[4:]]


def csv(*, blank: int = 0) -> bytes:
    """Return the rows as CSV with blank lines before the fifth row, and no last line end."""
    return "\n".join(lines("\n" * (blank - 1)) if blank else lines()).encode()


def quoted() -> bytes:
    """Return the rows as CSV, of which the fifth has a line end within quotes."""
    return csv().replace(b"\n5,Adler", b'\n5,"Ad\nler"')


def objects(begin: str, between: str, end: str) -> bytes:
    """Return the rows as JSON."""
    texts = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in ROWS]
    return (begin + between.join(texts) + end).encode()


def parquet() -> bytes:
    """Return the rows as Parquet, in three row groups."""
    out = BytesIO()
    columns = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), out, row_group_size=100)
    return out.getvalue()


FILES: dict[str, tuple[str, Callable[[], bytes], str, int]] = {
    "csv": ("csv", csv, "line", 1),
    "csv with blank lines": ("csv", lambda: csv(blank=3), "line", 4),
    "csv with a line end in quotes": ("csv", quoted, "line", 2),
    "json after a blank line": ("json", lambda: objects("\n", "\n", ""), "line", 1),
    "json array": ("json", lambda: objects("[", ",\n", "]"), "item", 0),
    "parquet": ("parquet", parquet, "row", 0),
}
# Of each kind of numbers one: lines after blank ones, rows with line ends, items, rows.
ALL_WAYS = ("csv with blank lines", "csv with a line end in quotes", "json array", "parquet")
WAYS = {
    "by Arrow": ("", ""),
    "by Spark": (", {property: write, value: spark}", ""),
    "divided": ("", ", partitioned: true, partitionKeyPosition: 1"),
}


def audited(job: Job, folder: Path, file: str, way: str, settings: str = "") -> AuditReport:
    """Return the report about a file that is written in one of the ways."""
    format_, body, _, _ = FILES[file]
    write, hotel = WAYS[way]
    path = folder / "file"
    path.write_bytes(body())
    agreed = parse(bookings(format_, write + settings, hotel), "bookings")
    return audit(job.warm_spark, agreed, path)


def rows(report: AuditReport) -> dict[str, list[str]]:
    """Return what is told of the rows that break each failed check."""
    return {check.id: told(check) for check in report.failed}


@pytest.mark.parametrize(
    ("file", "way"),
    [(file, way) for way in WAYS for file in FILES if way == "by Arrow" or file in ALL_WAYS],
)
def test_failing_rows_have_their_place_in_the_file(
    job: Job, tmp_path: Path, file: str, way: str
) -> None:
    """A null, a range, a condition of the contract and a key that comes twice name their place."""
    _, _, unit, before = FILES[file]
    at = [number + before for number in (10, 21, 250, 251, 281)]
    assert rows(audited(job, tmp_path, file, way)) == {
        "id.duplicateValues": [f"id 250 twice: {unit}s {at[2]}, {at[3]}"],
        "hotel.nullValues": [f"{unit} {at[0]}: hotel (empty), id 10, nights 2"],
        "nights.invalidValues": [f"{unit} {at[1]}: nights -3, id 21, hotel Adler"],
        "brokenRows": [f"{unit} {at[4]}: id 281, hotel Ulm, nights 120"],
    }


def test_without_samples_the_places_are_told(job: Job, tmp_path: Path) -> None:
    """Where the contract allows no samples, each value is hidden, but not its place."""
    hidden = ", {property: allowSamples, value: false}"
    assert rows(audited(job, tmp_path, "csv", "by Arrow", hidden)) == {
        "id.duplicateValues": ["id (hidden) twice: lines 251, 252"],
        "hotel.nullValues": ["line 11: hotel (hidden)"],
        "nights.invalidValues": ["line 22: nights (hidden)"],
        "brokenRows": ["line 282"],
    }


@pytest.mark.parametrize("way", ["by Arrow", "by Spark"])
def test_quarantined_rows_have_their_place(job: Job, tmp_path: Path, way: str) -> None:
    """A row in quarantine is told by its place, and the places of later rows count it."""
    body = csv().replace(b"\n21,", b"\n20,").replace(b"\n30,", b"\nthirty,")
    path = tmp_path / "file"
    path.write_bytes(body)
    settings = ", {property: quarantine, value: {maxRows: 5, unreadable: true}}" + WAYS[way][0]
    text = bookings("csv", settings).replace(
        "{minimum: 0}", "{minimum: 0}, customProperties: [{property: onBadRow, value: quarantine}]"
    )
    report = audit(job.warm_spark, parse(text, "bookings"), path)
    found = {check.id: told(check) for check in report.checks if check.samples}
    assert found["brokenRows"] == ["line 282: id 281, hotel Ulm, nights 120"]
    assert found["id.duplicateValues"] == ["id 250 twice: lines 251, 252"]
    assert found["nights.invalidValues"] == ["line 22: nights -3, id 20, hotel Adler"]
    assert found["file.rows_readable"] == [
        "line 31: id 'thirty': not a whole number of at most 64 bits"
    ]
    assert report.rows_rejected == 2


def test_of_many_repeated_rows_the_first_are_told(job: Job, tmp_path: Path) -> None:
    """Of a key that comes often the first three lines are told, and how often it comes."""
    path = tmp_path / "file"
    path.write_text("id,hotel,nights\n" + "7,Adler,1\n" * 5 + "8,Ulm,1\n" * 2)
    for write, _ in WAYS.values():
        report = audit(job.warm_spark, parse(bookings("csv", write), "bookings"), path)
        assert rows(report)["id.duplicateValues"] == [
            "id 7, 5 times: lines 2, 3, 4, …",
            "id 8 twice: lines 7, 8",
        ]


@pytest.mark.parametrize("way", ["by Arrow", "by Spark"])
def test_unparseable_rows_count_in_places(job: Job, tmp_path: Path, way: str) -> None:
    """Where no check quarantines rows, the places of later rows count the unparseable ones."""
    path = tmp_path / "file"
    path.write_bytes(csv().replace(b"\n5,", b"\nfive,"))
    report = audit(job.warm_spark, parse(bookings("csv", WAYS[way][0]), "bookings"), path)
    found = rows(report)
    assert found.pop("file.rows_readable") == [
        "line 6: id 'five': not a whole number of at most 64 bits"
    ]
    assert found == {
        "id.duplicateValues": ["id 250 twice: lines 251, 252"],
        "hotel.nullValues": ["line 11: hotel (empty), id 10, nights 2"],
        "nights.invalidValues": ["line 22: nights -3, id 21, hotel Adler"],
        "brokenRows": ["line 282: id 281, hotel Ulm, nights 120"],
    }
