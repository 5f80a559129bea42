"""The audit tables on main: their schema, and the rows that each run leaves for them.

The job writes a run's rows into data files of its own; the publisher registers these in the tables,
by metadata alone. No file holds `published`, as the job cannot know it: it is the tables' partition
column, so the publisher sets it for each file, and every reader finds it (Iceberg specification,
"Column Projection": a column that a file lacks has the value of its identity partition).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from lakegate.audit.report import AuditReport, CheckResult, DataFile, Verdict
from lakegate.errors import Permanent

PUBLISHED = "published"
_STATUS = {Verdict.PASSED: "pass", Verdict.REJECTED: "fail", Verdict.ERRORED: "error"}


@dataclass(frozen=True)
class HistoryTable:
    """One audit table: its name, and the Iceberg types of its columns by name.

    Add columns only at the end: the field ids of existing files follow from the order.
    """

    name: str
    columns: Mapping[str, Any] = field(compare=False)

    @property
    def schema(self) -> str:
        """Return the table's schema (Iceberg specification, "Appendix C: JSON serialization")."""
        return _schema({PUBLISHED: "boolean", **self.columns}, 1)

    @property
    def file_schema(self) -> str:
        """Return the schema of the data files: the same columns and ids, without `published`."""
        return _schema(self.columns, 2)

    def files(self, lake_bucket: str) -> str:
        """Return the prefix of the data files' addresses."""
        return f"{self.location(lake_bucket)}/data/"

    def location(self, lake_bucket: str) -> str:
        """Return the table's location in the lake's warehouse."""
        return f"s3://{lake_bucket}/warehouse/{self.name.replace('.', '/')}"


def _schema(columns: Mapping[str, Any], first: int) -> str:
    fields = [
        {"id": id_, "name": name, "required": False, "type": type_}
        for id_, (name, type_) in enumerate(columns.items(), first)
    ]
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


# Catalogs number fields in this order, whatever ids they are given: a list's items come right after
# the list.
_TEXTS = {"type": "list", "element-id": 10, "element": "string", "element-required": False}
_RUN = {
    "run_id": "string",
    "ingestion": "string",
    "attempt": "long",
    "table_name": "string",
    "run_ts": "timestamptz",
    "source_uri": "string",
}
RESULTS = HistoryTable(
    "ops.audit_results",
    {
        **_RUN,
        "source_version": "string",
        "source_etag": "string",
        "contract_version": "string",
        "contract_sha256": "string",
        "branch": "string",
        "audited_hash": "string",
        "verdict": "string",
        "rows": "long",
        "check_id": "string",
        "metric": "string",
        "column_name": "string",
        "severity": "string",
        "status": "string",
        "tier": "string",
        "value": "double",
        "value_text": "string",
        "expected": "string",
        "found": "string",
        "message": "string",
        "rule_sha256": "string",
        "measured": "double",
    },
)
QUARANTINE = HistoryTable("ops.quarantine", {**_RUN, "row": "string", "reasons": _TEXTS})
TABLES = (RESULTS, QUARANTINE)


@dataclass(frozen=True)
class Entry:
    """A data file to be registered in an audit table.

    `published` says if the audited rows are on main. `again` says that the file is registered
    already, with the other value. `same` maps columns to the value that all of its rows have.
    """

    table: HistoryTable
    file: DataFile
    same: Mapping[str, str]
    published: bool
    again: bool = False


def run_id(ingestion: str, attempt: int) -> str:
    """Return the id of a run."""
    return f"{ingestion}-{attempt}"


def table_of(path: str, lake_bucket: str, run: str) -> HistoryTable | None:
    """Return the audit table of a run's data file, None for another address.

    Addresses have a random part beyond the run's id: tries of one run must not overwrite each
    other's files, as the report names the files of the try that finished first.
    """
    mine = (table for table in TABLES if path.startswith(f"{table.files(lake_bucket)}{run}-"))
    return next(mine, None)


def has_results(report: AuditReport, lake_bucket: str) -> bool:
    """Return if the report names the file with its own results."""
    here = RESULTS.files(lake_bucket)
    return all(any(f.path.startswith(here) for f in each.records) for each in report.singles)


def entries(
    report: AuditReport, lake_bucket: str, *, published: bool, again: bool
) -> Iterator[Entry]:
    """Return the data files of a run. Raises Permanent for another run's files."""
    run = run_id(report.ingestion, report.attempt)
    for single in report.singles:
        same = {"table_name": single.table, "run_ts": single.started_at}
        for file in single.records:
            table = table_of(file.path, lake_bucket, run)
            if table is None:
                message = f"{file.path} is not a file that run {run} wrote"
                raise Permanent("FOREIGN_RECORDS", message)
            yield Entry(table, file, same, published, again)


def run_values(ingestion: str, attempt: int, table: str, source_uri: str) -> dict[str, str | int]:
    """Return the values that all rows of a run share, without `run_ts` (its start)."""
    return {
        "run_id": run_id(ingestion, attempt),
        "ingestion": ingestion,
        "attempt": attempt,
        "table_name": table,
        "source_uri": source_uri,
    }


def results(report: AuditReport) -> Iterator[dict[str, str | int | float | None]]:
    """Return a run's rows in RESULTS, without `run_ts`: one for the run, and one per check.

    The check of the first row is called `run`. It exists even if no check could run.
    """
    same: dict[str, str | int | float | None] = {
        **run_values(report.ingestion, report.attempt, report.table, report.source.uri),
        "source_version": report.source.version,
        "source_etag": report.source.etag,
        "contract_version": report.contract_version,
        "contract_sha256": report.contract_sha256,
        "branch": report.branch,
        "audited_hash": report.audited_hash,
        "verdict": report.verdict.value,
        "rows": report.rows_written,
    }
    yield {
        **same,
        "check_id": "run",
        "metric": "run",
        "severity": "error",
        "status": _STATUS[report.verdict],
        "value": float(report.rows_written),
        "message": report.reason.message if report.reason else "",
    }
    for check in report.checks:
        yield {**same, **_check_row(check)}


def _check_row(check: CheckResult) -> dict[str, str | int | float | None]:
    return {
        "check_id": check.id,
        "metric": check.metric,
        "column_name": ", ".join(check.columns),
        "severity": check.severity,
        "status": check.status.value,
        "tier": check.tier,
        "value": _number(check.value),
        "value_text": check.value,
        "measured": check.baseline.measured if check.baseline else None,
        "rule_sha256": check.baseline.rule if check.baseline else None,
        "expected": check.expected,
        "found": check.found,
        "message": check.message,
    }


def _number(text: str) -> float | None:
    """Return a measure as a number; None for text and for NaN."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
