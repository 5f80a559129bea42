"""What every run leaves for later: the tables on main that keep it, and a run's rows in them.

The job writes a run's rows into data files of its own; the publisher enters these into the tables,
by metadata alone. `published` is in no file, as the job cannot know it: it is the tables'
partition, so whoever enters a file says it, and every reader finds it (Iceberg specification,
"Column Projection": a column that a file lacks has the value of its identity partition).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from lakegate.errors import Permanent
from lakegate.report import AuditReport, CheckResult, DataFile, Verdict

PUBLISHED = "published"
_STATUS = {Verdict.PASSED: "pass", Verdict.REJECTED: "fail", Verdict.ERRORED: "error"}


@dataclass(frozen=True)
class HistoryTable:
    """One of the tables: its name, and the types of its columns, by name, as Iceberg writes them.

    Only ever add columns at the end: what is written has the field ids that follow from the order.
    """

    name: str
    columns: Mapping[str, Any] = field(compare=False)

    @property
    def schema(self) -> str:
        """Its schema (Iceberg specification, "Appendix C: JSON serialization")."""
        return _schema({PUBLISHED: "boolean", **self.columns}, 1)

    @property
    def file_schema(self) -> str:
        """The schema of its data files: the same columns and ids, without `published`."""
        return _schema(self.columns, 2)

    def files(self, lake_bucket: str) -> str:
        """How the addresses of its data files begin."""
        return f"{self.location(lake_bucket)}/data/"

    def location(self, lake_bucket: str) -> str:
        """Its place in the lake's warehouse."""
        return f"s3://{lake_bucket}/warehouse/{self.name.replace('.', '/')}"


def _schema(columns: Mapping[str, Any], first: int) -> str:
    fields = [
        {"id": id_, "name": name, "required": False, "type": type_}
        for id_, (name, type_) in enumerate(columns.items(), first)
    ]
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


# As catalogs count, whatever they are told: a list's items come right after the list.
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
    """A data file that is to be entered into one of the tables.

    `published` says whether the rows that the run audited are on main, and `again` that the file
    is there already, with another answer. `same` are values that all of its rows have, by column.
    """

    table: HistoryTable
    file: DataFile
    same: Mapping[str, str]
    published: bool
    again: bool = False


def run_id(ingestion: str, attempt: int) -> str:
    """What tells one run from all others."""
    return f"{ingestion}-{attempt}"


def table_of(path: str, lake_bucket: str, run: str) -> HistoryTable | None:
    """The table for which a run wrote the data file at an address; None where it did not.

    Beyond the run's id addresses are drawn: tries of one run must not write over each other's
    files, as the report names those of the one that finished first.
    """
    mine = (table for table in TABLES if path.startswith(f"{table.files(lake_bucket)}{run}-"))
    return next(mine, None)


def has_results(report: AuditReport, lake_bucket: str) -> bool:
    """Whether the report names the file with its own results."""
    here = RESULTS.files(lake_bucket)
    return all(any(f.path.startswith(here) for f in each.records) for each in report.singles)


def entries(
    report: AuditReport, lake_bucket: str, *, published: bool, again: bool
) -> Iterator[Entry]:
    """What a run left for the tables. Raises Permanent where it names another run's files."""
    run = run_id(report.ingestion, report.attempt)
    for single in report.singles:
        same = {"table_name": single.table, "run_ts": single.started_at}
        for file in single.records:
            table = table_of(file.path, lake_bucket, run)
            if table is None:
                message = f"{file.path} is not a file that run {run} wrote"
                raise Permanent("FOREIGN_RECORDS", message)
            yield Entry(table, file, same, published, again)


def of_run(ingestion: str, attempt: int, table: str, source_uri: str) -> dict[str, str | int]:
    """The values that all rows of a run have, in both tables, but for `run_ts`, when it began."""
    return {
        "run_id": run_id(ingestion, attempt),
        "ingestion": ingestion,
        "attempt": attempt,
        "table_name": table,
        "source_uri": source_uri,
    }


def results(report: AuditReport) -> Iterator[dict[str, str | int | float | None]]:
    """A run's rows in RESULTS, `run_ts` left out: one for the run as a whole, one a check.

    The first one's check is called `run`: it is there also where nothing could be checked.
    """
    same: dict[str, str | int | float | None] = {
        **of_run(report.ingestion, report.attempt, report.table, report.source.uri),
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
        yield {**same, **_of_check(check)}


def _of_check(check: CheckResult) -> dict[str, str | int | float | None]:
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
    """A measure as a number; None where it is none, or one that has no order."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
