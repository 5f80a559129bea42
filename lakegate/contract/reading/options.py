"""Read `customProperties`: settings of a contract, and options of a rule or of a property."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakegate.contract.checks import OF_ROWS, Metric, Scope, Severity, Window
from lakegate.contract.reading.sql import read_condition
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import suggestion
from lakegate.contract.text.yaml import Node

OF_RULE = ("scope", "where", "warnUnless", "onBadRow")
OF_PROPERTY = ("severity", "where", "onBadRow", "partitionTransform", "formerName")
OF_RELATIONSHIP = ("severity", "where", "scope", "failUnless", "warnUnless", "unit")
_NEEDS_A_RULE = "has no effect here: write the check as a rule under quality"
# Where they are not known they would be missed, as nothing else would say that they do nothing.
_ELSEWHERE = {
    "scope": _NEEDS_A_RULE,
    "warnUnless": _NEEDS_A_RULE,
    "failUnless": "has no effect here: only a relationship has it",
    "onBadRow": "has no effect here: only columns, and rules about single rows, have it",
}
_BEYOND = (*OF_ROWS, Metric.DUPLICATE, Metric.ROWS, Metric.DISTINCT, Metric.ORPHAN, Metric.QUERY)


def custom_properties(places: Iterable[Field], known: tuple[str, ...]) -> Field:
    """Return the known `customProperties` of fields as a mapping.

    Those of other tools are ignored, except typing errors, and options that another place has.
    """
    first, *more = places
    nodes: dict[str, Node] = {}
    for item in (item for place in (first, *more) for item in place.at("customProperties").items()):
        item.limit_keys(("property",), ("value", "id", "description", "vendor"))
        name = item.required_text("property")
        near = suggestion(name, known, 0.85)
        if name in nodes:
            item.refuse(f"{name} is given twice, first in line {nodes[name].line}")
        elif name == "missingColumns" and name in known and not item.has("value"):
            nodes[name] = Node(item.node.line, "null")  # as YAML reads the word null
        elif name in known and not item.has("value"):
            item.refuse("is missing, or null", "value")
        elif name in known:
            nodes[name] = item.at("value").node
        elif name in _ELSEWHERE and _is_ours(name, item):
            item.refuse(f"{name} {_ELSEWHERE[name]}", "property")
        elif near:
            item.refuse(f"unknown property {name!r}{near}", "property")
    path = first.at("customProperties").path
    return Field(Node(first.node.line, nodes), path, first.problems)


def _is_ours(name: str, item: Field) -> bool:
    """Return whether an option means Lakegate: `scope` is a word of other tools, too."""
    value = item.at("value").node.value
    return name != "scope" or value == Scope.TABLE or isinstance(value, Mapping)


@dataclass(frozen=True)
class Options:
    """The options of one rule; `place` is where they stand, for problems."""

    place: Field
    given: Field
    scope: Scope | Window = Scope.FILE
    severity: Severity = Severity.ERROR
    where: str = ""
    quarantine: bool = False


def read_options(place: Field, known: tuple[str, ...]) -> Options:
    """Return the known options in the `customProperties` of a rule, property or relationship."""
    given = custom_properties([place], known)
    severity = given.choice("severity", tuple(Severity)) if given.has("severity") else ""
    return Options(
        place,
        given,
        scope=_scope(given),
        severity=Severity(severity or Severity.ERROR),
        where=read_condition(given, "where") if given.has("where") else "",
        quarantine=given.choice("onBadRow", ("fail", "quarantine"), default="fail") != "fail",
    )


def read_scope(options: Options, metric: Metric) -> Scope | Window:
    """Return the scope: the file, unless another is given and the metric supports it."""
    reason = ""
    if options.scope is not Scope.FILE and metric not in _BEYOND:
        reason = f"{metric} looks at the file alone: only {', '.join(_BEYOND)} can look further"
    elif options.scope is not Scope.FILE and options.quarantine:
        reason = "rows of the table cannot go into quarantine: only a file's own can"
    elif isinstance(options.scope, Window) and metric is Metric.QUERY:
        reason = "a query looks at the file or at the table: put the days into it"
    if reason:
        options.place.refuse(reason, "customProperties")
    return options.scope


def _scope(given: Field) -> Scope | Window:
    window = given.at("scope")
    if not isinstance(window.node.value, Mapping):
        return Scope(given.choice("scope", tuple(Scope), default=Scope.FILE))
    window.limit_keys(("windowDays", "windowColumn"))
    days = window.count("windowDays")
    if not days:
        window.refuse("must be a number of days, 1 or more", "windowDays")
    return Window(days or 1, window.required_text("windowColumn"))
