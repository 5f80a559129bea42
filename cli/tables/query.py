"""`lakegate query`: read tables by SQL."""

import csv
import io
import json
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from access.deployment.choice import find
from cli.console import terminal
from functions.model.commits import MAIN
from lakegate.errors import LakegateError
from lakegate.text import count, escaped_json, visible

if TYPE_CHECKING:  # as duckdb and pyiceberg, it takes a second, which help does not need
    import pyarrow as pa

_MOST_ROWS = 200


def query(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(help="One SELECT over tables named <namespace>.<table>.")],
    ref: Annotated[str, typer.Option(help="Branch to read.")] = MAIN,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all rows as JSON; binary values are base64.")
    ] = False,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", help="Print all rows as CSV; null is an empty cell, binary base64."),
    ] = False,
) -> None:
    """Query main or a branch (DuckDB SQL)."""
    if as_json and as_csv:
        raise typer.BadParameter("give --json or --csv, not both")
    with find(context.obj).reader(ref).answer(sql) as answer:
        if as_json:
            print_json(answer)
        elif as_csv:
            print_csv(answer)
        else:
            print_table(answer)


def rows(answer: "pa.RecordBatchReader") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer, with one batch in memory at a time."""
    from access.tables.arrow_values import python_values

    for batch in answer:
        yield from zip(*map(python_values, batch.columns), strict=True)


def print_json(answer: "pa.RecordBatchReader") -> None:
    """Print all rows as a JSON array, one row on a line.

    Raises LakegateError SAME_NAMES if columns have one name.
    """
    name, many = Counter(answer.schema.names).most_common(1)[0]
    if many > 1:
        message = f"{many} columns are named {name}, of which a JSON object keeps one"
        raise LakegateError("SAME_NAMES", f"{message}\nGive each a name of its own by AS.")
    separator = "["
    for row in rows(answer):
        document = dict(zip(answer.schema.names, map(_json_value, row), strict=True))
        line = escaped_json(json.dumps(document, ensure_ascii=False, default=str))
        typer.echo(f"{separator}\n  {line}", nl=False)
        separator = ","
    typer.echo("\n]" if separator == "," else "[]")


def _json_value(value: Any) -> Any:
    """Return the value as JSON has it: what no number of it holds exactly is text."""
    match value:
        case float() if not isfinite(value):
            return json.dumps(value)
        case Decimal():
            return _number(value)
        case dict():
            return {name: _json_value(each) for name, each in value.items()}
        case list() | tuple():
            return [*map(_json_value, value)]
        case _:
            return _base64(value)


def _number(value: Decimal) -> int | float | str:
    if value == value.to_integral_value():
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)


def _base64(value: Any) -> Any:
    """Return bytes as text, and any other value as it is."""
    return b64encode(value).decode() if isinstance(value, bytes) else value


def print_csv(answer: "pa.RecordBatchReader") -> None:
    """Print all rows as CSV with a header (RFC 4180), and their number to standard error."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(answer.schema.names)
    many = 0
    for many, row in enumerate(rows(answer), 1):  # noqa: B007  counted for below
        terminal.raw(_taken(text))
        write(map(_base64, row))
    terminal.raw(_taken(text))
    terminal.err().print(count(many, "row"), style="dim")


def _taken(text: io.StringIO) -> str:
    """Return what was written so far, and empty it; a terminal gets no control characters."""
    written = text.getvalue()
    text.seek(0)
    text.truncate()
    return visible(written) if sys.stdout.isatty() else written


def print_table(answer: "pa.RecordBatchReader") -> None:
    """Print the first rows as a table, and their number to standard error."""
    numbers = [field.name for field in answer.schema if _is_number(field.type)]
    made = terminal.table(*answer.schema.names, right=numbers)
    every = rows(answer)
    for row in islice(every, _MOST_ROWS):
        made.add_row(*(terminal.cell(value) for value in row))
    terminal.out().print(made)
    # The others are not counted: that would read the whole table.
    more = next(every, None) is not None
    words = f"only the first {_MOST_ROWS} rows; --csv or --json prints all"
    terminal.err().print(words if more else count(made.row_count, "row"), style="dim")


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
