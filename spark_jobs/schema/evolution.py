"""How a table grows to what its contract asks for, on the file's branch.

A new nullable column and a wider type are all that Iceberg can do without touching a row; whatever
else differs is refused with what to do. The decisions are pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakegate.contract.columns import ITEM, KEY, VALUE, quoted
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from spark_jobs.errors import numbered
from spark_jobs.schema.compare import required_places
from spark_jobs.schema.differences import Difference, Kind, differences
from spark_jobs.schema.types import Struct, parse

# What Iceberg widens (its specification, "Schema evolution"), decimals of one scale aside.
_PROMOTED = {("int", "bigint"), ("float", "double")}
_STEPS = {ITEM: "element", VALUE: "value"}


@dataclass(frozen=True)
class Growth:
    """One change of a table's columns: its sentence for the report, its statement for Spark."""

    told: str
    statement: str


def growth(
    table: str, there: Struct, not_null: Sequence[tuple[str, ...]], contract: Contract
) -> list[Growth]:
    """What makes the table behind the name `table`, with the columns `there`, the contract's.

    `not_null` are the places of the table that allow no null: they are lifted, as a bad row must
    reach the branch to be evidence, and the audit decides. Raises Permanent TABLE_MISMATCH where
    that takes more than new nullable columns and wider types.
    """
    wanted = Struct(tuple((c.name, parse(c.type)) for c in contract.columns))
    differing = list(differences(there, wanted))
    if refusals := [why for each in differing if (why := _refusal(each, contract))]:
        message = f"the table {contract.table} cannot take the contract's columns: "
        raise Permanent("TABLE_MISMATCH", (message + "; ".join(refusals))[:2000])
    return [
        *[_lifted(table, path) for path in not_null],
        *[
            Growth(_told(told), _grown(table, difference))
            for difference, told in zip(differing, numbered(differing, contract), strict=True)
        ],
    ]


def _refusal(difference: Difference, contract: Contract) -> str:
    """Why the table cannot be changed at this place, and what to do; "" where it can."""
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.EXTRA:
        return (
            f"it has a column {name!r}, which the contract has not: keep it there, and set "
            "missingColumns: null, so that files may do without (a renamed column is a new one)"
        )
    if difference.kind is Kind.MISSING:
        if difference.path in required_places(contract):
            return (
                f"the new column {name!r} is required, and its earlier rows have no value there: "
                "leave out required, and ask new files for a value by a rule (nullValues mustBe 0)"
            )
    elif (found, wanted) not in _PROMOTED and not _longer(difference):
        return (
            f"its column {name!r} is {found} and cannot become {wanted}: declare {found} again, "
            "or a new column under another name"
        )
    return f"{name!r} lies in a map's keys, which cannot change" if KEY in difference.path else ""


def _longer(difference: Difference) -> bool:
    """Whether a decimal only gets more digits before its point."""
    found, wanted = (type_.rpartition(",") for type_ in (difference.found, difference.wanted))
    decimals = found[0].startswith("decimal(") and found[2] == wanted[2]
    return decimals and difference.kind is Kind.WIDENING


def _told(difference: Difference) -> str:
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.MISSING:
        return f"table: column {name} added as {wanted}"
    return f"table: column {name} widened from {found} to {wanted}"


def _grown(table: str, difference: Difference) -> str:
    column, wanted = _address(difference.path), difference.wanted
    if difference.kind is Kind.MISSING:
        return f"ALTER TABLE {table} ADD COLUMNS ({column} {wanted})"
    return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wanted}"


def _lifted(table: str, path: tuple[str, ...]) -> Growth:
    statement = f"ALTER TABLE {table} ALTER COLUMN {_address(path)} DROP NOT NULL"
    return Growth(f"table: NOT NULL lifted from column {'.'.join(path)}", statement)


def _address(path: tuple[str, ...]) -> str:
    """A nested column as Spark's ALTER TABLE addresses it."""
    return ".".join(_STEPS.get(step) or quoted(step) for step in path)
