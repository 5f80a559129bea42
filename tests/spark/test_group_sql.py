"""SQL over the rows of a group's files that are still in memory."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from lakegate.contract.model import parse
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.groups.group_sql import left_for_sql, measured
from tests.spark.conftest import Job
from tests.spark.measuring import contract_of, custom, reading_session

pytestmark = pytest.mark.spark
_MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 - of both kinds below
_VALUES: dict[str, tuple[str, list[Any]]] = {  # by physical type, with the logical one
    "boolean": ("boolean", [True, False, None]),
    "int": ("integer", [-(2**31), 2**31 - 1, None]),
    "bigint": ("integer", [-(2**63), 2**63 - 1, None]),
    "float": ("number", [-0.0, float("nan"), None]),
    "double": ("number", [5e-324, float("-inf"), None]),
    "decimal(38,9)": (
        "number",
        [Decimal("-12345678901234567890123456789.98"), Decimal("1e-9"), None],
    ),
    "string": ("string", ["", "a\0\u2028\U0001f600", None]),
    "binary": ("string", [b"", b"\0\xff", None]),
    "date": ("date", [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp": ("timestamp", [_MOMENT, dt.datetime(2024, 3, 31, 2, 30), None]),  # noqa: DTZ001
    "timestamp_ntz": ("timestamp", [_MOMENT, dt.datetime(2024, 3, 31, 2, 30), None]),  # noqa: DTZ001
}


def test_a_value_in_memory_is_the_value_in_a_file(job: Job, tmp_path: Path) -> None:
    """A value of every plain type has the hash that Spark finds in a Parquet file of it."""
    properties = [_column(n, each, _VALUES[each][0]) for n, each in enumerate(_VALUES)]
    known = parse(contract_of(properties, [custom("rowExpression", expression="true")]), "test")
    columns = schema_of(known.columns)
    values = [each for _, each in _VALUES.values()]
    rows = pa.table([pa.array(v, t) for v, t in zip(values, columns.types, strict=True)], columns)
    pq.write_table(rows, tmp_path / "rows.parquet")
    spark = reading_session(job.warm_spark)
    hashes = [f"hash(c{n})" for n in range(len(_VALUES))]
    found = spark.read.parquet(str(tmp_path / "rows.parquet")).selectExpr(*hashes).collect()
    rules = [
        custom("rowExpression", expression=f"hash(c{n}) IN ({', '.join(map(str, same))})")
        for n, same in enumerate(zip(*found, strict=True))
    ]
    contract = parse(contract_of(properties, rules), "test")
    left = left_for_sql([rows], contract.checks, contract)
    answers = measured(spark, contract, {"one": left, "two": left[:1]})
    assert {id_: each.value for id_, each in answers["one"].items()} == dict.fromkeys(
        answers["two"], 0
    )
    assert {each.rows for each in answers["one"].values()} == {3}


def test_only_columns_that_a_check_may_name_are_held() -> None:
    """A column is held if a check names it, in any case or as part of another word."""
    properties = [
        {"name": name, "logicalType": "integer"} for name in ("Day", "kind", "more", "a`b")
    ]
    rule = custom("rowExpression", expression="`day` + KINDS IS NULL")
    contract = parse(contract_of(properties, [rule], provenance="all"), "test")
    rows = pa.table({c.name: pa.nulls(2, schema_of([c]).types[0]) for c in contract.table_columns})
    assert left_for_sql([rows], contract.checks, contract).column_names == ["Day", "kind", "a`b"]


def _column(number: int, physical: str, logical: str) -> dict[str, Any]:
    return {"name": f"c{number}", "logicalType": logical, "physicalType": physical}
