"""A JSON value as a value of a column's type, nested or not: exactly, or not at all.

Pure: Spark SQL text over a `variant`, which keeps what Spark's reader of JSON forgets: whether a
value was written as text or as a number, and with which digits.
"""

from spark_jobs.ddl import Array, Map, Struct, Type
from spark_jobs.formats.cells import IS_NO_NUMBER, Cell, read_text
from spark_jobs.formats.lines import literal
from spark_jobs.quoting import Quoting

_FLOATING = ("float", "double")


def field(value: str, key: str) -> str:
    """The value under an object's key, as a variant: SQL null where there is none."""
    if '"' in key and "'" in key:
        why = "has both kinds of quotes in it, and cannot be read from JSON"
        raise Quoting("UNREADABLE_TYPE", f"a key {why}", f"the key {key} {why}")
    path = f"$['{key}']" if '"' in key else f'$["{key}"]'
    return f"try_variant_get({value}, {literal(path)}, 'variant')"


def read_value(value: str, type_: Type, depth: int = 0) -> Cell:
    """The variant that the SQL expression `value` is, as a value of the type.

    An object's key that its struct does not have makes it broken. JSON's null is a null.
    """
    match type_:
        case Struct():
            cell = _struct(value, type_, depth)
        case Array():
            cell = _array(value, type_, depth)
        case Map():
            cell = _map(value, type_, depth)
        case _:
            cell = _scalar(value, str(type_))
    there = f"{value} IS NOT NULL AND NOT is_variant_null({value})"
    return Cell(cell.value, f"({there} AND ({cell.broken}))")


def _scalar(value: str, type_: str) -> Cell:
    kind = f"schema_of_variant({value})"
    text = f"try_variant_get({value}, '$', 'string')"
    cell = read_text(text, type_)
    if type_ in ("int", "bigint"):
        fits = f"{kind} = 'BIGINT'"
    elif type_ in _FLOATING:
        # A number that turned out infinite was too large.
        fits = f"({kind} = 'STRING') = ({IS_NO_NUMBER.format(text=text)})"
    elif type_.startswith("decimal"):
        fits = f"{kind} <> 'DOUBLE'"  # digits may have been lost
    elif type_ == "boolean":
        fits = f"{kind} = 'BOOLEAN'"
    else:
        fits = f"{kind} = 'STRING'"
    return Cell(cell.value, f"NOT {fits} OR {text} IS NULL OR {cell.broken}")


def _struct(value: str, type_: Struct, depth: int) -> Cell:
    members = f"try_variant_get({value}, '$', 'map<string,variant>')"
    cells = [(name, read_value(field(value, name), each, depth)) for name, each in type_.fields]
    named = ", ".join(f"{literal(name)}, {cell.value}" for name, cell in cells)
    known = ", ".join(literal(name) for name, _ in cells)
    strange = f"size(array_except(map_keys({members}), array({known}))) > 0"
    broken = " OR ".join([f"{members} IS NULL", strange, *(cell.broken for _, cell in cells)])
    return Cell(f"CASE WHEN {members} IS NOT NULL THEN named_struct({named}) END", broken)


def _array(value: str, type_: Array, depth: int) -> Cell:
    item = f"e{depth}"
    items = f"try_variant_get({value}, '$', 'array<variant>')"
    cell = read_value(item, type_.item, depth + 1)
    broken = f"{items} IS NULL OR exists({items}, {item} -> {cell.broken})"
    return Cell(f"transform({items}, {item} -> {cell.value})", broken)


def _map(value: str, type_: Map, depth: int) -> Cell:
    item = f"e{depth}"
    members = f"try_variant_get({value}, '$', 'map<string,variant>')"
    key = read_text(f"k{depth}", str(type_.key))
    cell = read_value(item, type_.value, depth + 1)
    names = f"exists(map_keys({members}), k{depth} -> {key.broken})"
    values = f"exists(map_values({members}), {item} -> {cell.broken})"
    entries = f"transform_values({members}, (k{depth}, {item}) -> {cell.value})"
    renamed = f"transform_keys({entries}, (k{depth}, {item}) -> {key.value})"
    text = str(type_.key) == "string"
    return Cell(entries if text else renamed, f"{members} IS NULL OR {names} OR {values}")
