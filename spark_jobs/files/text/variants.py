"""Read JSON values from a `variant`, in Spark SQL.

Unlike Spark's JSON reader it keeps whether a value was a text or a number, and its digits.
"""

from spark_jobs.files.text.cells import IS_NO_NUMBER, Cell, read_text
from spark_jobs.files.text.text_lines import literal
from spark_jobs.schema.types import Array, Map, Struct, Type
from spark_jobs.spark.errors import Quoting

_FLOATING = ("float", "double")


def field(value: str, key: str) -> str:
    """Return the value of an object's key as a variant; SQL null if the key is absent."""
    if '"' in key and "'" in key:
        why = "contains both kinds of quotes, and cannot be read from JSON"
        raise Quoting("UNREADABLE_TYPE", f"a key {why}", f"the key {key} {why}")
    path = f"$['{key}']" if '"' in key else f'$["{key}"]'
    return f"try_variant_get({value}, {literal(path)}, 'variant')"


def read_value(value: str, type_: Type, depth: int = 0) -> Cell:
    """Parse the variant in the SQL expression `value` as a value of the type.

    A key that the struct does not have makes the cell broken. JSON's null becomes null.
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
        # A number that became infinite was too large.
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
    if str(type_.key) == "string":
        return Cell(entries, f"{members} IS NULL OR {names} OR {values}")
    read = f"transform(map_keys({members}), k{depth} -> {key.value})"
    wrong = f"({names} OR size(array_distinct({read})) < size({members}))"  # of which Spark fails
    renamed = f"transform_keys({entries}, (k{depth}, {item}) -> {key.value})"
    return Cell(
        f"CASE WHEN NOT {wrong} THEN {renamed} END", f"{members} IS NULL OR {wrong} OR {values}"
    )
