"""Evolve a table on the file's branch to the columns of its contract. Pure.

Iceberg can add nullable columns, widen types, rename and drop columns without rewriting rows. A
column is renamed or dropped only where the contract says so. Any other difference is refused with
advice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lakegate.contract.columns import ITEM, KEY, VALUE, quoted
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from spark_jobs.schema.compare import required_places
from spark_jobs.schema.differences import Difference, Kind, differences
from spark_jobs.schema.masking import mask_names
from spark_jobs.schema.name_mapping import PROPERTY
from spark_jobs.schema.types import Struct, parse

# Types that Iceberg widens (specification, "Schema evolution"), besides decimals of one scale.
_PROMOTED = {("int", "bigint"), ("float", "double")}
_STEPS = {ITEM: "element", VALUE: "value"}


@dataclass(frozen=True)
class ColumnChange:
    """A change of a table's columns: its sentence for the report, its statement for Spark."""

    sentence: str
    statement: str
    renames: bool = False


def column_changes(
    table: str,
    there: Struct,
    not_null: Sequence[tuple[str, ...]],
    contract: Contract,
    sources: Collection[str] = (),
    identifiers: Sequence[str] = (),
    mapped: Collection[tuple[str, ...]] = (),
) -> list[ColumnChange]:
    """Return the changes that give the table, with the columns `there`, the contract's columns.

    NOT NULL is lifted from the columns `not_null`: a bad row must reach the branch, and only the
    audit decides about it. By the columns `sources` the table is, or was, partitioned or sorted:
    they cannot be dropped. From its `identifiers`, Iceberg's identifier fields, NOT NULL cannot be
    lifted. By the names `mapped`, files without field ids are read, so none is a new column's.
    Raises Permanent TABLE_MISMATCH where more than new nullable columns, wider types and what the
    contract renames or drops is needed.
    """
    _require_none(identifiers, contract)
    renamed, dropped = _renamed(there, contract), _dropped(there, contract)
    _require_unused(dropped, sources, contract)
    there = Struct(
        tuple((renamed.get(n, n), type_) for n, type_ in there.fields if n not in dropped)
    )
    not_null = [
        (renamed.get(path[0], path[0]), *path[1:]) for path in not_null if path[0] not in dropped
    ]
    wanted = Struct(tuple((c.name, parse(c.type)) for c in contract.table_columns))
    differing = list(differences(there, wanted))
    if refusals := [why for each in differing if (why := _refusal(each, contract, mapped))]:
        message = f"the table {contract.table} cannot be changed to the contract's columns: "
        raise Permanent("TABLE_MISMATCH", (message + "; ".join(refusals))[:2000])
    shown = differing if contract.names_columns else mask_names(differing, contract)
    return [
        *[_renaming(table, old, new) for old, new in renamed.items()],
        *[_dropping(table, name) for name in dropped],
        *[_lifted(table, path) for path in not_null],
        *[
            ColumnChange(_sentence(sentence), _statement(table, difference))
            for difference, sentence in zip(differing, shown, strict=True)
        ],
    ]


def _renamed(there: Struct, contract: Contract) -> dict[str, str]:
    """Return the columns to rename, which have their former name and not yet the present one."""
    present = {name.lower() for name, _ in there.fields}
    former = {old.lower(): new for old, new in contract.former.renamed.items()}
    return {
        name: former[name.lower()]
        for name, _ in there.fields
        if name.lower() in former and former[name.lower()].lower() not in present
    }


def _dropped(there: Struct, contract: Contract) -> list[str]:
    wanted = {name.lower() for name in contract.former.dropped}
    return [name for name, _ in there.fields if name.lower() in wanted]


def _require_unused(dropped: Sequence[str], sources: Collection[str], contract: Contract) -> None:
    if used := [name for name in dropped if name in sources]:
        message = (
            f"the table {contract.table} cannot lose {', '.join(used)}: it is, or once was, "
            "partitioned or sorted by it. Keep the column, with missingColumns: null"
        )
        raise Permanent("TABLE_MISMATCH", message)


def _require_none(identifiers: Sequence[str], contract: Contract) -> None:
    if identifiers:
        names = ", ".join(identifiers)
        message = (
            f"the table {contract.table} cannot take a bad row as evidence: {names} must have a "
            "value in each row, as its identifier fields (a primary key of Flink's). Drop these: "
            f"ALTER TABLE {contract.table} DROP IDENTIFIER FIELDS {names}, in Spark with Iceberg's "
            "extensions"
        )
        raise Permanent("TABLE_MISMATCH", message)


def _renaming(table: str, old: str, new: str) -> ColumnChange:
    statement = f"ALTER TABLE {table} RENAME COLUMN {quoted(old)} TO {quoted(new)}"
    return ColumnChange(f"table: column {old} renamed to {new}", statement, renames=True)


def _dropping(table: str, name: str) -> ColumnChange:
    statement = f"ALTER TABLE {table} DROP COLUMN {quoted(name)}"
    return ColumnChange(f"table: column {name} dropped", statement)


def _refusal(
    difference: Difference, contract: Contract, mapped: Collection[tuple[str, ...]]
) -> str:
    """Return why the table cannot be changed at this path, with advice; "" if it can."""
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.EXTRA:
        return (
            f"the contract lacks its column {name!r}: name it as formerName of the column that it "
            "became, or in droppedColumns; or declare it, and set missingColumns: null so that "
            "files need not have it"
        )
    if difference.kind is Kind.MISSING:
        if _as_mapped(difference.path) in mapped:
            return (
                f"the new column {name!r} would have values of an earlier one, which older files "
                f"have under this name ({PROPERTY}): give it another name"
            )
        if difference.path in required_places(contract):
            return (
                f"the new column {name!r} is required, but the table's rows have no value: remove "
                "required, and require a value in new files by a rule (nullValues mustBe 0)"
            )
    elif (found, wanted) not in _PROMOTED and not _longer(difference):
        return (
            f"its column {name!r} is {found} and cannot become {wanted}: declare {found} again, "
            "or a new column with another name"
        )
    return f"{name!r} is in a map's keys, which cannot change" if KEY in difference.path else ""


def _as_mapped(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_STEPS.get(step, step).lower() for step in path)


def _longer(difference: Difference) -> bool:
    """Return if a decimal only gets more digits before the decimal point."""
    found, wanted = (type_.rpartition(",") for type_ in (difference.found, difference.wanted))
    decimals = found[0].startswith("decimal(") and found[2] == wanted[2]
    return decimals and difference.kind is Kind.WIDENING


def _sentence(difference: Difference) -> str:
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.MISSING:
        return f"table: column {name} added as {wanted}"
    return f"table: column {name} widened from {found} to {wanted}"


def _statement(table: str, difference: Difference) -> str:
    column, wanted = _address(difference.path), difference.wanted
    if difference.kind is Kind.MISSING:
        return f"ALTER TABLE {table} ADD COLUMNS ({column} {wanted})"
    return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wanted}"


def _lifted(table: str, path: tuple[str, ...]) -> ColumnChange:
    statement = f"ALTER TABLE {table} ALTER COLUMN {_address(path)} DROP NOT NULL"
    return ColumnChange(f"table: NOT NULL lifted from column {'.'.join(path)}", statement)


def _address(path: tuple[str, ...]) -> str:
    """Return a nested column as Spark's ALTER TABLE addresses it."""
    return ".".join(_STEPS.get(step) or quoted(step) for step in path)
