"""`lakegate restore`: give a table the rows that it had at an earlier commit of main."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from access.deployment.choice import find
from access.deployment.deployment import Deployment
from access.ingestions.shown_report import Concealment
from cli.console import audit, terminal
from cli.console.options import ByOrUser, Seconds, Wait, Yes, confirm, named, since
from cli.tables.requested import follow
from functions.adapters.s3 import contracts_of
from functions.model.commits import MAIN
from functions.operations.decisions.restore import Undo, is_commit, undo
from functions.operations.decisions.restore import restore as request
from functions.pipeline.start.intake import require_name
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.job.landing import ID_PART
from lakegate.text import count

if TYPE_CHECKING:
    from access.tables.difference import Difference

_MOST_ROWS = 5  # of those that come, and of those that go


def restore(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Table, for example nyc.flights.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="COMMIT|TIME",
            help="A commit of `lakegate log`, or a time: 2026-11-02T10:00, or 2h: two hours ago.",
        ),
    ],
    reason: Annotated[
        str, typer.Option(help="Reason, recorded in main's log. Only --dry-run needs none.")
    ] = "",
    by: ByOrUser = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the rows that come and go.")
    ] = False,
    yes: Yes = False,
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Give a table the rows that it had at an earlier commit of main, audited like any change.

    Shows the rows that come and go before it asks. With --wait, exits like `lakegate drop`: 0
    published, 3 rejected, 4 errored.
    """
    by, state = named(by), _state(to)
    if not dry_run:
        require_name(by, reason)
    deployment = find(context.obj)
    adapters = deployment.adapters()
    wanted = undo(adapters, table, state)
    terminal.out().print(Group(*_shown(wanted, _rows(deployment, wanted))))
    if dry_run:
        return
    confirm(f"Give {table} the rows of {wanted.to.hash[:ID_PART]}?", yes=yes)
    ingestion = request(adapters, wanted, by, reason)
    follow(adapters, ingestion, f"restoration of {table}", by, wait=wait, seconds=seconds)


def _state(to: str) -> str:
    """Return a commit as it is, and a time as the ledger writes it. Raises BadParameter."""
    if is_commit(to):
        return to
    try:
        return since(to)
    except typer.BadParameter as error:
        message = f"{error.message}, or at least 8 characters of a commit of `lakegate log`"
        raise typer.BadParameter(message, param_hint="--to") from error


def _rows(deployment: Deployment, wanted: Undo) -> "Difference":
    """Return the rows that come and go. Raise LakegateError if there are none."""
    # a second to import, which no other command waits for
    from access.tables.difference import difference

    stored = contracts_of(deployment.adapters().lake, wanted.table).get(wanted.table)
    hides = _hidden([stored.contract] if stored else [])
    readers = (deployment.reader(f"{MAIN}@{each.hash}") for each in (wanted.to, wanted.last))
    then, now = (reader.opened(wanted.table) for reader in readers)
    with then as old, now as new:
        rows = difference(old, new, hides, _MOST_ROWS)
    if not rows.gained and not rows.lost:
        message = f"{wanted.table} has the same rows as at commit {wanted.to.hash[:ID_PART]}"
        raise LakegateError("NOTHING_TO_RESTORE", f"{message}\nNothing is to be done.")
    return rows


def _hidden(contracts: Sequence[Contract]) -> Callable[[str], bool]:
    """Return which columns the contract of the table hides: it must declare what is shown."""
    concealment = Concealment.by(contracts)
    columns = (column for each in contracts for column in (*each.columns, *each.provenance.columns))
    known = {column.name.lower() for column in columns}
    return lambda name: name.lower() not in known or concealment.hides(name)


def _shown(wanted: Undo, difference: "Difference") -> Iterator[RenderableType]:
    yield terminal.facts(
        [
            ("table", wanted.table),
            ("to", f"{wanted.to.hash[:ID_PART]}, {wanted.to.time[:19]} UTC: {wanted.to.message}"),
            ("undoes", count(wanted.commits, "commit")),
            ("rows that come", f"{difference.gained:,}"),
            ("rows that go", f"{difference.lost:,}"),
        ]
    )
    for words, rows in {"come": difference.first_gained, "go": difference.first_lost}.items():
        if rows:
            yield Text(f"\nRows that {words}, the first {len(rows)}:", "bold")
            yield audit.rows(rows)
