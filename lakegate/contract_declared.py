"""What a property's own declaration makes of its column's values."""

from dataclasses import replace
from decimal import Decimal

from lakegate.columns import Column
from lakegate.contract_columns import Property
from lakegate.contract_fields import Field
from lakegate.contract_file import CELLS
from lakegate.contract_rules import facets, literals, read_rule
from lakegate.literals import TIME_PATTERN
from lakegate.rules import Rule

_SMALL = {"i8": (-128, 127), "i16": (-32768, 32767)}
_VECTOR = (
    *("dimensions", "elementType", "distanceMetric"),
    *("embeddingModel", "embeddingModelVersion", "normalized"),
)
_UNSIGNED = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}


def declared_rule(found: Property, format_: str) -> Rule:
    """The rule of a property's own declaration: `logicalTypeOptions`, `enum` and `VARCHAR(n)`.

    `format_` is the file's: where it has types of its own, how dates are written does not matter.
    """
    column = found.column
    rule = Rule()
    if found.field.has("logicalTypeOptions") or column.logical_type == "vector":
        options = found.field.at("logicalTypeOptions")
        rule = _options_rule(options, column)
        _refuse_unread(options, column, format_)
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


def _refuse_unread(options: Field, column: Column, format_: str) -> None:
    """Refuse what is said of how values are written where they are read in one way alone."""
    if column.written and format_ == "json":
        options.refuse("dates and times in JSON are read as ISO 8601 alone", "format")
    if column.zone and format_ not in CELLS:
        options.refuse(f"only UTC is supported in {format_}", "defaultTimezone")


def _enum(entries: Field, column: Column) -> tuple[str, ...]:
    values = []
    for entry in entries.items():
        if entry.has("value"):
            values.append(entry.at("value"))
        else:
            entry.refuse("must have a value, as in {value: EWR}")
    return literals(entries, values, column)
