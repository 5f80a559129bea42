"""Tell by which rows two states of a table differ, from data files that only one of them has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
from pyiceberg.table import Table

from access.tables.check_sql import quoted
from access.tables.file_rows import FileRows
from access.tables.rows import Stream, as_text
from access.tables.streaming import reading
from lakegate.errors import LakegateError

_TIMES = "_times"  # how often a row is gained; below 0 it is lost


@dataclass(frozen=True)
class Difference:
    """How many rows a table gains and loses, and the first of each, with their values as text."""

    gained: int
    lost: int
    first_gained: tuple[Mapping[str, Any], ...]
    first_lost: tuple[Mapping[str, Any], ...]


def difference(then: Table, now: Table, hides: Callable[[str], bool], most: int) -> Difference:
    """Return the rows that the table gains and loses if it gets back those that it had `then`.

    Rows are read by the columns of `now`; equal rows of both are neither gained nor lost. At most
    `most` of each are returned, without the values of columns that `hides` selects. Raises
    LakegateError where the table was made anew since, or its delete files hide rows.
    """
    had, has = FileRows.all(then), FileRows.all(now)
    _require_comparable(had, has)
    both = {*had.files} & {*has.files}
    gained, lost = (
        FileRows(now, tuple(task for task in side.tasks if task.file.file_path not in both))
        for side in (had, has)
    )
    columns = tuple(now.schema().as_arrow().names)
    try:
        with duckdb.connect() as connection:
            _enter(connection, columns, {1: gained, -1: lost})
            totals = ", ".join(f"sum(greatest({sign} * {_TIMES}, 0))::BIGINT" for sign in (1, -1))
            ((more, fewer),) = connection.execute(f"SELECT {totals} FROM moved").fetchall()
            values = ", ".join(as_text(name, hidden=hides(name)) for name in columns)
            first = (_first(connection, values, columns, sign, most) for sign in (1, -1))
            return Difference(more or 0, fewer or 0, *first)
    except duckdb.Error as error:
        message = f"cannot read the rows of the table: {error}"
        raise LakegateError("UNREADABLE_ROWS", message) from error


def _require_comparable(then: FileRows, now: FileRows) -> None:
    if then.table.metadata.table_uuid != now.table.metadata.table_uuid:
        message = "the table was dropped and made again since: its older rows are another's"
        raise LakegateError("TABLE_REPLACED", f"{message}\nChange it by `lakegate change`.")
    if then.deletes or now.deletes:
        message = "delete files of another writer hide rows of the table, now or then"
        raise LakegateError("ROWS_DELETED", f"{message}\nChange it by `lakegate change`.")


def _enter(
    connection: duckdb.DuckDBPyConnection, columns: tuple[str, ...], sides: Mapping[int, FileRows]
) -> None:
    """Make the table `moved` of the rows that differ, from those that count for 1 and for -1."""
    listed = ", ".join(map(quoted, columns))
    failures: list[Exception] = []
    for sign, rows in sides.items():
        stream = Stream(rows, columns, range(len(rows.files)), failures)
        connection.register(f"of {sign}", stream)
    both = (f'SELECT {listed}, {sign} AS {_TIMES} FROM "of {sign}"' for sign in sides)
    connection.execute("SET TimeZone = 'UTC'").fetchall()
    moved = (
        f"CREATE TEMP TABLE moved AS SELECT {listed}, sum({_TIMES}) AS {_TIMES} "
        f"FROM ({' UNION ALL '.join(both)}) GROUP BY ALL HAVING sum({_TIMES}) <> 0"
    )
    with reading(failures):
        connection.execute(moved).fetchall()


def _first(
    connection: duckdb.DuckDBPyConnection,
    values: str,
    columns: tuple[str, ...],
    sign: int,
    most: int,
) -> tuple[Mapping[str, Any], ...]:
    wanted = f"FROM moved WHERE {sign} * {_TIMES} > 0 ORDER BY ALL LIMIT {most}"
    rows = connection.execute(f"SELECT {values} FROM ({wanted})").fetchall()
    return tuple(dict(zip(columns, row, strict=True)) for row in rows)
