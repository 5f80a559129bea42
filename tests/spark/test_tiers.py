"""Large contracts are answered completely, and columns within columns."""

from typing import Any

import pytest

from lakegate.audit.report import Status
from tests.spark.conftest import Job, parquet
from tests.spark.measuring import contract_of

pytestmark = pytest.mark.spark
_WIDE, _CHECKED = 500, 150


def test_one_bad_cell_of_500_columns_is_found(job: Job, table: str) -> None:
    """Of 301 checks on 500 columns exactly the one with the bad cell fails (case 40)."""
    rule = {"logicalTypeOptions": {"pattern": "^v[0-9]$"}, "required": True}
    rules: list[dict[str, Any]] = [*[rule] * _CHECKED, *[{}] * (_WIDE - _CHECKED)]
    rules[-1] = {"required": True}
    columns = [{"name": f"c{n}", "logicalType": "string", **each} for n, each in enumerate(rules)]
    good = {column["name"]: ["v1", "v2", "v3"] for column in columns}
    body = parquet({**good, "c137": ["v1", "v2", "3"]})
    report = job.ingest(body, contract_of(columns, table=table, write="spark"), table)
    assert [check.id for check in report.failed] == ["c137.invalidValues"]
    assert sum(c.status is Status.PASS for c in report.checks) == 2 * _CHECKED + 3


def test_four_levels_deep_is_checked_and_comes_again(job: Job, table: str) -> None:
    """A value four levels deep is checked, in the table's first file and in the next (34)."""
    sku = {"name": "sku", "logicalType": "string", "required": True}
    lines = {"logicalType": "array", "items": {"logicalType": "object", "properties": [sku]}}
    order = {"logicalType": "object", "properties": [{"name": "lines", **lines}]}
    text = contract_of([{"name": "order", **order}], table=table)
    good = [{"lines": [{"sku": "a"}, None]}, {"lines": []}, {"lines": None}, None]
    job.publish(job.ingest(parquet({"order": good}), text, table))
    bad = [*good[1:], {"lines": [{"sku": "a"}, {"sku": None}, {"sku": None}]}]
    report = job.ingest(parquet({"order": bad}), text, table)
    assert [(c.id, c.counted) for c in report.failed] == [("order.lines[].sku.nullValues", 1)]
