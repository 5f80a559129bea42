"""`lakegate contract test`: audit local or landed files on this machine, and publish nothing."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from access.contract.check import checked_one
from access.contract.local_audit import audits, data_files
from access.deployment.choice import find
from cli.console import audit, json_output, terminal
from cli.console.options import AsJson
from cli.contract import ci_output
from cli.contract.backtest import DEFAULT_LIMIT, Limit, Since, audit_landed, tried_contract
from cli.contract.ci_output import AsFormat, Format
from lakegate.audit.report import AuditReport, Verdict
from lakegate.limits import Limits

# The job's own exit codes (spark_jobs/main.py), which cannot be imported without Spark.
_EXIT_CODES = {Verdict.PASSED: 0, Verdict.REJECTED: 3, Verdict.ERRORED: 4}
_COLOURS = {Verdict.PASSED: "green", Verdict.REJECTED: "red", Verdict.ERRORED: "bold red"}


def try_out(
    context: typer.Context,
    contract: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|TABLE", help="Contract; with --since TABLE for the one in force."
        ),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Local file to audit, or a directory of files.", exists=True),
    ] = None,
    table: Annotated[str, typer.Option(help="The table of a contract that has several.")] = "",
    since: Since = None,
    limit: Limit = DEFAULT_LIMIT,
    as_json: AsJson = False,
    as_format: AsFormat = Format.TEXT,
) -> None:
    """Audit local files as the job would, without a stack; or with --since what landed.

    With --data exits 0 if all files passed, 3 if one was rejected, 4 if one errored. With --since
    it compares with the recorded verdicts: 3 if a file that passed would fail, else 4 if one could
    not be judged, else 0.
    """
    ci_output.refuse_both(as_format, as_json=as_json)
    if bool(data) == bool(since):
        raise typer.BadParameter("give --data for local files, or --since for landed ones")
    if since:
        adapters = find(context.obj).adapters()
        tried = tried_contract(adapters, contract, table)
        code = audit_landed(adapters, tried, contract, since, limit, as_format, as_json=as_json)
    else:
        code = _audit_local(contract, data or [], table, as_format, as_json=as_json)
    raise typer.Exit(code)


def _audit_local(
    file: Path, data: Iterable[Path], table: str, as_format: Format, *, as_json: bool
) -> int:
    """Print the reports of local files, and return the exit code."""
    limits = Limits.of(os.environ)
    contract = checked_one(file, limits, table).valid()
    is_for_people = as_format is Format.TEXT and not as_json
    contract = contract.revealed if is_for_people else contract
    files = list(data_files(data))
    reports = []
    with terminal.err().status("auditing"):
        for report in audits(contract, files, limits):
            reports.append(report)
            if is_for_people:
                terminal.out().print(page(report))
    if as_json:
        typer.echo(json_output.text([json.loads(report.to_json()) for report in reports]))
    elif not is_for_people:
        results = [
            r for report in reports for r in ci_output.audit_results(report, contract, str(file))
        ]
        typer.echo(ci_output.text(results, as_format))
    return max(_EXIT_CODES[report.verdict] for report in reports)


def page(report: AuditReport) -> Group:
    """Render a report: the verdict, the checks that did not pass, and rows that break them."""
    telling = audit.checks(asdict(result) for result in report.checks)
    table = [telling] if telling.row_count else []
    return Group(_facts(report), *table, *audit.samples(report))


def _facts(report: AuditReport) -> RenderableType:
    counted = Counter(result.status.value for result in report.checks)
    return terminal.facts(
        [
            ("file", report.source.key),
            ("verdict", Text(report.verdict, _COLOURS[report.verdict])),
            ("reason", report.reason.with_code if report.reason else ""),
            ("table", report.table),
            ("rows read", f"{report.rows_read:,}" if report.rows_read else ""),
            ("rows quarantined", f"{report.rows_rejected:,}" if report.rows_rejected else ""),
            ("schema changes", "; ".join(report.schema_changes)),
            ("checks", audit.check_counts(counted)),
        ]
    )
