"""Which columns that no contract declares a table can have, and of which type. Pure."""

from collections.abc import Iterator

from lakegate.columns import KEY
from lakegate.contract_columns import name_problem
from spark_jobs.ddl import Array, Map, Struct, Type, parse
from spark_jobs.differences import Difference

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
    problems = [problem, *(name_problem(name, top=False) for name in _names(found))]
    strange = [type_ for type_ in _leaves(storable(found)) if type_.partition("(")[0] not in _PLAIN]
    return next(filter(None, problems), f"{strange[0]} is no type of a table's" if strange else "")


def _names(type_: Type) -> Iterator[str]:
    if isinstance(type_, Struct):
        yield from (name for name, _ in type_.fields)
    for part in _parts(type_):
        yield from _names(part)


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
