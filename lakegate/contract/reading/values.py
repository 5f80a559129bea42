"""Read the rules for a column's values."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from math import inf, isfinite

from lakegate.contract.checks import OF_ROWS, Metric, Scope, Severity, Window
from lakegate.contract.columns import Column
from lakegate.contract.expectations import Expectation, Operator, Unit
from lakegate.contract.literals import NUMERIC, in_order, literal
from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.sql import read_condition
from lakegate.contract.reading.yaml import Node, suggestion
from lakegate.contract.rules import Rule
from lakegate.ecma_patterns import PATTERNS, UNCHECKED, PatternUnsupported, java_pattern

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
    """Return the keys that can restrict the values of a column by its type (all without a type)."""
    if column.kind in NUMERIC:
        return (*_BOUNDS, "multipleOf")
    if column.kind in _MOMENTS:
        return _BOUNDS
    every = (*_TEXT_FACETS, *_BOUNDS, "multipleOf")
    known = {"string": _TEXT_FACETS, "": every, **_OF_NESTED}
    return known.get(column.kind, ())


def unsuitable(column: Column) -> dict[str, str]:
    """Return why keys that restrict other types cannot restrict a column's values, by the key."""
    suitable = facets(column)
    suited = f"it can have {', '.join(suitable)}" if suitable else "it can have no limits"
    every = {*_TEXT_FACETS, *_BOUNDS, "multipleOf", *chain.from_iterable(_OF_NESTED.values())}
    return {
        key: f"does not restrict values of type {column.type}: {suited}"
        for key in every - {*suitable}
        if column.kind
    }


def read_rule(field: Field, column: Column) -> Rule:
    """Return the rule in the keys of `field`: of a declaration or of `arguments`.

    A null among the valid values has no effect, since nulls are never invalid.
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
            field.refuse(f"{name!r} is not a property of {column.name}{near}", "required")
    return names


def _may_have(field: Field, key: str, column: Column) -> bool:
    """Return if a key is given; a key that does not suit the column was refused before."""
    return key in facets(column) and field.has(key)


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


# Options in Lakegate's `customProperties`, of one rule or of all that a property declares.

OF_RULE = ("scope", "where", "warnUnless", "onBadRow")
OF_PROPERTY = ("severity", "where", "onBadRow", "partitionTransform", "formerName")
OF_RELATIONSHIP = ("severity", "where", "scope", "failUnless", "warnUnless", "unit")
_BEYOND = (*OF_ROWS, Metric.DUPLICATE, Metric.ROWS, Metric.DISTINCT, Metric.ORPHAN, Metric.QUERY)
_SURELY = 0.85


@dataclass(frozen=True)
class Options:
    """The options of one rule; `place` is where they stand, for problems."""

    place: Field
    given: Field
    scope: Scope | Window = Scope.FILE
    severity: Severity | None = None
    where: str = ""
    quarantine: bool = False


def rule_options(rule: Field) -> Options:
    """Return the options in a rule's `customProperties`, which allow nothing else."""
    return _options(rule, _given(rule, OF_RULE, others=False))


def property_options(found: Field) -> Options:
    """Return the options in a property's `customProperties`, for the checks that it declares."""
    return _options(found, _given(found, OF_PROPERTY, others=True))


def relationship_options(relationship: Field) -> Options:
    """Return the options in a relationship's `customProperties`, which allow others as well."""
    return _options(relationship, _given(relationship, OF_RELATIONSHIP, others=True))


def read_scope(options: Options, metric: Metric) -> Scope | Window:
    """Return the scope: the file, unless another is given and the metric supports it."""
    if options.scope is not Scope.FILE and metric not in _BEYOND:
        reason = f"{metric} looks at the file alone: only {', '.join(_BEYOND)} can look further"
        options.place.refuse(reason, "customProperties")
    elif options.scope is not Scope.FILE and options.quarantine:
        reason = "rows of the table cannot go into quarantine: only a file's own can"
        options.place.refuse(reason, "customProperties")
    elif isinstance(options.scope, Window) and metric is Metric.QUERY:
        reason = "a query looks at the file or at the table: put the days into it"
        options.place.refuse(reason, "customProperties")
    return options.scope


def _options(place: Field, given: Field) -> Options:
    severity = given.choice("severity", tuple(Severity)) if given.has("severity") else ""
    return Options(
        place,
        given,
        scope=_scope(given),
        severity=Severity(severity) if severity else None,
        where=read_condition(given, "where") if given.has("where") else "",
        quarantine=given.choice("onBadRow", ("fail", "quarantine"), default="fail") != "fail",
    )


def _scope(given: Field) -> Scope | Window:
    window = given.at("scope")
    if not isinstance(window.node.value, Mapping):
        return Scope(given.choice("scope", tuple(Scope), default=Scope.FILE))
    window.limit_keys(("windowDays", "windowColumn"))
    days = window.count("windowDays")
    if not days:
        window.refuse("must be a number of days, 1 or more", "windowDays")
    return Window(days or 1, window.required_text("windowColumn"))


def _given(place: Field, known: tuple[str, ...], *, others: bool) -> Field:
    """Return the known options as a mapping; `others` are ignored, except typing errors."""
    found: dict[str, Node] = {}
    for item in place.at("customProperties").items():
        item.limit_keys(("property",), ("value", "id", "description", "vendor"))
        name = item.required_text("property")
        near = suggestion(name, known, _SURELY if others else 0.7)
        if name in found:
            item.refuse(f"{name} is given twice, first in line {found[name].line}")
        elif name in known and not item.has("value"):
            item.refuse("is missing, or null", "value")
        elif name in known:
            found[name] = item.at("value").node
        elif name and (near or not others):
            item.refuse(f"{name!r} is not a property of a rule{near}", "property")
    nodes: Mapping[str, Node] = found
    return Field(Node(place.node.line, nodes), f"{place.path}.customProperties", place.problems)


# The operators and thresholds of a rule, as expectations.

NONE = Expectation(Operator.EQUAL, Decimal(0))
_RANGES = {Unit.ROWS: (0, 10**15), Unit.PERCENT: (0, 100)}
_BETWEEN = (Operator.BETWEEN, Operator.NOT_BETWEEN)


def read_expectation(field: Field, unit: Unit) -> Expectation:
    """Return the one operator of `field` with its thresholds; `NONE` if it was refused."""
    given = [operator for operator in Operator if field.has(operator)]
    if len(given) != 1:
        which = f"has {' and '.join(given)}" if given else "has none"
        field.refuse(f"{which} of the operators, and needs exactly one, such as mustBe: 0")
        return NONE
    operator = given[0]
    if operator in _BETWEEN:
        return _between(field.at(operator), operator, unit)
    threshold = _threshold(field.at(operator), unit)
    return NONE if threshold is None else Expectation(operator, threshold, None, unit)


def read_warning(given: Field, unit: Unit) -> Expectation | None:
    """Return the second expectation, under `warnUnless`; None if it is not given.

    `warnUnless: {mustBeLessThan: 5}` warns from five on.
    """
    if not given.has("warnUnless"):
        return None
    given.at("warnUnless").limit_keys(tuple(Operator))
    return read_expectation(given.at("warnUnless"), unit)


def _between(field: Field, operator: Operator, unit: Unit) -> Expectation:
    items = list(field.items())
    ends = [end for end in (_threshold(item, unit) for item in items) if end is not None]
    if len(ends) == 2 and ends[0] < ends[1]:
        return Expectation(operator, ends[0], ends[1], unit)
    if len(ends) == len(items):
        field.refuse("must be two numbers, the smaller one first, as in [100, 2000]")
    return NONE


def _threshold(field: Field, unit: Unit) -> Decimal | None:
    """Return the field as a threshold, None if it was refused."""
    value = field.node.value
    if unit is Unit.ANSWER and isinstance(value, bool):
        return Decimal(value)
    low, high = _RANGES.get(unit, (-inf, inf))
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        bounds = f" from {low} to {high:,}" if isfinite(high) else ""
        field.refuse(f"must be a number{bounds}")
    elif unit is Unit.ROWS and value != int(value):
        field.refuse("a number of rows is whole; for a share of them, add unit: percent")
    elif not isfinite(value):
        field.refuse("must be a finite number")
    else:
        return Decimal(value if isinstance(value, int) else field.node.text)
    return None
