"""Read tables of main or a branch without Spark: pyiceberg finds the data, duckdb queries it."""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import requests
from pyiceberg.exceptions import (
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
)
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual
from pyiceberg.table import DataScan, Table

from access.tables.check_sql import quoted
from access.tables.file_rows import FileRows
from access.tables.rows import Evidence
from access.tables.streaming import reading, watched
from functions.adapters.iceberg.rest import NessieCatalog
from lakegate.audit.audit_tables import QUARANTINE, RESULTS
from lakegate.errors import LakegateError, Transient
from lakegate.text import few


@dataclass(frozen=True)
class Column:
    """A column of a table's schema; `type` as Iceberg writes it."""

    name: str
    type: str
    required: bool
    about: str


@dataclass(frozen=True)
class TableState:
    """A table at one commit; `size` is the bytes of its data files.

    Reading it reads no data file.
    """

    columns: tuple[Column, ...]
    rows: int
    files: int
    size: int
    partitioned_by: tuple[str, ...]
    location: str


def table_state(table: Table) -> TableState:
    """Return the state of a table of the catalog."""
    snapshot = table.current_snapshot()
    summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    schema = table.schema()
    return TableState(
        columns=tuple(
            Column(field.name, str(field.field_type), field.required, field.doc or "")
            for field in schema.fields
        ),
        rows=int(summary.get("total-records", 0)) - int(summary.get("total-position-deletes", 0)),
        files=int(summary.get("total-data-files", 0)),
        size=int(summary.get("total-files-size", 0)),
        partitioned_by=tuple(
            f"{each.transform} of {schema.find_column_name(each.source_id)}"
            for each in table.spec().fields
        ),
        location=table.location(),
    )


_BATCH = 10_000
# What meets the caller that prints the rows: nobody reads on, or its disk is full.
_NO_OUTPUT = (errno.EPIPE, errno.ENOSPC)
_ONE_SELECT = "only a single SELECT is allowed"
_NO_TABLES_OF_OURS = ("information_schema", "pg_catalog")
_NAME = re.compile(r"[^.@#]+(\.[^.@#]+)+")  # Nessie reads another branch's table after an @ or #
_NEAR = re.compile(r'at or near "(\w+)"')


class Reader:
    """A reader of the catalog at one reference, with one token."""

    def __init__(self, iceberg: str, token: str, reference: str) -> None:
        """Connect to Nessie's Iceberg REST catalog at the address `iceberg`.

        `reference` is a branch, or `branch@hash` for its state at that hash. Raises LakegateError
        UNKNOWN_REFERENCE if there is no such branch.
        """
        self._reference = reference
        options = {"s3.endpoint": os.environ.get("AWS_ENDPOINT_URL", "")}
        with self._translated():
            self._catalog = NessieCatalog(
                "lake",
                uri=f"{iceberg}/{quote(reference, safe='')}",
                token=token,
                **{name: value for name, value in options.items() if value},
            )

    @contextmanager
    def answer(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        """Yield the rows of one SELECT statement in batches, in UTC.

        A table is read once per mention, in batches. Raises LakegateError: BAD_SQL with duckdb's
        message, or UNKNOWN_TABLE.
        """
        failures: list[Exception] = []
        with self._translated(), duckdb.connect() as connection:
            for schema, name in sorted(_tables(connection, sql)):
                scan = _Scan(self._load(f"{schema}.{name}").scan(), failures)
                _enter(connection, schema, name, scan)
            connection.execute("SET TimeZone = 'UTC'").fetchall()
            with reading(failures):
                yield connection.sql(sql).to_arrow_reader(_BATCH)

    def all_rows(self, table: str) -> pa.Table:
        """Return all rows of a table. Raises LakegateError UNKNOWN_TABLE."""
        with self._translated():
            return self._load(table).scan().to_arrow()

    @contextmanager
    def opened(self, table: str) -> Iterator[Table]:
        """Open a table for reading. Raises LakegateError UNKNOWN_TABLE."""
        with self._translated():
            yield self._load(table)

    @contextmanager
    def rows(self, table: str, *, whole: bool) -> Iterator[Evidence]:
        """Open a table's rows: the `whole` table, or those that the newest commit added to it.

        Raises LakegateError UNKNOWN_TABLE.
        """
        with self._translated(), duckdb.connect() as connection:
            rows = FileRows.all if whole else FileRows.added
            yield Evidence(connection, rows(self._load(table)))

    def state(self, table: str) -> TableState:
        """Return the state of a table from its metadata. Raises LakegateError UNKNOWN_TABLE."""
        with self._translated():
            return table_state(self._load(table))

    def names(self) -> list[str]:
        """Return the names of all tables, sorted."""
        with self._translated():
            return self._names()

    @contextmanager
    def records(self, table: str, since: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a table's rows of `ops.audit_results` since a time, as the view `results`.

        Reads only data files that may have such rows. Raises UNKNOWN_TABLE.
        """
        with self._translated(), duckdb.connect() as connection:
            wanted: Any = (EqualTo, "table_name", table), (GreaterThanOrEqual, "run_ts", since)
            both = And(*(kind(name, value) for kind, name, value in wanted))
            scan = self._load(RESULTS.name).scan(both)
            connection.execute("SET TimeZone = 'UTC'").fetchall()
            failures: list[Exception] = []
            connection.register("results", _Scan(scan, failures))
            with reading(failures):
                yield connection

    def quarantined(self, run: str, check: str, limit: int) -> list[str]:
        """Return at most `limit` rows that a run quarantined for a check.

        The result is empty until the run is recorded. Reads only data files that may have rows of
        the run.
        """
        if not self.has(QUARANTINE.name):
            return []
        with self._translated():
            is_of: Any = EqualTo
            scan = self._load(QUARANTINE.name).scan(is_of("run_id", run))
            batches = scan.to_arrow_batch_reader()
            rows = (row for batch in batches for row in batch.to_pylist())
            return [row["row"] for row in islice((r for r in rows if check in r["reasons"]), limit)]

    def has(self, table: str) -> bool:
        """Return whether the reference has the table."""
        with self._translated():
            return bool(self._catalog.table_exists(table))

    def _load(self, table: str) -> Table:
        try:
            if not _NAME.fullmatch(table):
                raise NoSuchIdentifierError(table)
            return self._catalog.load_table(table)
        except (NoSuchTableError, NoSuchNamespaceError, NoSuchIdentifierError) as error:
            there = few(self._names())
            message = f"{self._reference} has no table {table}; its tables are: {there}"
            raise LakegateError("UNKNOWN_TABLE", message) from error

    def _names(self) -> list[str]:
        namespaces = self._catalog.list_namespaces()
        return sorted(".".join(t) for n in namespaces for t in self._catalog.list_tables(n))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise LakegateError("BAD_SQL", str(error)) from error
        except RESTError as error:
            raise self._refusal(str(error)) from error
        except requests.RequestException as error:
            raise Transient("CATALOG_UNAVAILABLE", f"Nessie did not answer: {error}") from error
        except FileNotFoundError as error:
            message = f"{error} is gone: main can be read as it was for KeepDays (docs/upkeep.md)"
            raise LakegateError("FILE_GONE", message) from error
        except OSError as error:
            if error.errno in _NO_OUTPUT:
                raise
            raise Transient("STORAGE_UNAVAILABLE", f"cannot read the data: {error}") from error

    def _refusal(self, text: str) -> LakegateError:
        if "NoSuchReference" in text:
            branch = self._reference.partition("@")[0]
            return LakegateError("UNKNOWN_REFERENCE", f"there is no branch {branch}")
        return Transient("CATALOG_REFUSED", f"Nessie refused to read {self._reference}: {text}")


class _Scan:
    """Rows of a table as an Arrow stream (Arrow documentation, "The Arrow PyCapsule Interface")."""

    def __init__(self, scan: DataScan, failures: list[Exception]) -> None:
        self._scan = scan
        self._failures = failures

    def __arrow_c_schema__(self) -> object:
        return self._schema().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = watched(self._batches(), self._failures)
        made = pa.RecordBatchReader.from_batches(self._schema(), batches)
        return made.__arrow_c_stream__(requested_schema)

    def _schema(self) -> pa.Schema:
        return self._scan.projection().as_arrow()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._scan.to_arrow_batch_reader()


def _tables(connection: duckdb.DuckDBPyConnection, sql: str) -> set[tuple[str, str]]:
    """Return the tables that a statement names with their schema."""
    tree = _parsed(connection, sql)
    return {
        (node["schema_name"], node["table_name"])
        for node in _nodes(tree)
        if node.get("type") == "BASE_TABLE"
        and node["schema_name"]
        and node["schema_name"] not in _NO_TABLES_OF_OURS
    }


def columns_named(connection: duckdb.DuckDBPyConnection, condition: str) -> set[str]:
    """Return the names of the columns in a condition, in lower case. Raises BAD_SQL."""
    tree = _parsed(connection, f"SELECT 1 WHERE ({condition}\n)")
    refs = (node for node in _nodes(tree) if node.get("class") == "COLUMN_REF")
    return {name.lower() for node in refs for name in node["column_names"]}


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return the syntax of one SELECT statement."""
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0]
    tree: dict[str, Any] = json.loads(row[0])
    if tree["error"]:
        is_sql = tree["error_type"] == "not implemented"
        raise LakegateError("BAD_SQL", _ONE_SELECT if is_sql else _told(tree["error_message"], sql))
    if len(tree["statements"]) != 1:
        raise LakegateError("BAD_SQL", _ONE_SELECT)
    return tree


def _told(error: str, sql: str) -> str:
    """Return an error of the syntax; if it is a name that is a word of SQL, with what to do."""
    word = _NEAR.search(error)
    if not word or not re.search(rf"\b{word[1]}\s*\.", sql, re.IGNORECASE):
        return error
    return f'{error}\n{word[1]} is a word of SQL: as a name it needs quotes, "{word[1]}"'


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for child in children:
        yield from _nodes(child)


def _enter(connection: duckdb.DuckDBPyConnection, schema: str, name: str, scan: _Scan) -> None:
    stream = f"{schema}.{name}"
    connection.register(stream, scan)
    # In full, as duckdb has databases named temp and system: it tells people to write it so, too.
    there = f"memory.{quoted(schema)}"
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {there}").fetchall()
    connection.execute(f"CREATE VIEW {there}.{quoted(name)} AS FROM {quoted(stream)}").fetchall()
