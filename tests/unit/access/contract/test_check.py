"""`lakegate contract check` reports mistakes before a contract is in force."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from access.contract.check import check
from access.contract.hints import hints
from access.deployment.checkout import ROOT
from cli.main import app
from lakegate.contract.model import ContractInvalid
from lakegate.contract.text.yaml import load
from tests.unit.contract.contract_texts import HEAD, contract_text

CHANNEL = HEAD + "support: [{channel: '#shop', tool: slack}]\n"
PATTERN, NAME = [(10, "pattern")], [(10, "name")]
ITEM = "{logicalType: string, logicalTypeOptions: {pattern: '[0-9]+'}}"
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
    ("enum: [{value: 7}]", "value", "put it in quotes"),
    ("physicalName: ''", "physicalName", "is empty"),
    ("physicalType: varchars(7)", "physicalType", "did you mean varchar"),
    ("classification: #open", "classification", "# begins a comment"),
]
# A condition on the columns `id`, `day` and `place.city`, and what is wrong with it.
CONDITIONS = [
    ("id > 1 AND dya < current_date", "names dya, which is not a column of the contract"),
    ("`i d` > 1", "names i d, which"),
    ("(id > 1", "a ( that is never closed"),
    ("id > 1)", "a ) at character 7 that nothing opened"),
    ("id =< 1", "write <="),
    ("id > 1 AND", "ends with AND"),
    ("place.city = 'x", "has ' at character 14, which is never closed"),
    ("place.city = \u201cx\u201d", "the curly quote"),
]
RIGHT = [
    *("id > 1", "`ID` <=> 1", "place.city rlike '^x'", "day > current_date - interval 1 day"),
    *("date_add(DAY, 1, day) > now()", "exists(array(id), x -> x > 1)", 'place.city = "x"'),
    *("unknown rlike 'x'", "extract(year from day) > 2000", "id DIV 2 = 1", "`i``d` > 1"),
    " + ".join(["id"] * 500) + " > 0",
]
# A query or a transform, and what is wrong with it.
STATEMENTS = [
    ("SELECT count(*) FROM {table} WHERE idd > 1", "names idd", "query"),
    ("SELECT count(*) AS n FROM {object} HAVING n > 1", "", "query"),
    ("SELECT count(*) FROM shop.orders JOIN shop.rates USING (code)", "", "query"),
    ("SELECT id, day FROM file", "does not make the contract's column place", "transform"),
    ("SELECT id, day, place, dya FROM file", "makes the column dya", "transform"),
    ("SELECT * FROM file", "", "transform"),
]
# A YAML text that is none, the place, and what is said about it.
NO_YAML = [
    ("a:\n\tb: 1", 2, "a tab stands here: indent by spaces (column 1)"),
    ('a: "\\d+"', 1, r"\d means nothing in double quotes: use single quotes, or write \\d (column"),
    ("a:\n  b: 1\n c: 2", 3, "indented unlike the keys above it"),
    ("- a\nb: 1", 2, "indented unlike the items of the list above it"),
    ("a: x: y", 1, "a second `: ` in one value"),
    ('a: "open\nb: 1', 2, "a quote that was opened in an earlier line is never closed"),
    ("a: {b: 1\nc: 2", 2, "a bracket { or [ is never closed"),
    ("a: 1\nb\nc: 2", 3, "the line above has no `: ` after its key"),
    ("a: @x", 1, "a text that begins with @ needs quotes"),
    ("---\n", 1, "the text is empty"),
]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["contract", "check", *map(str, arguments)])


def hinted(properties: str, head: str = CHANNEL) -> list[tuple[int, str]]:
    text = contract_text(properties, head=head)
    found = hints(load(text, "orders.yaml", []), check(text, "orders.yaml"))
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


COLUMNS = """\
- {name: day, logicalType: date}
- {name: place, logicalType: object, properties: [{name: city, logicalType: string}]}
"""


def reasons(text: str) -> str:
    """Return the reasons for which a contract is refused, "" if it is not."""
    try:
        check(text, "orders.yaml")
    except ContractInvalid as invalid:
        return "; ".join(problem.reason for problem in invalid.problems)
    return ""


@pytest.mark.parametrize(("condition", "reason"), [*CONDITIONS, *((sql, "") for sql in RIGHT)])
def test_only_a_sure_mistake_in_a_condition_is_reported(condition: str, reason: str) -> None:
    """Unknown columns and broken syntax are problems; what only Spark can judge is left to it."""
    rule = {"check": "rowExpression", "expression": condition}
    quality = json.dumps([{"type": "custom", "engine": "lakegate", "implementation": rule}])
    found = reasons(contract_text(COLUMNS, quality=quality))
    assert reason in found if reason else not found


@pytest.mark.parametrize(("sql", "reason", "kind"), STATEMENTS)
def test_only_a_sure_mistake_in_a_statement_is_reported(sql: str, reason: str, kind: str) -> None:
    """A query names the table's columns, and a transform makes them; more tables are not judged."""
    query = json.dumps([{"type": "sql", "query": sql, "mustBe": 0}])
    setting = json.dumps([{"property": "transform", "value": sql}])
    is_query = kind == "query"
    given = {"quality": query} if is_query else {"settings": setting}
    found = reasons(contract_text(COLUMNS, **given))
    assert reason in found if reason else not found


@pytest.mark.parametrize(("text", "line", "reason"), NO_YAML)
def test_invalid_yaml_is_explained(text: str, line: int, reason: str) -> None:
    """A mistake in the notation is named in plain words, with its line and column."""
    with pytest.raises(ContractInvalid) as refusal:
        check(text, "orders.yaml")
    (problem,) = refusal.value.problems
    assert problem.line == line
    assert reason in problem.reason


def test_a_physical_type_is_not_a_logical_one() -> None:
    """The nearest logicalType is suggested, with the physicalType beside it where it matters."""
    for given, advice in {
        "int": "write logicalType: integer and physicalType: int",
        "bigint": "write logicalType: integer",
        "decimal(12,2)": "write logicalType: number and physicalType: decimal(12,2)",
    }.items():
        assert reasons(contract_text(f"- {{name: c, logicalType: '{given}'}}")).endswith(advice)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("checks for orders:\n- row_count > 0\n", "Soda"),
        ("dataset: shop/orders\nchecks: [{schema: {}}]\n", "Soda"),
        ("version: 2\nmodels: [{name: orders}]\n", "dbt"),
        ('{"expectation_suite_name": "a", "expectations": []}', "Great Expectations"),
        ("dataContractSpecification: 1.1.0\nid: a\n", "the Data Contract Specification"),
    ],
)
def test_a_file_of_another_tool_is_recognised(text: str, tool: str) -> None:
    """One problem says which tool the file is for, instead of one for each of its keys."""
    assert reasons(text).startswith(f"this is for {tool}, not a contract")


@pytest.mark.parametrize("version", ["v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0"])
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
        ("name: a, logicalTypeOptions: {pattern: '^(?!x)'}, logicalType: string", PATTERN),
        (f"name: a, logicalType: array, items: {ITEM}", PATTERN),
        ("name: customerName, logicalType: string", NAME),
        ("name: unit_price, logicalType: number", NAME),
        ("name: order_id, logicalTypeOptions: {pattern: '^[0-9]+$'}, logicalType: string", []),
        ("name: a, logicalTypeOptions: {pattern: '^[A-Z]'}, logicalType: string", []),
        ("name: a, logicalTypeOptions: {pattern: '^(a+)+$'}, logicalType: string", []),
        ("name: carrier_name, logicalType: string", []),
        ("name: tax_rate, logicalType: number", []),
        (
            "name: a, logicalType: string, enum: [{value: \u201cx\u201d}]",
            [(10, "value"), (10, "enum")],
        ),
        (
            "name: a, logicalType: string, enum: [{value: x}, {value: xy}], physicalType: char(1)",
            [(10, "enum"), (10, "invalidValues")],
        ),
        ("name: email, logicalType: string, classification: internal", []),
        ("name: unit_price, logicalType: number, physicalType: 'decimal(9,2)'", []),
    ],
)
def test_only_a_probable_slip_gets_a_hint(column: str, fields: list[tuple[int, str]]) -> None:
    """A valid setting that is probably a slip gets a hint with its line, an explicit one none."""
    found = hinted(f"- {{{column}}}")
    assert [(line, place.rpartition(".")[2]) for line, place in found] == fields


SCOPE = "customProperties: [{property: scope, value: table}]"
WIDE_KEY = f"primaryKey: true, quality: [{{metric: duplicateValues, mustBe: 0, {SCOPE}}}]"
OTHER = "customProperties: [{property: COMPARE_TO, value: other.table}]"
SODA = "{type: custom, engine: soda, implementation: x, severity: high}"
COLUMN, TYPE = "schema[0].properties[1]", "schema[0].properties[1].physicalType"
# Of the schema: settings or a rule, and why files share little.
SHARING = [
    ({"settings": "- {property: isolation, value: own}"}, "a job run of its own: its isolation"),
    (
        {"quality": f"- {{metric: rowCount, mustBe: 1, {SCOPE}}}"},
        "ingested alone: its check rowCountInTable depends on the table's existing rows",
    ),
    (
        {"quality": "- {type: sql, query: SELECT count(*) FROM rates, mustBe: 1}"},
        "each is ingested alone: its check sql is a query",
    ),
    ({"settings": "- {property: format, value: avro}"}, "alone: files of the format"),
]
# Keys of a column `c`, the field of the hint, "" for none, and what it says.
OF_COLUMNS = [
    ("logicalType: string, physicalType: '9'", TYPE, "9 is no type that Lakegate knows"),
    ("logicalType: number, physicalType: numeric", TYPE, "has 9 after the point for ever"),
    ("logicalType: integer, physicalType: number", "", ""),
    ("logicalType: object, physicalType: json", TYPE, "checks nothing within"),
    ("logicalType: date, physicalType: long", TYPE, "the column is date here"),
    (f"logicalType: string, quality: [{SODA}]", f"{COLUMN}.quality[0].engine", "another tool"),
    ("logicalType: integer, primaryKey: true", f"{COLUMN}.primaryKey", "unique per file only"),
]
# What stands beside the columns, the field of the hint, "" for none, and what it says.
OF_THE_REST = [
    (
        f"{HEAD}support: [{{channel: \u201c#shop\u201d, tool: slack}}]\n",
        "support[0].channel",
        "curly",
    ),
    (f"{HEAD}support: [{{channel: shop@a.org, tool: email}}]\n", "support", "no owner is notified"),
    (
        f"{CHANNEL}slaProperties: [{{property: frequency, value: 1, unit: d, element: order}}]\n",
        "slaProperties[0].element",
        "no file is overdue by this",
    ),
    *(
        (f"{CHANNEL}customProperties: [{{property: landingPrefix, value: {prefix}}}]\n", *hint)
        for prefix, hint in {
            "in/orders": ("customProperties[0].value", "takes files of in/orders_2/ as well"),
            "in/orders/": ("", ""),
            "in/orders-": ("", ""),
        }.items()
    ),
]


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        *((given, "schema[0]", reason) for given, reason in SHARING),
        ({"quality": "- {metric: rowCount, mustBe: 1}"}, "", ""),
        (
            {"quality": f"- {{metric: rowCount, mustBe: 1, {OTHER}}}"},
            "schema[0].quality[0].customProperties[0].property",
            "changes no check",
        ),
        *(({"properties": f"- {{name: c, {keys}}}"}, *hint) for keys, *hint in OF_COLUMNS),
        *(({"head": head}, *hint) for head, *hint in OF_THE_REST),
    ],
)
def test_what_does_less_or_costs_more_than_it_seems_gets_a_hint(
    given: dict[str, str], field: str, reason: str
) -> None:
    """Where a valid contract is probably not what its owner means, one hint says what it does."""
    text = contract_text(**{"head": CHANNEL, **given})
    found = hints(load(text, "orders.yaml", []), check(text, "orders.yaml"))
    assert [hint.field for hint in found] == [field] * bool(field)
    assert all(reason in hint.reason for hint in found)


def test_a_rule_for_another_engine_is_no_check() -> None:
    """A rule that only another tool checks is no check of a file."""
    text = contract_text(f"- {{name: c, logicalType: string, quality: [{SODA}]}}", head=CHANNEL)
    assert "c" not in {name for each in check(text, "o.yaml").checks for name in each.columns}


def test_a_key_that_is_compared_with_the_table_gets_no_hint_about_files() -> None:
    """The hint that a primary key is unique per file is absent where a rule looks further."""
    wide = hinted(f"- {{name: key, logicalType: integer, {WIDE_KEY}}}")
    assert not [field for _, field in wide if field.endswith("primaryKey")]


def test_a_contract_without_checks_gets_a_hint() -> None:
    """Columns alone are a contract; a hint says that any row that can be read is published."""
    text = contract_text(head=CHANNEL).replace(", required: true", "")
    (hint,) = hints(load(text, "orders.yaml", []), check(text, "orders.yaml"))
    assert "asks for no check" in hint.reason


def test_what_lies_within_a_confidential_column_gets_no_hint_about_persons() -> None:
    """A classification covers all parts of a column, which need none of their own."""
    street = "logicalType: object, properties: [{name: street, logicalType: string}]"
    near = hinted(f"- {{name: place, classification: confidential, {street}}}")
    inner = "schema[0].properties[1].properties[0].name"
    assert inner not in [field for _, field in near]
    assert inner in [field for _, field in hinted(f"- {{name: place, {street}}}")]


def test_hints_do_not_change_the_verdict(tmp_path: Path) -> None:
    """A contract with hints is valid: hints are separate lines, and the exit code is 0."""
    file = tmp_path / "a.yaml"
    file.write_text(contract_text("- {name: email, logicalType: string}"))
    said = run(file)
    assert said.exit_code == 0
    assert f"{file}: hint: line 9: schema[0].properties[1].name: looks personal" in said.stdout
    assert f"{file}: hint: line 1: support: without a Slack channel" in said.stdout


def test_a_hint_about_the_whole_contract_is_told_once(tmp_path: Path) -> None:
    """Each table has its own hints; one that both tables have is one line, or one annotation."""
    file = tmp_path / "a.yaml"
    table = contract_text()[contract_text().index("  - name") :]
    file.write_text(contract_text() + table.replace("shop.orders", "shop.lines"))
    assert run(file).stdout.count("support: without a Slack channel") == 1
    annotated = run(file, "--format", "github").stdout
    assert annotated.count("without a Slack channel") == 1
    assert annotated.count("checks") == 2, "each table has its own result"


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


@pytest.mark.parametrize("version", ["v3.0.2", "v3.1.0", "v3.2.0"])
def test_a_keyword_that_is_newer_than_the_version_gets_a_hint(version: str) -> None:
    """The first use of a keyword that the declared version lacks is named, with its version."""
    columns = "- {name: a, logicalType: string, enum: [{value: x}]}\n"
    columns += "- {name: b, logicalType: timestamp}\n- {name: c, logicalType: timestamp}\n"
    text = contract_text(columns, head=CHANNEL.replace("v3.1.0", version))
    found = hints(load(text, "orders.yaml", []), check(text, "orders.yaml"))
    newer = [hint.reason for hint in found if "of the standard" in hint.reason]
    enum = "enum came with v3.2.0 of the standard: declare apiVersion: v3.2.0"
    timestamp = "timestamp came with v3.1.0 of the standard: declare apiVersion: v3.1.0"
    assert newer == {"v3.0.2": [enum, timestamp], "v3.1.0": [enum], "v3.2.0": []}[version]


@pytest.mark.parametrize(
    "file",
    [
        "contracts/nyc.flights.yaml",
        "cli/files/sample_files.yaml",
        "docs/start.md",
        "docs/contracts.md",
    ],
)
def test_what_is_shipped_keeps_to_the_version_that_it_declares(file: str) -> None:
    """A shipped contract is valid by the newest schema, and uses no keyword newer than it says."""
    text = (ROOT / file).read_text()
    if file.endswith(".md"):
        (text, *_) = [
            each
            for each in re.findall(r"```yaml[^\n]*\n(.*?)```", text, re.DOTALL)
            if "kind:" in each
        ]
    found = hints(load(text, file, []), check(text, file))
    assert "apiVersion: v3.2.0" in text
    assert not [hint for hint in found if "of the standard" in hint.reason]


def test_a_pattern_on_a_number_is_said_to_restrict_texts() -> None:
    """A key for other types is refused with what the column's type can have."""
    text = contract_text(
        "- {name: c, logicalType: integer, logicalTypeOptions: {pattern: '^a$'}}\n"
    )
    assert reasons(text) == (
        "does not restrict values of type bigint: it can have minimum, maximum, exclusiveMinimum, "
        "exclusiveMaximum, multipleOf"
    )


def test_a_contract_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    """The line is that of the first character that is no UTF-8, also in annotations."""
    file = tmp_path / "orders.yaml"
    file.write_bytes("kind: DataContract\nid: a\n# für Müller\n".encode("latin-1"))

    told = CliRunner().invoke(app, ["contract", "check", str(file)])
    assert "  line 3: is not UTF-8 text" in told.stderr
    annotated = CliRunner().invoke(app, ["contract", "check", str(file), "--format", "github"])
    assert ",line=3,title=contract::is not UTF-8 text" in annotated.stdout
