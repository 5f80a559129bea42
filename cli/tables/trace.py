"""`lakegate trace`: from rows of a table to the file that brought them, and back."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from access.deployment.choice import find
from access.deployment.deployment import Deployment
from access.ingestions.identify import identified
from access.ingestions.undone import undone
from cli.console import json_output, terminal
from cli.console.options import AsJson
from functions.adapters.all import Adapters
from functions.model.ingestion import State
from lakegate.errors import LakegateError

if TYPE_CHECKING:
    from access.evidence.trace import OriginRows


def trace(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="TABLE|ID", help="A table, or an ingestion's id.")],
    where: Annotated[
        str, typer.Option(help="Of a table: which rows, a condition in DuckDB's SQL.")
    ] = "",
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Of an ingestion: only the row of this number in its file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which file, report and commit rows of a table come from; or where a file's rows are.

    Prints no values. Exits 1 if there are no such rows.
    """
    deployment = find(context.obj)
    if "." in what:
        if not where or row:
            raise typer.BadParameter("of a table, give --where and no --row")
        documents = _traced_rows(deployment, what, where)
    else:
        if where:
            raise typer.BadParameter("--where needs a table", param_hint="--where")
        documents = _traced_file(deployment, what, row or 0)
    if as_json:
        typer.echo(json_output.text(documents))
    else:
        _print(documents)
    if not any(document["rows"] for document in documents):
        raise none_found(documents, row or 0)


def none_found(documents: Iterable[Mapping[str, Any]], row: int) -> LakegateError:
    """Return the error that main has no such rows, or none that can be told from others."""
    message = "main has no such rows"
    if not row and any(document["state"] == State.PUBLISHED for document in documents):
        message = (
            "main has none of its data files, and no row that names it: they were compacted or"
            " changed since\nRows name their file where the contract asks for `provenance`."
        )
    return LakegateError("NO_ROWS", message)


def _traced_rows(deployment: Deployment, table: str, where: str) -> list[dict[str, Any]]:
    # a second to import, which no other command waits for
    from access.evidence.trace import trace_rows

    adapters = deployment.adapters()
    return [_document(adapters, table, each) for each in trace_rows(deployment, table, where)]


def _traced_file(deployment: Deployment, identity: str, row: int) -> list[dict[str, Any]]:
    from access.evidence.trace import OriginRows, trace_file

    adapters = deployment.adapters()
    ingestion = identified(adapters.ledger, identity)
    by_table = trace_file(deployment, ingestion, row)
    gone = [OriginRows("", 0, (), ingestion)]
    return [
        _document(adapters, table, each)
        for table, rows in by_table.items()
        for each in rows or gone
    ]


def _document(adapters: Adapters, table: str, origin: "OriginRows") -> dict[str, Any]:
    """Return the origin of some rows as JSON."""
    one, commit = origin.ingestion, origin.commit
    return {
        "table": table,
        "rows": origin.rows,
        "row_numbers": list(origin.numbers),
        "data_file": origin.data_file,
        "ingestion": one.id if one else "",
        "state": "; ".join(filter(None, (one.state, undone(adapters, one)))) if one else "",
        "file": one.landed.uri if one and not one.change else "",
        "version": one.landed.version if one and not one.change else "",
        "change": one.change.statement if one and one.change else "",
        "landed": one.landed.landed_at if one else "",
        "report": one.report_key if one else "",
        "commit": commit.hash if commit else one.merge_hash if one else "",
        "commit_message": commit.message if commit else "",
    }


def _print(documents: Iterable[dict[str, Any]]) -> None:
    """Print each origin; there are as many as data files and ingestions with such rows."""
    for document in documents:
        shown = {
            **{key.replace("_", " "): value for key, value in document.items()},
            "rows": f"{document['rows']:,}",
            "row numbers": _numbers(document),
        }
        terminal.out().print(terminal.facts(shown.items()))
        terminal.out().print()


def _numbers(document: dict[str, Any]) -> str:
    """Return the first numbers of the rows, with a sign that there are more."""
    numbers = document["row_numbers"]
    more = [] if len(numbers) == document["rows"] else ["…"]
    return ", ".join([*map(str, numbers), *more]) if numbers else ""
