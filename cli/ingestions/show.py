"""`lakegate show`: print an ingestion and its audit report."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from access.deployment.choice import find
from access.ingestions.follow import TrackedIngestion
from access.ingestions.identify import identified
from access.ingestions.outcomes import attempt, branch, job_run, published_together, waits
from access.ingestions.shared_runs import places
from cli.console import audit, json_output, terminal
from cli.console.options import AsJson, Id
from functions.model import merge_commit, queueing
from functions.model.ingestion import Ingestion
from functions.notifications.failure_text import failure_advice
from lakegate.audit.report import AuditReport
from lakegate.text import count, one_line


def show(
    context: typer.Context,
    identity: Id,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also count the checks answered by each audit tier.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one ingestion: its steps, branch, hashes, job run and audit report."""
    # S3's adapter, which help does not need
    from access.ingestions.shown_report import shown_or_why
    from access.ingestions.undone import undone

    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    report, why_not = shown_or_why(adapters, ingestion)
    removal = undone(adapters, ingestion)
    if why_not:
        terminal.err().print(why_not, style="yellow", soft_wrap=True)
    if as_json:
        told = {**json_output.with_report(ingestion, report), "undone": removal or None}
        typer.echo(json_output.text(told))
    else:
        words = places(adapters, [ingestion] if queueing.awaits_run(ingestion) else [])
        progress = waits(ingestion, words[ingestion.id]) if words else ""
        terminal.out().print(page(ingestion, report, progress, removal, verbose=verbose))


def page(
    ingestion: Ingestion,
    report: AuditReport | None,
    progress: str = "",
    removal: str = "",
    *,
    verbose: bool = False,
) -> Group:
    """Render one ingestion with its progress, its rows' removal, steps, checks and samples."""
    parts: list[RenderableType] = [
        terminal.facts(
            [
                ("ingestion", ingestion.id),
                ("state", terminal.state(ingestion)),
                ("progress", progress),
                ("reason", ingestion.reason.with_code if ingestion.reason else ""),
                ("what to do", failure_advice(ingestion) if ingestion.is_open else ""),
                *source(ingestion),
                ("table", ", ".join(ingestion.tables)),
                ("rows", rows_of(ingestion)),
                ("duplicate of", ingestion.audit.duplicate_of),
                ("replaced", _replaced(ingestion)),
                ("superseded by", ingestion.superseded_by),
                ("mends", _mends(ingestion)),
                ("published despite newer", ingestion.decisions.despite),
                ("branch", branch(ingestion)),
                ("branched from", ingestion.base_hash),
                ("audited at", ingestion.audited_hash),
                ("merged as", ingestion.merge_hash),
                ("published", published_together(ingestion)),
                ("removal of rows", removal),
                ("job run", job_run(ingestion)),
                ("attempt", attempt(ingestion)),
                ("contract", ingestion.terms.contract_key),
                ("approved", _approval(ingestion)),
                ("actions", _actions(ingestion)),
                ("checks", audit.check_counts(ingestion.audit.check_counts)),
                ("rows quarantined", _quarantined(report)),
                ("rows with nulls", _nulled(report)),
                ("transform", _transform(report)),
                ("columns", "; ".join(report.schema_changes) if report else ""),
                ("report", ingestion.report_key),
            ]
        ),
        _steps(ingestion),
    ]
    if ingestion.parts:
        parts.append(_files(ingestion))
    remarkable = audit.checks(ingestion.audit.checks)
    if remarkable.row_count:
        parts.append(remarkable)
    if report:
        parts.extend(audit.samples(report))
        parts.append(audit.cost(report, verbose=verbose))
    return Group(*parts)


def _files(batch: Ingestion) -> RenderableType:
    made = terminal.table("file of the batch", "version", "table", "rows", right=["rows"])
    for part in batch.parts:
        made.add_row(one_line(part.key), part.version, part.table, f"{part.rows:,}")
    return made


def _quarantined(report: AuditReport | None) -> str:
    kept = report.rows_rejected if report else 0
    return f"{kept:,} of {report.rows_read:,}" if report and kept else ""


def _nulled(report: AuditReport | None) -> str:
    nulled = report.rows_nulled if report else 0
    return f"{nulled:,}, where unparseable cells became null" if nulled else ""


def _transform(report: AuditReport | None) -> str:
    """Return the SQL on one line, with the row counts before and after it."""
    if not report or not report.transform:
        return ""
    sql = " ".join(report.transform.split())
    return f"{count(report.source_rows, 'row')} in the file, {report.rows_read:,} after {sql}"


def source(ingestion: Ingestion) -> list[tuple[str, str]]:
    """Return names and values of the source: file and version, or statement and its author."""
    landed, change = ingestion.landed, ingestion.change
    if change:
        change_facts = (
            ("requested by", change.by),
            ("message", change.message),
            ("token", change.token),
        )
        return [("change", change.statement), *change_facts]
    return [("file", one_line(landed.uri)), ("version", f"{landed.version}, {landed.size:,} bytes")]


def rows_of(ingestion: Ingestion) -> str:
    """Describe the rows, "" if there are none."""
    return merge_commit.rows_of(ingestion) if ingestion.has_rows else ""


def _replaced(ingestion: Ingestion) -> str:
    rows = count(ingestion.audit.replaced_rows, "row")
    return f"{rows} of {', '.join(ingestion.replaced)}" if ingestion.replaced else ""


def _mends(ingestion: Ingestion) -> str:
    made = ingestion.mends
    by = f" by {made.by}" if made and made.by else ""
    return f"{made.ingestion} with {made.file}{by}" if made else ""


def _approval(ingestion: Ingestion) -> str:
    given = ingestion.decisions.approval
    return f"by {given.by}: {given.reason}" if given else ""


def _actions(ingestion: Ingestion) -> str:
    actions = ingestion.decisions.actions
    return "\n".join(f"{a.what} of attempt {a.attempt} by {a.by} ({a.at})" for a in actions)


def _steps(ingestion: Ingestion) -> RenderableType:
    made = terminal.table("step", "time (UTC)", "seconds", right=["seconds"])
    item = TrackedIngestion(ingestion)
    for step, time in sorted(ingestion.times.items(), key=lambda item: item[1]):
        since = item.seconds(step)
        made.add_row(step, time, "" if since is None else f"{since:.1f}")
    return made
