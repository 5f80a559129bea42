"""The checks that a contract asks for, in whichever of its ways it says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from lakegate.checks import (
    Check,
    Expectation,
    Metric,
    Operator,
    Rule,
    Scope,
    Severity,
    Unit,
    measure,
)
from lakegate.columns import Column
from lakegate.contract_columns import Property
from lakegate.contract_fields import Field
from lakegate.contract_keys import RULE_IGNORED, RULE_KNOWN, RULE_REFUSED
from lakegate.contract_rules import declared_rule, facets, missing_values, read_rule
from lakegate.contract_scope import read_scope
from lakegate.contract_yaml import suggestion

_NONE = Expectation(Operator.EQUAL, Decimal(0))
_MOST_ROWS = 10**15
_ON_COLUMNS = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.DUPLICATE)
_ON_OBJECT = (Metric.ROWS, Metric.DUPLICATE)


@dataclass(frozen=True)
class _Draft:
    """A check that is to get its id: from its columns, and its own name or else its metric."""

    field: Field
    check: Check
    own: str = ""

    @property
    def stem(self) -> str:
        """The id that is wanted; rules of the whole object need no columns before their name."""
        on_object = self.check.metric is Metric.ROWS or (self.own and len(self.check.columns) > 1)
        columns = "" if on_object else "+".join(self.check.columns) + "."
        beyond = "InTable" if self.check.scope is Scope.TABLE else ""
        return columns + (self.own or self.check.metric + beyond)


def read_checks(table: Field, properties: list[Property], *, text: bool) -> tuple[Check, ...]:
    """All checks of a schema object, each with an id of its own; `text` as in `declared_rule`."""
    drafts = [draft for found in properties for draft in _of_property(found, text=text)]
    drafts += _of_primary_key(table, properties)
    drafts += [d for field in table.at("quality").items() for d in _on_object(field, properties)]
    return _with_ids(drafts)


def _of_property(found: Property, *, text: bool) -> list[_Draft]:
    names = (found.column.name,)
    drafts = []
    if found.column.required:
        drafts.append(_implied(found.field, Metric.NULL, names))
    if found.field.flag("unique"):
        drafts.append(_implied(found.field, Metric.DUPLICATE, names))
    rule = declared_rule(found, text=text)
    if rule != Rule():
        drafts.append(_implied(found.field, Metric.INVALID, names, rule))
    stated = found.field.at("quality").items()
    return drafts + [draft for field in stated for draft in _on_column(field, found.column)]


def _of_primary_key(table: Field, properties: list[Property]) -> list[_Draft]:
    keys = [found for found in properties if found.field.flag("primaryKey")]
    if not keys or (len(keys) == 1 and keys[0].field.flag("unique")):
        return []
    return [_implied(table, Metric.DUPLICATE, tuple(found.column.name for found in keys))]


def _implied(
    field: Field, metric: Metric, columns: tuple[str, ...], rule: Rule | None = None
) -> _Draft:
    rule = rule or Rule()
    words = measure(metric, columns, rule)
    return _Draft(field, Check("", metric, columns, rule, _NONE, Severity.ERROR, words))


def _on_column(field: Field, column: Column) -> list[_Draft]:
    metric = _metric(field, _ON_COLUMNS, "a column")
    if metric is None:
        return []
    arguments, rule = field.at("arguments"), Rule()
    if metric is Metric.INVALID:
        if not field.has("arguments"):
            field.refuse("says not what is valid: give arguments, such as validValues or pattern")
            return []
        arguments.limit_keys(("validValues", *facets(column)))
        rule = read_rule(arguments, column)
    elif metric is Metric.MISSING:
        _limit_arguments(arguments, ("missingValues",))
        rule = Rule(missing_values=missing_values(arguments.at("missingValues"), column))
    else:
        _limit_arguments(arguments, ())
    return [_stated(field, metric, (column.name,), rule)]


def _on_object(field: Field, properties: list[Property]) -> list[_Draft]:
    metric = _metric(field, _ON_OBJECT, "the whole object")
    if metric is None:
        return []
    if metric is Metric.ROWS:
        _limit_arguments(field.at("arguments"), ())
        return [_stated(field, metric, (), Rule())]
    _limit_arguments(field.at("arguments"), ("properties",))
    names = _columns(field.at("arguments").at("properties"), properties)
    return [_stated(field, metric, names, Rule())] if names else []


def _limit_arguments(arguments: Field, known: tuple[str, ...]) -> None:
    if arguments.given:
        arguments.limit_keys(known)


def _columns(names: Field, properties: list[Property]) -> tuple[str, ...]:
    known = {found.name: found.column.name for found in properties}
    columns: list[str] = []
    for item in names.items():
        name = item.node.text
        if name not in known:
            item.refuse(f"{name!r} is no property of this object{suggestion(name, known)}")
        elif known[name] in columns:
            item.refuse(f"{name!r} is listed twice")
        else:
            columns.append(known[name])
    if not names.given or names.node.value == ():
        names.refuse("must list the properties that are unique together")
    return tuple(columns)


def _metric(field: Field, metrics: tuple[Metric, ...], place: str) -> Metric | None:
    """The rule's metric; None for a rule that is only text, or that had to be refused."""
    kind = field.choice("type", ("library", "text", "sql", "custom"), default="library")
    if kind in ("sql", "custom"):
        field.refuse(f"{kind} is not supported yet", "type")
        return None
    if kind == "text":
        field.limit_keys(("type",), ("id", "name", "severity", *RULE_IGNORED))
        return None
    field.limit_keys(RULE_KNOWN, RULE_IGNORED, RULE_REFUSED)
    name = field.choice("metric", tuple(Metric))
    if not name:
        return None
    if name not in metrics:
        field.refuse(f"{name} is no metric of {place}: there {', '.join(metrics)} are", "metric")
        return None
    return Metric(name)


def _stated(field: Field, metric: Metric, columns: tuple[str, ...], rule: Rule) -> _Draft:
    check = Check(
        id="",
        metric=metric,
        columns=columns,
        rule=rule,
        expect=_expectation(field, metric),
        severity=Severity(field.choice("severity", tuple(Severity), default=Severity.ERROR)),
        description=field.text("description"),
        scope=read_scope(field, metric),
    )
    described = replace(check, description=check.description or check.measure)
    return _Draft(field, described, field.text("id") or field.text("name"))


def _expectation(field: Field, metric: Metric) -> Expectation:
    unit = Unit(field.choice("unit", tuple(Unit), default=Unit.ROWS))
    if unit is Unit.PERCENT and metric is Metric.ROWS:
        field.refuse("rowCount is a number of rows: percent of what?", "unit")
        unit = Unit.ROWS
    given = [operator for operator in Operator if field.has(operator)]
    if len(given) != 1:
        which = f"has {' and '.join(given)}" if given else "has none"
        field.refuse(f"{which} of the operators, and needs exactly one, such as mustBe: 0")
        return _NONE
    operator = given[0]
    if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
        return _between(field.at(operator), operator, unit)
    threshold = _threshold(field.at(operator), unit)
    return _NONE if threshold is None else Expectation(operator, threshold, None, unit)


def _between(field: Field, operator: Operator, unit: Unit) -> Expectation:
    items = list(field.items())
    ends = [end for end in (_threshold(item, unit) for item in items) if end is not None]
    if len(ends) == 2 and ends[0] < ends[1]:
        return Expectation(operator, ends[0], ends[1], unit)
    if len(ends) == len(items):
        field.refuse("must be two numbers, the smaller one first, as in [100, 2000]")
    return _NONE


def _threshold(field: Field, unit: Unit) -> Decimal | None:
    """The field as a threshold, or None when it had to be refused."""
    value, most = field.node.value, 100 if unit is Unit.PERCENT else _MOST_ROWS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        field.refuse(f"must be a number from 0 to {most:,}")
    elif unit is Unit.ROWS and value != int(value):
        field.refuse("a number of rows is whole; for a share of them, add unit: percent")
    else:
        return Decimal(value if isinstance(value, int) else field.node.text)
    return None


def _with_ids(drafts: list[_Draft]) -> tuple[Check, ...]:
    """Ids that data owners gave come first; what is left takes `#2`, `#3` where it repeats."""
    taken: dict[str, Field] = {}
    for draft in filter(lambda draft: draft.own, drafts):
        if draft.stem in taken:
            line = taken[draft.stem].node.line
            draft.field.refuse(f"the check {draft.stem!r} exists already, in line {line}")
        taken.setdefault(draft.stem, draft.field)
    checks = []
    for draft in drafts:
        id_ = draft.stem if draft.own else _free(draft.stem, taken)
        taken.setdefault(id_, draft.field)
        checks.append(replace(draft.check, id=id_))
    return tuple(checks)


def _free(stem: str, taken: Mapping[str, Field]) -> str:
    number, id_ = 1, stem
    while id_ in taken:
        number += 1
        id_ = f"{stem}#{number}"
    return id_
