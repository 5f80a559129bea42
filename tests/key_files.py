"""Data files of a table whose columns are a key, with generated rows."""

import io
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from lakegate.audit.report import DataFile
from spark_jobs.audit.keys.key_columns import KeyColumns
from spark_jobs.lake.storage import Storage

FOLDER = "warehouse/tests/rows_0a1b2c3d-1/data"
NAN = math.nan
# Iceberg's type, Arrow's, and few values, so that they collide.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [0, -1, 2**31 - 1]),
    "long": (pa.int64(), [0, 1, -(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, NAN, -NAN, 1.5, math.inf]),
    "double": (pa.float64(), [0.0, -0.0, NAN, 5e-324, -math.inf]),
    "date": (pa.date32(), [0, -1, 20_000]),
    "timestamptz": (pa.timestamp("us", "UTC"), [0, -1, 10**15]),
    "timestamp": (pa.timestamp("us"), [0, 1]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal(0)]),
    "decimal(38,0)": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), Decimal(1)]),
    "string": (pa.string(), ["", "a", "A", "a ", "ä", "a\u0308", "x" * 600, "x" * 599 + "y"]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff"]),
}
KEYS = st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3)
Rows = list[tuple[Any, ...]]


def schema_of(types: Sequence[str]) -> dict[str, Any]:
    """Return a table's schema as Iceberg writes it, with the columns c1, c2, …"""
    return {"fields": [{"id": n, "name": f"c{n}", "type": t} for n, t in enumerate(types, 1)]}


def columns_of(types: Sequence[str]) -> KeyColumns:
    """Return the key over all columns."""
    found = KeyColumns.find(schema_of(types), [f"c{n}" for n in range(1, len(types) + 1)])
    assert found
    return found


def data_file(storage: Storage, name: str, types: Sequence[str], rows: Rows) -> DataFile:
    """Put a data file of a table into the lake, in row groups of five."""
    fields = [
        pa.field(f"c{n}", TYPES[type_][0], metadata={"PARQUET:field_id": str(n)})
        for n, type_ in enumerate(types, 1)
    ]
    arrays = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(fields)]
    body = io.BytesIO()
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    pq.write_table(table, body, row_group_size=5, store_schema=False)
    storage.put(f"{FOLDER}/{name}.parquet", body.getvalue())
    return DataFile(storage.address(f"{FOLDER}/{name}.parquet"), len(rows), len(body.getvalue()))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[Rows]]:
    """Return the types of a key, and the rows of the run's file and of two others."""
    types = draw(KEYS)
    values = [st.sampled_from([None, *TYPES[type_][1]]) for type_ in types]
    return types, [draw(st.lists(st.tuples(*values), max_size=12)) for _ in range(3)]
