"""What makes a column's values valid, as a contract states it."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from lakegate.columns import Column
from lakegate.contract_columns import Property
from lakegate.contract_fields import Field
from lakegate.contract_yaml import suggestion
from lakegate.literals import NUMERIC, TIME_PATTERN, in_order, literal
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
_SMALL = {"i8": (-128, 127), "i16": (-32768, 32767)}
_VECTOR = (
    *("dimensions", "elementType", "distanceMetric"),
    *("embeddingModel", "embeddingModelVersion", "normalized"),
)
_UNSIGNED = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}
_STEP_DIGITS = 18
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "time")
_FORMATS = {"date": "yyyy-MM-dd", "timestamp": "yyyy-MM-dd'T'HH:mm:ss", "time": "HH:mm:ss"}


def facets(column: Column) -> tuple[str, ...]:
    """The keys that can narrow the values of a column, after its type (all, if it has none)."""
    if column.kind in NUMERIC:
        return (*_BOUNDS, "multipleOf")
    if column.kind in _MOMENTS:
        return _BOUNDS
    every = (*_TEXT_FACETS, *_BOUNDS, "multipleOf")
    known = {"string": _TEXT_FACETS, "": every, **_OF_NESTED}
    return known.get(column.kind, ())


def declared_rule(found: Property, *, text: bool) -> Rule:
    """The rule of a property's own declaration: `logicalTypeOptions`, `enum` and `VARCHAR(n)`.

    In a file of `text` (CSV, JSON) it matters how dates are written; parquet types its own.
    """
    column = found.column
    rule = Rule()
    if found.field.has("logicalTypeOptions") or column.logical_type == "vector":
        options = found.field.at("logicalTypeOptions")
        rule = _options_rule(options, column)
        if text:
            _refuse_other_format(options, column)
    if column.kind == "time":
        rule = replace(rule, pattern=TIME_PATTERN)
    if found.length is not None:
        longest = min(found.length, found.length if rule.max_length is None else rule.max_length)
        rule = replace(rule, max_length=longest)
    return replace(rule, valid_values=_enum(found.field.at("enum"), column))


def _options_rule(options: Field, column: Column) -> Rule:
    known = facets(column)
    match column.logical_type:
        case "string":
            pass
        case "timestamp" | "time":
            known = (*known, "format", "timezone", "defaultTimezone")
        case "vector":
            known = _VECTOR
        case "object" | "array" | "map":
            pass
        case _:
            known = (*known, "format")
    options.limit_keys(known)
    if column.kind == "time" and options.flag("timezone"):
        options.refuse("times with a zone are not supported", "timezone")
    return _narrowed(read_rule(options, column), options, column)


def _narrowed(rule: Rule, options: Field, column: Column) -> Rule:
    """The rule with what a vector's dimensions and an integer's format say of the values."""
    if column.logical_type == "vector":
        length = options.count("dimensions")
        if not length:
            options.refuse("a vector needs its number of dimensions", "dimensions")
        return replace(rule, min_items=length, max_items=length)
    if column.logical_type != "integer":
        return rule
    low, high = _range(options.text("format"))
    return replace(rule, minimum=_larger(rule.minimum, low), maximum=_smaller(rule.maximum, high))


def _range(format_: str) -> tuple[int | None, int | None]:
    """The least and greatest value of an integer format whose column type holds more."""
    if format_ in _UNSIGNED:
        return 0, 2 ** _UNSIGNED[format_] - 1
    return _SMALL.get(format_, (None, None))


def _larger(given: str | None, low: int | None) -> str | None:
    known = [Decimal(bound) for bound in (given, low) if bound is not None]
    return f"{max(known):f}" if low is not None else given


def _smaller(given: str | None, high: int | None) -> str | None:
    known = [Decimal(bound) for bound in (given, high) if bound is not None]
    return f"{min(known):f}" if high is not None else given


def _refuse_other_format(options: Field, column: Column) -> None:
    known = _FORMATS.get(column.logical_type)
    given = options.text("format") if known else ""
    instant = column.logical_type == "timestamp" and given.startswith(_FORMATS["date"])
    if given and given != known and not instant:
        options.refuse(f"text is read as ISO 8601 alone, that is {known}", "format")


def _enum(entries: Field, column: Column) -> tuple[str, ...]:
    values = []
    for entry in entries.items():
        if entry.has("value"):
            values.append(entry.at("value"))
        else:
            entry.refuse("must have a value, as in {value: EWR}")
    return _literals(entries, values, column)


def read_rule(field: Field, column: Column) -> Rule:
    """The rule that is written in the keys of `field`: of a declaration or of `arguments`.

    A null among the valid values says nothing, since nulls are never invalid.
    """
    valid = field.at("validValues")
    rule = Rule(
        valid_values=_literals(valid, [v for v in valid.items() if v.given], column),
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
    return (*nulls, *(_literals(field, values, column) if values else ()))


def _literals(field: Field, values: list[Field], column: Column) -> tuple[str, ...]:
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
