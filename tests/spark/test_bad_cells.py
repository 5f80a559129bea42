"""Every bad cell of a rejected file is named: its place in the file, column, value and reason."""

from pathlib import Path

import pytest

from infra.local.contract_test import audit
from lakegate.audit.report import READABLE, AuditReport
from lakegate.contract.columns import Column
from lakegate.contract.model import parse
from spark_jobs.audit.bad_cells import bad_cells, reason
from spark_jobs.files.open import open_source
from spark_jobs.files.source import LocalFile
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark

WHOLE = "the whole row"
NUMBER = "not a number"
DATE = "not a date: expected ISO 8601, as in 2026-11-23"
DOTTED = f'{DATE}; set logicalTypeOptions: {{format: "dd.MM.yyyy"}}'
CLOCK = "not as the contract's format dd.MM.yyyy"


def contract(secrecy: str = "public", format_: str = "csv", settings: str = "") -> str:
    """Return a contract whose last column has this classification."""
    clock = "" if format_ == "json" else ", logicalTypeOptions: {format: dd.MM.yyyy}"
    return f"""
kind: DataContract
apiVersion: v3.1.0
id: orders
version: 1.0.0
customProperties: [{{property: format, value: {format_}}}{settings}]
schema:
  - name: shop.orders
    properties:
      - {{name: id, logicalType: integer, required: true}}
      - {{name: amount, logicalType: number}}
      - {{name: day, logicalType: date{clock}}}
      - {{name: on, logicalType: date}}
      - {{name: note, logicalType: string}}
      - {{name: born, logicalType: date, classification: {secrecy}}}
"""


HEADER = "id,amount,day,on,note,born\n"
GOOD = "1,2.5,31.12.2025,2026-01-31,a,2000-01-01\n"


def cells(report: AuditReport) -> list[tuple[str | None, ...]]:
    """Return the bad cells that a report names."""
    (check,) = [each for each in report.checks if each.id == READABLE]
    assert len(check.samples) <= 10
    names = ("place", "column", "value", "reason")
    return [tuple(each.get(name) for name in names) for each in check.samples]


def audited(job: Job, folder: Path, body: str | bytes, *args: str) -> AuditReport:
    """Return the report about a file under the contract that the arguments make."""
    file = folder / "file"
    file.write_bytes(body if isinstance(body, bytes) else body.encode())
    return audit(job.warm_spark, parse(contract(*args), "orders"), file)


def test_bad_cells_of_csv_are_named(job: Job, tmp_path: Path) -> None:
    """Each has its line in the file, as an editor counts it, with blank lines and the header."""
    body = (
        f"{HEADER}{GOOD}\n"
        "x1,two,2025-12-31,31.01.2026,a,2000-01-01\n"
        "2,3\n"
        f"{GOOD * 3}"
        "3,4,31.12.2025,2026-01-31,a,2000-01-01,7\n"
    )
    report = audited(job, tmp_path, body)
    assert report.rows_unreadable == 3
    assert cells(report) == [
        ("line 4", "id", "x1", "not a whole number of at most 64 bits"),
        ("line 4", "amount", "two", NUMBER),
        ("line 4", "day", "2025-12-31", CLOCK),
        ("line 4", "on", "31.01.2026", DOTTED),
        ("line 5", WHOLE, "2,3", "2 cells, but the header has 6"),
        (
            *("line 9", WHOLE, "3,4,31.12.2025,2026-01-31,a,2000-01-01,7"),
            "7 cells, but the header has 6",
        ),
    ]


def test_a_usual_way_to_write_a_cell_comes_with_the_contracts_line(
    job: Job, tmp_path: Path
) -> None:
    """A number with a comma, or a day in another order, names what the contract lacks.

    So it does where the value is hidden: how it is written is no value.
    """
    rows = ('1,"2,5",,03/04/2026,,', '2,"1,234",,2026-13-01,,', "3,,,31/12/2026,,31/12/2026")
    report = audited(job, tmp_path, HEADER + "\n".join(rows) + "\n", "confidential")
    assert [(column, why) for _, column, _, why in cells(report)] == [
        ("amount", f'{NUMBER}; set options: {{decimalSeparator: ","}}'),
        ("on", f'{DATE}; set logicalTypeOptions: {{format: "dd/MM/yyyy" or "MM/dd/yyyy"}}'),
        ("amount", NUMBER),  # perhaps a thousand
        ("on", DATE),
        ("on", f'{DATE}; set logicalTypeOptions: {{format: "dd/MM/yyyy"}}'),
        ("born", f'{DATE}; set logicalTypeOptions: {{format: "dd/MM/yyyy"}}'),
    ]
    assert cells(report)[-1][2] == "(hidden)"


@pytest.mark.parametrize(
    ("ends", "unit"), [(("", "\n", "\n"), "line"), (("[", ",\n", "]"), "item")]
)
def test_bad_values_of_json_are_named(
    job: Job, tmp_path: Path, ends: tuple[str, str, str], unit: str
) -> None:
    """In JSON a line, or an item of the array, is told; what is no object is one bad row."""
    rows = (
        '{"id": 1, "amount": 2}',
        '{"id": "1", "amount": true}',
        '{"id": 3, "id": 4}',
        '{"id": 100.0, "amount": 1e400}',
    )
    begin, between, end = ends
    report = audited(job, tmp_path, begin + between.join(rows) + end, "public", "json")
    assert cells(report) == [
        (f"{unit} 2", "id", "1", "not a whole number of at most 64 bits, without quotes"),
        (f"{unit} 2", "amount", "true", f"{NUMBER}, without quotes"),
        (f"{unit} 3", WHOLE, rows[2], "not exactly one JSON object, with each key once"),
        (f"{unit} 4", "id", "100.0", "not a whole number of at most 64 bits, without quotes"),
        (f"{unit} 4", "amount", "1e400", f"{NUMBER}, without quotes"),
    ]


def test_only_confidential_cells_are_hidden(job: Job, tmp_path: Path) -> None:
    """Values of a confidential column, and of those beside it in CSV, are hidden; others are not.

    A row with other cells than the header is hidden as a whole: any cell may be confidential.
    """
    body = f"{HEADER}1,two,2025-12-31,31.01.2026,a,JaneDoe\n2,JaneDoe\n"
    report = audited(job, tmp_path, body, "confidential")
    assert cells(report) == [
        ("line 2", "amount", "two", NUMBER),
        ("line 2", "day", "2025-12-31", CLOCK),
        ("line 2", "on", "31.01.2026", DOTTED),
        ("line 2", "born", "(hidden)", DATE),
        ("line 3", WHOLE, "(hidden)", "2 cells, but the header has 6"),
    ]
    assert "JaneDoe" not in report.to_json()


@pytest.mark.parametrize("setting", ["allowSamples, value: false", "extraColumns, value: drop"])
def test_values_that_nobody_classified_are_hidden(job: Job, tmp_path: Path, setting: str) -> None:
    """Without samples no value is shown; beside a column that is dropped none may have moved."""
    body = f"{HEADER[:-1]},extra\n2,1,31.12.2025,2026-01-31,a,JaneDoe,7\n"
    body = body if "drop" in setting else body.replace(",extra", "").replace(",7\n", "\n")
    report = audited(job, tmp_path, body, "public", "csv", f", {{property: {setting}}}")
    assert cells(report) == [("line 2", "born", "(hidden)", DATE)]
    assert "JaneDoe" not in report.to_json()


BAD = "9,two,31.12.2025,2026-01-31,a,2000-01-01\n"
BEFORE, AFTER = ('{"id": 1}',) * 1500, '{"id": 9, "amount": "two"}'


@pytest.mark.parametrize(
    ("body", "format_", "places"),
    [
        (HEADER + GOOD * 700 + BAD + GOOD * 700 + BAD, "csv", ("line 702", "line 1,403")),
        ("\n".join((*BEFORE, "", AFTER, *BEFORE, AFTER)), "json", ("line 1,502", "line 3,003")),
        (f"[{','.join((*BEFORE, AFTER, *BEFORE, AFTER))}]", "json", ("item 1,501", "item 3,002")),
    ],
    ids=["csv", "lines", "array"],
)
def test_places_are_counted_over_all_parts_of_a_file(
    job: Job, tmp_path: Path, body: str, format_: str, places: tuple[str, ...]
) -> None:
    """In a file that is read in several parts, a line's number counts those of the parts before.

    An array is read as a whole.
    """
    spark = job.warm_spark.newSession()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    file = tmp_path / "file"
    file.write_text(body)
    agreed = parse(contract("public", format_), "orders")
    source = open_source(spark, file.as_uri(), agreed, LocalFile(file))
    assert body.startswith("[") or source.rows.rdd.getNumPartitions() > 5
    named = [(cell.place, cell.column, cell.value) for cell in bad_cells(source, agreed)]
    assert named == [(place, "amount", "two") for place in places]


@pytest.mark.parametrize(
    ("format_", "type_", "why"),
    [
        ("orc", "date", "not from 15 October 1582 to the year 9999"),
        ("parquet", "date", "not of the years 1 to 9999"),
        ("parquet", "timestamp", "not of the years 1 to 9999, or has digits beyond microseconds"),
        ("parquet", "array<string>", "has a value that cannot be read"),
        ("avro", "string", "not text in UTF-8"),
        ("orc", "string", "not text in UTF-8"),
        ("parquet", "int", "has digits that int cannot hold"),
    ],
)
def test_a_stored_value_that_cannot_be_read_says_why(format_: str, type_: str, why: str) -> None:
    """Of a format with types the reason fits all values of a type that are refused."""
    assert reason(Column("d", type_, ""), parse(contract(format_=format_), "orders")) == why


@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_rows_of_columnar_files_are_numbered(job: Job, tmp_path: Path, format_: str) -> None:
    """A bad value in Parquet, ORC or Avro is told with its row's number in the file.

    If its column is confidential, only the value is hidden.
    """
    spark = job.warm_spark.newSession()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16000")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    rows = spark.range(9000).selectExpr(
        "id",
        "cast(if(id IN (0, 4321, 8999), X'FF61', X'61') AS string) AS note",
        "cast(if(id = 77, X'FF', cast(uuid() AS binary)) AS string) AS born",
    )
    small = {"parquet.block.size": 16_000, "orc.stripe.size": 1, "orc.row.index.stride": 1000}
    written = rows.coalesce(1).write.format(format_).options(**small)
    written.save(str(tmp_path / "written"))
    (file,) = (tmp_path / "written").glob(f"*.{format_}")
    text = contract("confidential", format_)
    names = ("amount", "day, ", "on, ")
    lines = [line for line in text.splitlines() if not any(f"name: {n}" in line for n in names)]
    agreed = parse("\n".join(lines).replace("date, class", "string, class"), "orders")
    source = open_source(spark, file.as_uri(), agreed, LocalFile(file))
    assert source.rows.rdd.getNumPartitions() > 2
    assert [(cell.place, cell.column, cell.value) for cell in bad_cells(source, agreed)] == [
        ("row 1", "note", "\ufffda"),
        ("row 78", "born", "(hidden)"),
        ("row 4,322", "note", "\ufffda"),
        ("row 9,000", "note", "\ufffda"),
    ]


def test_few_cells_are_named_and_all_rows_counted(job: Job, tmp_path: Path) -> None:
    """At most ten cells are named, each shortened; the number of rows is exact."""
    bad = f"9,{'two' * 4000},31.12.2025,2026-01-31,a,2000-01-01\n"
    report = audited(job, tmp_path, HEADER + GOOD + bad * 500)
    named = cells(report)
    assert (report.rows_unreadable, len(named)) == (500, 10)
    assert all(len(str(value)) < 300 for _, _, value, _ in named)
    assert len(report.to_json()) < 20_000
