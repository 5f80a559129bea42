"""Read the rules for a column's values."""

from collections.abc import Callable, Mapping
from typing import Any

from lakegate.contract.columns import Column
from lakegate.contract.reading.literals import MOMENTS, NUMERIC, in_order, literal
from lakegate.contract.rules import Rule
from lakegate.contract.text.fields import Field
from lakegate.ecma_patterns import PATTERNS, UNCHECKED, PatternUnsupported, java_pattern

_STEP_DIGITS = 18


def facets(column: Column) -> tuple[str, ...]:
    """Return the keys that can restrict the values of a column by its type (all without a type)."""
    return _OF_KIND.get(column.kind, ())


def unsuitable(column: Column) -> dict[str, str]:
    """Return why keys that restrict other types cannot restrict a column's values, by the key."""
    suitable = facets(column)
    suited = f"it can have {', '.join(suitable)}" if suitable else "it can have no limits"
    reason = f"does not restrict values of type {column.type}: {suited}"
    return {key: reason for key in _FACETS if column.kind and key not in suitable}


def read_rule(field: Field, column: Column) -> Rule:
    """Return the rule in the keys of `field`: of a declaration or of `arguments`.

    A null among the valid values has no effect, since nulls are never invalid. A key that does not
    suit the column was refused before.
    """
    valid = field.at("validValues")
    given = [(key, *_FACETS[key]) for key in facets(column) if field.has(key)]
    parts = {part: read(field, key, column) for key, part, read in given}
    return Rule(literals(valid, [v for v in valid.items() if v.given], column), **parts)


def refuse_contradiction(field: Field, rule: Rule, column: Column, values: Field) -> None:
    """Refuse a rule that no value can keep; `values` are the listed ones."""
    pairs = (
        ("minimum", rule.minimum, rule.maximum, False),
        ("minimum", rule.minimum, rule.exclusive_maximum, True),
        ("exclusiveMinimum", rule.exclusive_minimum, rule.maximum, True),
        ("exclusiveMinimum", rule.exclusive_minimum, rule.exclusive_maximum, True),
    )
    for key, low, high, open_ in pairs:
        if low is None or high is None or not column.kind:
            continue
        if in_order(high, low, column) or (open_ and not in_order(low, high, column)):
            field.refuse(f"no value is valid: {low} is not below {high}", key)
            return
    sizes = (
        ("Length", rule.min_length, rule.max_length),
        ("Items", rule.min_items, rule.max_items),
        ("Properties", rule.min_properties, rule.max_properties),
    )
    for what, least, most in sizes:
        if least is not None and most is not None and least > most:
            reason = f"no value is valid: min{what} is above the greatest, {most}"
            field.refuse(reason, f"min{what}")
            return
    if rule.valid_values and rule.valid_values == excluded(rule, column):
        values.refuse("lists no value that the rule's limits allow, so none would be valid")


def excluded(rule: Rule, column: Column) -> tuple[str, ...]:
    """Return the listed values that the bounds and lengths of their own rule do not allow."""
    if not column.kind:
        return ()
    return tuple(each for each in rule.valid_values if _is_excluded(each, rule, column))


def _is_excluded(value: str, rule: Rule, column: Column) -> bool:
    out = {
        "<": lambda bound: in_order(value, bound, column),
        ">": lambda bound: in_order(bound, value, column),
        "<=": lambda bound: not in_order(bound, value, column),
        ">=": lambda bound: not in_order(value, bound, column),
    }
    least, most = rule.min_length or 0, rule.max_length
    is_sized = len(value) >= least and (most is None or len(value) <= most)
    return not is_sized or any(out[comparison](bound) for comparison, bound in rule.bounds)


def missing_values(field: Field, column: Column) -> tuple[str | None, ...]:
    """Return the values that count as missing; null is one of them only if it is listed."""
    listed = list(field.items())
    if not listed:
        field.refuse("must list the values that count as missing")
    values = [item for item in listed if item.given]
    nulls = (None,) if len(values) < len(listed) else ()
    return (*nulls, *(literals(field, values, column) if values else ()))


def literals(field: Field, values: list[Field], column: Column) -> tuple[str, ...]:
    """Return the fields as literals of the column's type, each once, without refused ones."""
    if field.given and not values:
        field.refuse("lists no value, so none would be valid")
    literals = (_literal(value, column) for value in values)
    return tuple(dict.fromkeys(text for text in literals if text is not None))


def _bound(field: Field, key: str, column: Column) -> str | None:
    return _literal(field.at(key), column)


def _length(field: Field, key: str, _: Column) -> int | None:
    return field.count(key)


def _multiple(field: Field, key: str, _: Column) -> str | None:
    step = field.at(key).number(lambda value: 0 < value < 10**18, "must be a number above zero")
    if step is None:
        return None
    if int(step.as_tuple().exponent) < -_STEP_DIGITS:
        field.refuse(f"must have at most {_STEP_DIGITS} digits after the point", key)
    return f"{step:f}"


def _unique_items(field: Field, key: str, column: Column) -> bool:
    unique = field.flag(key)
    if unique and "map<" in column.type:
        field.refuse("items that are maps, or hold any, cannot be compared", key)
    return unique


def _text_format(field: Field, key: str, column: Column) -> str | None:
    given = field.choice(key, (*PATTERNS, *UNCHECKED)) if column.kind else ""
    return given if given in PATTERNS else None


def _required(field: Field, key: str, column: Column) -> tuple[str, ...]:
    names = tuple(item.node.text for item in field.at(key).items())
    known = dict.fromkeys(column.fields, "")
    for name in names:
        field.known(name, known, f"a property of {column.name}", key)
    return names


def _literal(field: Field, column: Column) -> str | None:
    """Return the field as a literal of the column's type, None if it was refused."""
    value = field.node.value
    if isinstance(value, tuple | Mapping):
        field.refuse("must be a single value")
        return None
    try:
        return literal(value, field.node.text, column)
    except ValueError as reason:
        field.refuse(str(reason))
        return None


def _pattern(field: Field, key: str, _: Column) -> str:
    pattern = field.text(key)
    try:
        java_pattern(pattern)
    except PatternUnsupported as reason:
        field.refuse(str(reason), key)
    return pattern


_FACETS: Mapping[str, tuple[str, Callable[[Field, str, Column], Any]]] = {  # by key, parts of rules
    "pattern": ("pattern", _pattern),
    "minLength": ("min_length", _length),
    "maxLength": ("max_length", _length),
    "format": ("format", _text_format),
    "minimum": ("minimum", _bound),
    "maximum": ("maximum", _bound),
    "exclusiveMinimum": ("exclusive_minimum", _bound),
    "exclusiveMaximum": ("exclusive_maximum", _bound),
    "multipleOf": ("multiple_of", _multiple),
    "minItems": ("min_items", _length),
    "maxItems": ("max_items", _length),
    "uniqueItems": ("unique_items", _unique_items),
    "minProperties": ("min_properties", _length),
    "maxProperties": ("max_properties", _length),
    "required": ("required_properties", _required),
}
_TEXT = ("pattern", "minLength", "maxLength", "format")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OF_KIND = {
    **dict.fromkeys(NUMERIC, (*_BOUNDS, "multipleOf")),
    **dict.fromkeys((*MOMENTS, "time"), _BOUNDS),
    "string": _TEXT,
    "": (*_TEXT, *_BOUNDS, "multipleOf"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "map": ("minItems", "maxItems"),
    "struct": ("minProperties", "maxProperties", "required"),
}
