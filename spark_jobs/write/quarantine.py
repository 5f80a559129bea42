"""Write the rows of a run that stay out of its table, for the table of quarantined rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lakegate.audit.audit_tables import QUARANTINE, run_values
from lakegate.audit.report import READABLE, DataFile
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from spark_jobs.audit import check_sql
from spark_jobs.files.arrow.text import Unparseable
from spark_jobs.files.source import BAD_ROW
from spark_jobs.files.text.text_lines import LINE
from spark_jobs.lake.storage import Storage
from spark_jobs.spark.errors import explain, returned
from spark_jobs.spark.jvm import JavaError
from spark_jobs.write.history_files import arrow_schema, new_prefix

_MOST = 16 << 20  # bytes of Spark's rows in Python at once, about
_ROW = 100  # bytes of a row beside its text, about
_MOST_PARTS = 63  # of so many bytes in a file, which is on disk until it is put
_REASONS = pa.list_(pa.string())
_ARRAYS = (pa.Array, pa.ChunkedArray)


@dataclass(frozen=True)
class Quarantine:
    """The files of a run, begun at `started_at` (ISO 8601), with the rows that stay out."""

    storage: Storage
    started_at: str

    def write(self, rows: DataFrame) -> tuple[DataFile, ...]:
        """Write rows that stay out: `row` as text, and `reasons`, the ids of checks.

        Each task writes its own, so that they need not fit into memory. Raises LakegateError.
        """
        try:
            out = rows.select("row", "reasons").rdd.mapPartitions(self._of_task).collect()
        except JavaError as error:
            raise explain(error, "the rows for quarantine cannot be written") from error
        files: list[DataFile] = returned(out)
        return tuple(files)

    def write_unparseable(self, rows: Unparseable) -> DataFile:
        """Write unparseable rows, each as it stands in its file; return the file.

        Raises LakegateError where it cannot be put.
        """
        return self._written((texts[LINE], pa.scalar([READABLE], _REASONS)) for texts in rows)

    def _of_task(self, rows: Iterable[Row]) -> Iterator[DataFile | LakegateError]:
        """Write the rows of a task, if there are any; yield why not, as a task cannot raise it."""
        parts = _parts(rows)
        try:
            while first := next(parts, None):
                yield self._written(chain([first], islice(parts, _MOST_PARTS)))
        except LakegateError as error:
            yield error

    def _written(self, rows: Iterable[tuple[Any, Any]]) -> DataFile:
        """Write rows, given as texts and their reasons, which may be the same for all."""
        schema, same, count = arrow_schema(QUARANTINE), self._run_values, 0
        options = {"compression": "zstd", "store_schema": False}
        address = self.storage.address(f"{new_prefix(QUARANTINE, self.storage)}.parquet")
        with self.storage.new_object(address) as sink:
            with pq.ParquetWriter(sink, schema, **options) as writer:
                for texts, reasons in rows:
                    columns = {**same, "row": texts, "reasons": reasons}
                    writer.write_table(_table(columns, schema, len(texts)))
                    count += len(texts)
            size = sink.tell()
        return DataFile(address, count, size)

    @property
    def _run_values(self) -> Mapping[str, Any]:
        spec, moment = self.storage.spec, datetime.fromisoformat(self.started_at)
        same = run_values(spec.ingestion, spec.attempt, spec.table, spec.landed.uri)
        return {**same, "run_ts": moment}


def _parts(rows: Iterable[Row]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the texts of rows, and their reasons, of some rows at once."""
    texts: list[str] = []
    reasons: list[list[str]] = []
    size = 0
    for row in rows:
        texts.append(row["row"])
        reasons.append(row["reasons"])
        size += len(texts[-1]) + _ROW
        if size >= _MOST:
            yield pa.array(texts, pa.string()), pa.array(reasons, _REASONS)
            texts, reasons, size = [], [], 0
    if texts:
        yield pa.array(texts, pa.string()), pa.array(reasons, _REASONS)


def _table(columns: Mapping[str, Any], schema: pa.Schema, rows: int) -> pa.Table:
    """Return so many rows; a column that is no array has the same value in all of them."""
    return pa.table(
        [
            columns[name]
            if isinstance(columns[name], _ARRAYS)
            else pa.repeat(pa.scalar(columns[name], type_), rows)
            for name, type_ in zip(schema.names, schema.types, strict=True)
        ],
        schema=schema,
    )


def quarantine_condition(contract: Contract, *, nulled: bool = False) -> str:
    """Return the condition for rows to quarantine, in Spark SQL; "" where none can be.

    Unparseable rows are quarantined unless such cells become null (`nulled`).
    """
    return " OR ".join(reason for _, reason in _reasons(contract, nulled=nulled))


def quarantined_rows(rows: DataFrame, contract: Contract, *, nulled: bool = False) -> DataFrame:
    """Return the rows to quarantine: `row`, as JSON or as it stands in the file, and `reasons`.

    `reasons` are the ids of the checks that a row breaks.
    """
    reasons_of = _reasons(contract, nulled=nulled)
    named = [f"CASE WHEN {test} THEN {check_sql.string(id_)} END" for id_, test in reasons_of]
    reasons = f"array_compact(array({', '.join(named)}))"
    columns = F.struct(*[F.col(quoted(column.name)) for column in contract.columns])
    row = F.coalesce(F.col(BAD_ROW), F.to_json(columns))
    broken = rows.where(F.expr(quarantine_condition(contract, nulled=nulled)))
    return broken.select(row.alias("row"), F.expr(reasons).alias("reasons"))


def _reasons(contract: Contract, *, nulled: bool) -> list[tuple[str, str]]:
    """Return the checks that quarantine rows: the id of each, and its condition."""
    bad = [] if nulled else [(READABLE, f"{quoted(BAD_ROW)} IS NOT NULL")]
    checks = [check for check in contract.checks if check.quarantine]
    return [*bad, *((check.id, check_sql.counts_row(check, contract)) for check in checks)]
