"""`lakegate ledger rebuild`: restore lost entries of the ledger."""

from collections import Counter
from collections.abc import Sequence

import typer

from access.deployment.choice import find
from cli.console import json_output, terminal
from cli.console.options import AsJson, DryRun
from functions.model.ingestion import Ingestion, State


def rebuild_ledger(
    context: typer.Context, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Restore lost ledger entries from main's log, branches, audit reports and job runs.

    Keeps existing entries: safe to run at any time, and again after a failure.
    """
    # a second, which help does not need
    from functions.operations.recovery.rebuild_ledger import rebuild

    restored = list(rebuild(find(context.obj).adapters(), dry_run=dry_run))
    if as_json:
        typer.echo(json_output.text([json_output.ingestion_json(each) for each in restored]))
    else:
        terminal.out().print(restored_summary(restored, dry_run=dry_run), soft_wrap=True)


def restored_summary(ingestions: Sequence[Ingestion], *, dry_run: bool) -> str:
    """Describe the restored ingestions by state, and the next steps."""
    if not ingestions:
        return "No lost ingestion found."
    states = Counter(ingestion.state for ingestion in ingestions)
    counted = ", ".join(f"{states[state]:,} {state}" for state in State if states[state])
    if dry_run:
        return f"{len(ingestions):,} ingestions would be restored: {counted}."
    return (
        f"{len(ingestions):,} ingestions restored: {counted}.\n"
        "The sweep finishes open work and ingests files that left no trace.\n"
        "Check with `lakegate status` and `lakegate runs`."
    )
