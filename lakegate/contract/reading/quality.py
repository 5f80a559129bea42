"""Read the checks of a contract, in each of the standard's notations."""

from dataclasses import replace

from lakegate.contract.checks import LIBRARY, OF_ROWS, Check, CheckSpec, Metric, Severity
from lakegate.contract.columns import Column
from lakegate.contract.expectations import Expectation, Operator, Unit
from lakegate.contract.reading.check_ids import Draft, with_ids, with_window
from lakegate.contract.reading.custom import Custom, read_custom
from lakegate.contract.reading.fields import RULE_IGNORED, RULE_KNOWN, RULE_REFUSED, Field
from lakegate.contract.reading.properties import Property, declared_rule
from lakegate.contract.reading.relationships import read_relationships
from lakegate.contract.reading.sql import read_query
from lakegate.contract.reading.values import (
    NONE,
    facets,
    missing_values,
    property_options,
    read_expectation,
    read_rule,
    read_scope,
    read_warning,
    rule_options,
    unsuitable,
)
from lakegate.contract.reading.yaml import suggestion
from lakegate.contract.rules import Query, Rule

ON_COLUMNS = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.DUPLICATE)
ON_OBJECT = (Metric.ROWS, Metric.DUPLICATE)
KINDS = ("library", "text", "sql", "custom")
_OF_ANY = ("id", "name", "type", "severity", "customProperties")
OF_CUSTOM = (*_OF_ANY, "engine", "implementation")
OF_SQL = (*_OF_ANY, "query", *Operator)


def read_checks(
    table: Field, name: str, properties: list[Property], *, format_: str, latest_by: str = ""
) -> tuple[Check, ...]:
    """Return all checks of a schema object, each with its own id; `format_` is the file's.

    `name` is the table's: `<namespace>.<table>`. A key may be there several times with different
    values of `latest_by`, if that is given.
    """
    every = [inner for found in properties for inner in found.walk()]
    drafts = [draft for found in every for draft in _of_property(found, name, every, format_)]
    drafts += _of_primary_key(properties, latest_by)
    quality = table.at("quality").items()
    drafts += [draft for field in quality for draft in _on_object(field, name, properties)]
    drafts += read_relationships(table, name, properties)
    drafts = [with_window(draft, properties) for draft in drafts]
    return with_ids(drafts)


def _of_property(found: Property, table: str, every: list[Property], format_: str) -> list[Draft]:
    names = (found.column.name,)
    drafts = []
    if found.column.required:
        drafts.append(_implied(found.field, Metric.NULL, names))
    if found.field.flag("unique"):
        _refuse_items(found)
        drafts.append(_implied(found.field, Metric.DUPLICATE, names))
    rule = declared_rule(found, format_)
    if rule != Rule():
        drafts.append(_implied(found.field, Metric.INVALID, names, rule))
    stated = found.field.at("quality").items()
    return drafts + [draft for field in stated for draft in _on_column(field, found, table, every)]


def _of_primary_key(properties: list[Property], latest_by: str) -> list[Draft]:
    keys = [found for found in properties if found.field.flag("primaryKey")]
    if not keys or (len(keys) == 1 and keys[0].field.flag("unique")):
        return []
    names = dict.fromkeys((*(found.column.name for found in keys), *filter(None, (latest_by,))))
    check = Check("", Metric.DUPLICATE, tuple(names), Rule(), NONE)
    return [Draft(keys[0].field, replace(check, description=check.measure))]


def _implied(
    field: Field, metric: Metric, columns: tuple[str, ...], rule: Rule | None = None
) -> Draft:
    """Return the check that a property's declaration implies, with the property's options."""
    options = property_options(field)
    check = Check(
        "",
        metric,
        columns,
        rule or Rule(),
        NONE,
        severity=options.severity or Severity.ERROR,
        where=options.where,
        quarantine=options.quarantine and metric in OF_ROWS,
    )
    return Draft(field, replace(check, description=check.measure))


def _on_column(field: Field, found: Property, table: str, every: list[Property]) -> list[Draft]:
    kind = field.choice("type", KINDS, default="library")
    if kind == "custom":
        return _custom(field, read_custom(field, every, found.column.name))
    if kind == "sql":
        return [_asked(field, (found.column.name,), read_query(field, table, found.column.steps))]
    metric = _metric(field, kind, ON_COLUMNS, "a column")
    if metric is None:
        return []
    if metric is Metric.DUPLICATE:
        _refuse_items(found)
    return _of_library(field, metric, found.column)


def _of_library(field: Field, metric: Metric, column: Column) -> list[Draft]:
    arguments, rule = field.at("arguments"), Rule()
    if metric is Metric.INVALID:
        if not arguments.node.value:
            field.refuse("says not what is valid: give arguments, such as validValues or pattern")
            return []
        arguments.limit_keys(("validValues", *facets(column)), refused=unsuitable(column))
        rule = read_rule(arguments, column)
    elif metric is Metric.MISSING:
        _limit_arguments(arguments, ("missingValues",))
        rule = Rule(missing_values=missing_values(arguments.at("missingValues"), column))
    else:
        _limit_arguments(arguments, ())
    return [_stated(field, metric, (column.name,), rule)]


def _on_object(field: Field, table: str, properties: list[Property]) -> list[Draft]:
    kind = field.choice("type", KINDS, default="library")
    if kind == "custom":
        return _custom(field, read_custom(field, properties))
    if kind == "sql":
        return [_asked(field, (), read_query(field, table))]
    metric = _metric(field, kind, ON_OBJECT, "the whole object")
    if metric is None:
        return []
    if metric is Metric.ROWS:
        _limit_arguments(field.at("arguments"), ())
        return [_stated(field, metric, (), Rule())]
    _limit_arguments(field.at("arguments"), ("properties",))
    names = _columns(field.at("arguments").at("properties"), properties)
    return [_stated(field, metric, names, Rule())] if names else []


def _custom(field: Field, custom: Custom | None) -> list[Draft]:
    field.limit_keys(OF_CUSTOM, RULE_IGNORED)
    return [_stated(field, custom.metric, custom.columns, custom.rule, custom)] if custom else []


def _asked(field: Field, columns: tuple[str, ...], query: Query) -> Draft:
    field.limit_keys(OF_SQL, RULE_IGNORED)
    custom = Custom(Metric.QUERY, columns, query, Unit.ANSWER)
    return _stated(field, custom.metric, columns, query, custom)


def _refuse_items(found: Property) -> None:
    if any(step.startswith(("[", "{")) for step in found.column.steps):
        found.field.refuse("what lies in an array or a map cannot be unique among rows", "unique")


def _limit_arguments(arguments: Field, known: tuple[str, ...]) -> None:
    if arguments.given:
        arguments.limit_keys(known)


def _columns(names: Field, properties: list[Property]) -> tuple[str, ...]:
    known = {found.name: found.column.name for found in properties}
    columns: list[str] = []
    for item in names.items():
        name = item.node.text
        if name not in known:
            item.refuse(f"{name!r} is not a property of this object{suggestion(name, known)}")
        elif known[name] in columns:
            item.refuse(f"{name!r} is listed twice")
        else:
            columns.append(known[name])
    if not names.given or names.node.value == ():
        names.refuse("must list the properties that are unique together")
    return tuple(columns)


def _metric(field: Field, kind: str, metrics: tuple[Metric, ...], place: str) -> Metric | None:
    """Return the rule's metric; None for a rule that is only text, or that was refused."""
    if kind == "text":
        field.limit_keys(("type",), ("id", "name", "severity", *RULE_IGNORED))
        return None
    field.limit_keys(RULE_KNOWN, RULE_IGNORED, RULE_REFUSED)
    name = field.choice("metric", LIBRARY)
    if not name:
        return None
    if name not in metrics:
        field.refuse(f"{name} is not a metric of {place}: there {', '.join(metrics)} are", "metric")
        return None
    return Metric(name)


def _stated(
    field: Field,
    metric: Metric,
    columns: tuple[str, ...],
    rule: CheckSpec,
    custom: Custom | None = None,
) -> Draft:
    options = rule_options(field)
    place = field.at("implementation") if field.has("implementation") else field
    unit = _unit(place, metric, custom)
    implied = custom is not None and custom.demands_none and not any(map(place.has, Operator))
    own = custom.expect if custom else None
    usual = custom.severity if custom else Severity.ERROR
    check = Check(
        id="",
        metric=metric,
        columns=columns,
        rule=rule,
        expect=own or _expected(place, unit, implied=implied),
        severity=Severity(field.choice("severity", tuple(Severity), default=usual)),
        description=field.text("description"),
        scope=read_scope(options, metric),
        where=options.where,
        warn=read_warning(options.given, unit),
        quarantine=options.quarantine,
    )
    _refuse_quarantine(field, check)
    if check.where and metric in (Metric.QUERY, Metric.CONTROL):
        field.refuse(f"{metric} looks at all rows: where has no meaning here", "customProperties")
    described = replace(check, description=check.description or check.measure)
    return Draft(field, described, field.text("id") or field.text("name"))


def _expected(place: Field, unit: Unit, *, implied: bool) -> Expectation:
    return replace(NONE, unit=unit) if implied else read_expectation(place, unit)


def _refuse_quarantine(field: Field, check: Check) -> None:
    if check.quarantine and check.metric not in OF_ROWS:
        reason = f"{check.metric} is not about single rows, so none can go into quarantine"
        field.refuse(reason, "customProperties")
    elif check.quarantine and check.severity is not Severity.ERROR:
        field.refuse("rows are put in quarantine for errors alone", "customProperties")


def _unit(field: Field, metric: Metric, custom: Custom | None) -> Unit:
    if custom and custom.unit is not Unit.ROWS:
        if field.has("unit"):
            field.refuse(f"{metric} has a unit of its own: {custom.unit}", "unit")
        return custom.unit
    unit = Unit(field.choice("unit", (Unit.ROWS, Unit.PERCENT), default=Unit.ROWS))
    if unit is Unit.PERCENT and metric is Metric.ROWS:
        field.refuse("rowCount is a number of rows: percent of what?", "unit")
        return Unit.ROWS
    return unit
