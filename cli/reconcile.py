"""`lakegate reconcile`: compare landed objects, ledger and main; `ledger`: rebuild the ledger."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich.console import RenderableType
from rich.text import Text

from access.deployment import find
from cli import json_output, terminal
from functions.model.ingestion import Ingestion, State
from functions.model.shown_state import ShownState
from functions.operations.reconcile.compare import reconciled
from functions.operations.reconcile.file_sums import End, Reconciliation
from functions.operations.reconcile.row_balance import Balance, Finding
from functions.operations.recovery.rebuild_ledger import rebuild

_MOST_SHOWN = 50


def reconcile(stage: str | None, table: str, *, thorough: bool, full: bool, as_json: bool) -> None:
    """Compare landed objects, ledger and main; exit with 1 on problems."""
    found = reconciled(find(stage).adapters(), table, thorough=thorough, full=full)
    report(found, as_json=as_json)


def report(found: Reconciliation, *, as_json: bool) -> None:
    """Print the result; exit with 1 on problems."""
    if as_json:
        typer.echo(json_output.text(document(found)))
    else:
        _show(found)
    if found.problems:
        raise typer.Exit(1)


def document(found: Reconciliation) -> dict[str, Any]:
    """Return the result for `--json`."""
    return {
        "right": not found.problems,
        "landed": found.landed,
        "ends": {
            end.value: dict(zip(("objects", "rows"), found.ended(end), strict=True)) for end in End
        },
        "tables": [_of_balance(each) for each in found.balances],
        "problems": [asdict(each) for each in found.problems],
        "remarks": [asdict(each) for each in found.remarks],
        "since": found.since or None,
    }


def _show(found: Reconciliation) -> None:
    terminal.out().print(_ends(found))
    if found.balances:
        terminal.out().print(_tables(found.balances))
    if found.since:
        terminal.out().print(f"checked commits since {found.since}; --full checks all")
    _print_findings(found.remarks, Text("! ", "yellow"))
    _print_findings(found.problems, Text("✗ ", "bold red"))
    ends = " + ".join(end.value for end in End if end is not End.NOT_TAKEN_IN)
    if not found.problems:
        terminal.out().print(f"no problems: landing = {ends}, and main has all published rows")


def _ends(found: Reconciliation) -> RenderableType:
    made = terminal.table("end", "objects", "rows", right=["objects", "rows"])
    for end in End:
        objects, rows = found.ended(end)
        if objects or end is not End.NOT_TAKEN_IN:
            made.add_row(_coloured(end), f"{objects:,}", f"{rows:,}")
    made.add_section()
    made.add_row("landed", f"{found.landed:,}", "")
    return made


def _coloured(end: End) -> Text:
    return (
        terminal.coloured(ShownState(end.value))
        if end.value in set(State)
        else Text(end.value, "yellow")
    )


def _tables(balances: Sequence[Balance]) -> RenderableType:
    numbers = ("rows on main", "published", "by others", "off by")
    made = terminal.table("table", *numbers, right=numbers)
    for each in balances:
        row = (each.rows.live, each.published, each.gained_by_others, each.off)
        made.add_row(each.table, *(f"{number:,}" for number in row))
    return made


def _print_findings(findings: Sequence[Finding], mark: Text) -> None:
    for each in findings[:_MOST_SHOWN]:
        terminal.out().print(mark + Text(f"{each.message} ({each.code})"), soft_wrap=True)
    if len(findings) > _MOST_SHOWN:
        terminal.out().print(f"… and {len(findings) - _MOST_SHOWN:,} more: --json lists them all")


def _of_balance(balance: Balance) -> dict[str, Any]:
    return {
        "table": balance.table,
        "uuid": balance.rows.uuid,
        "rows": balance.rows.live,
        "published": balance.published,
        "by_others": balance.gained_by_others,
        "off_by": balance.off,
        "doubled_files": [asdict(each) for each in balance.doubled],
        "gone_files": list(balance.gone),
    }


# `lakegate ledger rebuild`: restore a lost ledger.


def rebuild_ledger(stage: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Restore lost ledger entries."""
    found = list(rebuild(find(stage).adapters(), dry_run=dry_run))
    if as_json:
        typer.echo(json_output.text([json_output.of_ingestion(each) for each in found]))
    else:
        terminal.out().print(restored_summary(found, dry_run=dry_run), soft_wrap=True)


def restored_summary(found: Sequence[Ingestion], *, dry_run: bool) -> str:
    """Describe the restored ingestions by state, and the next steps."""
    if not found:
        return "No lost ingestion found."
    states = Counter(ingestion.state for ingestion in found)
    counted = ", ".join(f"{states[state]:,} {state}" for state in State if states[state])
    if dry_run:
        return f"{len(found):,} ingestions would be restored: {counted}."
    return (
        f"{len(found):,} ingestions restored: {counted}.\n"
        "The sweep finishes open work and ingests files that left no trace.\n"
        "Check with `lakegate status` and `lakegate runs`."
    )
