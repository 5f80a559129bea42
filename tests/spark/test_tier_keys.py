"""Checks over keys, queries and control files, through the job."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.failing_rows import told
from lakegate.audit.report import AuditReport, CheckResult, Status, Verdict
from lakegate.contract.model import parse
from lakegate.contract.rules import Control
from lakegate.errors import Permanent
from spark_jobs.audit.control_files import control_differences
from tests.spark.conftest import Job, new_table, parquet
from tests.spark.measuring import (
    UNIQUE,
    contract_of,
    custom,
    options,
    reading_session,
    run_over,
    whole_table,
)

pytestmark = pytest.mark.spark

Columns = Mapping[str, Sequence[Any]]
ODD = "od`d. key"
_WHOLE: Mapping[str, Any] = {"logicalType": "integer"}
_TYPES: Mapping[str, tuple[Mapping[str, Any], pa.DataType]] = {
    **{name: (_WHOLE, pa.int64()) for name in ("id", "parent", "a", "b", "c", "d", "e")},
    "sku": ({"logicalType": "string"}, pa.string()),
    "amount": ({"logicalType": "number", "physicalType": "decimal(9,2)"}, pa.decimal128(9, 2)),
    "day": ({"logicalType": "date"}, pa.date32()),
    ODD: ({"logicalType": "number"}, pa.float64()),
}
_NAMES = itertools.count()


@dataclass(frozen=True)
class Shop:
    """The tables goods and orders in a namespace of their own."""

    job: Job
    namespace: str

    def audit(
        self,
        table: str,
        rows: Columns,
        *rules: Mapping[str, Any],
        relationships: Any = (),
        controls: Any = (),
        **more: Any,
    ) -> AuditReport:
        """Return the report on a file of a table.

        `controls` are control files by format, `more` columns' rules by name.
        """
        name, key = f"{self.namespace}.{table}", f"{self.namespace}/{table}/{next(_NAMES)}"
        length = len(next(iter(rows.values())))
        body = parquet({
            column: pa.array(rows.get(column, [None] * length), pa.string()).cast(arrow)
            if column in ("amount", "day")
            else pa.array(rows.get(column, [None] * length), arrow)
            for column, (_, arrow) in _TYPES.items()
        })  # fmt: skip
        for format_, stated in dict(controls).items():
            self.job.services.land(f"{key}.control.{format_}", stated.encode())
        any_rows = {"id": "any", "metric": "rowCount", "mustBeGreaterThan": 0}
        columns = [
            {"name": column, **property_, **more.get(column, {})}
            for column, (property_, _) in _TYPES.items()
        ]
        text = contract_of(columns, [any_rows, *rules], name, relationships=relationships)
        return self.job.ingest(body, text, name, key)


@pytest.fixture(scope="module")
def shop(job: Job) -> Shop:
    """Return a shop with the goods 1 and 2 and the orders 7 and 8 on main, for all tests."""
    shop = Shop(job, new_table().replace(".", "_"))
    job.publish(shop.audit("goods", {"id": [1, 2], "sku": ["a", "b"]}))
    keys = {name: [7, 8] for name in ("id", "a", "b", "c")}
    days = ["2012-12-31", "2013-01-01"]
    job.publish(shop.audit("orders", {**keys, "sku": [None, "x"], "day": days}))
    return shop


def result(report: AuditReport, id_: str) -> CheckResult:
    return next(check for check in report.checks if check.id == id_)


def refers(to: str) -> Mapping[str, Any]:
    return {"relationships": [{"to": to}]}


def queries(namespace: str, stated: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a rule q0, q1 … for each query and its bounds."""
    return [
        {"id": f"q{n}", "type": "sql", "query": query.replace("NS", namespace), **bounds}
        for n, (query, bounds, *_) in enumerate(stated)
    ]


ROWS: Columns = {
    "id": [1, 2, 3],
    "parent": [1, 9, 7],
    "a": [1, 2, None],
    "b": [1, 3, 3],
    "c": [None, None, None],
    "d": [-5, 2, None],
    "e": [2, 2, 9],
    "sku": ["a", "a", "b"],
    "amount": ["1.10", "2.20", "3.30"],
    "day": ["2013-01-01", "2013-01-02", "2013-02-01"],
    ODD: [0.0, -0.0, float("nan")],
}
# A query, its bounds, its value, and if the bounds are met.
QUERIES: Sequence[tuple[str, Mapping[str, Any], str, bool]] = [
    ("SELECT count(*) FROM {object}", {"mustBe": 3}, "3", True),
    ("SELECT count(*) FROM {object}", {"mustBe": 4}, "3", False),
    ("SELECT max(id) > 2 FROM {table};", {"mustBe": True}, "1", True),
    ("SELECT max(id) > 3 FROM orders", {"mustBe": True}, "0", False),
    ("SELECT sum(amount) FROM ${table} AS o", {"mustBeBetween": [6.6, 6.7]}, "6.60", True),
    ("SELECT count(*) FROM {object} o JOIN goods g USING (id)", {"mustBe": 2}, "2", True),
    ("SELECT count(*) FROM orders LEFT ANTI JOIN NS.goods USING (id)", {"mustBe": 1}, "1", True),
    ("WITH g AS (SELECT * FROM goods) SELECT count(*) FROM g, orders", {"mustBe": 6}, "6", True),
    ("SELECT count(DISTINCT orders.`od``d. key`) FROM NS.orders", {"mustBe": 2}, "2", True),
    ("SELECT min({column}) FROM {object}", {"mustBe": 1}, "1", True),
    ("SELECT count(*) FROM {object}", {"mustBe": 5, **options(scope="table")}, "5", True),
]
WINDOW = options(scope={"windowDays": 31, "windowColumn": "day"})
DIFFERENT = {("sku",): 2, ("id", "sku"): 3, (ODD,): 2, ("sku", "day"): 3}
KEYS = ["id", "sku"], ["sku", "day"], ["sku", ODD]
SUMS = ["id", "amount", ODD]
STATED = '{"rows": 3, "sum(id)": 6, "sum(amount)": "6.6", "sum(od`d. key)": 0}'


@pytest.fixture(scope="module")
def report(shop: Shop) -> AuditReport:
    """Return the report on ROWS under every kind of check of this module."""
    share = {"expression": "d IS NOT NULL", "unit": "percent", "mustBeLessThan": 60}
    rules = [
        {"id": "share", **whole_table(custom("rowExpression", **share))},
        *(custom("distinctCount", properties=[*k], mustBe=n) for k, n in DIFFERENT.items()),
        *({**UNIQUE, "arguments": {"properties": each}} for each in KEYS),
        {"id": "right", **custom("reconcile", sums=SUMS)},
        {"id": "wrong", **custom("reconcile", sums=["amount"], format="csv")},
    ]
    return shop.audit(
        "orders",
        ROWS,
        *rules,
        relationships=[
            {"from": ["orders.a", "orders.sku"], "to": ["goods.id", "goods.sku"]},
            {"from": "orders.parent", "to": "orders.id"},
        ],
        controls={"json": STATED, "csv": "rows,sum(amount)\n3,6.61\n"},
        id={"unique": True, "quality": queries(shop.namespace, QUERIES)},
        **{name: refers("goods.id") for name in "abcde"},
    )


@pytest.mark.parametrize(
    ("column", "missing"), [("a", 0), ("b", 2), ("c", 0), ("d", 1), ("e", 1), ("parent", 1)]
)
def test_rows_that_refer_to_nothing_are_counted(
    report: AuditReport, column: str, missing: int
) -> None:
    """Every row whose key is missing counts; a null refers to nothing.

    The key is looked up in another table, or in the own one: among main's rows and the file's.
    """
    found = result(report, f"{column}.missingReferences")
    assert found.counted == missing
    assert (found.status is Status.FAIL) == (missing > 0)
    assert len(found.samples) == missing


def test_rows_that_refer_to_nothing_are_told(report: AuditReport) -> None:
    """The first such rows have their place in the file, and the key that is missing."""
    assert [each.partition(", id ")[0] for each in told(result(report, "b.missingReferences"))] == [
        "row 2: b 3",
        "row 3: b 3",
    ]
    pair = told(result(report, "a+sku.missingReferences"))
    assert [each.partition(", id ")[0] for each in pair] == ["row 2: a 2, sku a"]


def test_two_columns_refer_together(report: AuditReport) -> None:
    """A pair can be missing although each value exists; a pair with a null refers to nothing."""
    found = result(report, "a+sku.missingReferences")
    assert (found.counted, found.found) == (1, "1 row (1 of 2 different keys)")
    assert "LEFT ANTI JOIN" in found.query


@pytest.mark.parametrize(("number", "stated"), [*enumerate(QUERIES)])
def test_a_query_answers_of_the_file_and_of_other_tables(
    report: AuditReport, number: int, stated: tuple[str, Mapping[str, Any], str, bool]
) -> None:
    """A query reads the file's rows, or all of its table, and other tables as on main."""
    found = result(report, f"id.q{number}")
    assert (found.value, found.status is Status.PASS) == stated[2:]


def test_different_values_are_counted(report: AuditReport) -> None:
    """0.0 and -0.0 are one value, and so is NaN; of several columns the combinations count."""
    found = [(c.value, c.status) for c in report.checks if c.metric == "distinctCount"]
    assert found == [(str(count), Status.PASS) for count in DIFFERENT.values()]


def test_a_key_that_contains_a_unique_one_needs_no_job(report: AuditReport) -> None:
    """A key that contains a unique column is unique without a job of its own."""
    assert "id alone is unique" in result(report, "id+sku.duplicateValues").found
    assert result(report, "sku+day.duplicateValues").status is Status.PASS
    repeated = result(report, f"sku+{ODD}.duplicateValues")
    assert (repeated.counted, repeated.found) == (1, "1 row (1 key on 2 rows)")


def test_a_check_of_rows_may_cover_the_whole_table(report: AuditReport) -> None:
    """All rows of the table that break a check count, and the file's are named separately."""
    found = result(report, "share")
    assert (found.counted, found.status) == (3, Status.FAIL)
    assert found.found == "60 % of rows (3 of 5) in the whole table (1 of them in the file)"


def test_a_control_file_is_read_beside_the_file(report: AuditReport) -> None:
    """A control file of either format is the one beside the landed object."""
    found = [(check.id, check.counted) for check in report.checks if check.metric == "reconcile"]
    assert found == [("right", 0), ("wrong", 1)]


# Columns, their references, and why the references cannot be looked up.
BAD_REFERENCES = [
    ("id", "nothing.id", "there is no table"),
    ("parent", "goods.idd", "no column idd"),
    ("amount", "goods.sku", "string"),
]
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
    ("WITH orders AS (SELECT 1) SELECT count(*) FROM orders", "the table's own"),
    ("SELECT count(* FROM {object})", "yntax"),
]


def test_a_check_that_cannot_be_answered_is_an_error(shop: Shop) -> None:
    """An invalid reference or query is an error with its reason; other checks are evaluated.

    So are a window without any date in the file, and a missing control file.
    """
    window = {"id": "window", "metric": "rowCount", "mustBe": 3, **WINDOW}
    stated = [(query, {"mustBe": 1}) for query, _ in NO_NUMBER]
    report = shop.audit(
        "orders",
        {**ROWS, "day": [None] * 3},
        *queries("", stated),
        window,
        {"id": "absent", **custom("reconcile")},
        {"id": "invalid", **custom("reconcile", format="csv")},
        controls={"csv": "rows"},
        **{column: refers(to) for column, to, _ in BAD_REFERENCES},
    )
    assert report.verdict is Verdict.ERRORED
    assert result(report, "any").status is Status.PASS
    reasons = {f"q{n}": why for n, (_, why) in enumerate(NO_NUMBER)}
    reasons |= {f"{column}.missingReferences": why for column, _, why in BAD_REFERENCES}
    reasons |= {"window": "no row of the file has a day", "absent": "land it before the file"}
    reasons |= {"invalid": "a header and one line"}
    for id_, why in reasons.items():
        found = result(report, id_)
        assert (found.status, why in found.message) == (Status.ERROR, True), (id_, found.message)


@pytest.mark.parametrize(
    ("stated", "different"),
    [
        (STATED, 0),
        (STATED.replace('"rows": 3', '"rows": 4'), 1),
        (STATED.replace("6.6", "6.61"), 1),
        (STATED.replace("6.6", "6.61").replace('"rows": 3', '"rows": 4'), 2),
        ("rows,sum(amount)\n3,6.60\n", 0),
        ("[]", "one JSON object"),
        ("{", "not JSON"),
        (STATED.replace("6", "null"), "not a number"),
        (STATED.replace('"rows": 3', '"rows": 3, "rows": 4'), "states rows twice"),
        ("[" * 99_999, "not JSON"),
    ],
)
def test_each_number_of_a_control_file_is_compared(
    job: Job, stated: str, different: int | str
) -> None:
    """Each number that differs from the file's counts; an incomplete control file is invalid."""
    columns = [{"name": name, **_TYPES[name][0]} for name in SUMS]
    rows = zip(ROWS["id"], map(Decimal, ROWS["amount"]), ROWS[ODD], strict=True)
    contract = parse(contract_of(columns, [{"metric": "rowCount", "mustBe": 3}]), "control.yaml")
    run = run_over(reading_session(job.warm_spark), contract, [*rows])
    is_csv = stated.startswith("rows")
    control = Control("csv", ("amount",)) if is_csv else Control("json", tuple(SUMS))
    try:
        found: int | str = control_differences(run, control, stated)[0]
    except Permanent as error:
        found = error.message
    assert found == different if isinstance(different, int) else different in str(found)


@pytest.mark.parametrize(
    ("values", "stated", "different"),
    [
        ([0.1, 0.2, -0.3], "0", 0),  # whose sum as doubles is 5.6e-17
        ([1e9, -1e9, 0.02], "0.02", 0),
        ([1e9, -1e9, 0.02], "0.01", 1),
        ([None, None], "0", 0),
        ([float("nan")], "0", 1),
        ([1.7e308, 1.7e308], "0", 1),
    ],
)
def test_a_sum_of_floats_is_compared_by_what_it_is_of(
    job: Job, values: list[float | None], stated: str, different: int
) -> None:
    """Amounts that cancel out sum to what the sender states; the sum of no values is 0."""
    text = contract_of([{"name": "x", "logicalType": "number"}], [])
    contract = parse(text, "control.yaml")
    run = run_over(reading_session(job.warm_spark), contract, [(each,) for each in values])
    control = json.dumps({"rows": len(values), "sum(x)": stated})
    assert control_differences(run, Control("json", ("x",)), control)[0] == different


def test_a_window_leaves_older_rows_of_the_table_out(shop: Shop) -> None:
    """Only keys and rows of the table within the window count; of the file all rows count."""
    rows: Columns = {
        "id": [7, 8, 3],
        "a": [9, 10, 11],
        "b": [6, 9, 10],
        "c": [8, 9, 10],
        "day": ["2013-02-01", "1999-01-01", None],
    }
    report = shop.audit(
        "orders",
        rows,
        {"metric": "rowCount", "mustBe": 4, **WINDOW},
        id={"quality": [{**UNIQUE, **WINDOW}]},
        **{name: {"quality": [whole_table(UNIQUE)]} for name in "abc"},
    )
    assert result(report, "id.duplicateValuesInWindow").counted == 1
    assert result(report, "rowCountInWindow").counted == 4
    found = (result(report, f"{name}.duplicateValuesInTable") for name in "abc")
    assert [c.counted for c in found] == [0, 0, 1]
