"""The job over real Spark, Nessie and S3."""

import gzip
import io
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakegate.report import Status, Verdict
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark
Contract = Callable[..., str]

GOOD: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "name": ["n1", "n2", None],
    "amount": [0.0, 99.5, None],
    "day": [date(2013, 1, 1), date(2013, 1, 2), None],
}


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def changed(**columns: Any) -> bytes:
    return parquet({**GOOD, **columns})


def test_a_good_file_is_on_its_branch_and_passes(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """The rows of a good file are on its branch, at the reported hash; main is unchanged."""
    before = job_runner.services.catalog.head("main")
    code, report = job_runner.ingest(parquet(GOOD), contract(), table)
    assert job_runner.services.catalog.head("main") == before
    assert (code, report.verdict, report.rows_written) == (0, Verdict.PASSED, 3)
    assert job_runner.rows(table, report.branch) == [
        dict(zip(GOOD, row, strict=True)) for row in zip(*GOOD.values(), strict=True)
    ]
    assert job_runner.services.catalog.head(report.branch) == report.audited_hash


def test_the_report_names_the_files_that_hold_the_rows(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """The report names exactly the data files of this run, with their sizes."""
    _, first = job_runner.ingest(parquet(GOOD), contract(), table, "tests/first")
    catalog = job_runner.services.catalog
    assert catalog.merge(first.branch, first.audited_hash, first.base_hash, "Publish", {"k": "v"})
    _, report = job_runner.ingest(parquet(GOOD), contract(), table, "tests/second")
    assert {file.path for file in report.files}.isdisjoint(file.path for file in first.files)
    assert [file.rows for file in report.files] == [3]
    for file in report.files:
        bucket, _, key = file.path.removeprefix("s3://").partition("/")
        head = job_runner.services.s3.head_object(Bucket=bucket, Key=key)
        assert head["ContentLength"] == file.bytes


def test_a_run_that_is_repeated_finds_its_report(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """A finished run that is repeated writes nothing and returns the same report."""
    spec = job_runner.spec(
        job_runner.services.land("tests/again", parquet(GOOD)), contract(), table
    )
    first = job_runner.run(spec)
    assert job_runner.run(spec) == first
    assert len(job_runner.rows(table, spec.branch)) == 3


def test_an_interrupted_run_begins_again(job_runner: Job, contract: Contract, table: str) -> None:
    """A try undoes the commits of an earlier one without a report: no row is doubled."""
    spec = job_runner.spec(job_runner.services.land("tests/cut", parquet(GOOD)), contract(), table)
    job_runner.run(spec)
    job_runner.services.s3.delete_object(Bucket=spec.lake_bucket, Key=spec.report_key)
    code, _ = job_runner.run(spec)
    assert code == 0
    assert len(job_runner.rows(table, spec.branch)) == 3


def test_exactly_the_landed_version_is_read(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """A key that was replaced before the run is read in the version that landed."""
    landed = job_runner.services.land("tests/replaced.parquet", parquet(GOOD))
    job_runner.services.land("tests/replaced.parquet", changed(id=[7, 8, 9]))
    _, report = job_runner.run(job_runner.spec(landed, contract(), table))
    assert sorted(row["id"] for row in job_runner.rows(table, report.branch)) == [1, 2, 3]


@pytest.mark.parametrize("key", ["a file, with + and ümläuts.parquet", "_hidden {x}*.parquet"])
def test_any_key_is_read(job_runner: Job, contract: Contract, table: str, key: str) -> None:
    """A key may contain any character."""
    code, report = job_runner.ingest(parquet(GOOD), contract(), table, key=f"tests/{key}")
    assert (code, report.rows_written) == (0, 3)


# For each check the values that break it once, in a column that is a copy of id, name or amount.
BROKEN_ONCE: dict[str, list[Any]] = {
    "id_a.nullValues": [1, None, 3],
    "id_b.duplicateValues": [1, 2, 1],
    "name_a.invalidValues": ["n1", "x2", None],
    "name_b.invalidValues": ["n1", "n2\n", None],
    "amount_a.invalidValues": [0.0, 100.5, None],
    "amount_b.invalidValues": [-0.1, 1.0, None],
    "amount_c.invalidValues": [float("nan"), 1.0, None],
}


def test_each_broken_value_fails_its_own_check(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """Every broken value fails the one check that is meant for it, with a count of 1."""
    lines = contract().splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "name: id," in line)
    text = "".join(lines[start:])
    columns = {check.partition(".")[0]: values for check, values in BROKEN_ONCE.items()}
    for name in columns:
        own = name.partition("_")[0]
        text += _property(contract(), own).replace(f"name: {own}", f"name: {name}")
    code, report = job_runner.ingest(changed(**columns), "".join(lines[:start]) + text, table)
    assert (code, report.verdict) == (3, Verdict.REJECTED)
    assert {c.id: c.counted for c in report.failed} == dict.fromkeys(BROKEN_ONCE, 1)


def _property(contract: str, name: str) -> str:
    """Return the lines of a property of the contract."""
    properties = contract.partition("    properties:\n")[2].split("      - ")[1:]
    (found,) = [each for each in properties if f"name: {name}" in each.partition("\n")[0]]
    return f"      - {found.rstrip()}\n"


def test_a_rejected_file_shows_its_bad_rows(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """One broken row rejects the file; the report shows it and the branch keeps it."""
    code, report = job_runner.ingest(changed(amount=[-5.0, 1.0, None]), contract(), table)
    assert (code, report.verdict) == (3, Verdict.REJECTED)
    assert [(check.id, check.counted) for check in report.failed] == [("amount.invalidValues", 1)]
    assert report.failed[0].samples[0]["amount"] == "-5.0"
    assert len(job_runner.rows(table, report.branch)) == 3


def test_a_warning_does_not_reject(job_runner: Job, contract: Contract, table: str) -> None:
    """A failed check of severity warning is reported, and the file passes."""
    quality = "    quality: [{metric: rowCount, mustBeGreaterThan: 5, severity: warning}]"
    code, report = job_runner.ingest(parquet(GOOD), contract(quality=quality), table)
    assert code == 0
    assert [c.id for c in report.checks if c.status is Status.WARN] == ["rowCount"]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({k: v for k, v in GOOD.items() if k != "day"}, "MISSING_COLUMN"),
        ({**GOOD, "more": [1, 2, 3]}, "EXTRA_COLUMN"),
        ({**GOOD, "ID": [1, 2, 3]}, "DUPLICATE_COLUMN"),
        ({**GOOD, "amount": ["1", "2", "3"]}, "TYPE_MISMATCH"),
        ({**GOOD, "id": pa.array([1, 2, 3], pa.uint64())}, "TYPE_MISMATCH"),
    ],
)
def test_columns_that_do_not_fit_reject_the_file_unread(
    job_runner: Job, contract: Contract, table: str, columns: dict[str, Any], code: str
) -> None:
    """Columns other than the contract's reject the file by a code of their own, unwritten."""
    exit_code, report = job_runner.ingest(parquet(columns), contract(), table)
    assert (exit_code, report.verdict, report.audited_hash) == (3, Verdict.REJECTED, "")
    assert report.reason is not None
    assert report.reason.code == code


@pytest.mark.parametrize(
    "columns",
    [
        {**GOOD, "id": pa.array([1, 2, 3], pa.int16()), "amount": pa.array([1, 2, 3], pa.int32())},
        {name.upper(): GOOD[name] for name in reversed(GOOD)} | {"AMOUNT": pa.nulls(3)},
    ],
)
def test_narrower_types_and_another_order_pass(
    job_runner: Job, contract: Contract, table: str, columns: dict[str, Any]
) -> None:
    """Narrower types, another order and another case of names are accepted."""
    code, report = job_runner.ingest(parquet(columns), contract(), table)
    assert (code, report.rows_written) == (0, 3)


def _damaged() -> bytes:
    body = bytearray(parquet({**GOOD, "name": ["n1" * 900, "n2" * 900, "n3"]}))
    body[40:60] = bytes(20)
    return bytes(body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"id,name\n1,n1\n", "NOT_PARQUET"),
        (b"PK\x03\x04 and so on", "NOT_PARQUET"),
        (parquet(GOOD)[:-100], "TRUNCATED_FILE"),
        (parquet(GOOD)[:-8] + b"\xff\xff\xff\x7fPAR1", "CORRUPT_FILE"),
        (_damaged(), "CORRUPT_FILE"),
        (changed(day=pa.array([[1]] * 3, pa.list_(pa.timestamp("ns")))), "UNREADABLE_TYPE"),
        (b"", "EMPTY_OBJECT"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_at_once(
    job_runner: Job, contract: Contract, table: str, body: bytes, code: str
) -> None:
    """A file of another format, truncated or damaged, ends errored with exit code 4."""
    exit_code, report = job_runner.ingest(body, contract(), table)
    assert (exit_code, report.verdict) == (4, Verdict.ERRORED)
    assert report.reason is not None
    assert report.reason.code == code
    assert report.audited_hash == ""


CSV = "id,name,amount,day\n1,n1,0.5,2013-01-01\n2,n2,99,2013-01-02\n3,,,\n"


def test_csv_takes_its_types_from_the_contract(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """A CSV file's cells get the contract's types; an empty cell is null."""
    code, report = job_runner.ingest(CSV.encode(), contract("csv"), table)
    assert code == 0
    rows = sorted(job_runner.rows(table, report.branch), key=lambda row: row["id"])
    assert rows[0] == {"id": 1, "name": "n1", "amount": 0.5, "day": date(2013, 1, 1)}
    assert rows[2] == {"id": 3, "name": None, "amount": None, "day": None}


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("packed.csv", gzip.compress(CSV.encode(), mtime=0)),
        ("packed.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("plain.csv.gz", CSV.encode()),
    ],
)
def test_a_file_is_unpacked_by_its_content(
    job_runner: Job, contract: Contract, table: str, key: str, body: bytes
) -> None:
    """A file is recognized as gzip by its bytes, whatever its name."""
    _, report = job_runner.ingest(body, contract("csv"), table, key=f"tests/{key}")
    assert (report.verdict, report.rows_written) == (Verdict.PASSED, 3)


def test_csv_columns_are_matched_by_name(job_runner: Job, contract: Contract, table: str) -> None:
    """A CSV file's columns are matched by the names in its header."""
    body = "day,amount,name,id\n2013-01-01,0.5,n1,1\n"
    _, report = job_runner.ingest(body.encode(), contract("csv"), table)
    assert job_runner.rows(table, report.branch) == [
        {"id": 1, "name": "n1", "amount": 0.5, "day": date(2013, 1, 1)}
    ]


# Unparseable rows, and the cells that the report names.
BAD_LINES = {
    "4,n4,1.0": "the whole row",
    "4,n4,1.0,2013-01-04,more": "the whole row",
    "four,n4,1.0,2013-02-30": "id 'four', day '2013-02-30'",
}


def test_bad_csv_rows_reject_the_file_and_are_shown(
    job_runner: Job, contract: Contract, table: str
) -> None:
    """Unparseable rows reject the file and are not on its branch; the report names their cells."""
    body = CSV + "".join(f"{line}\n" for line in BAD_LINES)
    code, report = job_runner.ingest(body.encode(), contract("csv"), table)
    assert code == 3
    assert report.reason is not None
    assert report.reason.code == "BAD_ROWS"
    (check,) = report.failed
    assert (check.found, check.counted) == (
        "3 of 6 rows could not be parsed and are quarantined",
        3,
    )
    assert {sample["row"]: sample["unreadable"] for sample in check.samples} == BAD_LINES
    assert (report.rows_read, report.rows_rejected, report.rows_written) == (6, 3, 3)
    assert (report.rows_unreadable, report.rows_nulled, report.holds_nulls) == (3, 0, False)
    assert {row["id"] for row in job_runner.rows(table, report.branch)} == {1, 2, 3}


@pytest.mark.parametrize(
    ("format_", "body", "code"),
    [
        ("csv", parquet(GOOD), "NOT_CSV"),
        ("csv", b"id,name,amount\n1,n1,1\n", "MISSING_COLUMN"),
        ("csv", b"id,name,amount,day,x\n", "EXTRA_COLUMN"),
        ("json", parquet(GOOD), "NOT_JSON"),
        ("json", CSV.encode(), "NOT_JSON"),
        ("json", b'{"name": "n1"}\n', "MISSING_COLUMN"),
    ],
)
def test_a_text_file_of_another_format_or_shape_is_refused(
    job_runner: Job, contract: Contract, table: str, format_: str, body: bytes, code: str
) -> None:
    """A text file of another format, or with other columns, is refused with the reason."""
    exit_code, report = job_runner.ingest(body, contract(format_), table)
    assert exit_code in (3, 4)
    assert report.reason is not None
    assert report.reason.code == code


def test_json_lines_are_read(job_runner: Job, contract: Contract, table: str) -> None:
    """JSON lines are read with the contract's types; an absent nullable key is null."""
    body = '{"id": 1, "name": "n1", "amount": 1, "day": "2013-01-01"}\n{"id": 2}\n'
    code, report = job_runner.ingest(body.encode(), contract("json"), table)
    assert code == 0
    rows = sorted(job_runner.rows(table, report.branch), key=lambda row: row["id"])
    assert rows[0] == {"id": 1, "name": "n1", "amount": 1.0, "day": date(2013, 1, 1)}
    assert rows[1] == {"id": 2, "name": None, "amount": None, "day": None}


def test_bad_json_rows_reject_the_file(job_runner: Job, contract: Contract, table: str) -> None:
    """Every line that is no JSON object, or has a value of the wrong type, is a bad row."""
    body = b'{"id": 1}\n{"id": "x"}\n{broken\n{"id": 1.5}\n'
    _, report = job_runner.ingest(body, contract("json"), table)
    assert report.reason is not None
    assert (report.reason.code, report.rows_unreadable) == ("BAD_ROWS", 3)


def test_a_file_without_rows_is_rejected(job_runner: Job, contract: Contract, table: str) -> None:
    """A file with columns but without rows is not published, unless its contract counts rows."""
    empty = pa.table(GOOD).slice(0, 0)
    _, report = job_runner.ingest(
        parquet(dict(zip(GOOD, empty.columns, strict=True))), contract(), table
    )
    assert report.reason is not None
    assert report.reason.code == "NO_ROWS"
