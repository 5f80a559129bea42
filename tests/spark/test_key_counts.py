"""Keys, counted and looked up by Spark, compared with plain Python on generated rows."""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.audit.keys import counts as keys
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]

NAN = float("nan")
# Few values each, so that they collide: 0.0 and -0.0, NaN, case, trailing spaces, letters beyond
# Unicode's first plane, the same letter composed and decomposed.
NUMBERS = st.sampled_from([None, 0.0, -0.0, NAN, -NAN, 1.5, math.inf, -math.inf, 5e-324])
TEXTS = st.sampled_from([None, "", " ", "a", "A", "a ", "ä", "a\u0308", "😀", "\x00", "NULL"])
ROWS = st.lists(st.tuples(NUMBERS, TEXTS), max_size=60)
SLOW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KINDS: dict[str, list[Any]] = {
    "f double": [0.0, -0.0, NAN, -NAN, None, 1.0],
    "f float": [0.0, -0.0, NAN, None],
    "b boolean": [True, False, True, None],
    "x binary": [b"", b"", b"a", b"A", None],
    "d decimal(38,2)": [1, 1, -1, None],
    "t timestamp": [None, None],
    "i bigint": [2**63 - 1, -(2**63), 2**63 - 1, None],
    "s struct<a: double, b: string>": [(0.0, "x"), (-0.0, "x"), (None, None), (None, None), None],
    "a array<double>": [[NAN], [NAN], [], None],
}


@pytest.fixture
def spark(job: Job) -> SparkSession:
    return job.warm_spark


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame(list(rows), "number double, `the.text` string")


def keyed(rows: DataFrame, *columns: str) -> DataFrame:
    return keys.keys_of(rows, [F.col(f"`{name}`") for name in columns])


def plain(value: Any) -> Any:
    """Return a value that compares in Python as keys do."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value


def complete(rows: Sequence[Row]) -> list[Row]:
    """Return the keys of the rows that have one."""
    return [tuple(map(plain, row)) for row in rows if None not in row]


def counted(rows: Sequence[Row]) -> keys.Keys:
    """Return the expected result of `keys.count`."""
    several = [n for n in Counter(complete(rows)).values() if n > 1]
    return keys.Keys(len(set(complete(rows))), len(several), sum(several))


@SLOW
@given(rows=ROWS)
def test_keys_are_counted_as_plain_python_counts_them(spark: SparkSession, rows: list[Row]) -> None:
    """Spark and Python count the same keys, duplicates and rows, for one column or two."""
    assert keys.count(keyed(frame(spark, rows), "number", "the.text")) == counted(rows)
    numbers = [(number,) for number, _ in rows]
    assert keys.count(keyed(frame(spark, rows), "number")) == counted(numbers)


@SLOW
@given(rows=ROWS, there=ROWS)
def test_keys_are_found_as_plain_python_finds_them(
    spark: SparkSession, rows: list[Row], there: list[Row]
) -> None:
    """Spark and Python find the same keys among other rows, each once."""
    own, others = (keyed(frame(spark, each), "number", "the.text") for each in (rows, there))
    found = keys.found_in(own, others).collect()
    wanted = set(complete(rows)) & set(complete(there))
    assert Counter(tuple(map(plain, row)) for row in found) == Counter(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_may_be_of_any_type_that_has_equality(spark: SparkSession, kind: str) -> None:
    """0.0 is -0.0 and NaN is NaN, also within a struct or an array; a null is no key."""
    name, type_ = kind.split(" ", 1)
    values = [Decimal(v) if "decimal" in type_ and v else v for v in KINDS[kind]]
    rows = spark.createDataFrame([(value,) for value in values], f"{name} {type_}")
    assert keys.count(keyed(rows, name)) == counted([(value,) for value in KINDS[kind]])
