"""Lakegate's own rules, options of rules, and nested columns."""

import json
from decimal import Decimal

import pytest

from access.contract.check import check
from lakegate.contract.checks import Check, Metric, Severity
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.contract.rules import Condition, Quantile, Rule
from tests.unit.contract.contract_texts import contract_text

LINES = """
- name: lines
  logicalType: array
  items:
    logicalType: object
    classification: restricted
    properties:
      - {name: sku, logicalType: string, required: true}
      - {name: a.b, logicalType: integer, logicalTypeOptions: {minimum: 1}}
- name: labels
  logicalType: map
  map:
    key: {logicalType: string, logicalTypeOptions: {maxLength: 3}}
    value: {logicalType: number, required: true}
- {name: v, logicalType: vector, logicalTypeOptions: {dimensions: 3, elementType: float64}}
"""

ABOVE_0 = "check: rowExpression, expression: c > 0"
KEPT_OUT = "customProperties: [{property: onBadRow, value: quarantine}]"


def parsed(column: str, settings: str = "") -> Contract:
    return check(contract_text(column, settings=settings), "a contract")


def rule_of(implementation: str, more: str = "") -> Check:
    rule = f"{{type: custom, engine: lakegate, implementation: {{{implementation}}}{more}}}"
    return parsed(f"- {{name: c, logicalType: number, quality: [{rule}]}}").checks[-1]


def test_nested_columns_have_their_own_names_types_and_checks() -> None:
    """A nested column is named by its path and is as confidential as its top-level column.

    The top-level column has the complete type.
    """
    contract = parsed(LINES)
    types = {column.name: column.type for column in contract.columns}
    assert types["lines"] == "array<struct<`sku`:string,`a.b`:bigint>>"
    assert types["labels"] == "map<string,double>"
    assert types["v"] == "array<double>"
    assert contract.column("lines[].a.b").steps == ("lines", "[]", "a.b")
    assert contract.column("labels{value}").type == "double"
    hidden = {column.name: column.sensitive for column in contract.nested}
    assert (hidden["lines[].sku"], hidden["labels{key}"]) == (True, False)
    ids = {found.id for found in contract.checks}
    assert {"lines[].sku.nullValues", "lines[].a.b.invalidValues"} <= ids
    assert {"labels{key}.invalidValues", "labels{value}.nullValues", "v.invalidValues"} <= ids


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "c IN (SELECT value FROM text.`file:/x`)",
            "must be a condition on one row, without a query",
        ),
        ("EXISTS ( -- one\n SELECT 1)", "must be a condition on one row, without a query"),
        ("reflect('java.lang.System', 'getenv', 'HOME') <> ''", "runs any code"),
        ("identifier('reflect')('java.lang.System', 'exit') IS NULL", "makes up a name"),
        ("schema_of_avro('{}', map('avroSchemaUrl', 'file:/x')) <> ''", "can open files"),
    ],
)
def test_a_condition_looks_at_its_row_alone(sql: str, reason: str) -> None:
    """A condition with a query or a call that reaches outside its row is refused."""
    rule = {"check": "rowExpression", "expression": sql}
    where = [{"property": "where", "value": sql}]
    for broken in (
        {"type": "custom", "engine": "lakegate", "implementation": rule},
        {"metric": "nullValues", "mustBe": 0, "customProperties": where},
    ):
        with pytest.raises(ContractInvalid, match=reason):
            parsed(f"- {{name: c, logicalType: number, quality: [{json.dumps(broken)}]}}")


@pytest.mark.parametrize(
    ("implementation", "metric", "rule", "expected"),
    [
        (ABOVE_0, Metric.BROKEN, Condition("c > 0"), "0 rows"),
        (
            f"{ABOVE_0}, unit: percent, mustBeLessThan: 5",
            Metric.BROKEN,
            Condition("c > 0"),
            "less than 5 % of rows",
        ),
        (
            "check: columnPair, operator: <=, other: id",
            Metric.BROKEN,
            Condition("`c` <= `id`"),
            "0 rows",
        ),
        ("check: mean, mustBeBetween: [-1.5, 2]", Metric.MEAN, Rule(), "between -1.5 and 2"),
        (
            "check: quantile, share: 0.95, mustBeLessThan: 10",
            Metric.QUANTILE,
            Quantile(Decimal("0.95")),
            "less than 10",
        ),
    ],
)
def test_a_rule_measures_what_it_names(
    implementation: str, metric: Metric, rule: object, expected: str
) -> None:
    """Lakegate's own rules have a metric, its arguments and bounds, by default no failing row."""
    found = rule_of(implementation)
    assert (found.metric, found.rule, found.expected) == (metric, rule, expected)


def test_a_rule_names_its_columns_and_measure() -> None:
    """A column pair covers both columns, and a quantile is described with its share."""
    assert rule_of("check: columnPair, operator: <=, other: id").columns == ("c", "id")
    quantile = rule_of("check: quantile, share: 0.95, mustBeLessThan: 10")
    assert quantile.measure == "the 0.95 quantile of c"


def test_a_rule_takes_options() -> None:
    """A rule can filter its rows, and have a second threshold for a warning."""
    options = (
        ", customProperties: [{property: where, value: id > 1}, "
        "{property: warnUnless, value: {mustBeLessThan: 5}}]"
    )
    found = rule_of("check: rowExpression, expression: c > 0, mustBeLessThan: 9", options)
    assert found.where == "id > 1"
    assert found.warn is not None
    assert found.warn.wording == "fewer than 5 rows"


def test_a_declaration_takes_options() -> None:
    """A property's declarations can have a lower severity, and quarantine rows."""
    options = "customProperties: [{property: onBadRow, value: quarantine}]"
    column = f"- {{name: c, logicalType: string, required: true, {options}}}"
    contract = parsed(column, settings="- {property: quarantine, value: {maxPercent: 2.5}}")
    assert contract.checks[-1].quarantine
    assert contract.quarantine is not None
    assert contract.quarantine.wording == "at most 2.5 % of rows"
    milder = "customProperties: [{property: severity, value: warning}]"
    column = f"- {{name: c, logicalType: string, required: true, {milder}}}"
    assert parsed(column).checks[-1].severity is Severity.WARNING


def test_a_declared_key_takes_options() -> None:
    """A uniqueness declaration can filter its rows and have a lower severity."""
    options = "[{property: where, value: id > 1}, {property: severity, value: warning}]"
    column = f"- {{name: c, logicalType: string, unique: true, customProperties: {options}}}"
    (found,) = [each for each in parsed(column).checks if each.columns == ("c",)]
    assert (found.metric, found.where, found.severity) == (
        Metric.DUPLICATE,
        "id > 1",
        Severity.WARNING,
    )


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("implementation: {check: rowExpresion, expression: c > 0}", "did you mean rowExpression"),
        ("implementation: {check: rowExpression}", "is missing"),
        ("implementation: {check: mean, colum: c, mustBe: 1}", "unknown key"),
        ("implementation: {check: mean}", "has none of the operators"),
        ("implementation: {check: mean, unit: percent, mustBe: 1}", "has a unit of its own"),
        ("implementation: {check: quantile, share: 2, mustBe: 1}", "from 0 to 1"),
        ("implementation: {check: freshness, mustBe: 1}", "must be date or timestamp"),
        ("implementation: {check: columnPair, operator: '=', other: idd}", "did you mean id"),
        (f"implementation: {{check: mean, mustBe: 1}}, {KEPT_OUT}", "not about single rows"),
        (
            f"implementation: {{check: rowExpression, expression: c > 0}}, {KEPT_OUT}",
            "say how many may",
        ),
        ("implementation: {check: drift}", "of"),
        ("implementation: {check: drift, of: duplicateValues}", "of"),
        ("implementation: {check: drift, of: rowCount}", "under the object"),
        ("implementation: {check: drift, of: mean, k: 0}", "above 0"),
        ("implementation: {check: drift, of: mean, k: .inf}", "above 0"),
        ("implementation: {check: drift, of: mean, mustBe: 0}", "no operator"),
        ("implementation: {check: drift, of: mean, share: 0.5}", "share"),
        ("implementation: {check: drift, of: freshness}", "must be date"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(rule: str, reason: str) -> None:
    """An invalid rule of Lakegate's own is refused with the reason."""
    column = (
        f"- {{name: c, logicalType: number, quality: [{{type: custom, engine: lakegate, {rule}}}]}}"
    )
    with pytest.raises(ContractInvalid, match=reason.replace("'", ".")):
        parsed(column)


def test_drift_looks_at_another_measure() -> None:
    """A drift rule warns at more than 4 deviations, or at the rule's own threshold."""
    usual = rule_of("check: drift, of: mean")
    assert (usual.metric, usual.columns, usual.basis.metric) == (
        Metric.DRIFT,
        ("c",),
        Metric.MEAN,
    )
    assert (usual.severity, usual.expected) == (Severity.WARNING, "at most 4")
    strict = rule_of("check: drift, of: quantile, share: 0.5, k: 2.5", ", severity: error")
    assert (strict.severity, strict.expected) == (Severity.ERROR, "at most 2.5")
    assert strict.basis.rule == Quantile(Decimal("0.5"))
