"""Cases that tools for data quality got wrong, each with the right result."""

from collections.abc import Mapping
from typing import Any

import pytest

from lakegate.audit.report import Status, Verdict
from lakegate.contract.model import parse
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of, custom, options

pytestmark = pytest.mark.spark


def _number(table: str, *rules: Mapping[str, Any], **more: Any) -> str:
    options_ = {"logicalTypeOptions": {"maximum": 5}, "quality": list(rules)}
    return contract_of([{"name": "n", "logicalType": "integer", **options_, **more}], table=table)


def test_a_report_names_the_contract_that_judged(job: Job, table: str) -> None:
    """Reports name the version of the contract that judged the file (39)."""
    outcomes: list[tuple[str, Verdict]] = []
    for text in (_number(table), _number(table, required=True).replace("1.0.0", "1.1.0")):
        report = job.ingest(parquet({"n": [1, None]}), text, table)
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


def test_a_check_that_throws_is_an_error_and_harms_no_other(job: Job, table: str) -> None:
    """A check that cannot be evaluated is an error with its reason; others are evaluated (41)."""
    rules = [{"id": id_, **custom("rowExpression", expression=sql)} for id_, sql in _BROKEN.items()]
    nulls = {"id": "where", "metric": "nullValues", "mustBe": 0, **options(where="1=1) OR (2=2")}
    fine = {"id": "fine", **custom("rowExpression", expression="n < 5 -- all but one")}
    text = _number(table, *rules, nulls, fine)
    report = job.ingest(parquet({"n": [0, 1, 6]}), text, table)
    found = {check.id: check for check in report.checks}
    broken = {id_ for id_, check in found.items() if check.status is Status.ERROR}
    assert report.verdict is Verdict.ERRORED
    assert broken == {f"n.{id_}" for id_ in (*_BROKEN, "where")}
    assert all(found[id_].message for id_ in broken)
    assert "DIVIDE_BY_ZERO" in found["n.zero"].message
    assert "nobody" in found["n.nobody"].message
    assert (found["n.fine"].counted, found["n.invalidValues"].counted) == (1, 1)


_NAMES = ("a.b", "a b", "a`b", "select", "gr\u00f6\u00dfe \U0001f600", "it's", 'a"b', "x0", "-- c")


def test_a_column_may_have_any_name(job: Job, table: str) -> None:
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
    body = parquet({name: ["v1", "bad", "v0"] for name in _NAMES})
    report = job.ingest(body, text, table)
    failed = {check.id: check for check in report.failed}
    assert set(failed) == {f"{name}.invalidValues" for name in _NAMES}
    assert {c.status for c in report.checks if c.metric == "nullValues"} == {Status.PASS}
    session = job.session(report.branch)
    for check in failed.values():
        assert check.counted == 1
        assert [row[check.columns[0]] for row in check.samples] == ["bad"]
    union = " UNION ALL ".join(check.query for check in failed.values())
    assert session.sql(union).count() == len(_NAMES)


_WIDE, _CHECKED = 130, 40  # more columns, and more checks, than one piece of Spark's code takes


def test_one_bad_cell_of_many_columns_is_found(job: Job, table: str) -> None:
    """Of 81 checks on 130 columns exactly the one with the bad cell fails (40)."""
    rule = {"logicalTypeOptions": {"pattern": "^v[0-9]$"}, "required": True}
    rules: list[dict[str, Any]] = [*[rule] * _CHECKED, *[{}] * (_WIDE - _CHECKED)]
    rules[-1] = {"required": True}
    columns = [{"name": f"c{n}", "logicalType": "string", **each} for n, each in enumerate(rules)]
    good = {column["name"]: ["v1", "v2", "v3"] for column in columns}
    body = parquet({**good, "c37": ["v1", "v2", "3"]})
    report = job.ingest(body, contract_of(columns, table=table, write="spark"), table)
    assert [check.id for check in report.failed] == ["c37.invalidValues"]
    assert sum(c.status is Status.PASS for c in report.checks) == 2 * _CHECKED + 3
