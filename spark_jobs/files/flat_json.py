"""Read flat JSON objects by Spark's own parser, where it provably means what the variant means.

Spark's parser (`from_json`) casts no value by an expression of its own, as a variant does, but it
forgets which values were texts and which numbers, and which keys came twice. So it may only find
that a row is sound.
Any other row is read from its variant, which alone decides if the row is bad.
"""

import re

from lakegate.contract.columns import Column, quoted
from spark_jobs.files.cells import Cell, read_text
from spark_jobs.files.text_lines import LINE, literal

_LONGEST = 1_000_000  # far below the limits of either parser, which differ
# Half of a surrogate pair is invalid: Spark would read it as a question mark.
_HALF = (
    r"(?i)(?<!\\\\)(?:\\\\\\\\)*\\\\u(?:d[89ab][0-9a-f]{2}(?!\\\\ud[c-f])"
    r"|(?<!\\\\ud[89ab][0-9a-f]{2}\\\\u)d[c-f])"
)
IS_TEXT = f"(is_valid_utf8({LINE}) AND NOT (contains({LINE}, '\\\\u') AND {LINE} RLIKE '{_HALF}'))"
# With one brace at either end and no other bracket, even within a text, nothing can follow the
# object, and none of its values has keys of its own.
_INSIDE = f"substring({LINE}, 2, length({LINE}) - 2)"
_IS_FLAT = " AND ".join(
    [
        f"octet_length({LINE}) <= {_LONGEST}",
        f"startswith({LINE}, '{{') AND endswith({LINE}, '}}')",
        *(f"NOT contains({_INSIDE}, '{sign}')" for sign in "{}["),
        IS_TEXT,
    ]
)
_BAD = "_lakegate_bad"
# How Spark shows bare values as texts that are no numbers; of those too large it makes these two.
_BARE = """('true', 'false', '"Infinity"', '"-Infinity"')"""
_STRICT = "'allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false'"

# The keys of a flat object as they stand there, perhaps one of them twice; null for other lines.
KEYS = (
    f"CASE WHEN {_IS_FLAT} THEN map_keys(from_json({LINE}, 'map<string,void>', map({_STRICT}))) END"
)
# A line's JSON as a variant, null if it is none. `try_parse_json` makes a new parser for each.
VARIANT = f"from_json({{text}}, 'variant', map({_STRICT}))"


def parsed(fields: dict[str, str]) -> str:
    """Return a struct of the values of a flat object; null if the line is anything else.

    `fields` are Spark SQL types by key. No key may come twice. It is also null if a value has not
    the type of its field.
    """
    types = ", ".join(f"{quoted(key)} {type_}" for key, type_ in fields.items())
    options = f"map({_STRICT}, 'columnNameOfCorruptRecord', '{_BAD}')"
    struct = f"from_json({LINE}, {literal(f'{types}, {_BAD} STRING')}, {options})"
    return f"CASE WHEN {_IS_FLAT} THEN {struct} END"


def is_parsed(struct: str) -> str:
    """Return the condition, never null, that a struct has the values of a whole object."""
    return f"({struct} IS NOT NULL AND {struct}.{_BAD} IS NULL)"


def fast_cell(value: str, key: str, column: Column) -> tuple[str, Cell] | None:
    """Return the type to parse a column's values as, and their cell; None for other types.

    The value is right unless the cell is `broken`, which here means: perhaps.
    """
    if not column.is_declared:
        return None
    match column.type:
        case "int" | "bigint" | "boolean":
            return column.type, Cell(value, "false")
        case "double":  # the variant loses the sign of some zeros
            odd = f"abs({value}) = double('Infinity') OR {value} = 0 AND contains({LINE}, '-')"
            return "double", Cell(value, f"coalesce({odd}, false)")
        case "date" | "timestamp" | "timestamp_ntz":
            return "string", read_text(value, column.type)  # no bare value is written like these
        case "string" | "binary":
            cell = read_text(value, column.type)
            return "string", Cell(cell.value, f"({cell.broken} OR {_perhaps_bare(value, key)})")
    return None


def _perhaps_bare(value: str, key: str) -> str:
    """Return the condition, never null, that a text may be a number or a truth value in the file.

    Without a backslash every quote begins or ends a text. So a key with its value in quotes is
    exactly that.
    """
    number = f"left({value}, 1) <= '9' AND {value} RLIKE '^-?[0-9][0-9.eE+-]*+\\\\z'"
    bare = f"({value} IN {_BARE} OR {number})"
    if not re.fullmatch(r"\w+", key, re.ASCII):
        return f"coalesce({bare}, false)"
    begins = (literal(f'"{key}":{blank}"') for blank in ("", " "))
    shown = " OR ".join(f"contains({LINE}, concat({begin}, {value}, '\"'))" for begin in begins)
    in_quotes = f"NOT contains({LINE}, {literal(chr(92))}) AND ({shown})"
    return f"coalesce({bare} AND NOT ({in_quotes}), false)"
