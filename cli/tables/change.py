"""`lakegate change`, `retract` and `gate`: by SQL, without a file's rows, or as on a branch."""

from typing import Annotated

import typer

from access.deployment.choice import find
from access.ingestions.identify import identified
from cli.console import terminal
from cli.console.options import By, ByOrUser, Id, Reason, Seconds, Wait, Yes, confirm, named
from cli.tables.requested import end, follow
from lakegate.job.change import Change
from lakegate.job.landing import ingestion_id
from lakegate.text import count


def change(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="Table, for example nyc.flights.")],
    sql: Annotated[str, typer.Option(help="One DELETE, UPDATE or MERGE statement in Spark SQL.")],
    message: Reason = "",
    by: ByOrUser = "",
    token: Annotated[
        str, typer.Option(help="Token of an earlier try, to continue it instead of changing twice.")
    ] = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Change a table on a branch, audit the whole table there, and publish it if it passes.

    Repeating the command with the same token makes the change only once. With --wait, exits like
    `lakegate drop`: 0 published, 3 rejected, 4 errored.
    """
    from functions.pipeline.start import intake

    adapters = find(context.obj).adapters()
    request = Change(table, sql, token or adapters.token(), named(by), message)
    landed = request.landed(adapters.lake.bucket)
    id_ = ingestion_id(landed)
    terminal.out().print(f"{id_}  change of {table}, token {request.token}", soft_wrap=True)
    end(adapters, intake.ask(adapters, request), wait=wait, seconds=seconds)


def retract(
    context: typer.Context,
    identity: Id,
    by: By,
    reason: Reason,
    yes: Yes = False,
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Remove the rows of a published file from its table, audited like any change.

    Repeating the command continues the first request. With --wait, exits like `lakegate drop`: 0
    published, 3 rejected, 4 errored.
    """
    from functions.pipeline.start import intake

    adapters = find(context.obj).adapters()
    published = identified(adapters.ledger, identity)
    intake.require_retractable(published)
    rows, tables = count(published.audit.rows, "row"), ", ".join(published.tables)
    confirm(f"Remove the {rows} of {published.name} from {tables}?", yes=yes)
    ingestion = intake.retract(adapters, published, by, reason)
    what = f"retraction of {published.name} from {tables}"
    follow(adapters, ingestion, what, by, wait=wait, seconds=seconds)


def gate(
    context: typer.Context,
    branch: Annotated[str, typer.Argument(help="Branch off main that another writer wrote to.")],
    table: Annotated[str, typer.Option(help="One of its tables, if it has several.")] = "",
    reason: Reason = "",
    by: ByOrUser = "",
    wait: Wait = False,
    seconds: Seconds = 900,
) -> None:
    """Audit what another writer committed for a table on a branch, and publish it if it passes.

    Its rows are written again on a branch of Lakegate's own, where the whole table is audited.
    Repeating the command continues the first request. With --wait, exits like `lakegate drop`: 0
    published, 3 rejected, 4 errored.
    """
    from functions.operations.decisions import takeover

    adapters = find(context.obj).adapters()
    wanted = takeover.takeover(adapters, branch, table, named(by), reason)
    ingestion = takeover.gate(adapters, wanted)
    what = f"takeover of {wanted.table} from {branch}"
    follow(adapters, ingestion, what, wanted.by, wait=wait, seconds=seconds)
