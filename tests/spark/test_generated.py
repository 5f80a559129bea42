"""Files of `lakegate generate`: good files pass, and each fault is found."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.files.fault_injection import Fault
from cli.files.generate import Format
from cli.files.sample_files import FileSpec, write, write_contract
from infra.local.contract_test import audit
from lakegate.audit.report import AuditReport, Status, Verdict
from lakegate.contract.model import parse
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark

# The checks that fail, or why the file could not be judged.
FOUND: Sequence[tuple[Fault, Format, str | list[str]]] = (
    (Fault.NULLS, Format.PARQUET, ["country.nullValues"]),
    (Fault.DUPLICATES, Format.CSV, ["parcel_id.duplicateValues"]),
    (Fault.RANGE, Format.PARQUET, ["weight_kg.invalidValues"]),
    (Fault.RENAMED, Format.CSV, ["file.columns.postage", "file.columns.price"]),
    (Fault.MISSING, Format.PARQUET, ["file.columns.sent_at"]),
    (Fault.TYPE, Format.PARQUET, ["file.columns.weight_kg"]),
    (Fault.TYPE, Format.CSV, ["file.rows_readable"]),
    (Fault.TRUNCATED, Format.PARQUET, "TRUNCATED_FILE"),
    (Fault.TRUNCATED, Format.CSV, "CORRUPT_FILE"),
    (Fault.RAGGED, Format.CSV, ["file.rows_readable"]),
)


def audited(
    job: Job, folder: Path, wanted: FileSpec, format_: Format, *faults: Fault
) -> AuditReport:
    """Return the report on one generated file under its own contract."""
    text = write_contract(folder, format_).read_text()
    file = folder / f"parcels.{format_}"
    write({file: wanted}, frozenset(faults), lambda _: None)
    return audit(job.warm_spark, parse(text, "parcels"), file)


@pytest.mark.parametrize("format_", Format)
def test_a_file_without_a_fault_passes(job: Job, tmp_path: Path, format_: Format) -> None:
    """A generated file of either format passes the contract that is written beside it."""
    report = audited(job, tmp_path, FileSpec(500), format_)
    assert (report.verdict, report.rows_read) == (Verdict.PASSED, 500), report.reason


@pytest.mark.parametrize(("fault", "format_", "expected"), FOUND)
def test_each_fault_is_found(
    job: Job, tmp_path: Path, fault: Fault, format_: Format, expected: str | list[str]
) -> None:
    """A fault fails exactly the checks that concern it."""
    report = audited(job, tmp_path, FileSpec(100), format_, fault)
    assert report.verdict is not Verdict.PASSED
    if isinstance(expected, str):
        assert report.reason
        assert report.reason.code == expected
    else:
        assert [check.id for check in report.failed] == expected


def test_too_many_nulls_are_a_warning(job: Job, tmp_path: Path) -> None:
    """Many missing delivery times are a warning, and the file passes."""
    report = audited(job, tmp_path, FileSpec(100, null_rate=0.9), Format.PARQUET)
    warned = [check.id for check in report.checks if check.status is Status.WARN]
    assert (report.verdict, warned) == (Verdict.PASSED, ["delivered_at.mostly_delivered"])
