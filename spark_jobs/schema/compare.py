"""Compare a file's columns with the contract's, and apply the contract's policy. Pure.

Spark would cast silently, read a missing column as nulls and drop an extra one. Here each of these
is a finding, or, if the contract allows it, a change that the report names.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lakegate.audit.diagnosis import WrongColumns
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from spark_jobs.schema.diagnosis import Finding, diagnose
from spark_jobs.schema.differences import Difference, Kind, differences
from spark_jobs.schema.masking import hides_names, mask_names
from spark_jobs.schema.types import Array, Map, Struct, Type, parse
from spark_jobs.schema.undeclared import problem_of, storable

_KEEP = "keep"  # of extra columns, as no contract can say it: as they are


@dataclass(frozen=True)
class Comparison:
    """The result of comparing a file's columns with its contract.

    With any `findings` the file is refused, for `wrong`, which says the same as a whole. `columns`
    are those to append: the contract's, and the file's own where the contract adds them. `changes`
    are sentences for the report.
    """

    columns: tuple[Column, ...]
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()
    wrong: WrongColumns | None = None


def compare(columns: Sequence[tuple[str, Type]], contract: Contract) -> Comparison:
    """Compare a file's `columns`, in order: each a name and a type.

    A type of "" is not compared, because text formats have no types: their cells are cast one by
    one.
    """
    file = Struct(tuple(columns))
    wanted = Struct(tuple((c.name, parse(c.type)) for c in contract.columns))
    differing = list(differences(file, wanted))
    names = [name for name, _ in columns]
    hides = hides_names(names, contract)
    shown_all = mask_names(differing, contract) if hides else differing
    outdated, policy = contract.former.outdated(names), _policy(names, contract)
    findings: list[Finding] = []
    changes: list[str] = []
    for each, shown in zip(differing, shown_all, strict=True):
        if _is_allowed(each, policy, outdated):
            changes.append(_change(shown, contract))
        else:
            findings.append(_finding(each, shown, contract))
    return Comparison(
        tuple(_landed_columns(file, contract)),
        tuple(findings),
        (*changes, *_undeclared(file, contract, hides=hides)),
        diagnose(names, findings, contract, hides=hides) if findings else None,
    )


def any_columns(contract: Contract) -> Contract:
    """Return the contract for a file with any columns, which are read as they are in the file.

    Only a transform reads them. Any of them may hold values that the contract calls confidential in
    the transform's result.
    """
    quotes = contract.quotes_files
    return replace(contract, columns=(), nested=(), extra_columns=_KEEP, allow_samples=quotes)


def required_places(contract: Contract) -> set[tuple[str, ...]]:
    """Return the paths of all columns, nested ones too, in which the contract requires a value."""
    return {c.steps for c in (*contract.columns, *contract.nested) if c.required}


def undeclared(name: str, type_: Type) -> Column:
    """Return a nullable, undeclared column; it is hidden, because its values are not classified."""
    return Column(name, str(type_), logical_type="", sensitive=True)


def _policy(names: Sequence[str], contract: Contract) -> Contract:
    """Return the contract; of a file without any of its columns each must be there.

    Such a file is another's, or has another delimiter: all that it says would be left out.
    """
    declared = {column.name.lower() for column in contract.columns if column.is_declared}
    is_foreign = declared.isdisjoint(name.lower() for name in names)
    return replace(contract, missing_columns="fail") if is_foreign else contract


def _is_allowed(difference: Difference, contract: Contract, outdated: Collection[str]) -> bool:
    """Return if the contract allows it; it drops no column under an `outdated` name."""
    if difference.kind is Kind.MISSING:
        return _may_be_absent(difference.path, contract)
    if difference.kind is Kind.EXTRA:
        if contract.extra_columns == "drop":
            return len(difference.path) > 1 or difference.name.lower() not in outdated
        adds = contract.extra_columns == "add" and not problem_of(difference, contract)
        return contract.extra_columns == _KEEP or adds
    return difference.kind is Kind.WIDENING


def _may_be_absent(path: tuple[str, ...], contract: Contract) -> bool:
    if any((c.name,) == path for c in contract.columns if not c.is_declared):
        return True
    return contract.missing_columns == "null" and path not in required_places(contract)


def _landed_columns(file: Struct, contract: Contract) -> Iterator[Column]:
    """Yield the columns to append; the file's own columns come last."""
    if contract.extra_columns not in ("add", _KEEP):
        yield from contract.columns
        return
    stored = storable if contract.extra_columns == "add" else _as_it_is
    types = {name.lower(): type_ for name, type_ in file.fields}
    for column in contract.columns:
        there = types.pop(column.name.lower(), "")
        yield replace(column, type=str(_extended(there, parse(column.type))))
    for name, type_ in file.fields:
        if types.pop(name.lower(), None) is not None:
            yield undeclared(name, stored(type_))


def _extended(actual: Type, wanted: Type) -> Type:
    """Return the wanted type with the fields that only the actual type has."""
    if isinstance(actual, Struct) and isinstance(wanted, Struct):
        there = {name.lower(): type_ for name, type_ in actual.fields}
        kept = [(n, _extended(there.pop(n.lower(), ""), type_)) for n, type_ in wanted.fields]
        added = [(n, storable(type_)) for n, type_ in actual.fields if n.lower() in there]
        return Struct((*kept, *added))
    if isinstance(actual, Array) and isinstance(wanted, Array):
        return Array(_extended(actual.item, wanted.item))
    if isinstance(actual, Map) and isinstance(wanted, Map):
        return Map(wanted.key, _extended(actual.value, wanted.value))
    return wanted


def _as_it_is(type_: Type) -> Type:
    return type_ or "string"


def _undeclared(file: Struct, contract: Contract, *, hides: bool) -> Iterator[str]:
    names = {name.lower() for name, _ in file.fields}
    added = [c.name for c in contract.columns if not c.is_declared and c.name.lower() in names]
    for n, name in enumerate(added, 1):
        shown = f"#{n} of the table" if hides else name
        yield f"column {shown} is not in the contract; an earlier file added it"


def _change(difference: Difference, contract: Contract) -> str:
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.WIDENING:
        return f"column {name}: {found} widened to {wanted}"
    if difference.kind is Kind.MISSING:
        return f"column {name} is not in the file: its rows have null"
    was = f"column {name}{found and f' ({found})'} of the file is not in the contract"
    return f"{was}: left out" if contract.extra_columns == "drop" else f"{was}: added, nullable"


def _finding(difference: Difference, shown: Difference, contract: Contract) -> Finding:
    name, found, wanted = shown.name, shown.found, shown.wanted
    if difference.kind is Kind.DUPLICATE:
        message = f"the file has column {name!r} more than once"
        return Finding("DUPLICATE_COLUMN", name, message, is_plain=True)
    if difference.kind is Kind.MISSING:
        return Finding("MISSING_COLUMN", name, f"column {name!r} is missing", is_plain=True)
    if difference.kind is Kind.EXTRA:
        why = problem_of(difference, contract) if difference == shown else ""
        message = f"column {name!r} is not in the contract{why and f', and {why}'}"
        return Finding("EXTRA_COLUMN", name, message, is_plain=not why)
    message = f"column {name!r} is {found}, which does not fit {wanted}{_advice(shown)}"
    return Finding("TYPE_MISMATCH", name, message)


def _advice(difference: Difference) -> str:
    if difference.kind is Kind.IMPOSSIBLE:
        return ""
    if (difference.found, difference.wanted) == ("timestamp_ntz", "timestamp"):
        return ": it has no time zone; write it in UTC, or declare physicalType timestamp_ntz"
    return f": some values could change; declare {difference.found}, or write {difference.wanted}"
