"""`lakegate reconcile`: compare landed objects, ledger and main."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.model.ingestion import State
from functions.model.shown_state import ShownState
from functions.operations.reconcile.file_sums import End, Reconciliation
from functions.operations.reconcile.row_balance import Balance, Finding

_MOST_SHOWN = 50


def reconcile(
    context: typer.Context,
    table: Annotated[str, typer.Option(help="Only this table.")] = "",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Look up every data file instead of a sample.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Check all commits, not only those since the last run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that no file is lost and no row doubled; exits 1 on problems."""
    # a second, which help does not need
    from functions.operations.reconcile.compare import reconciled

    reconciliation = reconciled(find(context.obj).adapters(), table, thorough=thorough, full=full)
    report(reconciliation, as_json=as_json)


def report(reconciliation: Reconciliation, *, as_json: bool) -> None:
    """Print the result; exit with 1 on problems."""
    if as_json:
        typer.echo(json_output.text(document(reconciliation)))
    else:
        _show(reconciliation)
    if reconciliation.problems:
        raise typer.Exit(1)


def document(reconciliation: Reconciliation) -> dict[str, Any]:
    """Return the result for `--json`."""
    return {
        "right": not reconciliation.problems,
        "landed": reconciliation.landed,
        "ends": {
            end.value: dict(zip(("objects", "rows"), reconciliation.ended(end), strict=True))
            for end in End
        },
        "tables": [_balance_json(each) for each in reconciliation.balances],
        "problems": [asdict(each) for each in reconciliation.problems],
        "remarks": [asdict(each) for each in reconciliation.remarks],
        "since": reconciliation.since or None,
    }


def _show(reconciliation: Reconciliation) -> None:
    terminal.out().print(_ends(reconciliation))
    if reconciliation.balances:
        terminal.out().print(_tables(reconciliation.balances))
    if reconciliation.since:
        terminal.out().print(f"checked commits since {reconciliation.since}; --full checks all")
    _print_findings(reconciliation.remarks, Text("! ", "yellow"))
    _print_findings(reconciliation.problems, Text("✗ ", "bold red"))
    ends = " + ".join(end.value for end in End if end is not End.NOT_TAKEN_IN)
    if not reconciliation.problems:
        terminal.out().print(f"no problems: landing = {ends}, and main has all published rows")


def _ends(reconciliation: Reconciliation) -> RenderableType:
    made = terminal.table("end", "objects", "rows", right=["objects", "rows"])
    for end in End:
        objects, rows = reconciliation.ended(end)
        if objects or end is not End.NOT_TAKEN_IN:
            made.add_row(_coloured(end), f"{objects:,}", f"{rows:,}")
    made.add_section()
    made.add_row("landed", f"{reconciliation.landed:,}", "")
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


def _balance_json(balance: Balance) -> dict[str, Any]:
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
