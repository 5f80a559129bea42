"""Write data files of the audit history, which the publisher registers later.

The job may not write main's tables, and it may neither rename nor delete: it writes each file in
its final place in the lake, and names it in its report.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakegate.audit.audit_tables import RESULTS, HistoryTable, results, run_id
from lakegate.audit.report import AuditReport, DataFile
from spark_jobs.lake.storage import Storage

_ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}


def with_results(storage: Storage, report: AuditReport) -> AuditReport:
    """Write the report's rows for RESULTS to a file; return the report with that file.

    Raises Transient when it cannot be written.
    """
    key = f"{new_prefix(RESULTS, storage)}.parquet"
    rows = list(results(report))
    body = _parquet_bytes(RESULTS, rows, report.started_at)
    storage.put(key, body)
    file = DataFile(storage.address(key), len(rows), len(body))
    return replace(report, records=(*report.records, file))


def _parquet_bytes(table: HistoryTable, rows: Sequence[Mapping[str, Any]], run_ts: str) -> bytes:
    """Return rows as a Parquet file with Iceberg's field ids; all rows get the time `run_ts`."""
    moment = {"run_ts": datetime.fromisoformat(run_ts)}
    made = pa.Table.from_pylist([{**row, **moment} for row in rows], arrow_schema(table))
    out = BytesIO()
    pq.write_table(made, out, compression="zstd", store_schema=False)
    return out.getvalue()


def new_prefix(table: HistoryTable, storage: Storage) -> str:
    """Return the prefix of the keys of this try's files, which names the run."""
    spec = storage.spec
    run = run_id(spec.ingestion, spec.attempt)
    address = f"{table.files(spec.lake_bucket)}{run}-{secrets.token_hex(4)}"
    return address.removeprefix(storage.address(""))


def arrow_schema(table: HistoryTable) -> pa.Schema:
    """Return the types of an audit table's data files, with Iceberg's field ids."""
    return pa.schema(
        _arrow_field(each["name"], each["type"], each["id"])
        for each in json.loads(table.file_schema)["fields"]
    )


def _arrow_field(name: str, type_: Any, number: int) -> pa.Field:
    made = _ARROW[type_] if isinstance(type_, str) else _arrow_list(type_)
    return pa.field(name, made, metadata={"PARQUET:field_id": str(number)})


def _arrow_list(type_: Mapping[str, Any]) -> pa.DataType:
    return pa.list_(_arrow_field("element", type_["element"], type_["element-id"]))
