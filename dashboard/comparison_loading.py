"""Which rows and columns the comparison of an ingestion's branch with main is of."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from dashboard.comparison import ALL, CELLS, compare
from dashboard.comparison_figures import Comparison
from dashboard.comparison_rows import Files
from functions.catalog import MAIN
from functions.ingestion import Ingestion
from functions.storage import Missing
from functions.world import World
from lakegate.contract import ContractInvalid
from lakegate.errors import LakegateError
from lakegate.report import AuditReport
from reading.concealment import concealment

if TYPE_CHECKING:
    from reading.reader import Reader

Reads = Callable[[str], "Reader"]


def load(
    reads: Reads, main: str, report: AuditReport, shown: Collection[str], *, whole: bool
) -> Comparison:
    """Compare what a report is about with main as it was at the hash `main`.

    Of a change that is the whole table as it is after it. No value is told of a column that is not
    in `shown`. Raises LakegateError: UNKNOWN_REFERENCE when the branch is gone, UNREADABLE_ROWS.
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


def shown_columns(world: World, ingestion: Ingestion, table: str) -> frozenset[str]:
    """The columns whose values people may see: those that the contract names and calls harmless,

    as it was when it judged the file, and as it is now: main's rows are those of today. None at all
    where it allows no samples, is gone, or is not known.
    """
    key, version = _contract(ingestion, table)
    if not key:
        return frozenset()
    try:
        contract = world.lake.contract_at(key, version).contract
        hidden = concealment(world, contract, key)
    except (Missing, ContractInvalid):
        return frozenset()
    return frozenset(each.name for each in contract.columns if not hidden.hides(each.name))


def knows_contract(ingestion: Ingestion, table: str) -> bool:
    """Whether it is known by which contract a table's rows were judged.

    It is not where the ledger was rebuilt from the report alone.
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
