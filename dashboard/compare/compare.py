"""Compare a file's rows on its branch with the table on main, column by column.

Manifests give the numbers of rows and nulls, and the smallest and the largest value. The other
figures are counted in rows: in all of them if they are few, or on request, else in a sample.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from access.evidence.failing_rows import concealment
from access.tables.file_rows import FileRows
from dashboard.compare import counting, distribution
from dashboard.compare.figures import (
    Column,
    Comparison,
    Kind,
    common,
)
from dashboard.compare.one_side import Looked
from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion
from lakegate.audit.report import AuditReport
from lakegate.contract.model import ContractInvalid
from lakegate.errors import LakegateError

if TYPE_CHECKING:
    from access.tables.reader import Reader


# The number of values of a side that are read without a request: about a second's work.
CELLS, ALL = (2_400_000, 600_000), (None, None)
_NESTED = "it has columns within it, which are not counted"
_HIDDEN = "Confidential: values hidden; they are counted"
_BYTES = "its values are no text: they are counted, not shown"
_OTHER = "its values are of another kind on main"
_ALIKE = "no value is there twice"
_EMPTY = "there is no value"


def compare(
    file: FileRows,
    main: FileRows | None,
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
        new = Looked(connection, counting.FILE, file, columns, cells[0])
        old = Looked(connection, counting.MAIN, main, columns, cells[1]) if main else None
        sides = [side for side in (new, old) if side]
        compared = tuple(
            _column(name, connection, sides, hidden=name not in shown) for name in columns
        )
        return Comparison(new.side, old.side if old else None, compared)


def _column(
    name: str, connection: duckdb.DuckDBPyConnection, every: Sequence[Looked], *, hidden: bool
) -> Column:
    sides = [side for side in every if name in side.kinds]
    kinds = frozenset(side.kinds[name] for side in sides)
    if Kind.NESTED in kinds:
        return Column(name, note=_NESTED)
    profiles = {side.name: side.profile(name, hidden=hidden) for side in sides}
    file, main = (profiles.get(side) for side in (counting.FILE, counting.MAIN))
    column, kind = Column(name, file, main), common(kinds)
    if hidden or not kind or kind is Kind.BYTES:
        return replace(column, note=_HIDDEN if hidden else _BYTES if kind else _OTHER)
    drawn = distribution.picture(connection, kind, list(profiles))
    has_value = any(each.distinct.value for each in profiles.values())
    return replace(column, picture=drawn, note="" if drawn else _ALIKE if has_value else _EMPTY)


Reads = Callable[[str], "Reader"]


def load(
    reads: Reads, main: str, report: AuditReport, shown: Collection[str], *, whole: bool
) -> Comparison:
    """Return a comparison of a report's rows with main as it was at the hash `main`.

    For a change, that is the whole table after it. Columns outside `shown` have no values. Raises
    LakegateError: UNKNOWN_REFERENCE when the branch is gone, UNREADABLE_ROWS.
    """
    at, known = f"{report.branch}@{report.audited_hash}", {name.lower() for name in shown}
    with ExitStack() as stack:
        table = stack.enter_context(reads(at).opened(report.table))
        old = reads(f"{MAIN}@{main}")
        there = stack.enter_context(old.opened(report.table)) if old.has(report.table) else None
        names = [field.name for field in table.schema().fields]
        may = [name for name in names if name.lower() in known]
        file = FileRows.all(table) if report.is_mixed else FileRows.added(table)
        try:
            before = FileRows.all(there) if there else None
            return compare(file, before, names, may, ALL if whole else CELLS)
        except (duckdb.Error, pa.ArrowException) as error:
            message = f"the rows cannot be read: {error}"
            raise LakegateError("UNREADABLE_ROWS", message) from error


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
