"""What makes a column's values valid, as a contract states it."""

from collections.abc import Mapping
from decimal import Decimal

from lakegate.columns import Column
from lakegate.contract_fields import Field
from lakegate.contract_yaml import suggestion
from lakegate.literals import NUMERIC, in_order, literal
from lakegate.pattern_lint import refuse_slow
from lakegate.patterns import PatternUnsupported
from lakegate.rules import Rule
from lakegate.text_formats import PATTERNS, UNCHECKED

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TEXT_FACETS = ("pattern", "minLength", "maxLength", "format")
_OF_NESTED = {
    "array": ("minItems", "maxItems", "uniqueItems"),
    "map": ("minItems", "maxItems"),
    "struct": ("minProperties", "maxProperties", "required"),
}
_STEP_DIGITS = 18
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "time")


def facets(column: Column) -> tuple[str, ...]:
    """The keys that can narrow the values of a column, after its type (all, if it has none)."""
    if column.kind in NUMERIC:
        return (*_BOUNDS, "multipleOf")
    if column.kind in _MOMENTS:
        return _BOUNDS
    every = (*_TEXT_FACETS, *_BOUNDS, "multipleOf")
    known = {"string": _TEXT_FACETS, "": every, **_OF_NESTED}
    return known.get(column.kind, ())


def read_rule(field: Field, column: Column) -> Rule:
    """The rule that is written in the keys of `field`: of a declaration or of `arguments`.

    A null among the valid values says nothing, since nulls are never invalid.
    """
    valid = field.at("validValues")
    rule = Rule(
        valid_values=literals(valid, [v for v in valid.items() if v.given], column),
        pattern=_pattern(field, column),
        minimum=_bound(field, "minimum", column),
        maximum=_bound(field, "maximum", column),
        exclusive_minimum=_bound(field, "exclusiveMinimum", column),
        exclusive_maximum=_bound(field, "exclusiveMaximum", column),
        min_length=_length(field, "minLength", column),
        max_length=_length(field, "maxLength", column),
        multiple_of=_multiple(field, column),
        format=_text_format(field, column),
        min_items=_length(field, "minItems", column),
        max_items=_length(field, "maxItems", column),
        unique_items=_unique_items(field, column),
        min_properties=_length(field, "minProperties", column),
        max_properties=_length(field, "maxProperties", column),
        required_properties=_required(field, column),
    )
    _refuse_contradiction(field, rule, column)
    return rule


def missing_values(field: Field, column: Column) -> tuple[str | None, ...]:
    """The values that count as missing; null is one of them only if it is listed."""
    listed = list(field.items())
    if not listed:
        field.refuse("must list the values that count as missing")
    values = [item for item in listed if item.given]
    nulls = (None,) if len(values) < len(listed) else ()
    return (*nulls, *(literals(field, values, column) if values else ()))


def literals(field: Field, values: list[Field], column: Column) -> tuple[str, ...]:
    """The fields as literals of the column's type, each once, but for those that were refused."""
    if field.given and not values:
        field.refuse("lists no value, so none would be valid")
    literals = (_literal(value, column) for value in values)
    return tuple(dict.fromkeys(text for text in literals if text is not None))


def _bound(field: Field, key: str, column: Column) -> str | None:
    return _literal(field.at(key), column) if _may_have(field, key, column) else None


def _length(field: Field, key: str, column: Column) -> int | None:
    return field.count(key) if _may_have(field, key, column) else None


def _multiple(field: Field, column: Column) -> str | None:
    if not _may_have(field, "multipleOf", column):
        return None
    value, text = field.at("multipleOf").node.value, field.at("multipleOf").node.text
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**18:
        field.refuse("must be a number above zero", "multipleOf")
        return None
    step = Decimal(text if isinstance(value, float) else value)
    if int(step.as_tuple().exponent) < -_STEP_DIGITS:
        field.refuse(f"must have at most {_STEP_DIGITS} digits after the point", "multipleOf")
    return f"{step:f}"


def _unique_items(field: Field, column: Column) -> bool:
    if column.kind != "array" or not field.flag("uniqueItems"):
        return False
    if "map<" in column.type:
        field.refuse("items that are maps, or hold any, cannot be compared", "uniqueItems")
    return True


def _text_format(field: Field, column: Column) -> str | None:
    if column.kind != "string" or not field.has("format"):
        return None
    given = field.choice("format", (*PATTERNS, *UNCHECKED))
    return given if given in PATTERNS else None


def _required(field: Field, column: Column) -> tuple[str, ...]:
    if not _may_have(field, "required", column):
        return ()
    names = tuple(item.node.text for item in field.at("required").items())
    for name in names:
        if name not in column.fields:
            near = suggestion(name, column.fields)
            field.refuse(f"{name!r} is no property of {column.name}{near}", "required")
    return names


def _may_have(field: Field, key: str, column: Column) -> bool:
    """Whether a key is given; one that does not go with the column was refused as a key."""
    return key in facets(column) and field.has(key)


def _literal(field: Field, column: Column) -> str | None:
    """The field as a literal of the column's type, or None when it had to be refused."""
    value = field.node.value
    if isinstance(value, tuple | Mapping):
        field.refuse("must be a single value")
        return None
    try:
        return literal(value, field.node.text, column)
    except ValueError as reason:
        field.refuse(str(reason))
        return None


def _pattern(field: Field, column: Column) -> str | None:
    if not _may_have(field, "pattern", column):
        return None
    pattern = field.text("pattern")
    try:
        refuse_slow(pattern)
    except PatternUnsupported as reason:
        field.refuse(str(reason), "pattern")
    return pattern


def _refuse_contradiction(field: Field, rule: Rule, column: Column) -> None:
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
    if (rule.min_length or 0) > (rule.max_length if rule.max_length is not None else 2**31):
        field.refuse("no value is valid: minLength is above maxLength", "minLength")
