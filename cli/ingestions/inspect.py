"""`lakegate inspect`: show the rows on the ingestion's branch that break a check."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from access.deployment.choice import find
from access.evidence.failing_rows import (
    UNWRITTEN,
    Finding,
    Inspection,
    Question,
    evidence_of,
    inspection,
)
from access.ingestions.identify import identified
from cli.console import audit, json_output, terminal
from cli.console.options import AsJson, Id
from cli.ingestions.show import rows_of, source
from functions.model.commits import MAIN
from lakegate.audit import causes, failing_rows
from lakegate.audit.audit_tables import run_id
from lakegate.audit.report import ADDRESS, PLACE, AuditReport

_FAULT = "not what the audit found. This is a bug in Lakegate: please report it"


def inspect(
    context: typer.Context,
    identity: Id,
    check: Annotated[str, typer.Option(help="Only this check, failed or not.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="Maximum rows per check.")] = 20,
    show_rows: Annotated[
        bool, typer.Option("--show-rows", help="Also show confidential columns.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the rows that break a check, of a rejected file or of a table after a change."""
    deployment = find(context.obj)
    adapters = deployment.adapters()

    def quarantined(report: AuditReport, check: str, limit: int) -> list[str]:
        run = run_id(report.ingestion, report.attempt)
        return deployment.reader(MAIN).quarantined(run, check, limit)

    ingestion = identified(adapters.ledger, identity)
    question, rows = Question(check, limit, show_rows), partial(evidence_of, deployment.reader)
    found = inspection(adapters, ingestion, question, rows, quarantined)
    if as_json:
        typer.echo(json_output.text(document(found)))
    elif found.findings:
        terminal.out().print(page(found))
    else:
        terminal.err().print(f"{ingestion.id} is {ingestion.state}: no check failed")


def document(found: Inspection) -> dict[str, Any]:
    """Return an inspection for `--json`; `count` is null unless a check is about single rows."""
    return {
        "id": found.ingestion.id,
        "state": found.ingestion.state.value,
        "file": found.ingestion.landed.uri,
        "change": asdict(found.ingestion.change) if found.ingestion.change else None,
        "table": found.report.table,
        "branch": found.report.branch,
        "audited_hash": found.report.audited_hash,
        "reason": asdict(found.report.reason) if found.report.reason else None,
        "rows": found.report.rows_written,
        "data_files": list(found.files),
        "checks": [_check(finding) for finding in found.findings],
    }


def _check(finding: Finding) -> dict[str, Any]:
    result = finding.result
    return {
        "id": result.id,
        "columns": list(result.columns),
        "status": result.status.value,
        "expected": result.expected,
        "found": result.found,
        "message": result.message,
        "count": finding.count,
        "on_branch": finding.on_branch,
        "agrees": finding.agrees,
        "notes": list(finding.notes),
        "rows": [dict(row) for row in finding.rows],
    }


def page(found: Inspection) -> Group:
    """Render an inspection: a table of rows per check."""
    head = terminal.facts(
        [
            ("ingestion", found.ingestion.id),
            ("state", terminal.state(found.ingestion)),
            ("reason", _reason(found)),
            *source(found.ingestion),
            ("table", found.report.table),
            ("branch", found.report.branch),
            ("rows", rows_of(found.ingestion)),
            *([] if found.ingestion.change else [("data file", file) for file in found.files]),
        ]
    )
    one_file = len(found.files) == 1
    untold = [each for each in found.findings if not each.result.is_told]
    return Group(head, *[part for f in untold for part in _parts(f, one_file=one_file)])


def _reason(found: Inspection) -> str:
    """Return the reason where it tells what the checks would repeat."""
    reason = found.report.reason
    tells = reason and any(each.result.is_told for each in found.findings)
    return f"{reason.message} ({reason.code}); {UNWRITTEN}" if reason and tells else ""


def _parts(finding: Finding, *, one_file: bool) -> Iterator[RenderableType]:
    result = finding.result
    yield Text(f"\n{result.id}: {causes.finding(vars(result))}", "bold")
    if finding.rows:
        yield _table(finding.rows, one_file=one_file)
    if finding.count is not None and len(finding.rows) < finding.count:
        yield Text(f"{len(finding.rows):,} of {finding.count:,} rows are shown", "dim")
    yield from (Text(note, "dim") for note in finding.notes)
    if not finding.agrees:
        yield Text(f"the branch has {finding.on_branch}, {_FAULT}", "bold red")


def _table(rows: Sequence[Mapping[str, Any]], *, one_file: bool) -> RenderableType:
    """Return a table of rows by their places in the landed file, else by those on the branch."""
    if any(PLACE in row for row in rows):
        return audit.rows(failing_rows.shown(rows))
    file, position = ADDRESS
    shown = [{k: v for k, v in row.items() if not (one_file and k == file)} for row in rows]
    return audit.rows(shown, right=[position])
