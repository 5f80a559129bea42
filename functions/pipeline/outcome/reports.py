"""Read audit reports: that of an ingestion, or many at once."""

from collections.abc import Collection, Mapping
from functools import cache, partial

from functions.adapters.all import Adapters
from functions.adapters.s3 import Lake, Missing
from functions.model.ingestion import Ingestion
from functions.telemetry import logger
from lakegate.audit.report import AuditReport
from lakegate.errors import Permanent
from lakegate.job.landing import group_reports_key, parse_report_key


def report_of(adapters: Adapters, ingestion: Ingestion) -> AuditReport | None:
    """Return the last attempt's audit report, None if its run left none. Raise Permanent."""
    try:
        return adapters.lake.report(ingestion.report_key)
    except Missing:
        return None


def readable_report(lake: Lake, key: str) -> AuditReport | None:
    """Return the report under a key; None without a key, or if it is missing or unreadable."""
    try:
        return lake.report(key) if key else None
    except (Missing, Permanent) as error:
        logger.info("there is no such report", extra={"key": key, "why": error.message})
        return None


def reports_at(adapters: Adapters, keys: Collection[str]) -> dict[str, AuditReport]:
    """Return the reports under these keys, without those that are missing or unreadable.

    Those of a group take two requests: for one of them, and for the object that repeats all.
    """
    reports: dict[str, AuditReport] = {}
    repeated = cache(partial(_repeated, adapters))
    for key in keys:
        if key in reports or not (report := readable_report(adapters.lake, key)):
            continue
        reports[key] = report
        members = {each for each in keys if parse_report_key(each)[1] in report.group}
        if wanted := members - reports.keys():
            given = repeated(_place(key, report))
            reports |= {each: given[each] for each in wanted & given.keys()}
    return reports


def _place(key: str, report: AuditReport) -> str:
    """Return the key of the object that repeats the reports of a report's group.

    It follows from the table in the report's key, since the report may be forged: a run of its own
    writes only keys with its ingestion's id, and so no group's object.
    """
    return group_reports_key(parse_report_key(key)[0], report.branch)


def _repeated(adapters: Adapters, key: str) -> Mapping[str, AuditReport]:
    """Return the reports that a group's object repeats, none if it cannot be read."""
    try:
        return adapters.lake.group_reports(key) if key else {}
    except (Missing, Permanent) as error:
        logger.info("each report is read by itself", extra={"key": key, "why": error.message})
        return {}
