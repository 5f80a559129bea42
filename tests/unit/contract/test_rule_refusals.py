"""The refusal of invalid rules of a contract."""

import pytest

from tests.unit.contract.contract_texts import assert_refused, contract_text

PROPERTY = "schema[0].properties[1]"
RULE = f"{PROPERTY}.quality[0]"
OBJECT_RULE = "schema[0].quality[0]"
SCOPE = "{property: scope, value: table}"
_FRESH = "{check: reconcile, mustBe: 0}"
_WHERE = "customProperties: [{property: where, value: c > 0}]"
_WINDOW = "customProperties: [{property: scope, value: {windowDays: 3, windowColumn: id}}]"

# One rule of a string property named c, without its braces, the field that is refused, and the
# reason.
COLUMN_RULES = [
    ("mustBe: 0", "metric", "is missing"),
    ("metric: nullValuse, mustBe: 0", "metric", "did you mean nullValues"),
    ("metric: rowCount, mustBe: 0", "metric", "not a metric of a column"),
    ("metric: nullValues", "", "has none of the operators"),
    ("metric: invalidValues, mustBe: 0, arguments: {}", "", "says not what is valid"),
    (
        "metric: invalidValues, mustBe: 0, arguments: {minimum: 1}",
        "arguments.minimum",
        "does not restrict values of type string: it can have pattern",
    ),
    (
        "metric: nullValues, mustBe: 0, mustNotBe: 1",
        "",
        "has mustBe and mustNotBe of the operators",
    ),
    ("metric: nullValues, mustBeLesThan: 1", "mustBeLesThan", "did you mean mustBeLessThan"),
    ("metric: nullValues, mustBe: none", "mustBe", "must be a number from 0"),
    ("metric: nullValues, mustBe: -1", "mustBe", "must be a number from 0"),
    ("metric: nullValues, mustBe: .nan", "mustBe", "must be a number from 0"),
    ("metric: nullValues, mustBe: null", "mustBe", "is null"),
    ("metric: nullValues, mustBeLessThan: 0.5", "mustBeLessThan", "add unit: percent"),
    ("metric: nullValues, mustBeLessThan: 101, unit: percent", "mustBeLessThan", "from 0 to 100"),
    ("metric: nullValues, mustBeBetween: [2, 1]", "mustBeBetween", "smaller one first"),
    ("metric: nullValues, mustBeBetween: [1, 1]", "mustBeBetween", "smaller one first"),
    ("metric: nullValues, mustBeBetween: [1, 2, 3]", "mustBeBetween", "two numbers"),
    ("metric: nullValues, mustBeBetween: 3", "mustBeBetween", "must be a list"),
    ("metric: nullValues, mustBe: 0, unit: '%'", "unit", "use one of rows, percent"),
    ("metric: nullValues, mustBe: 0, unit: ''", "unit", "use one of rows, percent"),
    (
        "metric: nullValues, mustBe: 0, customProperties: [{property: where, value: ' '}]",
        "customProperties.where",
        "is empty",
    ),
    (
        "type: custom, engine: lakegate, implementation: {check: rowExpression, expression: ' '}",
        "implementation.expression",
        "is empty",
    ),
    ("metric: nullValues, mustBe: 0, severity: warn", "severity", "did you mean warning"),
    ("metric: nullValues, mustBe: 0, arguments: {pattern: a}", "arguments.pattern", "unknown key"),
    (
        "metric: nullValues, mustBe: 0, customProperties: [a]",
        "customProperties[0]",
        "must be a mapping",
    ),
    (
        f"type: custom, engine: lakegate, implementation: {_FRESH}, customProperties: [{SCOPE}]",
        "customProperties",
        "looks at the file alone",
    ),
    (
        "metric: duplicateValues, mustBe: 0, customProperties: [{property: scop, value: table}]",
        "customProperties[0].property",
        "did you mean scope",
    ),
    (
        "metric: duplicateValues, mustBe: 0, customProperties: [{property: scope, value: lake}]",
        "customProperties.scope",
        "use one of file, table",
    ),
    (
        "metric: duplicateValues, mustBe: 0, customProperties: [{property: scope}]",
        "customProperties[0].value",
        "is missing",
    ),
    (
        f"metric: duplicateValues, mustBe: 0, customProperties: [{SCOPE}, {SCOPE}]",
        "customProperties[1]",
        "scope is given twice",
    ),
    ("rule: nullCheck, mustBe: 0", "rule", "write metric"),
    ("metric: invalidValues, mustBe: 0", "", "give arguments"),
    (
        "metric: invalidValues, mustBe: 0, validValues: [a]",
        "validValues",
        "belongs under arguments",
    ),
    ("metric: invalidValues, mustBe: 0, arguments: {validValues: []}", "arguments.validValues", ""),
    (
        "metric: invalidValues, mustBe: 0, arguments: {validValue: [a]}",
        "arguments.validValue",
        "did you mean validValues",
    ),
    (
        "metric: invalidValues, mustBe: 0, arguments: {validValues: [1]}",
        "arguments.validValues[0]",
        "put it in quotes",
    ),
    ("metric: missingValues, mustBe: 0", "arguments.missingValues", "must list the values"),
    (
        "metric: duplicateValues, mustBe: 0, arguments: {properties: [c]}",
        "arguments.properties",
        "",
    ),
    ("type: sql, query: DELETE FROM c, mustBe: 0", "query", "one SELECT"),
    (f"type: sql, query: SELECT 1, mustBe: 0, {_WHERE}", "customProperties", "all rows"),
    (f"type: sql, query: SELECT 1, mustBe: 0, {_WINDOW}", "customProperties", "put the days"),
    (f"metric: duplicateValues, mustBe: 0, {_WINDOW}", "customProperties", "not a column of dates"),
    (
        "type: custom, engine: lakegate, implementation: {check: reconcile}",
        "implementation.check",
        "whole file",
    ),
    ("type: sql, mustBe: 0", "query", "is missing"),
    ("type: sql, query: SELECT 1", "", "needs exactly one"),
    ("type: sql, query: SELECT 1, unit: rows, mustBe: 0", "unit", "unknown key"),
    ("type: custom, engine: lakgate, implementation: x", "engine", "did you mean lakegate?"),
    ("type: text, metric: nullValues, mustBe: 0", "metric", "unknown key"),
]

# One rule of the whole object, without its braces.
OBJECT_RULES = [
    ("metric: nullValues, mustBe: 0", "metric", "not a metric of the whole object"),
    ("metric: rowCount, mustBe: 5, unit: percent", "unit", "percent of what"),
    ("metric: duplicateValues, mustBe: 0", "arguments.properties", "must list the properties"),
    (
        "metric: duplicateValues, mustBe: 0, arguments: {properties: [id, idd]}",
        "arguments.properties[1]",
        "did you mean id",
    ),
    (
        "metric: duplicateValues, mustBe: 0, arguments: {properties: [id, id]}",
        "arguments.properties[1]",
        "listed twice",
    ),
]


@pytest.mark.parametrize(("rule", "field", "reason"), COLUMN_RULES)
def test_a_rule_of_a_column_that_cannot_be_kept_is_refused(
    rule: str, field: str, reason: str
) -> None:
    """An invalid rule of a column is refused."""
    text = contract_text(f"- {{name: c, logicalType: string, quality: [{{{rule}}}]}}")
    assert_refused(text, f"{RULE}.{field}".rstrip("."), reason)


@pytest.mark.parametrize(("rule", "field", "reason"), OBJECT_RULES)
def test_a_rule_of_the_whole_object_that_cannot_be_kept_is_refused(
    rule: str, field: str, reason: str
) -> None:
    """An invalid rule of the schema object is refused."""
    assert_refused(contract_text(quality=f"- {{{rule}}}"), f"{OBJECT_RULE}.{field}", reason)


def test_a_check_of_the_whole_table_forbids_replacing() -> None:
    """A check of the whole table is refused where a new version replaces rows.

    The rows to replace would count against the new version.
    """
    quality = f"- {{metric: rowCount, mustBe: 1, customProperties: [{SCOPE}]}}"
    settings = "- {property: onNewVersion, value: replace}"
    text = contract_text(quality=quality, settings=settings)
    assert_refused(text, "customProperties.onNewVersion", "looks at the whole table")


def test_two_rules_with_one_name_are_refused() -> None:
    """Two rules of a column with the same id are refused."""
    rule = "{name: known, metric: nullValues, mustBe: 0}"
    text = contract_text(f"- {{name: c, logicalType: string, quality: [{rule}, {rule}]}}")
    assert_refused(text, f"{PROPERTY}.quality[1]", "the check 'c.known' exists already")
