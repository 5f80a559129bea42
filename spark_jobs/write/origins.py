"""Fill the columns that say where a row comes from, in rows that Arrow has decoded. Pure."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from lakegate.contract.reading.other_columns import Origin, Provenance
from spark_jobs.files.arrow.types import type_of

ROW = "_lakegate_row"  # the column of a row's number in its file, from 1


def with_origins(
    rows: pa.Table, provenance: Provenance, values: Mapping[Origin, str | None]
) -> pa.Table:
    """Return rows of one file with the columns of provenance; their numbers are in `ROW`."""
    table = rows.select([name for name in rows.column_names if name != ROW])
    for origin, column in zip(provenance.names, provenance.columns, strict=True):
        type_ = type_of(column)
        own = rows[ROW] if origin is Origin.ROW else _repeated(values[origin], type_, rows)
        table = table.append_column(column.name, own.cast(type_))
    return table


def _repeated(text: str | None, type_: pa.DataType, rows: pa.Table) -> pa.Array:
    is_moment = text is not None and pa.types.is_timestamp(type_)
    value = datetime.fromisoformat(text) if text is not None and is_moment else text
    return pa.repeat(pa.scalar(value, type_), rows.num_rows)
