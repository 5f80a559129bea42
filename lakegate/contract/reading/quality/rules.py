"""Read the checks of a contract, in each of the standard's notations."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lakegate.contract.checks import LIBRARY, OF_ROWS, Check, Metric, Severity
from lakegate.contract.columns import ITEM, KEY, VALUE
from lakegate.contract.expectations import NONE, Operator, Unit
from lakegate.contract.reading.options import OF_RULE, read_options, read_scope
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.quality.custom import read_custom
from lakegate.contract.reading.quality.declared import declared_rule
from lakegate.contract.reading.quality.drafts import Draft, Measured, listed, with_ids, with_window
from lakegate.contract.reading.quality.expectations import (
    read_expectation,
    read_second,
    read_unit,
)
from lakegate.contract.reading.quality.relationships import read_relationships
from lakegate.contract.reading.sql import read_query
from lakegate.contract.reading.values import (
    facets,
    missing_values,
    read_rule,
    refuse_contradiction,
    unsuitable,
)
from lakegate.contract.rules import Rule
from lakegate.contract.text.fields import Field

_ON_COLUMNS = (Metric.NULL, Metric.MISSING, Metric.INVALID, Metric.DUPLICATE)
_ON_OBJECT = (Metric.ROWS, Metric.DUPLICATE)
_FOR_ERRORS = "rows are put in quarantine for errors alone"
_COMPARED = (Metric.DUPLICATE, Metric.DISTINCT, Metric.ORPHAN)
_KINDS = ("library", "text", "sql", "custom")
_OF_ANY = ("id", "name", "type", "severity", "customProperties")
_OF_CUSTOM = (*_OF_ANY, "engine", "implementation")
_OF_SQL = (*_OF_ANY, "query", *Operator)
# fmt: off
_KNOWN = (*_OF_ANY, "metric", "arguments", "unit", *Operator)
_IGNORED = (
    "description", "dimension", "method", "businessImpact", "schedule", "scheduler", "tags",
    "authoritativeDefinitions",
)
# fmt: on
_REFUSED = {
    **dict.fromkeys(
        ("validValues", "pattern", "missingValues", "properties"), "belongs under arguments"
    ),
    "rule": "is deprecated: write metric",
    "query": "belongs to type: sql",
    **dict.fromkeys(("engine", "implementation"), "belongs to type: custom"),
}


def read_checks(
    schema: Field, table: str, properties: list[Property], *, format_: str, latest_by: str = ""
) -> tuple[Check, ...]:
    """Return all checks of a schema object, each with its own id; `format_` is the file's.

    `table` is the table's name: `<namespace>.<table>`. A key may be there several times with
    different values of `latest_by`, if that is given.
    """
    every = [inner for entry in properties for inner in entry.walk()]
    drafts: list[Draft] = []
    for entry in every:
        drafts += [*_declared(entry, format_), *_stated(entry.field, table, every, entry)]
    drafts += _primary_key_drafts(properties, latest_by)
    drafts += _stated(schema, table, properties)
    drafts += read_relationships(schema, table, properties)
    _refuse_maps(drafts, {entry.column.name: entry.column.type for entry in every})
    return with_ids([with_window(draft, properties) for draft in drafts])


def _declared(entry: Property, format_: str) -> Iterator[Draft]:
    """Yield the checks that a property's declaration implies."""
    rule = declared_rule(entry, format_)
    if entry.options.quarantine and not (entry.column.required or rule != Rule()):
        reason = "onBadRow has no effect here: no declaration of this column is about single rows"
        entry.field.refuse(f"{reason}; rules under quality have their own", "customProperties")
    elif entry.options.quarantine and entry.options.severity is not Severity.ERROR:
        entry.field.refuse(_FOR_ERRORS, "customProperties")
    if entry.column.required:
        yield _implied(entry, Metric.NULL, Rule())
    if entry.field.flag("unique"):
        _refuse_items(entry)
        yield _implied(entry, Metric.DUPLICATE, Rule())
    if rule != Rule():
        yield _implied(entry, Metric.INVALID, rule)


def _implied(entry: Property, metric: Metric, rule: Rule) -> Draft:
    """Return a check that a property's declaration implies, with the property's options."""
    options = entry.options
    check = Check(
        "",
        metric,
        (entry.column.name,),
        rule,
        NONE,
        severity=options.severity,
        where=options.where,
        quarantine=options.quarantine and metric in OF_ROWS,
    )
    return Draft(entry.field, check)


def _primary_key_drafts(properties: list[Property], latest_by: str) -> list[Draft]:
    """Return the check that no key is there twice, with the options that all its columns have."""
    keys = [entry for entry in properties if entry.field.flag("primaryKey")]
    if not keys or (len(keys) == 1 and keys[0].field.flag("unique")):
        return []
    names = dict.fromkeys((*(entry.column.name for entry in keys), *filter(None, (latest_by,))))
    check = Check("", Metric.DUPLICATE, tuple(names), Rule(), NONE)
    options = {(entry.options.severity, entry.options.where) for entry in keys}
    if len(options) == 1:
        ((severity, where),) = options
        check = replace(check, severity=severity, where=where)
    return [Draft(keys[0].field, check)]


def _stated(
    place: Field, table: str, known: list[Property], entry: Property | None = None
) -> Iterator[Draft]:
    """Yield the checks of the rules under `quality`, of the whole object or of one property."""
    for field in place.at("quality").items():
        if measured := _measured(field, table, known, entry):
            yield _draft(field, measured)


def _measured(
    field: Field, table: str, known: list[Property], entry: Property | None
) -> Measured | None:
    """Return what a rule measures; None for text, another tool's rule and a refused one."""
    columns = (entry.column.name,) if entry else ()
    match field.choice("type", _KINDS, default="library"):
        case "custom":
            field.limit_keys(_OF_CUSTOM, _IGNORED)
            return read_custom(field, known, "".join(columns))
        case "sql":
            field.limit_keys(_OF_SQL, _IGNORED)
            query = read_query(field, table, entry.column.steps if entry else ())
            return Measured(Metric.QUERY, columns, query, Unit.ANSWER)
        case "text":
            field.limit_keys(("type",), ("id", "name", "severity", *_IGNORED))
            return None
        case _:
            return _library_metric(field, known, entry)


def _library_metric(field: Field, known: list[Property], entry: Property | None) -> Measured | None:
    field.limit_keys(_KNOWN, _IGNORED, _REFUSED)
    metrics, place = (_ON_COLUMNS, "a column") if entry else (_ON_OBJECT, "the whole object")
    name = field.choice("metric", LIBRARY)
    if name not in metrics:
        if name:
            reason = f"{name} is not a metric of {place}: there {', '.join(metrics)} are"
            field.refuse(reason, "metric")
        return None
    if entry:
        return _on_column(field, Metric(name), entry)
    return _on_object(field.at("arguments"), Metric(name), known)


def _on_column(field: Field, metric: Metric, entry: Property) -> Measured | None:
    arguments, column, rule = field.at("arguments"), entry.column, Rule()
    match metric:
        case Metric.INVALID:
            if not arguments.node.value:
                reason = "says not what is valid: give arguments, such as validValues or pattern"
                field.refuse(reason)
                return None
            arguments.limit_keys(("validValues", *facets(column)), refused=unsuitable(column))
            rule = read_rule(arguments, column)
            refuse_contradiction(arguments, rule, column, arguments.at("validValues"))
        case Metric.MISSING:
            _limit(arguments, "missingValues")
            rule = Rule(missing_values=missing_values(arguments.at("missingValues"), column))
        case _:
            _limit(arguments)
    if metric is Metric.DUPLICATE:
        _refuse_items(entry)
    return Measured(metric, (column.name,), rule)


def _on_object(arguments: Field, metric: Metric, known: list[Property]) -> Measured | None:
    if metric is Metric.ROWS:
        _limit(arguments)
        return Measured(metric)
    _limit(arguments, "properties")
    names = arguments.at("properties")
    columns = {entry.name: entry.column.name for entry in known}
    together = listed(names, columns, "a property of this object")
    if not names.given or names.node.value == ():
        names.refuse("must list the properties that are unique together")
    return Measured(metric, together) if together else None


def _limit(arguments: Field, *known: str) -> None:
    if arguments.given:
        arguments.limit_keys(known)


def _refuse_items(entry: Property) -> None:
    if {ITEM, KEY, VALUE} & {*entry.column.steps}:
        entry.field.refuse("what lies in an array or a map cannot be unique among rows", "unique")


def _refuse_maps(drafts: list[Draft], types: Mapping[str, str]) -> None:
    """Refuse checks that compare maps, which Spark cannot."""
    for draft in (each for each in drafts if each.check.metric in _COMPARED):
        for name in (name for name in draft.check.columns if "map<" in types.get(name, "")):
            reason = f"{name} is a map or holds any, which cannot be compared: leave it out of"
            draft.place.refuse(f"{reason} {draft.check.metric}, and of unique and primaryKey")


def _draft(field: Field, measured: Measured) -> Draft:
    options, metric = read_options(field, OF_RULE), measured.metric
    place = field.at("implementation") if field.has("implementation") else field
    unit = _unit(place, measured)
    is_stated = any(map(place.has, Operator)) and metric is not Metric.DRIFT
    usual = None if is_stated else measured.usual
    check = Check(
        "",
        metric,
        measured.columns,
        measured.rule,
        replace(usual, unit=unit) if usual else read_expectation(place, unit),
        severity=Severity(field.choice("severity", tuple(Severity), default=measured.severity)),
        description=field.text("description"),
        scope=read_scope(options, metric),
        where=options.where,
        warn=read_second(options.given, "warnUnless", unit),
        quarantine=options.quarantine,
    )
    _refuse_options(field, check)
    return Draft(field, check, field.text("id") or field.text("name"))


def _refuse_options(field: Field, check: Check) -> None:
    """Refuse options that have no meaning for a check."""
    reason, metric = "", check.metric
    if check.quarantine and metric not in OF_ROWS:
        reason = f"{metric} is not about single rows, so none can go into quarantine"
    elif check.quarantine and check.severity is not Severity.ERROR:
        reason = _FOR_ERRORS
    elif check.where and metric in (Metric.QUERY, Metric.CONTROL):
        reason = f"{metric} looks at all rows: where has no meaning here"
    if reason:
        field.refuse(reason, "customProperties")


def _unit(place: Field, measured: Measured) -> Unit:
    if measured.unit is not Unit.ROWS:
        if place.has("unit"):
            place.refuse(f"{measured.metric} has a unit of its own: {measured.unit}", "unit")
        return measured.unit
    unit = read_unit(place)
    if unit is Unit.PERCENT and measured.metric is Metric.ROWS:
        place.refuse("rowCount is a number of rows: percent of what?", "unit")
        return Unit.ROWS
    return unit
