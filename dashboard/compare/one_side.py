"""One side of a comparison: figures of a column from statistics and rows."""

from collections.abc import Collection

import duckdb
import pyarrow as pa
from pyiceberg.types import StringType

from access.tables.file_rows import FileRows
from dashboard.compare import counting
from dashboard.compare.figures import (
    Figure,
    Kind,
    Origin,
    Profile,
    kind_of,
)
from dashboard.compare.rows import taken
from dashboard.compare.stated import stated_ends, stated_nulls
from lakegate.text import one_line

_LONGEST = 80
_NO_FRACTION = ".000000"


class Looked:
    """One side's rows, read one column at a time into the side's table in duckdb."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        file_rows: FileRows,
        columns: Collection[str],
        most: int | None,
    ) -> None:
        """`name` is the side's. With more than `most` values, only a sample is read."""
        fields = [field for field in file_rows.table.schema().fields if field.name in columns]
        simple = [field for field in fields if field.field_type.is_primitive]
        self.name = name
        self.kinds = {field.name: kind_of(field.field_type) for field in fields}
        self._connection = connection
        self._fields = {field.name: field for field in simple}
        self._found = file_rows
        self._taken = taken(file_rows, simple, most)
        self.side = self._taken.side

    def profile(self, name: str, *, hidden: bool) -> Profile:
        """Return the profile of a plain column, which is now loaded; no value if `hidden`."""
        field, column, whole = self._fields[name], self._taken.column(name), self.side.whole
        type_ = column.schema.field(0).type
        counting.enter(self._connection, self.name, column)
        counts = counting.counted(self._connection, self.name, type_)
        files = [] if whole else self._found.data_files
        ends: list[Figure] = []
        if not hidden and self.kinds[name] is not Kind.BYTES:
            cut = isinstance(field.field_type, StringType)
            read = zip(stated_ends(field, files), (counts.smallest, counts.largest), strict=True)
            ends = [self._figure(text_of(known), text_of(end), cut=cut) for known, end in read]
        return Profile(
            str(field.field_type),
            counts.rows if whole else self._found.stored,
            counts.rows,
            self._figure(None if whole else stated_nulls(field, files), counts.nulls),
            Figure(counts.distinct, Origin.ESTIMATE if counts.estimated else self._read),
            counts.nans,
            *ends,
        )

    def _figure(
        self, known: int | str | None, read: int | str | None, *, cut: bool = False
    ) -> Figure:
        """Return the figure of the statistics, or else the one that was read."""
        if known is None:
            return Figure(read, self._read)
        return Figure(known, Origin.BOUND if cut or self._found.deletes else Origin.MANIFESTS)

    @property
    def _read(self) -> Origin:
        return Origin.ROWS if self.side.whole else Origin.SAMPLE


def text_of(value: pa.Scalar) -> str | None:
    """Return a value as text on one line, cut if very long; None for null."""
    if not value.is_valid:
        return None
    text = one_line(value.cast(pa.string()).as_py())
    text = text.replace(_NO_FRACTION, "") if pa.types.is_timestamp(value.type) else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
