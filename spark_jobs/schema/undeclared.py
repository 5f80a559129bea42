"""Undeclared columns: which of them a table can hold, and with which type."""

from lakegate.contract.columns import KEY, folded
from lakegate.contract.model import Contract
from lakegate.contract.reading.properties import name_problem
from spark_jobs.schema.differences import Difference
from spark_jobs.schema.types import Array, Map, Struct, Type, parse, walk

_STORED_AS = {"": "string", "void": "string", "tinyint": "int", "smallint": "int"}
_PLAIN = (
    *("boolean", "int", "bigint", "float", "double", "string", "binary", "decimal"),
    *("date", "timestamp", "timestamp_ntz"),
)


def storable(type_: Type) -> Type:
    """Return the type of a table's column that holds values of a file's type ("" is text)."""
    match type_:
        case Struct(fields):
            return Struct(tuple((name, storable(each)) for name, each in fields))
        case Array(item):
            return Array(storable(item))
        case Map(key, value):
            return Map(storable(key), storable(value))
        case _:
            return _STORED_AS.get(type_, type_)


def problem_of(extra: Difference, contract: Contract) -> str:
    """Return why no table can hold a file's column; "" if one can."""
    if len(extra.path) == 1 and contract.provenance.has(extra.name):
        return "the table has a column of provenance of this name"
    if len(extra.path) == 1 and contract.former.has(extra.name):
        return "the contract renamed or dropped a column of this name"
    if len(extra.path) == 1 and _is_a_partition(extra.name, contract):
        return "Iceberg calls a partition of the table so"
    if not extra.name.strip():
        return "it has no name: is a delimiter too many in the header?"
    if KEY in extra.path:
        return "fields cannot be added to a map's keys"
    shape = parse(extra.found) if extra.found else ""
    problem = name_problem(extra.path[-1], top=len(extra.path) == 1)
    structs = (each for each in walk(shape) if isinstance(each, Struct))
    names = (name for each in structs for name, _ in each.fields)
    problems = [
        problem,
        _taken(extra.path, contract),
        *(name_problem(name, top=False) for name in names),
    ]
    plain = (each for each in walk(storable(shape)) if isinstance(each, str))
    strange = [type_ for type_ in plain if type_.partition("(")[0] not in _PLAIN]
    return next(
        filter(None, problems), f"a table cannot have the type {strange[0]}" if strange else ""
    )


def _taken(path: tuple[str, ...], contract: Contract) -> str:
    """Return for which column beside that place Spark takes the name; "" for none."""
    *around, name = path
    beside = (c for c in (*contract.columns, *contract.nested) if [*c.steps[:-1]] == around)
    twins = (c.name for c in beside if folded(c.steps[-1]) == folded(name))
    return next((f"Spark takes its name for {twin!r}" for twin in twins), "")


def _is_a_partition(name: str, contract: Contract) -> bool:
    return any(name.lower() in each.names for each in contract.layout.partitions or ())
