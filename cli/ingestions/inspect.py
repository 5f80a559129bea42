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
    answer = inspection(adapters, ingestion, question, rows, quarantined)
    if as_json:
        typer.echo(json_output.text(document(answer)))
    elif answer.findings:
        terminal.out().print(page(answer))
    else:
        terminal.err().print(f"{ingestion.id} is {ingestion.state}: no check failed")


def document(answer: Inspection) -> dict[str, Any]:
    """Return an inspection for `--json`; `count` is null unless a check is about single rows."""
    return {
        "id": answer.ingestion.id,
        "state": answer.ingestion.state.value,
        "file": answer.ingestion.landed.uri,
        "change": asdict(answer.ingestion.change) if answer.ingestion.change else None,
        "table": answer.report.table,
        "branch": answer.report.branch,
        "audited_hash": answer.report.audited_hash,
        "reason": asdict(answer.report.reason) if answer.report.reason else None,
        "rows": answer.report.rows_written,
        "data_files": list(answer.files),
        "checks": [_check(finding) for finding in answer.findings],
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


def page(answer: Inspection) -> Group:
    """Render an inspection: a table of rows per check."""
    head = terminal.facts(
        [
            ("ingestion", answer.ingestion.id),
            ("state", terminal.state(answer.ingestion)),
            ("reason", _reason(answer)),
            *source(answer.ingestion),
            ("table", answer.report.table),
            ("branch", answer.report.branch),
            ("rows", rows_of(answer.ingestion)),
            *([] if answer.ingestion.change else [("data file", file) for file in answer.files]),
        ]
    )
    one_file = len(answer.files) == 1
    untold = [each for each in answer.findings if not each.result.is_told]
    return Group(head, *[part for f in untold for part in _parts(f, one_file=one_file)])


def _reason(answer: Inspection) -> str:
    """Return the reason where it tells what the checks would repeat."""
    reason = answer.report.reason
    tells = reason and any(each.result.is_told for each in answer.findings)
    return f"{reason.with_code}; {UNWRITTEN}" if reason and tells else ""


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
