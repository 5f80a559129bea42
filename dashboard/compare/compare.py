"""Compare a file's rows on its branch with the table on main, column by column.

Manifests give the numbers of rows and nulls, and the smallest and the largest value. The other
figures are counted in rows: in all of them if they are few, or on request, else in a sample.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from pyiceberg.types import NestedField, StringType

from access.failing_rows import concealment
from dashboard.compare.figures import (
    Column,
    Comparison,
    Figure,
    Kind,
    Origin,
    Profile,
    Side,
    common,
    kind_of,
)
from dashboard.compare.profile import Counted, Values, picture
from dashboard.compare.rows import Files, arrow_schema, taken
from dashboard.compare.statistics import Stated, as_arrow, stated
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion
from lakegate.contract.model import ContractInvalid
from lakegate.errors import LakegateError
from lakegate.report import AuditReport
from lakegate.text import one_line

if TYPE_CHECKING:
    from access.tables import Reader


# One side of a comparison: figures of a column from statistics and rows.

_LONGEST = 80
_NO_FRACTION = ".000000"


class Looked:
    """One side's rows, read one column at a time."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        found: Files,
        columns: Collection[str],
        most: int | None,
    ) -> None:
        """`name` is the side's. With more than `most` values, only a sample is read."""
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
        """Return the basis of its figures."""
        found, read = self._found, self._taken
        return Side(found.rows, read.rows, len(found.tasks), read.files, read.whole, found.deletes)

    def profile(self, name: str, *, hidden: bool) -> Profile:
        """Return the profile of a plain column, loaded into `values`; no value if `hidden`."""
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
        for read, stated_value in (
            (counted.smallest, known.smallest),
            (counted.largest, known.largest),
        ):
            text = None if stated_value is None else text_of(as_arrow(stated_value, type_))
            yield self._figure(text_of(read), text, cut=cut)

    def _figure(
        self, read: int | str | None, stated_value: int | str | None, *, cut: bool = False
    ) -> Figure:
        """Return the figure of the statistics, or else the one that was read."""
        if stated_value is None:
            return Figure(read, self._read)
        return Figure(
            stated_value, Origin.BOUND if cut or self._found.deletes else Origin.MANIFESTS
        )

    @property
    def _read(self) -> Origin:
        return Origin.ROWS if self._taken.whole else Origin.SAMPLE


def text_of(value: pa.Scalar) -> str | None:
    """Return a value as text on one line, cut if very long; None for null."""
    if not value.is_valid:
        return None
    text = one_line(value.cast(pa.string()).as_py())
    text = text.replace(_NO_FRACTION, "") if pa.types.is_timestamp(value.type) else text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# The number of values of a side that are read without a request: about a second's work.
CELLS, ALL = (2_400_000, 600_000), (None, None)
_NESTED = "it has columns within it, which are not counted"
_HIDDEN = "Confidential: values hidden; they are counted"
_BYTES = "its values are no text: they are counted, not shown"
_OTHER = "its values are of another kind on main"
_ALIKE = "no value is there twice"
_EMPTY = "there is no value"


def compare(
    file: Files,
    main: Files | None,
    columns: Sequence[str],
    shown: Collection[str],
    cells: tuple[int | None, int | None] = CELLS,
) -> Comparison:
    """Return a comparison of the named columns, without values of those not in `shown`.

    Beyond a side's number of `cells`, only a sample is read; None reads all rows. Raises
    LakegateError NO_SAMPLE.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        new = Looked(connection, "file", file, columns, cells[0])
        old = Looked(connection, "main", main, columns, cells[1]) if main else None
        compared = tuple(_column(name, new, old, hidden=name not in shown) for name in columns)
        return Comparison(new.side, old.side if old else None, compared)


def _column(name: str, file: Looked, main: Looked | None, *, hidden: bool) -> Column:
    new = file if name in file.kinds else None
    old = main if main and name in main.kinds else None
    sides = [side for side in (new, old) if side]
    kinds = frozenset(side.kinds[name] for side in sides)
    if Kind.NESTED in kinds:
        return Column(name, note=_NESTED)
    column = Column(
        name,
        new.profile(name, hidden=hidden) if new else None,
        old.profile(name, hidden=hidden) if old else None,
    )
    kind = common(kinds)
    if hidden or not kind or kind is Kind.BYTES:
        return replace(column, note=_HIDDEN if hidden else _BYTES if kind else _OTHER)
    drawn = picture(kind, new.values if new else None, old.values if old else None)
    note = _ALIKE if any(side.values.present for side in sides) else _EMPTY
    return replace(column, picture=drawn, note="" if drawn else note)


# The rows and columns of a comparison of an ingestion's branch with main.

Reads = Callable[[str], "Reader"]


def load(
    reads: Reads, main: str, report: AuditReport, shown: Collection[str], *, whole: bool
) -> Comparison:
    """Return a comparison of a report's rows with main as it was at the hash `main`.

    For a change, that is the whole table after it. Columns outside `shown` have no values. Raises
    LakegateError: UNKNOWN_REFERENCE when the branch is gone, UNREADABLE_ROWS.
    """
    with ExitStack() as stack:
        at = f"{report.branch}@{report.audited_hash}"
        table = stack.enter_context(reads(at).opened(report.table))
        old = reads(f"{MAIN}@{main}")
        there = stack.enter_context(old.opened(report.table)) if old.has(report.table) else None
        stack.enter_context(_readable())
        file = Files.all(table) if report.effect else Files.added(table)
        names = [field.name for field in table.schema().fields]
        known = {name.lower() for name in shown}
        may = [name for name in names if name.lower() in known]
        return compare(
            file, Files.all(there) if there else None, names, may, ALL if whole else CELLS
        )


def shown_columns(adapters: Adapters, ingestion: Ingestion, table: str) -> frozenset[str]:
    """Return the columns whose values may be shown: those that the contract declares public.

    Both the contract at the time of the audit and the current one must allow it, as main's rows are
    current ones. No column if the contract allows no samples, is gone, or is unknown.
    """
    key, version = _contract(ingestion, table)
    if not key:
        return frozenset()
    try:
        contract = adapters.lake.contract_at(key, version).contract
        hidden = concealment(adapters, contract, key)
    except (Missing, ContractInvalid):
        return frozenset()
    return frozenset(each.name for each in contract.columns if not hidden.hides(each.name))


def knows_contract(ingestion: Ingestion, table: str) -> bool:
    """Return if the contract of a table's audit is known.

    It is unknown if the ledger was rebuilt from the report alone.
    """
    return bool(_contract(ingestion, table)[0])


def _contract(ingestion: Ingestion, table: str) -> tuple[str, str]:
    tables = [part.table for part in ingestion.parts] or [table]
    return dict(zip(tables, ingestion.contracts, strict=True)).get(table, ("", ""))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        message = f"the rows cannot be read: {error}"
        raise LakegateError("UNREADABLE_ROWS", message) from error
