"""Open a sample of any format that the job reads, and profile its columns."""

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from access.tables.check_sql import POSITION
from cli.contract.suggest.cells import Cells, refusal, require_few
from cli.contract.suggest.columns import ColumnProfile, Outlier, columns_of
from cli.contract.suggest.readers import avro, columnar
from cli.contract.suggest.readers.csv import decoded, read_csv
from cli.contract.suggest.readers.json import read_json
from lakegate.errors import LakegateError, Permanent
from spark_jobs.files.text.sniff import check_binary, is_gzip, kind_of

_HEAD = 64 * 1024
_LONGEST = 200
_WIDE = ("text in UTF-16", "binary data")  # the kinds of text in UTF-16
_JSON = ("json", "jsonl", "ndjson", "geojson")
_REMEDIES = {
    "encrypted": "Write it without encryption: the job has no keys.",
    "HTML": "Open it in an editor to see what it says, and get the data again.",
    "compressed": "Uncompress it: the job reads gzip alone.",
    "archive": "Unpack it, or save the sheet as CSV.",
    "Excel": "Save the sheet as CSV.",
    "Arrow": "Write it as Parquet.",
    "Feather": "Write it as Parquet.",
}


@dataclass(frozen=True)
class Sample:
    """A file's format and reader options as in a contract, and the profiles of its columns.

    `left_out` says which columns of the file no contract can have. `bad` are rows that the job
    cannot read, few beside the others. `unit` is what outliers are numbered by: line or row.
    """

    format: str
    options: Mapping[str, str]
    rows: int
    columns: tuple[ColumnProfile, ...]
    left_out: tuple[str, ...] = ()
    bad: tuple[Outlier, ...] = ()
    unit: str = "row"


def sample(connection: duckdb.DuckDBPyConnection, file: Path) -> Sample:
    """Profile a file: Parquet, ORC, Avro, CSV, TSV or JSON (lines or one array), also gzipped text.

    Its rows become the view `sample`, texts as they stand in the file. Raises LakegateError
    UNREADABLE, with a remedy, for what the job cannot ingest, and NO_ROWS.
    """
    connection.execute("SET TimeZone = 'UTC'")
    try:
        return _profiled(connection, file)
    except LakegateError as error:
        raise LakegateError(error.code, f"{file} {error.message}") from error
    except (duckdb.Error, pa.ArrowException, OSError, EOFError, zlib.error) as error:
        reason = next(iter(str(error).splitlines()), "")[:_LONGEST]
        message = f"{file} cannot be read: {reason}\nIt may be damaged, or another kind of file."
        raise LakegateError("UNREADABLE", message) from error


def _profiled(connection: duckdb.DuckDBPyConnection, file: Path) -> Sample:
    with file.open("rb") as stream:
        head = stream.read(_HEAD)
        stream.seek(max(0, file.stat().st_size - 4))
        tail = stream.read(4)
    if not head:
        raise refusal("is empty", "Give a file with rows.")
    format_ = next((f for f, magic in _MAGIC.items() if head.startswith(magic)), "")
    if format_ and (format_ == "avro" or b"\0" in head or tail.startswith(_MAGIC[format_][:3])):
        return _columnar(connection, file, format_, head, tail)
    data = gzip.decompress(file.read_bytes()) if is_gzip(head) else file.read_bytes()
    return _load_cells(connection, _cells(file, data))


_MAGIC = {"parquet": b"PAR1", "orc": b"ORC", "avro": avro.MAGIC}
_OPENERS = {
    "parquet": columnar.open_parquet,
    "orc": columnar.open_orc,
    "avro": columnar.open_avro,
}


def _columnar(
    connection: duckdb.DuckDBPyConnection, file: Path, format_: str, head: bytes, tail: bytes
) -> Sample:
    try:
        check_binary(format_, head, tail)
    except Permanent as error:
        raise refusal(f"cannot be read: {error.message}", "Get the whole file again.") from error
    columns = _OPENERS[format_](connection, file)
    connection.execute(f"CREATE VIEW sample AS {columns.source}")
    require_few(connection.sql(f"SELECT * EXCLUDE {POSITION} FROM sample LIMIT 0").columns)
    rows = int(connection.sql("SELECT count(*) FROM sample").fetchall()[0][0])
    if not rows:
        raise _no_rows()
    profiles = columns_of(connection, {}, columns.broken)
    return Sample(format_, {}, rows, profiles, columns.left_out)


def _no_rows() -> LakegateError:
    return LakegateError("NO_ROWS", "has no rows\nGive a file with rows: they show the types.")


def _cells(file: Path, data: bytes) -> Cells:
    """Return the cells of a text. Raises LakegateError UNREADABLE if it is none."""
    name = file.name.lower().removesuffix(".gz")
    kind = kind_of(data[:_HEAD])
    encoding, content = decoded(data)
    if kind and not (encoding.startswith("UTF-16") and kind in _WIDE):
        remedy = next((said for word, said in _REMEDIES.items() if word in kind), "")
        raise refusal(f"cannot be sampled: it is {kind}", remedy or "Save it as CSV or Parquet.")
    if name.endswith((".yaml", ".yml")):
        raise refusal("is YAML, not a file of data", "Check a contract by lakegate contract check.")
    is_json = content.lstrip()[:1] in ("{", "[") and not name.endswith("sv")
    if not is_json and name.rpartition(".")[2] not in _JSON:
        return read_csv(data)
    if encoding != "UTF-8":
        raise refusal(f"is JSON in {encoding}", "Write it in UTF-8, as JSON must be.")
    return read_json(content)


def _load_cells(connection: duckdb.DuckDBPyConnection, cells: Cells) -> Sample:
    connection.register("cells", cells.table)
    connection.execute("CREATE VIEW sample AS FROM cells")
    rows = cells.table.num_rows
    if not rows:
        raise _no_rows()
    profiles = {each.name: each for each in columns_of(connection, cells.shapes, {})}
    for name, others in cells.strange.items():
        nulls = profiles[name].nulls - len(others)
        strange, outliers = profiles[name].strange + len(others), profiles[name].outliers + others
        profiles[name] = replace(profiles[name], nulls=nulls, strange=strange, outliers=outliers)
    profiles |= {each.name: each for each in cells.nested}
    columns = tuple(profiles[name] for name in cells.order or profiles if name in profiles)
    if not columns:
        raise refusal("has no column that a table can have", "\n".join(cells.left_out))
    return Sample(cells.format, cells.options, rows, columns, cells.left_out, cells.bad, cells.unit)
