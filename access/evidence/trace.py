"""Find where rows of a table come from, and where the rows of a landed file are.

Rows with a column of provenance name their ingestion. Of others the data file tells it: main's log
has the commit that added the file, which names what it published, and their reports name their data
files.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import duckdb
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from access.deployment.deployment import Deployment
from access.tables.check_sql import FILE, quoted
from access.tables.file_rows import FileRows
from access.tables.reader import columns_named
from access.tables.rows import Stream
from access.tables.streaming import reading
from functions.adapters.all import Adapters
from functions.adapters.iceberg.files import data_files
from functions.adapters.iceberg.manifests import live
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import contracts_of
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import published
from functions.pipeline.outcome.reports import report_of
from lakegate.contract.reading.other_columns import Origin, Provenance
from lakegate.errors import LakegateError, Permanent

_MOST_NUMBERS = 10


@dataclass(frozen=True)
class OriginRows:
    """Rows of one origin in one data file.

    `numbers` are the first of their numbers in the landed file, if the table has them. `ingestion`
    brought them; it is None if the data file was written by somebody else, or by a commit that
    published more than one file and rewrote their rows. `commit` added the data file to main,
    None if main's log does not reach back to it; it is looked for only where no row names its
    ingestion.
    """

    data_file: str
    rows: int
    numbers: tuple[int, ...] = ()
    ingestion: Ingestion | None = None
    commit: Commit | None = None


def provenance_of(adapters: Adapters, table: str) -> Provenance:
    """Return the columns of provenance that the table's contract asks for."""
    stored = contracts_of(adapters.lake, table).get(table)
    return stored.contract.provenance if stored else Provenance()


def trace_rows(deployment: Deployment, table: str, where: str) -> list[OriginRows]:
    """Return the origins of the rows on main that meet a condition, in DuckDB's SQL.

    Raises LakegateError BAD_SQL or UNKNOWN_TABLE.
    """
    adapters = deployment.adapters()
    names = provenance_of(adapters, table)
    with deployment.reader(MAIN).opened(table) as opened:
        rows = matching(FileRows.all(opened), where, names)
        ids = {id_ for _, id_, _, _ in rows} - {""}
        known = {each.id: each for each in adapters.ledger.together(sorted(ids))}
        unnamed = any(id_ not in known for _, id_, _, _ in rows)
        sequences = _sequences(opened) if unnamed else {}
        uuid = str(opened.metadata.table_uuid)
    listed = partial(_was_listed, deployment, table, uuid)
    commit_of = cache(partial(_added_by, adapters, table, listed))
    origins = []
    for path, id_, count, numbers in rows:
        commit = None if id_ in known else commit_of(sequences[path])
        ingestion = _publisher(adapters, commit, path) if commit else known.get(id_)
        origins.append(OriginRows(path, count, numbers, ingestion, commit))
    return origins


def matching(
    rows: FileRows, where: str, names: Provenance
) -> list[tuple[str, str, int, tuple[int, ...]]]:
    """Return data file, ingestion, count and first numbers of the rows that meet a condition.

    The ingestion is "" where rows do not name it.
    """
    there = {field.name.lower(): field.name for field in rows.table.schema().fields}
    ingestion, number = (
        there.get(names.names.get(origin, "").lower(), "")
        for origin in (Origin.INGESTION, Origin.ROW)
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        named = [there[n] for n in columns_named(connection, where) if n in there]
        columns = tuple(dict.fromkeys(filter(None, (*named, ingestion, number))))
        first = next(iter(there.values()))
        stream = Stream(rows, columns or (first,), range(len(rows.files)))
        connection.register("rows", stream)
        id_ = f"coalesce({quoted(ingestion)}, '')" if ingestion else "''"
        least = f"min({quoted(number)}, {_MOST_NUMBERS})" if number else "[]"
        sql = (
            f"SELECT {FILE}, {id_}, count(*), {least} FROM rows "
            f"WHERE ({where}\n) GROUP BY 1, 2 ORDER BY 2, 1"
        )
        with reading(stream.failures):
            matches = connection.execute(sql).fetchall()
    return [(rows.files[f], id_, count, tuple(n or ())) for f, id_, count, n in matches]


def _sequences(table: Table) -> dict[str, int]:
    """Return when each data file was added, as the number of the table's change."""
    snapshot = table.current_snapshot()
    sequences: dict[str, int] = {}
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for entry in live(manifest, table.io):
            sequences[entry.data_file.file_path] = entry.file_sequence_number or 0
    return sequences


def _was_listed(deployment: Deployment, table: str, uuid: str, sequence: int, at: str) -> bool:
    """Return whether the table had a change of that number at a commit on main."""
    try:
        with deployment.reader(f"{MAIN}@{at}").opened(table) as then:
            state = then.metadata
            reached = getattr(state, "last_sequence_number", 0)  # a table of version 1 has none
            return str(state.table_uuid) == uuid and reached >= sequence
    except LakegateError as error:
        if error.code != "UNKNOWN_TABLE":
            raise
        return False


def _added_by(
    adapters: Adapters, table: str, listed: Callable[[int, str], bool], sequence: int
) -> Commit | None:
    """Return the commit on main that made the table's change of that number."""
    history = (commit for commit, names in adapters.catalog.history() if table in names)
    return first_with(history, partial(listed, sequence))


def first_with(history: Iterable[Commit], has: Callable[[str], bool]) -> Commit | None:
    """Return the oldest commit of a history, newest first, that has something; None if none has.

    What has it is the newest part of the history, so few commits are asked, near to its end.
    """
    seen: list[Commit] = []
    known = -1  # the position of the oldest commit that is known to have it
    for commit in history:
        seen.append(commit)
        if len(seen).bit_count() == 1:  # the first, the second, the fourth, the eighth, …
            if not has(commit.hash):
                break
            known = len(seen) - 1
    return _last_with(seen, known, has)


def _last_with(seen: Sequence[Commit], known: int, has: Callable[[str], bool]) -> Commit | None:
    low, high = known, len(seen)  # `low` has it, `high` has not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has(seen[middle].hash) else (low, middle)
    return seen[low] if low >= 0 else None


def _publisher(adapters: Adapters, commit: Commit, path: str) -> Ingestion | None:
    """Return the ingestion whose report names the data file, or the only one of its commit."""
    ingestions = adapters.ledger.together(sorted({each.id for each in published(commit)}))
    if len(ingestions) == 1:
        return ingestions[0]
    return next((each for each in ingestions if path in _own_files(adapters, each)), None)


def _own_files(adapters: Adapters, ingestion: Ingestion) -> set[str]:
    """Return the data files that the ingestion's report names; none if it cannot be read."""
    try:
        report = report_of(adapters, ingestion)
    except Permanent:
        return set()
    return {file.path for single in report.singles for file in single.files} if report else set()


def trace_file(
    deployment: Deployment, ingestion: Ingestion, row: int = 0
) -> dict[str, list[OriginRows]]:
    """Return where the rows of an ingestion are on main, by table; with `row` only that one.

    Without columns of provenance these are the data files of its report that the table still has.
    Raises LakegateError NO_ROW_NUMBERS if the table does not number its rows.
    """
    return {table: _rows_of(deployment, table, ingestion, row) for table in ingestion.tables}


def _rows_of(
    deployment: Deployment, table: str, ingestion: Ingestion, row: int
) -> list[OriginRows]:
    adapters = deployment.adapters()
    names = provenance_of(adapters, table).names
    with deployment.reader(MAIN).opened(table) as opened:
        there = {field.name.lower(): field.name for field in opened.schema().fields}
        column = there.get(names.get(Origin.INGESTION, "").lower(), "")
        number = there.get(names.get(Origin.ROW, "").lower(), "")
        if row and not (column and number):
            message = f"rows of {table} have no numbers: its contract asks for no such provenance"
            raise LakegateError("NO_ROW_NUMBERS", message)
        of_row = f" AND {quoted(number)} = {row}" if row else ""
        where = f"{quoted(column)} = '{ingestion.id}'{of_row}"
        origins = _named(opened, column, ingestion, where, Provenance(names)) if column else []
        own = set() if row or origins else _own_files(adapters, ingestion)
        kept = (file for file in data_files(opened) if file.file_path in own)
        return origins or [OriginRows(f.file_path, f.record_count, (), ingestion) for f in kept]


def _named(
    table: Table, column: str, ingestion: Ingestion, where: str, names: Provenance
) -> list[OriginRows]:
    """Return the rows that name the ingestion, from data files that may have some."""
    wanted: Any = EqualTo
    rows = FileRows(table, tuple(table.scan(wanted(column, ingestion.id)).plan_files()))
    matches = matching(rows, where, names)
    return [OriginRows(path, count, numbers, ingestion) for path, _, count, numbers in matches]
