"""A file's columns against the contract's, and what the contract's policy makes of it. Pure.

Spark would cast silently, read a missing column as nulls and drop an extra one; here each of them
is a finding, or, where the contract allows it, a change that the report names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakegate.contract.columns import KEY, Column
from lakegate.contract.model import Contract
from lakegate.contract.reading.properties import name_problem
from spark_jobs.errors import numbered
from spark_jobs.schema.differences import Difference, Kind, differences
from spark_jobs.schema.types import Array, Map, Struct, Type, parse

# Which columns that no contract declares a table can have, and of which type. Pure.

_AS = {"": "string", "void": "string", "tinyint": "int", "smallint": "int"}
_PLAIN = (
    *("boolean", "int", "bigint", "float", "double", "string", "binary", "decimal"),
    *("date", "timestamp", "timestamp_ntz"),
)


def storable(type_: Type) -> Type:
    """The type of the table's column for values of a file's type; a text's cells are ""."""
    match type_:
        case Struct(fields):
            return Struct(tuple((name, storable(each)) for name, each in fields))
        case Array(item):
            return Array(storable(item))
        case Map(key, value):
            return Map(storable(key), storable(value))
        case _:
            return _AS.get(type_, type_)


def why_not(extra: Difference) -> str:
    """Why no table can have a file's column, in a few words; "" where one can."""
    if KEY in extra.path:
        return "the keys of a map cannot grow"
    found = parse(extra.found) if extra.found else ""
    problem = name_problem(extra.path[-1], top=len(extra.path) == 1)
    problems = [problem, *(name_problem(name, top=False) for name in _storable_names(found))]
    strange = [type_ for type_ in _leaves(storable(found)) if type_.partition("(")[0] not in _PLAIN]
    return next(filter(None, problems), f"{strange[0]} is no type of a table's" if strange else "")


def _storable_names(type_: Type) -> Iterator[str]:
    if isinstance(type_, Struct):
        yield from (name for name, _ in type_.fields)
    for part in _parts(type_):
        yield from _storable_names(part)


def _leaves(type_: Type) -> Iterator[str]:
    if isinstance(type_, str):
        yield type_
    for part in _parts(type_):
        yield from _leaves(part)


def _parts(type_: Type) -> tuple[Type, ...]:
    match type_:
        case Struct(fields):
            return tuple(each for _, each in fields)
        case Array(item):
            return (item,)
        case Map(key, value):
            return (key, value)
        case _:
            return ()


_SHOWN = 300
_KEEP = "keep"  # of extra columns, as no contract can say it: as they are


@dataclass(frozen=True)
class Finding:
    """One way in which a file's columns break the contract; `code` is the reason's code."""

    code: str
    column: str
    message: str


@dataclass(frozen=True)
class Landing:
    """What becomes of a file's columns.

    With any of `findings` the file is refused. `columns` are those that land: the contract's, with
    the file's own where the contract adds them. `changes` are sentences for the report.
    """

    columns: tuple[Column, ...]
    findings: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()


def compare(found: Sequence[tuple[str, str]], contract: Contract) -> Landing:
    """What becomes of a file whose columns are `found`: (name, Spark SQL type), in order.

    A type of "" is not compared: text formats have no types, their cells are cast one by one.
    Raises ValueError when a type is none.
    """
    file = Struct(tuple((name, parse(type_) if type_ else "") for name, type_ in found))
    wanted = Struct(tuple((c.name, parse(c.type)) for c in contract.columns))
    differing = list(differences(file, wanted))
    told = list(zip(differing, numbered(differing, contract), strict=True))
    refused = [(each, as_told) for each, as_told in told if not _is_allowed(each, contract)]
    return Landing(
        tuple(_landing(file, contract)),
        tuple(_finding(each, as_told, file, contract) for each, as_told in refused),
        (
            *[_change(as_told, contract) for each, as_told in told if _is_allowed(each, contract)],
            *_undeclared(file, contract),
        ),
    )


def of_any_columns(contract: Contract) -> Contract:
    """The contract for a file that may have whatever columns: all are read, as the file has them.

    They are for a transform and for no table. What the contract conceals of its result may be in
    any of them.
    """
    quotes = contract.quotes_files
    return replace(contract, columns=(), nested=(), extra_columns=_KEEP, allow_samples=quotes)


def required_places(contract: Contract) -> set[tuple[str, ...]]:
    """The ways to all columns, nested ones too, in which the contract requires a value."""
    return {c.steps for c in (*contract.columns, *contract.nested) if c.required}


def undeclared(name: str, type_: Type) -> Column:
    """A nullable column that no contract declares; shown to nobody, as nobody classified it."""
    return Column(name, str(type_), logical_type="", sensitive=True)


def _is_allowed(difference: Difference, contract: Contract) -> bool:
    if difference.kind is Kind.MISSING:
        return _may_be_absent(difference.path, contract)
    if difference.kind is Kind.EXTRA:
        adds = contract.extra_columns == "add" and not why_not(difference)
        return contract.extra_columns in ("drop", _KEEP) or adds
    return difference.kind is Kind.WIDENING


def _may_be_absent(path: tuple[str, ...], contract: Contract) -> bool:
    if any((c.name,) == path for c in contract.columns if not c.is_declared):
        return True
    return contract.missing_columns == "null" and path not in required_places(contract)


def _landing(file: Struct, contract: Contract) -> Iterator[Column]:
    """The columns that land; those of the file's own come last."""
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


def _extended(found: Type, wanted: Type) -> Type:
    """The wanted type, with the fields that only the found one has."""
    if isinstance(found, Struct) and isinstance(wanted, Struct):
        there = {name.lower(): type_ for name, type_ in found.fields}
        kept = [(n, _extended(there.pop(n.lower(), ""), type_)) for n, type_ in wanted.fields]
        added = [(n, storable(type_)) for n, type_ in found.fields if n.lower() in there]
        return Struct((*kept, *added))
    if isinstance(found, Array) and isinstance(wanted, Array):
        return Array(_extended(found.item, wanted.item))
    if isinstance(found, Map) and isinstance(wanted, Map):
        return Map(wanted.key, _extended(found.value, wanted.value))
    return wanted


def _as_it_is(type_: Type) -> Type:
    return type_ or "string"


def _undeclared(file: Struct, contract: Contract) -> Iterator[str]:
    names = {name.lower() for name, _ in file.fields}
    added = [c.name for c in contract.columns if not c.is_declared and c.name.lower() in names]
    for n, name in enumerate(added, 1):
        shown = name if contract.names_columns else f"#{n} of its table's"
        yield f"column {shown} is not in the contract; an earlier file added it"


def _change(difference: Difference, contract: Contract) -> str:
    name, found, wanted = difference.name, difference.found, difference.wanted
    if difference.kind is Kind.WIDENING:
        return f"column {name}: {found} widened to {wanted}"
    if difference.kind is Kind.MISSING:
        return f"column {name} is not in the file: null in its rows"
    was = f"column {name}{found and f' ({found})'} of the file is not in the contract"
    return f"{was}: left out" if contract.extra_columns == "drop" else f"{was}: added, nullable"


def _finding(difference: Difference, told: Difference, file: Struct, contract: Contract) -> Finding:
    name, found, wanted = told.name, told.found, told.wanted
    if difference.kind is Kind.DUPLICATE:
        return Finding("DUPLICATE_COLUMN", name, f"column {name!r} is there more than once")
    if difference.kind is Kind.MISSING:
        message = f"column {name!r} is missing; the file has: {_names(file, contract)}"
        return Finding("MISSING_COLUMN", name, message)
    if difference.kind is Kind.EXTRA:
        why = why_not(difference) if difference == told else ""
        message = f"column {name!r} is not in the contract{why and f', and {why}'}"
        return Finding("EXTRA_COLUMN", name, message)
    message = f"column {name!r} is {found}, which does not fit {wanted}{_advice(told)}"
    return Finding("TYPE_MISMATCH", name, message)


def _names(file: Struct, contract: Contract) -> str:
    """The names of the file's columns, of those that may be told, and how many others it has."""
    names = [name for name, _ in file.fields]
    if contract.names_columns:
        return ", ".join(names)[:_SHOWN] or "none"
    declared = {c.name.lower() for c in contract.columns if c.is_declared}
    own = [name for name in names if name.lower() in declared]
    others = f"{len(names) - len(own)} that the contract has not"
    return ", ".join([*own, others] if len(own) < len(names) else own) or "none"


def _advice(difference: Difference) -> str:
    if difference.kind is Kind.IMPOSSIBLE:
        return ""
    if (difference.found, difference.wanted) == ("timestamp_ntz", "timestamp"):
        return ": it has no time zone; write it in UTC, or declare physicalType timestamp_ntz"
    return f": some values could change; declare {difference.found}, or write the file so"
