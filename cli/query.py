"""`lakegate query` and `page`: read tables by SQL or in a browser."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from access.deployment import Choice, find
from cli import terminal
from functions.adapters.nessie import MAIN
from lakegate.text import escaped_json

if TYPE_CHECKING:
    import pyarrow as pa


# pyarrow, duckdb and pyiceberg take a second to import, so other commands do not import them.

_MOST_ROWS = 200


def query(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(help="One SELECT over tables named <namespace>.<table>.")],
    ref: Annotated[str, typer.Option(help="Branch to read.")] = MAIN,
    as_json: Annotated[bool, typer.Option("--json", help="Print all rows as JSON.")] = False,
) -> None:
    """Query main or a branch (DuckDB SQL)."""
    with find(context.obj).reader(ref).answer(sql) as answer:
        if as_json:
            _print_json(answer)
        else:
            _print_table(answer)


def rows(answer: "pa.RecordBatchReader") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer, with one batch in memory at a time."""
    for batch in answer:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _print_json(answer: "pa.RecordBatchReader") -> None:
    separator = "["
    for row in rows(answer):
        document = dict(zip(answer.schema.names, row, strict=True))
        line = escaped_json(json.dumps(document, ensure_ascii=False, default=str))
        typer.echo(f"{separator}\n  {line}", nl=False)
        separator = ","
    typer.echo("\n]" if separator == "," else "[]")


def _print_table(answer: "pa.RecordBatchReader") -> None:
    numbers = [field.name for field in answer.schema if _is_number(field.type)]
    made = terminal.table(*answer.schema.names, right=numbers)
    more = False
    for count, row in enumerate(rows(answer)):
        more = count == _MOST_ROWS
        if more:
            break
        made.add_row(*(terminal.cell(value) for value in row))
    terminal.out().print(made)
    if more:
        terminal.err().print(f"only the first {_MOST_ROWS} rows; --json prints all", style="dim")


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


# `lakegate page`: serve the quality page on this machine only.


def page(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 8501,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Serve the quality page: ingestions, failed checks and tables."""
    from dashboard.serving import serve  # a second to import, which no other command waits for

    serve(Choice.of(context.obj), port, open_browser=open_)
