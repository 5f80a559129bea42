"""Checks over keys, queries and control files, through the job."""

import itertools
import uuid
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lakegate.report import AuditReport, CheckResult, Status, Verdict
from tests.spark.conftest import Job
from tests.spark.test_job import parquet

pytestmark = pytest.mark.spark

Columns = dict[str, list[Any]]
CUSTOM = "type: custom, engine: lakegate, implementation:"


@dataclass
class Shop:
    """Two tables in a namespace of their own: orders, under rules, and goods."""

    job: Job
    namespace: str
    number: Any = field(default_factory=itertools.count)

    def contract(self, table: str, quality: str, of_id: str = "", relationships: str = "") -> str:
        return f"""
kind: DataContract
apiVersion: v3.1.0
id: {self.namespace}-{table}
version: 1.0.0
schema:
  - name: {table}
    physicalName: {self.namespace}.{table}
    quality: [{quality}]
    relationships: [{relationships}]
    properties:
      - {{name: id, logicalType: integer{of_id}}}
      - {{name: parent, logicalType: integer}}
      - {{name: sku, logicalType: string}}
      - {{name: amount, logicalType: number, physicalType: "decimal(9,2)"}}
      - {{name: day, logicalType: date}}
      - {{name: "od`d. key", logicalType: number}}
"""

    def audit(
        self,
        rows: Columns,
        quality: str = "{metric: rowCount, mustBeGreaterThan: 0}",
        *,
        of_id: str = "",
        relationships: str = "",
        control: tuple[str, str] | None = None,
    ) -> AuditReport:
        """Return the report on a file of orders with these rows, under these rules."""
        table, key = f"{self.namespace}.orders", f"{self.namespace}/orders/{next(self.number)}"
        if control:
            self.job.services.land(f"{key}.control.{control[0]}", control[1].encode())
        contract = self.contract("orders", quality, of_id, relationships)
        return self.job.ingest(parquet(filled(rows)), contract, table, key)[1]

    def publish(self, table: str, rows: Columns) -> None:
        """Publish rows of a table."""
        contract = self.contract(table, "{metric: rowCount, mustBeGreaterThan: 0}")
        key = f"{self.namespace}/{table}/{next(self.number)}"
        full = f"{self.namespace}.{table}"
        _, report = self.job.ingest(parquet(filled(rows)), contract, full, key)
        assert report.verdict is Verdict.PASSED, report.reason
        self.job.services.catalog.merge(
            report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"}
        )


def filled(rows: Columns) -> dict[str, Any]:
    """Return the rows with all columns of the shop's tables; absent ones are null."""
    length = len(next(iter(rows.values())))
    types = {
        "id": pa.int64(),
        "parent": pa.int64(),
        "sku": pa.string(),
        "amount": pa.decimal128(9, 2),
        "day": pa.date32(),
        "od`d. key": pa.float64(),
    }
    return {
        name: pa.array(rows.get(name, [None] * length), pa.string()).cast(type_)
        if name in ("amount", "day")
        else pa.array(rows.get(name, [None] * length), type_)
        for name, type_ in types.items()
    }


@pytest.fixture
def shop(job_runner: Job, table: str) -> Shop:
    return Shop(job_runner, table.replace(".", "_"))


@pytest.fixture(scope="module")
def with_goods(job_runner: Job) -> Shop:
    """Return a shop with the goods 1 and 2 on main, for tests that publish nothing."""
    shop = Shop(job_runner, f"goods_{uuid.uuid4().hex[:8]}")
    shop.publish("goods", {"id": [1, 2], "sku": ["a", "b"]})
    return shop


def last(report: AuditReport) -> CheckResult:
    """Return the result of the contract's last check."""
    return report.checks[-1]


def result(report: AuditReport, id_: str) -> CheckResult:
    return next(check for check in report.checks if check.id == id_)


REFERENCE = ", relationships: [{to: goods.id}]"


@pytest.mark.parametrize(
    ("ids", "missing"),
    [([1, 2, 2, None], 0), ([1, 3, 3, 4, None], 3), ([None], 0), ([9], 1), ([-5, 2], 1)],
)
def test_rows_that_refer_to_nothing_are_counted(
    with_goods: Shop, ids: list[Any], missing: int
) -> None:
    """Every row whose key is missing in the other table counts; a null refers to nothing."""
    found = result(with_goods.audit({"id": ids}, of_id=REFERENCE), "id.missingReferences")
    assert found.counted == missing
    assert (found.status is Status.FAIL) == (missing > 0)


def test_two_columns_refer_together(with_goods: Shop) -> None:
    """A pair can be missing although each value exists; a pair with a null refers to nothing."""
    pair = "{from: [orders.id, orders.sku], to: [goods.id, goods.sku]}"
    rows: Columns = {"id": [1, 2, 1, None], "sku": ["a", "b", "b", "c"]}
    found = result(with_goods.audit(rows, relationships=pair), "id+sku.missingReferences")
    assert (found.counted, found.found) == (1, "1 row (1 of 3 different keys)")
    assert "LEFT ANTI JOIN" in found.query


def test_a_table_may_refer_to_itself(shop: Shop) -> None:
    """A reference to its own table finds the file's rows and main's."""
    shop.publish("orders", {"id": [1]})
    rows: Columns = {"id": [2, 3, 4, 5], "parent": [1, 2, 9, None]}
    report = shop.audit(rows, relationships="{from: orders.parent, to: orders.id}")
    assert result(report, "parent.missingReferences").counted == 1


# A column, its reference, and why the reference cannot be looked up.
BAD_REFERENCES = [
    ("id", "nothing.id", "there is no table"),
    ("parent", "goods.idd", "no column idd"),
    ("amount", "goods.sku", "string"),
]


def test_an_invalid_reference_is_an_error(with_goods: Shop) -> None:
    """A check never passes if the other table or column is missing or has another type."""
    pairs = (f"{{from: orders.{column}, to: {to}}}" for column, to, _ in BAD_REFERENCES)
    rows: Columns = {"id": [1], "parent": [1], "amount": ["1.00"]}
    report = with_goods.audit(rows, relationships=", ".join(pairs))
    assert report.verdict is Verdict.ERRORED
    for column, _, why in BAD_REFERENCES:
        found = result(report, f"{column}.missingReferences")
        assert (found.status, why in found.message) == (Status.ERROR, True), found.message


ROWS: Columns = {
    "id": [1, 2, 3],
    "sku": ["a", "a", "b"],
    "amount": ["1.10", "2.20", "3.30"],
    "day": ["2013-01-01", "2013-01-02", "2013-02-01"],
    "od`d. key": [0.0, -0.0, float("nan")],
}


# A query, its expectation, its value, and if the expectation is met.
QUERIES = [
    ("SELECT count(*) FROM {object}", "mustBe: 3", "3", True),
    ("SELECT count(*) FROM {object}", "mustBe: 4", "3", False),
    ("SELECT max(id) > 2 FROM {table};", "mustBe: true", "1", True),
    ("SELECT max(id) > 3 FROM orders", "mustBe: true", "0", False),
    ("SELECT sum(amount) FROM ${table} AS o", "mustBeBetween: [6.6, 6.7]", "6.60", True),
    ("SELECT count(*) FROM {object} o JOIN goods g USING (id)", "mustBe: 2", "2", True),
    (
        "SELECT count(*) FROM orders LEFT ANTI JOIN NS.goods USING (id)",
        "mustBe: 1",
        "1",
        True,
    ),
    ("WITH g AS (SELECT * FROM goods) SELECT count(*) FROM g, orders", "mustBe: 6", "6", True),
    ("SELECT count(DISTINCT orders.`od``d. key`) FROM NS.orders", "mustBe: 2", "2", True),
    ("SELECT min({column}) FROM {object}", "mustBe: 1", "1", True),
]


def test_a_query_answers_of_the_file_and_of_other_tables(shop: Shop) -> None:
    """A query reads its own table as the file's rows only, and other tables as on main."""
    shop.publish("goods", {"id": [1, 2]})
    shop.publish("orders", {"id": [7]})
    rules = [rule_of(n, query, must, shop.namespace) for n, (query, must, *_) in enumerate(QUERIES)]
    of_id = f", quality: [{', '.join(rules)}]"
    report = shop.audit(ROWS, of_id=of_id)
    found = [result(report, f"id.q{n}") for n in range(len(QUERIES))]
    assert [(each.value, each.status is Status.PASS) for each in found] == [
        (value, is_so) for *_, value, is_so in QUERIES
    ]


def rule_of(n: int, query: str, must: str, namespace: str) -> str:
    return f'{{id: q{n}, type: sql, query: "{query.replace("NS", namespace)}", {must}}}'


def test_a_query_may_read_the_whole_table(shop: Shop) -> None:
    """With the scope `table` a query reads main's rows and the file's."""
    shop.publish("orders", {"id": [7, 8]})
    scope = "customProperties: [{property: scope, value: table}]"
    rule = f"{{type: sql, query: 'SELECT count(*) FROM {{object}}', mustBe: 5, {scope}}}"
    assert last(shop.audit(ROWS, rule)).value == "5"


NO_NUMBER = [
    ("SELECT id FROM {object}", "must return one value"),
    ("SELECT 1, 2", "must return one value"),
    ("SELECT sum(id) FROM {object} WHERE id > 9", "returns null"),
    ("SELECT 'many'", "must return a number"),
    ("SELECT double('NaN')", "must return a number"),
    ("SELECT count(*) FROM nothing", "cannot be found"),
    ("SELECT max(nothing) FROM {object}", "nothing"),
    ("SELECT 1 / (SELECT min(id) - 1 FROM {object})", "DIVIDE_BY_ZERO"),
    ("SELECT count(*) FROM a.b.c", "write namespace.table"),
    ("SELECT transform(id) USING 'cat' AS (x) FROM {object}", "run a script"),
    ("SELECT count(*) FROM parquet.`a.parquet`", "write namespace.table"),
    ("WITH orders AS (SELECT 1) SELECT count(*) FROM orders", "the table's own name"),
    ("SELECT count(* FROM {object})", "yntax"),
]


def test_a_query_that_answers_no_number_is_an_error(shop: Shop) -> None:
    """A query without one number is an error with the reason; other checks are evaluated."""
    rules = [rule_of(n, query, "mustBe: 1", "") for n, (query, _) in enumerate(NO_NUMBER)]
    report = shop.audit(ROWS, f"{', '.join(rules)}, {{metric: rowCount, mustBe: 3}}")
    assert (report.verdict, last(report).status) == (Verdict.ERRORED, Status.PASS)
    for n, (_, why) in enumerate(NO_NUMBER):
        found = result(report, f"q{n}")
        assert (found.status, why in found.message) == (Status.ERROR, True), found.message


CONTROL = f"{{{CUSTOM} {{check: reconcile, sums: [id, amount, 'od`d. key']}}}}"
STATED = '{"rows": 3, "sum(id)": 6, "sum(amount)": "6.6", "sum(od`d. key)": 0}'


@pytest.mark.parametrize(
    ("stated", "differing"),
    [
        (STATED, 0),
        (STATED.replace("6.6", "6.61").replace('"rows": 3', '"rows": 4'), 2),
    ],
)
def test_a_control_file_is_compared_with_the_rows(shop: Shop, stated: str, differing: int) -> None:
    """Each number of the control file that differs from the file counts."""
    found = last(shop.audit(ROWS, CONTROL, control=("json", stated)))
    assert (found.id, found.counted) == ("reconcile", differing)
    assert (found.status is Status.PASS) == (differing == 0)


def test_a_control_file_may_be_csv(shop: Shop) -> None:
    """A control file may be CSV with a header and one line."""
    rule = f"{{{CUSTOM} {{check: reconcile, format: csv, sums: [amount]}}}}"
    found = last(shop.audit(ROWS, rule, control=("csv", "rows,sum(amount)\n3,6.60\n")))
    assert found.status is Status.PASS


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (None, "land it before the file"),
        (("json", "[]"), "one JSON object"),
        (("json", "{"), "not JSON"),
        (("json", '{"rows": 3}'), "must state exactly rows, sum(id)"),
        (("json", STATED.replace("6", "null")), "not a number"),
    ],
)
def test_a_control_file_that_does_not_tell_is_an_error(
    shop: Shop, control: tuple[str, str] | None, why: str
) -> None:
    """A missing or incomplete control file makes the file errored."""
    report = shop.audit(ROWS, CONTROL, control=control)
    assert (report.verdict, last(report).status) == (Verdict.ERRORED, Status.ERROR)
    assert why in last(report).message


DIFFERENT = {"[sku]": 2, "[id, sku]": 3, "['od`d. key']": 2, "[sku, day]": 3}


def test_different_values_are_counted(shop: Shop) -> None:
    """0.0 and -0.0 are one value, and so is NaN; of several columns the combinations count."""
    rules = (
        f"{{{CUSTOM} {{check: distinctCount, properties: {names}, mustBe: {count}}}}}"
        for names, count in DIFFERENT.items()
    )
    found = [
        (check.value, check.status)
        for check in shop.audit(ROWS, ", ".join(rules)).checks
        if check.metric == "distinctCount"
    ]
    assert found == [(str(count), Status.PASS) for count in DIFFERENT.values()]


def test_a_key_that_contains_a_unique_one_needs_no_job(shop: Shop) -> None:
    """A key that contains a unique column is unique without a job of its own."""
    keys = "{metric: duplicateValues, arguments: {properties: [%s]}, mustBe: 0}"
    quality = ", ".join(keys % names for names in ("'id', sku", "sku, day", "sku, 'od`d. key'"))
    report = shop.audit(ROWS, quality, of_id=", unique: true")
    assert "id alone is unique" in result(report, "id+sku.duplicateValues").found
    assert result(report, "sku+day.duplicateValues").status is Status.PASS
    repeated = result(report, "sku+od`d. key.duplicateValues")
    assert (repeated.counted, repeated.found) == (1, "1 row (1 key on 2 rows)")


SCOPE = "customProperties: [{property: scope, value: %s}]"
WINDOW = SCOPE % "{windowDays: 31, windowColumn: day}"


def test_a_window_leaves_older_rows_of_the_table_out(shop: Shop) -> None:
    """Only keys of the table within the window count; of the file all rows count."""
    shop.publish("orders", {"id": [1, 2], "day": ["2012-12-31", "2013-01-01"]})
    keys = "{metric: duplicateValues, arguments: {properties: [id]}, mustBe: 0"
    rows = "{metric: rowCount, mustBe: 4"
    quality = f"{keys}, {WINDOW}}}, {rows}, {WINDOW}}}"
    report = shop.audit({**ROWS, "day": ["2013-02-01", "1999-01-01", None]}, quality)
    assert result(report, "id.duplicateValuesInWindow").counted == 1
    assert result(report, "rowCountInWindow").counted == 4


def test_a_window_needs_a_day_to_go_by(shop: Shop) -> None:
    """A window without any date in the file makes the file errored."""
    quality = f"{{metric: rowCount, mustBe: 3, {WINDOW}}}"
    report = shop.audit({**ROWS, "day": [None, None, None]}, quality)
    assert report.verdict is Verdict.ERRORED
    assert "no row of the file has a day" in last(report).message


def test_a_check_of_rows_may_cover_the_whole_table(shop: Shop) -> None:
    """All rows of the table that break a check count, and the file's are named separately."""
    shop.publish("orders", {"id": [7, 8], "sku": [None, "x"]})
    expression = "expression: sku IS NOT NULL, unit: percent, mustBeLessThan: 40"
    rule = f"{{{CUSTOM} {{check: rowExpression, {expression}}}, {SCOPE % 'table'}}}"
    found = last(shop.audit({**ROWS, "sku": ["a", None, "b"]}, rule))
    assert (found.counted, found.status) == (2, Status.FAIL)
    wanted = "40 % of rows (2 of 5) in the whole table (1 of them in the file)"
    assert found.found == wanted


def test_bounds_alone_prove_that_a_key_is_new(shop: Shop) -> None:
    """If statistics exclude the keys in all files of the table, no row of it is read."""
    shop.publish("orders", {"id": [1, 2]})
    keys = "{metric: duplicateValues, arguments: {properties: [id]}, mustBe: 0"
    rule = f"{keys}, {SCOPE % 'table'}}}"
    assert last(shop.audit({"id": [3, 4]}, rule)).tier == "manifests"
    assert last(shop.audit({"id": [0, 4]}, rule)).tier == "keys"
    found = last(shop.audit({"id": [2, 4]}, rule))
    assert (found.counted, found.tier) == (1, "keys")
