"""Tell by which rows two states of a table differ, from data files that only one of them has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
from pyiceberg.table import Table

from access.tables.check_sql import quoted
from access.tables.file_rows import FileRows
from access.tables.rows import Stream, as_text
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
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        return _Moved(connection, tuple(now.schema().as_arrow().names)).between(
            gained, lost, hides, most
        )


def _require_comparable(then: FileRows, now: FileRows) -> None:
    if then.table.metadata.table_uuid != now.table.metadata.table_uuid:
        message = "the table was dropped and made again since: its older rows are another's"
        raise LakegateError("TABLE_REPLACED", f"{message}\nChange it by `lakegate change`.")
    if then.deletes or now.deletes:
        message = "delete files of another writer hide rows of the table, now or then"
        raise LakegateError("ROWS_DELETED", f"{message}\nChange it by `lakegate change`.")


@dataclass(frozen=True)
class _Moved:
    """The relation `moved` of the rows gained and lost, with these columns."""

    connection: duckdb.DuckDBPyConnection
    columns: tuple[str, ...]

    def between(
        self, gained: FileRows, lost: FileRows, hides: Callable[[str], bool], most: int
    ) -> Difference:
        """Return the difference between the rows of data files."""
        listed = ", ".join(map(quoted, self.columns))
        for name, rows in {"gained": gained, "lost": lost}.items():
            self.connection.register(name, Stream(rows, self.columns, range(len(rows.files))))
        self._run(
            f"CREATE TEMP TABLE moved AS SELECT {listed}, sum({_TIMES}) AS {_TIMES} FROM ("
            f"SELECT {listed}, 1 AS {_TIMES} FROM gained UNION ALL "
            f"SELECT {listed}, -1 AS {_TIMES} FROM lost) "
            f"GROUP BY ALL HAVING sum({_TIMES}) <> 0"
        )
        counts = ", ".join(f"sum(greatest({sign} * {_TIMES}, 0))" for sign in (1, -1))
        ((many_gained, many_lost),) = self._run(f"SELECT {counts} FROM moved")
        first = (self._first(sign, hides, most) for sign in (1, -1))
        return Difference(int(many_gained or 0), int(many_lost or 0), *first)

    def _first(
        self, sign: int, hides: Callable[[str], bool], most: int
    ) -> tuple[Mapping[str, Any], ...]:
        values = ", ".join(as_text(name, hidden=hides(name)) for name in self.columns)
        where = f"WHERE {sign} * {_TIMES} > 0 ORDER BY ALL LIMIT {most}"
        rows = self._run(f"SELECT {values} FROM (FROM moved {where})")
        return tuple(dict(zip(self.columns, row, strict=True)) for row in rows)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            message = f"cannot read the rows of the table: {error}"
            raise LakegateError("UNREADABLE_ROWS", message) from error
