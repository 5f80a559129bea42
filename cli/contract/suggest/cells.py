"""Hold the cells of a text file as texts, each row with its line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from access.tables.check_sql import POSITION
from cli.contract.suggest.columns import ColumnProfile, Outlier
from lakegate.errors import LakegateError
from lakegate.limits import DEFAULTS

_BATCH = 50_000  # rows
_SHARE = 100  # one bad row in so many is an outlier; more are the file's form
_SHOWN = 5


@dataclass(frozen=True)
class Cells:
    """A sample's cells as texts, and its format and reader options as in a contract.

    `table` has one text column for each plain column, and the rows' lines in `POSITION`. `shapes`
    are the possible ones of each. `nested` are columns of objects and lists. `left_out` says which
    columns no contract can have. `bad` are the rows that the job cannot read. `order` names the
    columns as the file has them. `unit` is what `POSITION` counts. `strange` are the cells of
    another kind than 99 % of their column, where the table has null.
    """

    format: str
    options: Mapping[str, str]
    table: pa.Table
    shapes: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...] = ()
    bad: tuple[Outlier, ...] = ()
    nested: tuple[ColumnProfile, ...] = ()
    order: tuple[str, ...] = ()
    unit: str = "line"
    strange: Mapping[str, tuple[Outlier, ...]] = field(default_factory=dict)


def table_of(
    rows: Sequence[Sequence[str | None]], names: Sequence[str], lines: Sequence[int]
) -> pa.Table:
    """Return the rows' texts as columns, with their lines; raises as `require_few`."""
    require_few(names)
    schema = pa.schema([*((name, pa.string()) for name in names), (POSITION, pa.int64())])
    return pa.Table.from_batches(list(_batches(rows, lines, schema)), schema)


def _batches(
    rows: Sequence[Sequence[str | None]], lines: Sequence[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), _BATCH):
        part = slice(first, first + _BATCH)
        columns = [pa.array(column, pa.string()) for column in zip(*rows[part], strict=True)]
        yield pa.record_batch([*columns, pa.array(lines[part], pa.int64())], schema)


def refuse_bad_rows(bad: Sequence[Outlier], good: int, why: tuple[str, str]) -> None:
    """Raise LakegateError UNREADABLE if bad rows are more than outliers."""
    if len(bad) * _SHARE > len(bad) + good:
        lines = ", ".join(str(row.line) for row in bad[:_SHOWN])
        more = ", …" if len(bad) > _SHOWN else ""
        raise refusal(f"{why[0]} (see {lines}{more})", why[1])


def refusal(cause: str, remedy: str) -> LakegateError:
    """Return the error for a sample that cannot be ingested; the file's name comes before it."""
    return LakegateError("UNREADABLE", f"{cause}\n{remedy}")


def require_few(names: Sequence[str]) -> None:
    """Refuse more columns than a stage reads by default: to profile them takes very long.

    Raises LakegateError UNREADABLE.
    """
    if len(names) > DEFAULTS.most_columns:
        cause = (
            f"has {len(names):,} columns, more than the {DEFAULTS.most_columns:,} of MostColumns"
        )
        raise refusal(cause, "Split it, or write the values of many columns into rows.")
