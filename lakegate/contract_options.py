"""What Lakegate's own `customProperties` say of a rule, or of all that a property declares."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakegate.checks import OF_ROWS, Metric, Scope, Severity, Window
from lakegate.contract_fields import Field
from lakegate.contract_sql import read_condition
from lakegate.contract_yaml import Node, suggestion

_OF_RULE = ("scope", "where", "warnUnless", "onBadRow")
_OF_PROPERTY = ("severity", "where", "onBadRow")
_OF_RELATIONSHIP = ("severity", "where", "scope", "failUnless", "warnUnless", "unit")
_BEYOND = (*OF_ROWS, Metric.DUPLICATE, Metric.ROWS, Metric.DISTINCT, Metric.ORPHAN, Metric.QUERY)
_SURELY = 0.85


@dataclass(frozen=True)
class Options:
    """The options of one rule; `place` is where they stand, to be blamed."""

    place: Field
    given: Field
    scope: Scope | Window = Scope.FILE
    severity: Severity | None = None
    where: str = ""
    quarantine: bool = False


def rule_options(rule: Field) -> Options:
    """The options in a rule's `customProperties`, where nothing else may stand."""
    return _options(rule, _given(rule, _OF_RULE, others=False))


def property_options(found: Field) -> Options:
    """The options in a property's `customProperties`: of the checks that it declares itself."""
    return _options(found, _given(found, _OF_PROPERTY, others=True))


def relationship_options(relationship: Field) -> Options:
    """The options in a relationship's `customProperties`, where others may stand as well."""
    return _options(relationship, _given(relationship, _OF_RELATIONSHIP, others=True))


def read_scope(options: Options, metric: Metric) -> Scope | Window:
    """The scope, which is the file's unless it is given and the metric can look further."""
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
    """The known options as a mapping; `others` are left alone, slips of the pen apart."""
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
            item.refuse(f"{name!r} is no property of a rule{near}", "property")
    nodes: Mapping[str, Node] = found
    return Field(Node(place.node.line, nodes), f"{place.path}.customProperties", place.problems)
