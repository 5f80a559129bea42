"""`lakegate ledger rebuild`: what to do when the ledger is lost."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from cli import documents, view
from functions.ingestion import Ingestion, State
from functions.rebuilding import rebuild
from reading.deployment import find

ledger = typer.Typer(no_args_is_help=True, help="Mend the ledger.")


@ledger.command("rebuild")
def rebuild_command(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Restore what the ledger lost, from main's log, branches, audit reports and job runs.

    What the ledger has stays as it is, so this can be done at any time, and again where it failed.
    """
    found = list(rebuild(find(context.obj).world(), dry_run=dry_run))
    if as_json:
        typer.echo(documents.text([documents.of_ingestion(each) for each in found]))
    else:
        view.out().print(told(found, dry_run=dry_run), soft_wrap=True)


def told(found: Sequence[Ingestion], *, dry_run: bool) -> str:
    """What was restored, by state, and what happens next."""
    if not found:
        return "Nothing was lost that left a trace."
    states = Counter(ingestion.state for ingestion in found)
    counted = ", ".join(f"{states[state]:,} {state}" for state in State if states[state])
    if dry_run:
        return f"{len(found):,} ingestions would be restored: {counted}."
    return (
        f"{len(found):,} ingestions are restored: {counted}.\n"
        "The sweep finishes what is due, and takes in files that left no trace. Look with "
        "`lakegate status` and `lakegate runs`."
    )
