"""One side of a comparison: what its data files' statistics and its rows tell of a column."""

from collections.abc import Collection, Iterator

import duckdb
import pyarrow as pa
from pyiceberg.types import NestedField, StringType

from dashboard.comparison_figures import Figure, Origin, Profile, Side
from dashboard.comparison_kinds import Kind, kind_of
from dashboard.comparison_profile import Counted, Values
from dashboard.comparison_rows import Files, arrow_schema, taken
from dashboard.comparison_statistics import Stated, as_arrow, stated
from lakegate.visible import one_line

_LONGEST = 80
_NO_FRACTION = ".000000"


class Looked:
    """One side's rows, looked at a column at a time."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        found: Files,
        columns: Collection[str],
        most: int | None,
    ) -> None:
        """`name` is the side's. Where there are more than `most` values, only a sample is read."""
        fields = [field for field in found.table.schema().fields if field.name in columns]
        simple = [field for field in fields if field.field_type.is_primitive]
        self.kinds = {field.name: kind_of(field.field_type) for field in fields}
        self.values = Values(connection, name)
        self._fields = {field.name: field for field in simple}
        self._types = {field.name: field.type for field in arrow_schema(simple)}
        self._found = found
        self._taken = taken(found, simple, most)

    @property
    def side(self) -> Side:
        """What its figures stand on."""
        found, read = self._found, self._taken
        return Side(found.rows, read.rows, len(found.tasks), read.files, read.whole, found.deletes)

    def profile(self, name: str, *, hidden: bool) -> Profile:
        """A column that is not nested, which `values` then holds; no value of it where `hidden`."""
        field, kind = self._fields[name], self.kinds[name]
        self.values.enter(self._taken.column(name), self._types[name])
        counted = self.values.counted()
        known = Stated() if self._taken.whole else stated(field, self._found.files)
        ends = () if hidden or kind is Kind.BYTES else self._ends(field, counted, known)
        distinct = Origin.ESTIMATE if counted.estimated else self._read
        return Profile(
            str(field.field_type),
            counted.rows if self._taken.whole else self._found.rows,
            counted.rows,
            self._figure(counted.nulls, known.nulls),
            Figure(counted.distinct, distinct),
            counted.nans,
            *ends,
        )

    def _ends(self, field: NestedField, counted: Counted, known: Stated) -> Iterator[Figure]:
        cut = isinstance(field.field_type, StringType)
        type_ = self._types[field.name]
        for read, told in ((counted.smallest, known.smallest), (counted.largest, known.largest)):
            said = None if told is None else text_of(as_arrow(told, type_))
            yield self._figure(text_of(read), said, cut=cut)

    def _figure(
        self, read: int | str | None, told: int | str | None, *, cut: bool = False
    ) -> Figure:
        """What the statistics tell, or else what was read."""
        if told is None:
            return Figure(read, self._read)
        return Figure(told, Origin.BOUND if cut or self._found.deletes else Origin.MANIFESTS)

    @property
    def _read(self) -> Origin:
        return Origin.ROWS if self._taken.whole else Origin.SAMPLE


def text_of(value: pa.Scalar) -> str | None:
    """A value as text on one line, cut where it is very long; None for null."""
    if not value.is_valid:
        return None
    text = one_line(value.cast(pa.string()).as_py())
    text = text.replace(_NO_FRACTION, "") if pa.types.is_timestamp(value.type) else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
