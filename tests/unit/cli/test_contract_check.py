"""`lakegate contract check` reports mistakes before a contract is in force."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.contract_check import check
from cli.contract_hints import hints
from cli.main import app
from lakegate.contract.model import ContractInvalid
from tests.unit.contract.contract_texts import HEAD, contract_text

CHANNEL = HEAD + "support: [{channel: '#shop', tool: slack}]\n"
PATTERN, NAME = [(10, "pattern")], [(10, "name")]
# Keys of a column `c`, the refused field, and the reason.
MISTAKES = [
    (
        "quality: [{metric: nullValues, mustBe: 0, mustBeLesThan: 5}]",
        "mustBeLesThan",
        "mustBeLessThan?",
    ),
    ("quality: [{metric: nullValues, mustBe: 0, severity: eror}]", "severity", "error?"),
    ("quality: [{metric: nullValues, mustBeBetween: [5, 1]}]", "mustBeBetween", "smaller one"),
    ("logicalTypeOptions: {pattern: '(?<a>b)'}", "pattern", "not supported"),
    ("logicalTypeOptions: {pattern: '^(a+)+$'}", "pattern", "can take very long"),
    ("enum: [{value: 7}]", "value", "put it in quotes"),
]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["contract", "check", *map(str, arguments)])


def hinted(properties: str, head: str = CHANNEL) -> list[tuple[int, str]]:
    text = contract_text(properties, head=head)
    found = hints(text, "orders.yaml", check(text, "orders.yaml"))
    return [(hint.line, hint.field) for hint in found]


@pytest.mark.parametrize(("more", "field", "reason"), MISTAKES)
def test_a_mistake_is_reported_once_with_its_place(more: str, field: str, reason: str) -> None:
    """Each mistake is one problem, at its own field and line, with a remedy."""
    text = contract_text(f"- name: c\n  logicalType: string\n  {more}\n")
    with pytest.raises(ContractInvalid) as refusal:
        check(text, "orders.yaml")
    (problem,) = refusal.value.problems
    assert problem.line == 11
    assert field in problem.field
    assert reason in problem.reason


@pytest.mark.parametrize("version", ["v3.0.2", "v3.1.0", "v3.2.0"])
def test_each_version_of_the_standard_is_taken(version: str) -> None:
    """The newest schema accepts contracts of earlier versions of the standard."""
    text = contract_text("- {name: c, logicalType: string}").replace("v3.1.0", version)
    assert check(text, "orders.yaml").columns[1].name == "c"


def test_a_logical_type_is_demanded_in_our_own_words() -> None:
    """A missing logicalType is reported as such, not as the schema's missing map."""
    with pytest.raises(ContractInvalid) as refusal:
        check(contract_text("- {name: c}"), "orders.yaml")
    (problem,) = refusal.value.problems
    assert problem.field == "schema[0].properties[1].logicalType"
    assert problem.reason.startswith("is missing: give one of string, ")


@pytest.mark.parametrize(
    ("column", "fields"),
    [
        ("name: order_id, logicalTypeOptions: {pattern: '^[0-9]+'}, logicalType: string", PATTERN),
        ("name: a, logicalTypeOptions: {pattern: '[0-9]+'}, logicalType: string", PATTERN),
        ("name: customerName, logicalType: string", NAME),
        ("name: unit_price, logicalType: number", NAME),
        ("name: order_id, logicalTypeOptions: {pattern: '^[0-9]+$'}, logicalType: string", []),
        ("name: a, logicalTypeOptions: {pattern: '^[A-Z]'}, logicalType: string", []),
        ("name: carrier_name, logicalType: string", []),
        ("name: email, logicalType: string, classification: internal", []),
        ("name: unit_price, logicalType: number, physicalType: 'decimal(9,2)'", []),
    ],
)
def test_only_a_probable_slip_gets_a_hint(column: str, fields: list[tuple[int, str]]) -> None:
    """A valid setting that is probably a slip gets a hint with its line, an explicit one none."""
    found = hinted(f"- {{{column}}}")
    assert [(line, place.rpartition(".")[2]) for line, place in found] == fields


@pytest.mark.parametrize(
    ("settings", "quality", "reason"),
    [
        ("- {property: isolation, value: own}", "", "a job run of its own: its isolation is own"),
        (
            "",
            "- {metric: rowCount, mustBe: 1, customProperties: [{property: scope, value: table}]}",
            "a job run of its own: its check rowCountInTable depends on the table's existing rows",
        ),
        (
            "",
            "- {type: sql, query: SELECT count(*) FROM rates, mustBe: 1}",
            "a job run of its own: its check sql is a query",
        ),
        ("- {property: format, value: avro}", "", "each is ingested alone: files of the format"),
        ("- {property: format, value: csv}", "- {metric: rowCount, mustBe: 1}", ""),
    ],
)
def test_a_hint_says_why_files_share_little(settings: str, quality: str, reason: str) -> None:
    """One hint has the reason why the files of a contract need job runs or appends of their own."""
    text = contract_text(settings=settings, quality=quality, head=CHANNEL)
    found = hints(text, "orders.yaml", check(text, "orders.yaml"))
    assert [hint.field for hint in found] == ["schema[0]"] * bool(reason)
    assert all(reason in hint.reason for hint in found)


def test_hints_do_not_change_the_verdict(tmp_path: Path) -> None:
    """A contract with hints is valid: hints are separate lines, and the exit code is 0."""
    file = tmp_path / "a.yaml"
    file.write_text(contract_text("- {name: email, logicalType: string}"))
    said = run(file)
    assert said.exit_code == 0
    assert f"{file}: hint: line 9: schema[0].properties[1].name: looks personal" in said.stdout
    assert f"{file}: hint: line 1: support: without a Slack channel" in said.stdout


def test_a_directory_stands_for_its_contracts(tmp_path: Path) -> None:
    """Files and directories can be given together; no contract is checked twice."""
    file = tmp_path / "a.yaml"
    file.write_text(contract_text())
    assert run(tmp_path, file).stdout.count("shop.orders, 1 checks") == 1
    assert run(tmp_path, "--json").exit_code == 0


def test_contracts_that_clash_are_refused(tmp_path: Path) -> None:
    """Two contracts for one table are refused."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(contract_text())
    said = run(tmp_path)
    assert said.exit_code == 1
    assert "have the same landing prefix" in said.stderr


def test_json_has_the_problems_of_all_files(tmp_path: Path) -> None:
    """JSON has problems, hints and clashes of every file, and the exit code is 1."""
    bad = contract_text("- {name: c, logicalType: strin}")
    for name, text in {"a.yaml": contract_text(), "b.yaml": contract_text(), "c.yaml": bad}.items():
        (tmp_path / name).write_text(text)
    said = run(tmp_path, "--json")
    told: dict[str, Any] = json.loads(said.stdout)

    assert said.exit_code == 1
    good, _, refused = told["contracts"]
    assert (good["table"], good["checks"], good["problems"]) == (
        "shop.orders",
        ["id.nullValues"],
        [],
    )
    assert good["hints"][0]["field"] == "support"
    (problem,) = refused["problems"]
    assert (problem["line"], problem["field"]) == (9, "schema[0].properties[1].logicalType")
    assert "a.yaml" in told["clash"]
