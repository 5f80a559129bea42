"""The refusal of contracts, with the line and field of each problem."""

import re

import pytest

from lakegate.contract.model import ContractInvalid, parse
from tests.unit.contract.contract_texts import (
    HEAD,
    assert_refused,
    contract_text,
    parsed,
    problems_of,
)

PROPERTY = "schema[0].properties[1]"
RULE = f"{PROPERTY}.quality[0]"
IN_DAYS = "{property: scope, value: {windowDays: 3}}"
TWO_DATES = "[{name: a, logicalType: date}, {name: A, logicalType: date}]"
AN_ARRAY = "logicalType: array, items: {logicalType: string}"
ONE_TEXT = "[{name: name, logicalType: string}]"
A_MAP = "{logicalType: map, map: {key: {logicalType: string}, value: {logicalType: string}}}"
KEPT_OUT = "customProperties: [{property: onBadRow, value: quarantine}"
DISTINCT = "{type: custom, engine: lakegate, implementation: {check: distinctCount, mustBe: 1}}"

# The declarations of a property named c, the field that is refused, and the reason.
PROPERTIES = [
    (
        f"{AN_ARRAY}, logicalTypeOptions: {{minItems: 3, maxItems: 2}}",
        "logicalTypeOptions.minItems",
        "no value is valid",
    ),
    (
        "logicalType: string, physicalType: VARCHAR(2), logicalTypeOptions: {minLength: 3}",
        "logicalTypeOptions.minLength",
        "no value is valid",
    ),
    (
        "logicalType: integer, physicalType: tinyint, logicalTypeOptions: {minimum: 128}",
        "logicalTypeOptions.minimum",
        "128 is not below 127",
    ),
    (
        "logicalType: integer, logicalTypeOptions: {minimum: 5}, enum: [{value: 1}, {value: 4}]",
        "enum",
        "lists no value that the rule's limits allow",
    ),
    ("logicalType: string, physicalType: VARCHAR(2), enum: [{value: ABC}]", "enum", "lists no"),
    ("physicalType: record", "logicalType", "is missing"),
    ("logicalType: strng", "logicalType", "did you mean string"),
    (
        "logicalType: integr, physicalType: smallint, logicalTypeOptions: {minimum: low}",
        "logicalType",
        "did you mean integer",
    ),
    ("logicalType: array, items: {logicalType: strin}", "items.logicalType", "did you mean string"),
    ("logicalType: array", "items", "must be a mapping"),
    ("logicalType: object, properties: []", "properties", "needs properties"),
    ("logicalType: string, items: {logicalType: string}", "items", "belongs to logicalType array"),
    ("logicalType: map, map: {key: {logicalType: string}}", "map.value", "must be a mapping"),
    (
        f"logicalType: object, properties: {TWO_DATES}",
        "properties[1]",
        "declared twice",
    ),
    (
        "logicalType: array, items: {logicalType: string, unique: true}",
        "items.unique",
        "cannot be unique",
    ),
    (
        f"logicalType: string, unique: true, customProperties: [{IN_DAYS}]",
        "customProperties[0].property",
        "write the check as a rule under quality",
    ),
    (
        "logicalType: array, items: {logicalType: string}, enum: [{value: a}]",
        "enum[0].value",
        "a column of type array has no literals",
    ),
    (f"logicalType: string, unique: true, {KEPT_OUT}]", "customProperties", "has no effect here"),
    (
        f"logicalType: string, required: true, {KEPT_OUT}, {{property: severity, value: info}}]",
        "customProperties",
        "for errors alone",
    ),
    (f"unique: true, {A_MAP[1:-1]}", "", "is a map or holds any, which cannot be compared"),
    (f"primaryKey: true, {A_MAP[1:-1]}", "", "leave it out of duplicateValues"),
    (
        f"logicalType: array, items: {A_MAP}, quality: [{DISTINCT}]",
        "quality[0]",
        "leave it out of distinctCount",
    ),
    (
        "logicalType: object, properties: [{name: a, logicalType: string, primaryKey: true}]",
        "properties[0].primaryKey",
        "only whole columns are a key",
    ),
    ("logicalType: vector", "logicalTypeOptions.dimensions", "number of dimensions"),
    ("logicalType: string, requird: true", "requird", "did you mean required"),
    ("logicalType: string, required: 'yes'", "required", "true or false, without quotes"),
    ("logicalType: string, required: yes", "required", "true or false"),
    ("logicalType: string, required: null", "required", "is null"),
    ("logicalType: string, semanticType: measure", "semanticType", "not a column"),
    ("logicalType: string, relationships: [{to: a}]", "relationships[0].to", "does not name"),
    ("logicalType: integer, physicalType: bigints", "physicalType", "did you mean bigint?"),
    ("logicalType: integer, physicalType: text", "physicalType", "not a type for a column"),
    ("logicalType: number, physicalType: 'decimal(39,1)'", "physicalType", "1 to 38 digits"),
    ("logicalType: number, physicalType: 'decimal(2,3)'", "physicalType", "1 to 38 digits"),
    (
        "logicalType: integer, physicalType: 'decimal(9,2)'",
        "physicalType",
        "digits after the point",
    ),
    ("logicalType: string, physicalType: text(24)", "physicalType", "takes no such numbers"),
    ("logicalType: date, physicalType: binary", "physicalType", "not a type for a column"),
    ("logicalType: date, physicalType: time", "physicalType", "not a type for a column"),
    (
        "logicalType: integer, physicalType: int, logicalTypeOptions: {format: i64}",
        "physicalType",
        "means int, but the logicalTypeOptions mean bigint",
    ),
    ("logicalType: string, logicalTypeOptions: [a]", "logicalTypeOptions", "must be a mapping"),
    (
        "logicalType: timestamp, physicalType: timestamp_ntz, enum: [{value: 2013-01-01T00:00Z}]",
        "enum[0].value",
        "not a timestamp_ntz",
    ),
    ("logicalType: string, enum: []", "enum", "lists no value"),
    ("logicalType: string, enum: [{label: A}]", "enum[0]", "must have a value"),
    ("logicalType: string, enum: [A]", "enum[0]", "must have a value"),
    ("logicalType: string, enum: [{value: 007}]", "enum[0].value", "put it in quotes"),
    ("logicalType: string, enum: [{value: true}]", "enum[0].value", "put it in quotes"),
    ("logicalType: boolean, enum: [{value: 'NO'}]", "enum[0].value", "not true or false"),
    ("logicalType: string, physicalType: binary, enum: [{value: a}]", "enum[0].value", "binary"),
]

# The type of a property named c, options of which the first is refused, and the reason.
OPTIONS = [
    (f"object, properties: {ONE_TEXT}", "required: [nme]", "did you mean name"),
    (f"array, items: {A_MAP}", "uniqueItems: true", "cannot be compared"),
    ("number", "multipleOf: 1.0e-19", "at most 18 digits"),
    ("array, items: {logicalType: date}", "minLength: 1", "does not restrict"),
    ("integer", "format: u7", "u8"),
    ("timestamp", "timezone: 1", ""),
    ("timestamp", "defaultTimezone: Europe/Berlin", "only UTC"),
    ("time", "timezone: true", ""),
    ("string", "minimum: 1", ""),
    ("string", "format: mail", ""),
    ("integer", "multipleOf: 0", ""),
    ("integer", "minimun: 5", "did you mean minimum"),
    ("integer", "minimum: abc", "'abc' is not a whole number, but the column is bigint"),
    ("integer", "minimum: '5'", "'5'"),
    ("integer", "minimum: 0.5", "0.5"),
    ("integer", "minimum: true", ""),
    ("integer, physicalType: int", "maximum: 2147483648", "beyond"),
    ("number", "maximum: .inf", ""),
    ("number", "maximum: 1e400", ""),
    ("number, physicalType: 'decimal(4,2)'", "maximum: 100", "does not fit"),
    ("number, physicalType: 'decimal(4,2)'", "maximum: 0.001", "does not fit"),
    ("date", "minimum: 2013-02-30", ""),
    ("date", "minimum: 01/02/2013", ""),
    ("timestamp", "minimum: now", ""),
    ("time", "minimum: '9:00'", ""),
    ("integer", "minimum: [1]", ""),
    ("integer", "minimum: ", "null"),
    ("integer", "minimum: 9, maximum: 8", "no value is valid: 9 is not below 8"),
    ("integer", "exclusiveMinimum: 8, maximum: 8", "no value is valid"),
    ("timestamp", "minimum: 2013-01-02, maximum: 2013-01-01", "no value is valid"),
    ("string", "minLength: 3, maxLength: 2", "no value is valid"),
    ("string", "minLength: -1", ""),
    ("string", "pattern: '['", "["),
    ("string", "pattern: ''", "empty"),
]

SETTINGS = [
    ("{property: landingPrefx, value: a/}", "[0].property", "did you mean landingPrefix"),
    ("{property: landingPrefix, value: /a/}", ".landingPrefix", "no slash before it"),
    ("{property: landingPrefix, value: 's3://b/a/'}", ".landingPrefix", "no bucket"),
    ("{property: landingPrefix, value: batches/a/}", ".landingPrefix", "only with a manifest"),
    ("{property: landingPrefix, value: ''}", ".landingPrefix", "is empty"),
    ("{property: landingPrefix, value: null}", "[0].value", "is missing, or null"),
    ("{propert: landingPrefix, value: a/}", "[0].propert", "did you mean property"),
    (
        "{property: format, value: csv}\n- {property: format, value: json}",
        "[1]",
        "given twice, first in line",
    ),
    ("{property: format, value: parket}", ".format", "did you mean parquet"),
    (
        "{property: format, value: avro}\n- {property: options, value: {header: true}}",
        ".options.header",
        "unknown key",
    ),
    ("{property: allowSamples, value: no}", ".allowSamples", "true or false"),
    ("{property: onDuplicate, value: reject}", ".onDuplicate", "use one of publish, hold"),
    ("{property: onNewVersion, value: replac}", ".onNewVersion", "did you mean replace"),
    ("{property: write, value: copy}", ".write", "use one of auto, spark"),
    ("{property: onNewVersions, value: add}", "[0].property", "did you mean onNewVersion"),
    ("{property: options, value: {header: true}}", ".options.header", "unknown key"),
    ("{property: warnUnless, value: {mustBe: 0}}", "[0].property", "under quality"),
    ("{property: batches, value: true}", ".batches", "must be allowed, or a list"),
    ("{property: batches, value: alowed}", ".batches", "must be allowed, or a list"),
    ("{property: batches, value: [batches/shop-, shop/]}", ".batches[1]", "begins with batches/"),
    ("{property: batches, value: ['']}", ".batches[0]", "begins with batches/"),
    ("{property: batches, value: [3]}", ".batches[0]", "begins with batches/"),
]

CSV_OPTIONS = [
    ("{seperator: ';'}", ".seperator", "unknown key"),
    ("{delimiter: ''}", ".delimiter", "one character"),
    ("{delimiter: '||'}", ".delimiter", "one character"),
    ("{delimiter: '\"'}", ".delimiter", "is the quote"),
    ("{quote: ''}", ".quote", "one character"),
    ("{header: 'yes'}", ".header", "true or false"),
    ("{sep: ','}", ".sep", "called delimiter"),
    ("{encoding: windows-1250}", ".encoding", "use one of UTF-8"),
    ("{nullValue: NULL}", ".nullValue", "in quotes"),
    ("{decimalSeparator: ' '}", ".decimalSeparator", "as in 12,5"),
]

HEADS = [
    (HEAD.replace("DataContract", "Contract"), "kind", "did you mean DataContract"),
    (HEAD.replace("v3.1.0", "v2.2.2"), "apiVersion", "use one of v3.0.0"),
    (HEAD.replace("1.0.0", "1.0"), "version", "in quotes"),
    (HEAD.replace("id: shop-orders\n", ""), "id", "is missing"),
    (HEAD + "stauts: active\n", "stauts", "unknown key"),
    (HEAD + "support: [{chanel: '#a'}]\n", "support[0].chanel", "did you mean channel"),
]


@pytest.mark.parametrize("name", ["ID", "\u0130d", "\u0131D"])
def test_names_that_spark_takes_for_one_are_refused(name: str) -> None:
    """Spark compares each character in upper and in lower case: a dot on an I is no difference."""
    column = f'- {{name: "{name}", logicalType: string}}'
    assert_refused(contract_text(column), PROPERTY, "declared twice")
    parsed('- {name: "stra\u00dfe", logicalType: string}\n- {name: strasse, logicalType: string}')


@pytest.mark.parametrize("within", [False, True])
def test_a_backtick_in_a_column_of_orc_is_refused(*, within: bool) -> None:
    """ORC's library for Java cuts such a name: the column would be missing in every file."""
    column = '- {name: "a`b", logicalType: string}'
    if within:
        column = f"- {{name: c, logicalType: object, properties: [{column[2:]}]}}"
    settings = "- {property: format, value: orc}\n"
    reason = "cuts the name"
    assert_refused(contract_text(column, settings=settings), "customProperties.format", reason)
    renamed = '- {property: transform, value: "SELECT id, b AS `a``b` FROM file"}\n'
    assert within or parsed(column, settings=settings + renamed)
    assert parsed(column, settings=settings.replace("orc", "parquet"))


@pytest.mark.parametrize(("logical_type", "options", "reason"), OPTIONS)
def test_an_option_that_cannot_be_kept_is_refused(
    logical_type: str, options: str, reason: str
) -> None:
    """An option that is unknown or invalid for the column's type is refused."""
    column = f"- {{name: c, logicalType: {logical_type}, logicalTypeOptions: {{{options}}}}}"
    field = f"{PROPERTY}.logicalTypeOptions.{options.partition(':')[0]}"
    assert_refused(contract_text(column), field, reason)


@pytest.mark.parametrize(("declaration", "field", "reason"), PROPERTIES)
def test_a_declaration_that_cannot_be_kept_is_refused(
    declaration: str, field: str, reason: str
) -> None:
    """An invalid declaration, or one that no check would enforce, is refused."""
    text = contract_text(f"- {{name: c, {declaration}}}")
    assert_refused(text, f"{PROPERTY}.{field}".rstrip("."), reason)


@pytest.mark.parametrize(("setting", "field", "reason"), SETTINGS)
def test_a_setting_that_cannot_be_kept_is_refused(setting: str, field: str, reason: str) -> None:
    """An invalid setting of the contract's files is refused."""
    assert_refused(contract_text(settings=f"- {setting}"), f"customProperties{field}", reason)


@pytest.mark.parametrize(("options", "field", "reason"), CSV_OPTIONS)
def test_an_option_of_csv_that_cannot_be_kept_is_refused(
    options: str, field: str, reason: str
) -> None:
    """A CSV option that the reader does not support is refused."""
    settings = f"- {{property: format, value: csv}}\n- {{property: options, value: {options}}}"
    assert_refused(contract_text(settings=settings), f"customProperties.options{field}", reason)


@pytest.mark.parametrize(("head", "field", "reason"), HEADS)
def test_a_head_that_is_wrong_is_refused(head: str, field: str, reason: str) -> None:
    """An invalid field at the top of the contract is refused."""
    assert_refused(contract_text(head=head), field, reason)


@pytest.mark.parametrize(
    "name", ["shop.orders.new", "shop.", "shop.or ders", "1.a", "shop.ordérs", "shop/a.b"]
)
def test_a_table_is_named_by_namespace_and_name(name: str) -> None:
    """A table's name is two plain identifiers, valid in keys, branches and SQL."""
    text = contract_text().replace("shop.orders", name)
    assert_refused(text, "schema[0].name", "as in nyc.flights")


def test_a_table_without_a_namespace_is_in_the_usual_one() -> None:
    """A name alone is one in the namespace `default`, as in Spark; so is its landing prefix."""
    contract = parse(contract_text().replace("shop.orders", "orders"), "a test")
    assert (contract.table, contract.landing_prefix) == ("default.orders", "default/orders/")


@pytest.mark.parametrize("name", ["' '", '"a\\0"', '"a\\nb"', "_pos", "_Times", "a" * 256])
def test_a_column_cannot_have_any_name(name: str) -> None:
    """Invisible column names and names that the engine reserves are refused."""
    text = contract_text(f"- {{name: {name}, logicalType: string}}")
    assert [p for p in problems_of(text) if p.field == f"{PROPERTY}.name"]


@pytest.mark.parametrize("name", ["total amount", "größe", "a.b", "a`b", "select", "1st"])
def test_a_column_may_have_an_unusual_name(name: str) -> None:
    """A column's name may have spaces, dots, umlauts, quotes and keywords."""
    assert parsed(f'- {{name: "{name}", logicalType: string}}').columns[1].name == name


def test_one_name_never_means_two_columns() -> None:
    """A column with the same name as a path to a nested one is refused."""
    nested = "{name: a, logicalType: object, properties: [{name: b, logicalType: string}]}"
    (problem,) = problems_of(contract_text(f"- {nested}\n- {{name: A.b, logicalType: string}}"))
    assert "'A.b' is also what lies within another column" in problem.reason


def test_columns_that_differ_in_case_only_are_refused() -> None:
    """Columns that differ only in case are refused with the line of the first, as in Spark."""
    found = problems_of(contract_text("- {name: ID, logicalType: string}"))
    assert [(p.field, p.line) for p in found] == [(PROPERTY, 9)]
    assert "first in line 8" in found[0].reason


@pytest.mark.parametrize("schema", ["", "schema: []\n", "schema: a\n"])
def test_a_contract_describes_a_table(schema: str) -> None:
    """A contract with no table is refused for that alone."""
    assert [p.field for p in problems_of(HEAD + schema) if "list" not in p.reason] == ["schema"]


def test_a_contract_in_force_describes_one_table() -> None:
    """A text that was stored with several tables is refused with what divides it."""
    assert_refused(HEAD + "schema: [{}, {}]\n", "schema", "lakegate contract push divides them")


@pytest.mark.parametrize("properties", ["", "    properties: []\n", "    properties: {a: b}\n"])
def test_a_table_has_columns(properties: str) -> None:
    """A table without columns is refused."""
    text = f"{HEAD}schema:\n  - name: a.b\n{properties}"
    assert_refused(text, "schema[0].properties", "has no columns")


def test_a_scope_of_another_tool_is_left_to_it() -> None:
    """A scope that Lakegate could not mean is a word of another tool, as any other is."""
    scope = "customProperties: [{property: scope, value: internal}]"
    assert parse(contract_text(f"- {{name: c, logicalType: string, {scope}}}"), "c.yaml").columns


def test_a_range_may_be_a_single_value() -> None:
    """Equal bounds are valid unless one of them is exclusive."""
    column = "- {name: c, logicalType: integer, logicalTypeOptions: {minimum: 5, maximum: 5}}"
    assert not problems_of(contract_text(column))


def test_bounds_are_compared_as_instants() -> None:
    """Bounds are compared as instants, regardless of their time zones."""
    bounds = "minimum: 2013-01-01T02:00+02:00, maximum: 2013-01-01T01:00Z"
    column = f"- {{name: c, logicalType: timestamp, logicalTypeOptions: {{{bounds}}}}}"
    assert not problems_of(contract_text(column))
    text = contract_text(column.replace("+02:00", "-02:00"))
    assert_refused(text, f"{PROPERTY}.logicalTypeOptions.minimum", "no value is valid")


JSON, CSV = (f"- {{property: format, value: {format_}}}" for format_ in ("json", "csv"))


def test_dates_in_json_are_read_as_iso_alone() -> None:
    """JSON accepts ISO dates only, CSV accepts other patterns, and parquet ignores them."""
    column = "- {name: c, logicalType: date, logicalTypeOptions: {format: dd.MM.yyyy}}"
    text = contract_text(column, settings=JSON)
    assert_refused(text, f"{PROPERTY}.logicalTypeOptions.format", "ISO 8601 alone")
    assert not problems_of(text.replace("dd.MM.yyyy", "yyyy-MM-dd"))
    assert not problems_of(contract_text(column))
    assert parsed(column, settings=CSV).columns[-1].written == "dd.MM.yyyy"


@pytest.mark.parametrize(
    ("ending", "written"),
    [
        ("HH:mm:ss", False),
        ("HH:mm", False),
        ("HH:mm:ss.SSSSSSXXX", False),
        ("HH:mm[:ss][.SSS]['Z']", False),
        ("HH.mm.ss", True),
        ("HHmmss", True),
        ("hh:mm:ss a", True),
    ],
)
def test_a_pattern_of_a_time_after_t_is_kept_unless_it_is_iso(ending: str, written: bool) -> None:
    """Only a pattern of ISO 8601 is read as such: cells of any other would all be unreadable."""
    pattern = f"yyyy-MM-dd'T'{ending}"
    options = f'logicalTypeOptions: {{format: "{pattern}"}}'
    column = f"- {{name: c, logicalType: timestamp, {options}}}"
    assert parsed(column, settings=CSV).columns[-1].written == pattern * written


@pytest.mark.parametrize(
    ("logical", "pattern", "reason"),
    [
        ("date", "dd.MM", "needs y"),
        ("date", "dd.MMMM.yyyy", "not supported in a pattern"),
        ("date", "dd.LLL.yyyy", "not supported in a pattern"),
        ("date", "uuuu-MM-dd", "made of y M d"),
        ("date", "EEE dd.MM.yyyy", "not supported in a pattern"),
        ("timestamp", "HH:mm", "needs y, M, d"),
        ("timestamp", "yyyy-MM-dd hh:mm", "needs a (AM or PM)"),
        ("time", "HH:mm", "HH:mm:ss alone"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(logical: str, pattern: str, reason: str) -> None:
    """A date pattern that depends on a locale or leaves a part of a date open is refused."""
    column = f"- {{name: c, logicalType: {logical}, logicalTypeOptions: {{format: '{pattern}'}}}}"
    text = contract_text(column, settings=CSV)
    assert_refused(text, f"{PROPERTY}.logicalTypeOptions.format", reason)


def test_a_time_zone_is_one_of_text_cells() -> None:
    """A time zone is valid for CSV only; timestamps in typed files are in UTC."""
    column = "- {name: c, logicalType: timestamp, logicalTypeOptions: {defaultTimezone: %s}}"
    berlin, field = column % "Europe/Berlin", f"{PROPERTY}.logicalTypeOptions.defaultTimezone"
    assert parsed(berlin, settings=CSV).columns[-1].zone == "Europe/Berlin"
    assert_refused(contract_text(berlin), field, "only UTC")
    assert_refused(contract_text(column % "Europe/Berlim", settings=CSV), field, "not a time zone")


@pytest.mark.parametrize(
    ("key", "value"), [("defaultTimezone", "Europe/Berlin"), ("format", "dd/MM/yyyy HH:mmXXX")]
)
@pytest.mark.parametrize("local", ["{timezone: false, %s}", "{%s}, physicalType: timestamp_ntz"])
def test_a_local_time_has_no_zone(key: str, value: str, local: str) -> None:
    """A zone of a column of local times is refused, as it would shift them to UTC in silence."""
    asked = local % f"{key}: '{value}'"
    column = f"- {{name: c, logicalType: timestamp, logicalTypeOptions: {asked}}}"
    text = contract_text(column, settings=CSV)
    assert_refused(text, f"{PROPERTY}.logicalTypeOptions.{key}", "local time in no zone")
    instant = column.replace("timezone: false", "timezone: true").replace("_ntz", "")
    assert parsed(instant, settings=CSV).columns[-1].type == "timestamp"


def test_all_problems_are_reported_at_once_in_the_order_of_their_lines() -> None:
    """One refusal names the file and every problem, each with its line, field and reason."""
    text = contract_text(
        "- name: c\n  logicalType: strin\n  requird: true\n  quality:\n"
        "  - metric: nullValues\n    mustBeLesThan: 1",
        head=HEAD.replace("v3.1.0", "v3"),
    )
    with pytest.raises(ContractInvalid) as refusal:
        parse(text, "contracts/shop.orders.yaml")
    assert [(p.line, p.field) for p in refusal.value.problems] == [
        (2, "apiVersion"),
        (10, f"{PROPERTY}.logicalType"),
        (11, f"{PROPERTY}.requird"),
        (13, RULE),
        (14, f"{RULE}.mustBeLesThan"),
    ]
    assert refusal.value.code == "CONTRACT_INVALID"
    assert re.match(
        r"contracts/shop\.orders\.yaml .*\n +line 2: apiVersion: ", refusal.value.message
    )
