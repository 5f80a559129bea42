"""Read the rule of a property's own declaration: its options, its `enum`, its physical type."""

from dataclasses import replace
from decimal import Decimal

from lakegate.contract.columns import BYTE, SHORT, Column, whole_range
from lakegate.contract.reading.literals import NUMERIC, TIME_PATTERN
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.settings import FLAT_FORMATS
from lakegate.contract.reading.values import (
    facets,
    literals,
    read_rule,
    refuse_contradiction,
    unsuitable,
)
from lakegate.contract.rules import Rule
from lakegate.contract.text.fields import Field

_SIGNED = {"i8": BYTE, "i16": SHORT}
_VECTOR = (
    *("dimensions", "elementType", "distanceMetric"),
    *("embeddingModel", "embeddingModelVersion", "normalized"),
)
_UNSIGNED = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}


def declared_rule(entry: Property, format_: str) -> Rule:
    """Return the rule of a property's declaration: `logicalTypeOptions`, `enum`, `VARCHAR(n)`.

    `format_` is the file's: if the format has types of its own, date patterns do not matter.
    """
    column, options = entry.column, entry.field.at("logicalTypeOptions")
    rule = Rule()
    if entry.field.has("logicalTypeOptions") or column.logical_type == "vector":
        rule = _options_rule(options, column)
        _refuse_unread(options, column, format_)
    if column.kind == "time":
        rule = replace(rule, pattern=TIME_PATTERN)
    if column.kind in NUMERIC:  # a date may be kept as a number elsewhere
        rule = _within_range(rule, whole_range(entry.field.at("physicalType").node.text))
    if entry.length is not None:
        longest = min(entry.length, entry.length if rule.max_length is None else rule.max_length)
        rule = replace(rule, max_length=longest)
    rule = replace(rule, valid_values=_enum(entry.field.at("enum"), column))
    refuse_contradiction(options, rule, column, entry.field.at("enum"))
    return rule


def _options_rule(options: Field, column: Column) -> Rule:
    known = option_keys(column)
    refused = {key: why for key, why in unsuitable(column).items() if key not in known}
    options.limit_keys(known, refused=refused)
    if column.kind == "time" and options.flag("timezone"):
        options.refuse("times with a zone are not supported", "timezone")
    return _narrowed(read_rule(options, column), options, column)


def option_keys(column: Column) -> tuple[str, ...]:
    """Return the keys that a column's `logicalTypeOptions` may have."""
    known = facets(column)
    match column.logical_type:
        case "string" | "object" | "array" | "map":
            return known
        case "timestamp" | "time":
            return (*known, "format", "timezone", "defaultTimezone")
        case "vector":
            return _VECTOR
        case _:
            return (*known, "format")


def _narrowed(rule: Rule, options: Field, column: Column) -> Rule:
    """Return the rule, narrowed by a vector's dimensions and an integer's format."""
    if column.logical_type == "vector":
        length = options.count("dimensions")
        if not length:
            options.refuse("a vector needs its number of dimensions", "dimensions")
        return replace(rule, min_items=length, max_items=length)
    if column.logical_type != "integer":
        return rule
    return _within_range(rule, _range(options.text("format")))


def _within_range(rule: Rule, range_: tuple[int | None, int | None]) -> Rule:
    low, high = range_
    return replace(rule, minimum=_larger(rule.minimum, low), maximum=_smaller(rule.maximum, high))


def _range(format_: str) -> tuple[int | None, int | None]:
    """Return the least and greatest value of an integer format whose column type holds more."""
    if format_ in _UNSIGNED:
        return 0, 2 ** _UNSIGNED[format_] - 1
    return _SIGNED.get(format_, (None, None))


def _larger(given: str | None, low: int | None) -> str | None:
    if given is None or low is None:
        return given if low is None else str(low)
    return f"{max(Decimal(given), Decimal(low)):f}"


def _smaller(given: str | None, high: int | None) -> str | None:
    if given is None or high is None:
        return given if high is None else str(high)
    return f"{min(Decimal(given), Decimal(high)):f}"


def _refuse_unread(options: Field, column: Column, format_: str) -> None:
    """Refuse options on how values are written for formats that have only one way."""
    if column.written and format_ == "json":
        options.refuse("dates and times in JSON are read as ISO 8601 alone", "format")
    if column.zone and format_ not in FLAT_FORMATS:
        options.refuse(f"only UTC is supported in {format_}", "defaultTimezone")


def _enum(entries: Field, column: Column) -> tuple[str, ...]:
    values = []
    for entry in entries.items():
        if entry.has("value"):
            values.append(entry.at("value"))
        else:
            entry.refuse("must have a value, as in {value: EWR}")
    return literals(entries, values, column)
