"""Cases that tools for data quality got wrong, each with the right result."""

import io
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakegate.contract.model import parse
from lakegate.report import CheckResult, Status, Verdict
from tests.spark.conftest import Job
from tests.spark.measuring import contract_of, custom, options, reading_session, results

pytestmark = pytest.mark.spark
_ANY = {"mustBeGreaterOrEqualTo": 0}
_HUGE = Decimal(10**38 - 1)
_LINES = [[{"a": 1}, {"a": None}, {"a": None}], [], [None], None, [{"a": 1}], None]
_COLUMNS: Mapping[str, tuple[Mapping[str, Any], list[Any]]] = {
    "real": ({"logicalType": "number"}, [1.0, math.nan, 2.0, None, -0.0, 0.0]),
    "empty": ({"logicalType": "string"}, [None] * 6),
    "text": ({"logicalType": "string"}, ["", " ", "\u00a0", "N/A", None, "a"]),
    "code": ({"logicalType": "string"}, ["12345", "12345\n", "x12345", None, "", "1234"]),
    "huge": ({"logicalType": "integer", "physicalType": "decimal(38)"}, [_HUGE] * 6),
    "long": ({"logicalType": "integer"}, [2**63 - 1] * 6),
    "lines": (
        {
            "logicalType": "array",
            "items": {
                "logicalType": "object",
                "required": True,
                "properties": [{"name": "a", "logicalType": "integer", "required": True}],
            },
        },
        _LINES,
    ),
    "point": (
        {
            "logicalType": "object",
            "properties": [{"name": "x", "logicalType": "integer", "required": True}],
        },
        [None, {"x": None}, {"x": 1}, {"x": 1}, {"x": 1}, None],
    ),
}


def _invalid(id_: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id_, "metric": "invalidValues", "arguments": arguments, **_ANY}


def _nulls() -> dict[str, Any]:
    return {"id": "nulls", "metric": "nullValues", **_ANY}


def _aggregate(id_: str) -> dict[str, Any]:
    return {"id": id_, **custom(id_, mustBeGreaterThan=0)}


_RULES: Mapping[str, list[dict[str, Any]]] = {
    "real": [
        _nulls(),
        _invalid("low", minimum=0),
        _invalid("high", maximum=5),
        _invalid("listed", validValues=[0, 1, 2]),
        _invalid("once", minimum=0, maximum=5, validValues=[0, 1, 2], multipleOf=1),
        _aggregate("mean"),
    ],
    "empty": [
        _nulls(),
        _invalid("listed", validValues=["A", None]),
        _invalid("like", pattern="A"),
        _invalid("long", minLength=1, maxLength=2),
        {"id": "sql", **custom("rowExpression", expression="empty <> 'A'")},
        {"id": "encoding", **custom("encoding")},
    ],
    "text": [
        _nulls(),
        {
            "id": "missing", "metric": "missingValues", **_ANY,
            "arguments": {"missingValues": [None, "", "N/A"]},
        },
        _invalid("blank", pattern=r"\S"),
    ],
    "code": [_invalid("whole", pattern="^[0-9]{5}$"), _invalid("within", pattern="[0-9]{5}")],
    "huge": [_aggregate("sum"), _aggregate("mean"), _nulls()],
    "long": [_aggregate("sum")],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(job_runner: Job) -> Mapping[str, CheckResult]:
    """Return all checks of all cases, measured together."""
    columns = [
        {"name": name, **column, "quality": _RULES.get(name, [])}
        for name, (column, _) in _COLUMNS.items()
    ]
    rows = list(zip(*(values for _, values in _COLUMNS.values()), strict=True))
    return results(reading_session(job_runner.warm_spark), contract_of(columns), rows)


Found = Mapping[str, CheckResult]


def test_nan_is_no_null_and_no_number(found: Found) -> None:
    """NaN is not null, breaks every range and list once a row, and is left out of means (1)."""
    counts = [found[f"real.{id_}"].counted for id_ in ("nulls", "low", "high", "listed", "once")]
    assert counts == [1, 1, 1, 1, 1]
    assert found["real.mean"].value == "0.75"


def test_a_null_breaks_nothing_but_what_asks_for_values(found: Found) -> None:
    """Nulls count as nulls only: no list, pattern or condition counts them (2)."""
    counts = {id_: found[f"empty.{id_}"].counted for id_ in ("listed", "like", "long", "sql")}
    assert counts == dict.fromkeys(counts, 0)
    assert (found["empty.encoding"].counted, found["empty.nulls"].counted) == (0, 6)


def test_empty_and_blank_are_not_null(found: Found) -> None:
    """Only listed values are missing: neither a space nor a no-break space is empty (3)."""
    assert found["text.nulls"].counted == 1
    assert found["text.missing"].counted == 3
    assert found["text.blank"].counted == 3


def test_a_dollar_is_the_very_end(found: Found) -> None:
    """A text that ends with a line end does not match `$` before it (5)."""
    assert found["code.whole"].counted == 4


def test_a_pattern_is_found_anywhere(found: Found) -> None:
    """A pattern without anchors is searched, as in JavaScript (6)."""
    assert found["code.within"].counted == 2


def test_a_sum_that_no_number_holds_harms_no_other_check(found: Found) -> None:
    """A sum beyond 38 digits has no value and fails; other checks are measured (10)."""
    assert (found["huge.sum"].status, found["huge.sum"].found) == (Status.FAIL, "no value")
    assert found["huge.nulls"].status is Status.PASS
    assert found["long.sum"].value == str(6 * (2**63 - 1))


def test_what_is_not_there_has_no_fields(found: Found) -> None:
    """A required field is missing only if its object exists; a row counts once (34)."""
    assert found["point.x.nullValues"].counted == 1
    assert found["lines[].a.nullValues"].counted == 1
    assert found["lines[].nullValues"].counted == 1


def _parquet(columns: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), file)
    return file.getvalue()


def _number(table: str, *rules: Mapping[str, Any], **more: Any) -> str:
    options_ = {"logicalTypeOptions": {"maximum": 5}, "quality": list(rules)}
    return contract_of([{"name": "n", "logicalType": "integer", **options_, **more}], table=table)


def test_a_report_names_the_contract_that_judged(job_runner: Job, table: str) -> None:
    """Reports name the version of the contract that judged the file (39)."""
    outcomes: list[tuple[str, Verdict]] = []
    for text in (_number(table), _number(table, required=True).replace("1.0.0", "1.1.0")):
        key = f"tests/{len(outcomes)}"
        _, report = job_runner.ingest(_parquet({"n": [1, None]}), text, table, key)
        wanted = parse(text, "n.yaml")
        assert (report.contract_version, report.contract_sha256) == (wanted.version, wanted.sha256)
        outcomes.append((report.contract_version, report.verdict))
    assert outcomes == [("1.0.0", Verdict.PASSED), ("1.1.0", Verdict.REJECTED)]


_BROKEN = {
    "zero": "1 / n > 0",
    "nobody": "nobody > 0",
    "two": "n > 0; DROP TABLE lake.tests.rows",
    "closing": "1=1) OR (2=2",
    "aggregate": "sum(n) > 0",
    "number": "n",
    "raised": "raise_error('no') IS NULL",
}


def test_a_check_that_throws_is_an_error_and_harms_no_other(job_runner: Job, table: str) -> None:
    """A check that cannot be evaluated is an error with its reason; others are evaluated (41)."""
    rules = [{"id": id_, **custom("rowExpression", expression=sql)} for id_, sql in _BROKEN.items()]
    nulls = {"id": "where", "metric": "nullValues", "mustBe": 0, **options(where="1=1) OR (2=2")}
    fine = {"id": "fine", **custom("rowExpression", expression="n < 5 -- all but one")}
    code, report = job_runner.ingest(
        _parquet({"n": [0, 1, 6]}), _number(table, *rules, nulls, fine), table
    )
    found = {check.id: check for check in report.checks}
    broken = {id_ for id_, check in found.items() if check.status is Status.ERROR}
    assert (code, report.verdict) == (4, Verdict.ERRORED)
    assert broken == {f"n.{id_}" for id_ in (*_BROKEN, "where")}
    assert all(found[id_].message for id_ in broken)
    assert "DIVIDE_BY_ZERO" in found["n.zero"].message
    assert "nobody" in found["n.nobody"].message
    assert (found["n.fine"].counted, found["n.invalidValues"].counted) == (1, 1)


_NAMES = ("a.b", "a b", "a`b", "select", "gr\u00f6\u00dfe \U0001f600", "it's", 'a"b', "x0", "-- c")


def test_a_column_may_have_any_name(job_runner: Job, table: str) -> None:
    """With any characters in a name, the check and its query find the bad row (42)."""
    columns = [
        {
            "name": name,
            "logicalType": "string",
            "required": True,
            "logicalTypeOptions": {"pattern": "^v"},
            **options(where=f"`{name.replace('`', '``')}` <> 'v0'"),
        }
        for name in _NAMES
    ]
    text = contract_of(columns, table=table)
    code, _ = job_runner.ingest(_parquet({n: ["v1", "v2"] for n in _NAMES}), text, table, "t/1")
    assert code == 0
    body = _parquet({name: ["v1", "bad", "v0"] for name in _NAMES})
    code, report = job_runner.ingest(body, text, table, "t/2")
    failed = {check.id: check for check in report.failed}
    assert (code, set(failed)) == (3, {f"{name}.invalidValues" for name in _NAMES})
    session = job_runner.session(report.branch)
    for check in failed.values():
        assert check.counted == 1
        assert [row[check.columns[0]] for row in check.samples] == ["bad"]
    union = " UNION ALL ".join(check.query for check in failed.values())
    assert session.sql(union).count() == len(_NAMES)


def test_one_name_never_means_two_columns() -> None:
    """A column with the same name as a path to a nested one is refused."""
    inner = {"name": "b", "logicalType": "string", "required": True}
    outer = {"name": "a", "logicalType": "object", "properties": [inner]}
    with pytest.raises(Exception, match=r"'A\.b' is also what lies within"):
        parse(contract_of([outer, {"name": "A.b", "logicalType": "string"}]), "names.yaml")
