"""`lakegate contract test`: audit local files on this machine alone."""

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from access.contract.check import check
from access.contract.local_audit import audits, data_files
from cli.console import audit, json_output, terminal
from cli.console.options import AsJson
from cli.contract import ci_output
from cli.contract.ci_output import AsFormat, Format
from lakegate.limits import Limits
from lakegate.report import AuditReport, Verdict

# The job's own exit codes (spark_jobs/main.py), which cannot be imported without Spark.
_EXIT_CODES = {Verdict.PASSED: 0, Verdict.REJECTED: 3, Verdict.ERRORED: 4}
_COLOURS = {Verdict.PASSED: "green", Verdict.REJECTED: "red", Verdict.ERRORED: "bold red"}


def try_out(
    file: Annotated[Path, typer.Argument(help="Contract.", exists=True, dir_okay=False)],
    data: Annotated[
        list[Path], typer.Option(help="File to audit, or a directory of files.", exists=True)
    ],
    as_json: AsJson = False,
    as_format: AsFormat = Format.TEXT,
) -> None:
    """Audit local files as the job would, without a stack.

    Exits 0 if all files passed, 3 if one was rejected, 4 if one errored.
    """
    ci_output.refuse_both(as_format, as_json=as_json)
    limits = Limits.of(os.environ)
    contract = check(file.read_text(encoding="utf-8"), str(file), limits)
    is_for_people = as_format is Format.TEXT and not as_json
    files = list(data_files(data))
    reports = []
    with terminal.err().status("auditing"):
        for report in audits(contract, files):
            reports.append(report)
            if is_for_people:
                terminal.out().print(page(report))
    if as_json:
        typer.echo(json_output.text([json.loads(report.to_json()) for report in reports]))
    elif not is_for_people:
        results = [r for report in reports for r in ci_output.of_audit(report, contract, str(file))]
        typer.echo(ci_output.text(results, as_format))
    raise typer.Exit(max(_EXIT_CODES[report.verdict] for report in reports))


def page(report: AuditReport) -> Group:
    """Render a report: the verdict, the checks that did not pass, and rows that break them."""
    telling = audit.checks(asdict(result) for result in report.checks)
    table = [telling] if telling.row_count else []
    return Group(_facts(report), *table, *audit.samples(report))


def _facts(report: AuditReport) -> RenderableType:
    reason = report.reason
    counted = Counter(result.status.value for result in report.checks)
    return terminal.facts(
        [
            ("file", report.source.key),
            ("verdict", Text(report.verdict, _COLOURS[report.verdict])),
            ("reason", f"{reason.message} ({reason.code})" if reason else ""),
            ("table", report.table),
            ("rows read", f"{report.rows_read:,}" if report.rows_read else ""),
            ("rows quarantined", f"{report.rows_rejected:,}" if report.rows_rejected else ""),
            ("schema changes", "; ".join(report.schema_changes)),
            ("checks", audit.check_counts(counted)),
        ]
    )
