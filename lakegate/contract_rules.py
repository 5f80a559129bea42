"""What makes a column's values valid, as a contract states it."""

import dataclasses
from collections.abc import Mapping

from lakegate.checks import Rule
from lakegate.columns import Column
from lakegate.contract_columns import Property
from lakegate.contract_fields import Field
from lakegate.literals import NUMERIC, TIME_PATTERN, in_order, literal
from lakegate.patterns import PatternUnsupported, java_pattern

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TEXT_FACETS = ("pattern", "minLength", "maxLength")
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "time")
_FORMATS = {"date": "yyyy-MM-dd", "timestamp": "yyyy-MM-dd'T'HH:mm:ss", "time": "HH:mm:ss"}


def facets(column: Column) -> tuple[str, ...]:
    """The keys that can narrow the values of a column, after its type (all, if it has none)."""
    if column.kind in (*NUMERIC, *_MOMENTS):
        return _BOUNDS
    return {"string": _TEXT_FACETS, "": (*_TEXT_FACETS, *_BOUNDS)}.get(column.kind, ())


def declared_rule(found: Property, *, text: bool) -> Rule:
    """The rule of a property's own declaration: `logicalTypeOptions`, `enum` and `VARCHAR(n)`.

    In a file of `text` (CSV, JSON) it matters how dates are written; parquet types its own.
    """
    column = found.column
    rule = Rule()
    if found.field.has("logicalTypeOptions"):
        options = found.field.at("logicalTypeOptions")
        rule = _options_rule(options, column)
        if text:
            _refuse_other_format(options, column)
    if column.kind == "time":
        rule = dataclasses.replace(rule, pattern=TIME_PATTERN)
    if found.length is not None:
        longest = min(found.length, found.length if rule.max_length is None else rule.max_length)
        rule = dataclasses.replace(rule, max_length=longest)
    return dataclasses.replace(rule, valid_values=_enum(found.field.at("enum"), column))


def _options_rule(options: Field, column: Column) -> Rule:
    refused = {"multipleOf": "is not supported yet"}
    known = facets(column)
    match column.logical_type:
        case "string":
            refused["format"] = "is not checked: write a pattern instead"
        case "timestamp" | "time":
            known = (*known, "format", "timezone", "defaultTimezone")
        case _:
            known = (*known, "format")
    options.limit_keys(known, refused=refused)
    if column.kind == "time" and options.flag("timezone"):
        options.refuse("times with a zone are not supported", "timezone")
    return read_rule(options, column)


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
        java_pattern(pattern)
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
