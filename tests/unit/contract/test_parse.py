"""The columns, checks, file options and contacts of a parsed contract."""

import hashlib
from decimal import Decimal

import pytest

from lakegate.contract.checks import Check, Metric, Scope, Severity
from lakegate.contract.columns import Column
from lakegate.contract.expectations import Expectation, Operator, Unit
from lakegate.contract.model import parse
from lakegate.contract.rules import Rule
from tests.unit.contract.contract_texts import HEAD, contract_text, parsed

NONE = Expectation(Operator.EQUAL, Decimal(0))

TYPES = {
    "logicalType: string": "string",
    "logicalType: integer": "bigint",
    "logicalType: number": "double",
    "logicalType: boolean": "boolean",
    "logicalType: date": "date",
    "logicalType: timestamp": "timestamp",
    "logicalType: time": "string",
    "logicalType: string, physicalType: BINARY": "binary",
    "logicalType: string, physicalType: VARCHAR(2)": "string",
    "logicalType: integer, physicalType: int": "int",
    "logicalType: integer, physicalType: LONG": "bigint",
    "logicalType: integer, logicalTypeOptions: {format: i32}": "int",
    "logicalType: integer, physicalType: 'NUMERIC(20)'": "decimal(20,0)",
    "logicalType: number, physicalType: 'decimal(12, 2)'": "decimal(12,2)",
    "logicalType: number, physicalType: real": "float",
    "logicalType: number, physicalType: double precision": "double",
    "logicalType: number, logicalTypeOptions: {format: f32}": "float",
    "logicalType: timestamp, physicalType: timestamp_ntz": "timestamp_ntz",
    "logicalType: timestamp, logicalTypeOptions: {timezone: false}": "timestamp_ntz",
    # The names of other systems; a date was a timestamp, too, before v3.1.0 of the standard.
    "logicalType: integer, physicalType: INT64": "bigint",
    "logicalType: integer, physicalType: smallint": "int",
    "logicalType: integer, physicalType: NUMBER(9)": "decimal(9,0)",
    "logicalType: integer, physicalType: INT(11)": "int",
    "logicalType: integer, physicalType: uint32": "bigint",
    "logicalType: integer, physicalType: BYTEINT": "bigint",
    "logicalType: timestamp, physicalType: DateTime64(3)": "timestamp",
    "logicalType: time, physicalType: time(6)": "string",
    "physicalType: time(6)": "string",
    "logicalType: integer, physicalType: UInt64": "decimal(38,0)",
    "logicalType: string, physicalType: ntext": "string",
    "logicalType: date, physicalType: date32": "date",
    "logicalType: timestamp, physicalType: datetimeoffset(7)": "timestamp",
    "logicalType: timestamp, physicalType: timestamp_ns": "timestamp_ntz",
    "logicalType: integer, physicalType: NUMBER": "decimal(38,0)",
    "logicalType: number, physicalType: NUMERIC": "decimal(38,9)",
    "logicalType: number, physicalType: 'float(3,2)'": "float",
    "logicalType: string, physicalType: varchar2(7)": "string",
    "logicalType: string, physicalType: geography": "string",
    "logicalType: integer, physicalType: int2": "int",
    "logicalType: number, physicalType: float8": "double",
    "logicalType: string, physicalType: 'varchar[50]'": "string",
    "logicalType: object, physicalType: JSON": "string",
    "physicalType: 'decimal(9,2)'": "decimal(9,2)",
    "physicalType: text": "string",
    "physicalType: time": "string",
    "physicalType: timestamp_ntz": "timestamp_ntz",
    "logicalType: date, physicalType: timestamp": "timestamp",
    "logicalType: date, physicalType: long": "date",
    "logicalType: timestamp, physicalType: VARCHAR(30)": "timestamp",
    "logicalType: timestamp, physicalType: TIMESTAMP(6) WITH TIME ZONE": "timestamp",
    "logicalType: timestamp, physicalType: DATETIME": "timestamp_ntz",
    "logicalType: object, physicalType: record, properties: [{name: a, logicalType: string}]": (
        "struct<`a`:string>"
    ),
    "logicalType: object, physicalType: jsonb, properties: [{name: a, physicalType: text}]": (
        "struct<`a`:string>"
    ),
    "logicalType: timestamp, logicalTypeOptions: {defaultTimezone: Etc/UTC}": "timestamp",
}

RULES = {
    "logicalType: string, logicalTypeOptions: {pattern: '^a$', minLength: 1, maxLength: 9}": Rule(
        pattern="^a$", min_length=1, max_length=9
    ),
    "logicalType: string, physicalType: VARCHAR(2)": Rule(max_length=2),
    "logicalType: string, physicalType: 'bpchar[2]'": Rule(max_length=2),
    "physicalType: int2": Rule(minimum="-32768", maximum="32767"),
    "physicalType: smallint(6)": Rule(minimum="-32768", maximum="32767"),
    "physicalType: uint32": Rule(minimum="0", maximum="4294967295"),
    "logicalType: date, physicalType: smallint, logicalTypeOptions: {minimum: 2013-01-01}": Rule(
        minimum="2013-01-01"
    ),
    "physicalType: character varying(2)": Rule(max_length=2),
    "logicalType: integer, physicalType: tinyint, logicalTypeOptions: {minimum: 0}": Rule(
        minimum="0", maximum="127"
    ),
    "logicalType: integer, physicalType: tinyint, logicalTypeOptions: {maximum: 200}": Rule(
        minimum="-128", maximum="127"
    ),
    "logicalType: string, physicalType: CHAR(9), logicalTypeOptions: {maxLength: 3}": Rule(
        max_length=3
    ),
    "logicalType: string, enum: [{value: EWR}, {value: 'NO', label: no}]": Rule(
        valid_values=("EWR", "NO")
    ),
    "logicalType: integer, enum: [{value: 010}, {value: 0x1F}]": Rule(valid_values=("10", "31")),
    "logicalType: integer, logicalTypeOptions: {minimum: 1299.0}": Rule(minimum="1299"),
    "logicalType: boolean, enum: [{value: true}]": Rule(valid_values=("true",)),
    "logicalType: number, logicalTypeOptions: {exclusiveMinimum: -0.5, maximum: 1e3}": Rule(
        exclusive_minimum="-0.5", maximum="1000.0"
    ),
    "logicalType: number, physicalType: 'decimal(4,2)', enum: [{value: 99.990}]": Rule(
        valid_values=("99.990",)
    ),
    "logicalType: date, logicalTypeOptions: {minimum: 2013-01-01, format: yyyy-MM-dd}": Rule(
        minimum="2013-01-01"
    ),
    "logicalType: timestamp, logicalTypeOptions: {minimum: '2013-01-01 00:00:00+02:00'}": Rule(
        minimum="2012-12-31T22:00:00+00:00"
    ),
    "logicalType: timestamp, logicalTypeOptions: {maximum: 2013-01-01}": Rule(
        maximum="2013-01-01T00:00:00+00:00"
    ),
    "logicalType: timestamp, enum: [{value: 2013-01-01T02:30:00.5+02:00}]": Rule(
        valid_values=("2013-01-01T00:30:00.500000+00:00",)
    ),
    "logicalType: time, logicalTypeOptions: {maximum: '12:00:00'}": Rule(
        pattern="^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$", maximum="12:00:00"
    ),
}


@pytest.mark.parametrize(("declaration", "type_"), TYPES.items())
def test_a_declaration_means_a_column_type(declaration: str, type_: str) -> None:
    """A property's logical type, physical type and options give one column type."""
    assert parsed(f"- {{name: c, {declaration}}}").column("c").type == type_


@pytest.mark.parametrize(("declaration", "rule"), RULES.items())
def test_a_declaration_limits_the_values(declaration: str, rule: Rule) -> None:
    """Each declared limit of a property's values is one check that allows no failing row."""
    _, check = parsed(f"- {{name: c, {declaration}}}").checks
    assert (check.id, check.metric, check.columns) == ("c.invalidValues", Metric.INVALID, ("c",))
    assert (check.rule, check.expect, check.severity) == (rule, NONE, Severity.ERROR)


def test_a_column_carries_what_a_table_and_a_report_need() -> None:
    """The physical name names the column, and a restricted classification makes it confidential."""
    contract = parsed(
        "- {name: mail, physicalName: E-Mail.adresse ü, logicalType: string, "
        "description: where to write, classification: restricted}\n"
        "- {name: name, logicalType: string, classification: '4'}\n"
        "- {name: city, logicalType: string, classification: Public}"
    )
    assert contract.columns[1:] == (
        Column(
            "E-Mail.adresse ü", "string", "string", sensitive=True, description="where to write"
        ),
        Column("name", "string", "string", sensitive=True),
        Column("city", "string", "string"),
    )


def test_required_and_unique_are_checks_that_let_no_row_break_them() -> None:
    """`required` allows no nulls and `unique` allows no duplicates."""
    contract = parsed("- {name: c, logicalType: string, required: true, unique: true}")
    checks = [(c.id, c.metric, c.columns, c.expect) for c in contract.checks[1:]]
    assert checks == [
        ("c.nullValues", Metric.NULL, ("c",), NONE),
        ("c.duplicateValues", Metric.DUPLICATE, ("c",), NONE),
    ]


@pytest.mark.parametrize("name", ["[id]", "{id}"])
def test_a_column_with_brackets_around_its_name_may_be_unique(name: str) -> None:
    """Such a name, as databases export it, is no list's item and no map's key."""
    check = parsed(f"- {{name: '{name}', logicalType: string, unique: true}}").checks[-1]
    assert (check.metric, check.columns) == (Metric.DUPLICATE, (name,))


def test_a_primary_key_is_unique_as_a_whole_and_has_no_nulls() -> None:
    """A composite key is one uniqueness check, and each of its columns is required."""
    contract = parsed(
        "- {name: a, logicalType: string, primaryKey: true, primaryKeyPosition: 1}\n"
        "- {name: b, logicalType: string, primaryKey: true, primaryKeyPosition: 2}"
    )
    assert [c.required for c in contract.columns] == [True, True, True]
    assert [c.id for c in contract.checks] == [
        "id.nullValues",
        "a.nullValues",
        "b.nullValues",
        "a+b.duplicateValues",
    ]
    assert contract.checks[-1].columns == ("a", "b")


@pytest.mark.parametrize(
    ("severities", "expected"),
    [(("warning", "warning"), "warning"), (("warning", "info"), "error")],
)
def test_options_of_a_key_are_what_all_its_columns_say(
    severities: tuple[str, str], expected: str
) -> None:
    """A key of columns with one severity has it; columns that disagree leave it an error."""
    first, second = (f"[{{property: severity, value: {severity}}}]" for severity in severities)
    contract = parsed(
        f"- {{name: a, logicalType: string, primaryKey: true, customProperties: {first}}}\n"
        f"- {{name: b, logicalType: string, primaryKey: true, customProperties: {second}}}"
    )
    assert contract.checks[-1].id == "a+b.duplicateValues"
    assert contract.checks[-1].severity == expected


def test_a_primary_key_that_is_unique_is_checked_once() -> None:
    """A primary key of one column that is also unique is checked once."""
    contract = parsed("- {name: a, logicalType: string, primaryKey: true, unique: true}")
    assert [c.id for c in contract.checks[1:]] == ["a.nullValues", "a.duplicateValues"]


def test_a_stated_rule_is_taken_as_it_stands() -> None:
    """A check has its rule's metric, arguments, operator, unit, severity and description."""
    contract = parsed("""\
- name: c
  logicalType: string
  quality:
    - id: mostly_known
      metric: missingValues
      arguments: {missingValues: [null, '', N/A]}
      mustBeLessThan: 0.5
      unit: percent
      severity: warning
      description: orders of unknown origin
""")
    assert contract.checks[1] == Check(
        id="c.mostly_known",
        metric=Metric.MISSING,
        columns=("c",),
        rule=Rule(missing_values=(None, "", "N/A")),
        expect=Expectation(Operator.LESS, Decimal("0.5"), None, Unit.PERCENT),
        severity=Severity.WARNING,
        description="orders of unknown origin",
    )


@pytest.mark.parametrize("operator", Operator)
def test_every_operator_is_read(operator: Operator) -> None:
    """All eight operators of the standard are parsed with their thresholds."""
    high = Decimal(7) if "Between" in operator else None
    value = "[3, 7]" if high else "3"
    check = parsed(quality=f"- {{metric: rowCount, {operator}: {value}}}").checks[-1]
    assert (check.metric, check.columns) == (Metric.ROWS, ())
    assert check.expect == Expectation(operator, Decimal(3), high)


def test_rows_can_be_unique_in_several_columns() -> None:
    """A rule of the schema object names properties, and its check names their columns."""
    contract = parsed(
        "- {name: line, physicalName: Line No, logicalType: integer}",
        quality="- metric: duplicateValues\n  mustBe: 0\n  arguments: {properties: [id, line]}",
    )
    assert contract.checks[-1].columns == ("id", "Line No")
    assert contract.checks[-1].id == "id+Line No.duplicateValues"


def test_valid_values_need_no_null() -> None:
    """A null among the valid values has no effect, because a null is always valid."""
    contract = parsed(
        "- {name: c, logicalType: string, quality: [{metric: invalidValues, "
        "arguments: {validValues: [null, a]}, mustBe: 0}]}"
    )
    assert contract.checks[1].rule == Rule(valid_values=("a",))


def test_a_rule_that_is_only_text_is_no_check() -> None:
    """Rules of type text are documentation, and are not counted as checks."""
    contract = parsed(quality="- {type: text, description: all is well}")
    assert [c.id for c in contract.checks] == ["id.nullValues"]


def test_ids_stay_apart_where_rules_repeat() -> None:
    """A repeated metric gets a numbered id; ids that owners chose never change."""
    rule = "{metric: nullValues, mustBeLessThan: 9"
    contract = parsed(
        "- {name: c, logicalType: string, required: true, quality: "
        f"[{rule}}}, {rule}, name: nullValues#2}}, {rule}}}]}}"
    )
    assert [c.id for c in contract.checks[1:]] == [
        "c.nullValues",
        "c.nullValues#3",
        "c.nullValues#2",
        "c.nullValues#4",
    ]


def test_a_check_says_what_it_counts() -> None:
    """A check without its own description is described by its metric."""
    contract = parsed(
        "- {name: c, logicalType: string, required: true, unique: true, "
        "enum: [{value: A}, {value: ''}], logicalTypeOptions: {minLength: 1, maxLength: 1}}\n"
        "- {name: n, logicalType: integer, logicalTypeOptions: {minimum: 1, maximum: 12}}\n"
        "- {name: m, logicalType: integer, logicalTypeOptions: {exclusiveMinimum: 0, maximum: 9}}\n"
        "- {name: p, logicalType: string, logicalTypeOptions: {pattern: ^x, maxLength: 3}}\n"
        "- {name: q, logicalType: string, quality: [{metric: missingValues, mustBe: 0, "
        "arguments: {missingValues: [null, N/A]}}]}"
    )
    assert [c.description for c in contract.checks[1:]] == [
        "rows without c",
        "rows that repeat another row's c",
        "rows whose c is not one of A, '' and 1 characters long",
        "rows whose n is not between 1 and 12",
        "rows whose m is not above 0 and at most 9",
        "rows whose p is not like ^x and at most 3 characters long",
        "rows whose q is one of null, N/A",
    ]


BEYOND = "customProperties: [{property: scope, value: table}]"


def test_a_check_may_look_at_the_whole_table() -> None:
    """The table scope applies to duplicates and row counts, and appears in wording and id."""
    contract = parsed(
        "- name: c\n  logicalType: string\n"
        f"  quality: [{{metric: duplicateValues, mustBe: 0, {BEYOND}}}]",
        quality=f"- {{metric: rowCount, mustBeLessThan: 10, {BEYOND}}}",
    )
    _, unique, rows = contract.checks
    assert (unique.id, unique.scope) == ("c.duplicateValuesInTable", Scope.TABLE)
    assert unique.measure == "rows that repeat another row's c in the whole table"
    assert unique.description == unique.measure
    assert (rows.id, rows.scope) == ("rowCountInTable", Scope.TABLE)
    assert rows.expected == "fewer than 10 rows in the whole table"
    assert rows.found(12, 3) == "12 rows in the whole table"


def test_only_a_scope_makes_a_contract_look_beyond_the_file() -> None:
    """A contract without the table scope is judged by the file alone."""
    rule = "- {metric: rowCount, mustBe: 1, customProperties: [{property: scope, value: SCOPE}]}"
    of_file, of_table = [parsed(quality=rule.replace("SCOPE", s)) for s in ("file", "table")]
    assert not parsed().checks_whole_table
    assert not of_file.checks_whole_table
    assert of_table.checks_whole_table
    assert of_file.requirements_digest != of_table.requirements_digest


def test_a_long_list_of_values_is_cut_short_for_people() -> None:
    """The wording of a long list of valid values names twelve and counts the others."""
    values = ", ".join(f"{{value: v{n}}}" for n in range(20))
    contract = parsed(f"- {{name: c, logicalType: string, enum: [{values}]}}")
    assert contract.checks[1].description.endswith("v11 and 8 more")


def test_missing_settings_have_defaults() -> None:
    """The defaults are parquet, a prefix of namespace and table, samples, and no channel."""
    text = contract_text()
    contract = parse(text, "orders.yaml")
    assert (contract.id, contract.version, contract.table) == (
        "shop-orders",
        "1.0.0",
        "shop.orders",
    )
    assert (contract.landing_prefix, contract.format) == ("shop/orders/", "parquet")
    assert (contract.options, contract.allow_samples) == ({}, True)
    assert (contract.owner, contract.channel) == ("", "")
    assert (contract.on_duplicate, contract.on_new_version) == ("publish", "add")
    assert (contract.isolation, contract.write, contract.batches) == ("shared", "auto", ())
    assert contract.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_a_contract_says_what_a_file_that_comes_again_means() -> None:
    """Known bytes can wait for a decision, and a key's new bytes can replace its earlier rows."""
    contract = parsed(
        settings="- {property: onDuplicate, value: hold}\n"
        "- {property: onNewVersion, value: replace}"
    )
    assert (contract.on_duplicate, contract.on_new_version) == ("hold", "replace")


def test_a_contract_may_leave_all_rows_to_spark() -> None:
    """`write: spark` is read, and requires nothing else of rows than the default does."""
    by_spark = parsed(settings="- {property: write, value: spark}")
    assert by_spark.write == "spark"
    assert by_spark.requirements_digest == parsed().requirements_digest


@pytest.mark.parametrize(
    ("value", "prefixes"),
    [
        ("allowed", ("batches/",)),
        ("[batches/shop-, batches/till/]", ("batches/shop-", "batches/till/")),
        ("[]", ()),
    ],
)
def test_a_contract_says_which_batches_may_bring_its_files(
    value: str, prefixes: tuple[str, ...]
) -> None:
    """All batches may, or those whose manifests begin with one of the prefixes."""
    assert parsed(settings=f"- {{property: batches, value: {value}}}").batches == prefixes


def test_files_of_csv_are_read_as_their_options_say() -> None:
    """CSV has a header, commas, doubled quotes and UTF-8 unless the options differ."""
    contract = parsed(
        settings="- {property: format, value: csv}\n"
        "- {property: landingPrefix, value: drop/orders-}\n"
        "- {property: allowSamples, value: false}\n"
        "- {property: options, value: {delimiter: '\\t', header: false, nullValue: n/a}}\n"
        "- {property: somebodyElses, value: [1, 2]}"
    )
    assert (contract.landing_prefix, contract.allow_samples) == ("drop/orders-", False)
    assert contract.options == {
        "header": "false",
        "delimiter": "\t",
        "quote": '"',
        "escape": '"',
        "nullValue": "n/a",
        "encoding": "UTF-8",
        "maxCompressionRatio": "200",
    }


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("{header: 'false'}", "header", "false"),
        ("{header: true}", "header", "true"),
        ("{encoding: utf-16le}", "encoding", "UTF-16LE"),
        ("{nullValue: ''}", "nullValue", ""),
    ],
)
def test_options_may_be_written_as_spark_takes_them(options: str, name: str, value: str) -> None:
    """Options accept Spark's notation: a header "true" as text, an encoding in lower case."""
    settings = f"- {{property: format, value: csv}}\n- {{property: options, value: {options}}}"
    assert parsed(settings=settings).options[name] == value


def test_the_name_of_a_topic_is_not_that_of_its_table() -> None:
    """Data of a topic enter the table that the object's name gives."""
    elsewhere = "name: shop.orders\n    physicalName: order-events\n    physicalType: topic\n"
    text = contract_text().replace("name: shop.orders\n", elsewhere)
    assert parse(text, "orders.yaml").table == "shop.orders"


def test_settings_may_stand_at_the_schema_object() -> None:
    """Lakegate's settings are read from the contract and from its schema object."""
    text = contract_text().replace(
        "name: shop.orders\n",
        "name: orders\n    physicalName: shop.orders\n"
        "    customProperties: [{property: format, value: json}]\n",
    )
    contract = parse(text, "orders.yaml")
    assert (contract.table, contract.format, contract.options) == (
        "shop.orders",
        "json",
        {"maxCompressionRatio": "200"},
    )


@pytest.mark.parametrize(
    ("team", "owner"),
    [
        ("{name: Shop team, members: [{username: ada}]}", "Shop team"),
        ("{members: [{username: bob}, {username: ada, role: Data Owner}]}", "ada"),
        ("[{username: bob, name: Bob}, {username: ada, role: steward}]", "Bob"),
        ("{members: []}", ""),
    ],
)
def test_the_owner_is_the_team_or_its_owner(team: str, owner: str) -> None:
    """The owner is the team's name, else its member with the role owner, else its first member.

    This holds in both notations of a team.
    """
    text = contract_text(head=f"{HEAD}team: {team}\n")
    assert parse(text, "orders.yaml").owner == owner


@pytest.mark.parametrize(
    ("support", "channel"),
    [
        ("[{channel: C0123, tool: slack}]", "C0123"),
        ("[{channel: C0123, tool: Slack}]", "C0123"),
        ("[{channel: a@example.org, tool: email}, {channel: '#orders'}]", "#orders"),
        ("[{channel: '#orders', tool: teams}]", ""),
    ],
)
def test_the_channel_is_the_first_one_of_slacks(support: str, channel: str) -> None:
    """A support channel is Slack's if its tool says so, or, without a tool, if it begins with #."""
    text = contract_text(head=f"{HEAD}support: {support}\n")
    assert parse(text, "orders.yaml").channel == channel


@pytest.mark.parametrize("version", ["v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0"])
def test_the_standards_living_versions_are_taken(version: str) -> None:
    """Contracts of ODCS 3.0.2, 3.1 and 3.2 are valid."""
    text = contract_text(head=HEAD.replace("v3.1.0", version))
    assert parse(text, "orders.yaml").table == "shop.orders"
