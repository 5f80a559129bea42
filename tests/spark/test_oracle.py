"""The audit's numbers equal those of plain Python for generated rows and contracts."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lakegate.contract.checks import OF_ROWS, OF_VALUES, Metric
from lakegate.contract.model import parse
from tests.spark import oracle
from tests.spark.conftest import Job
from tests.spark.measuring import contract_of, custom, measured, options, reading_session

pytestmark = pytest.mark.spark
_ROWS = 200
_NUMBERS = ("int", "bigint", "decimal(38,6)", "amount")
# A column of each type, and `amount` for sums that do not depend on the order of the rows.
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "string": {"logicalType": "string"},
    "int": {"logicalType": "integer", "physicalType": "int"},
    "bigint": {"logicalType": "integer"},
    "decimal(38,6)": {"logicalType": "number", "physicalType": "decimal(38,6)"},
    "double": {"logicalType": "number"},
    "float": {"logicalType": "number", "physicalType": "float"},
    "boolean": {"logicalType": "boolean"},
    "date": {"logicalType": "date"},
    "timestamp": {"logicalType": "timestamp"},
    "timestamp_ntz": {"logicalType": "timestamp", "physicalType": "timestamp_ntz"},
    "array<string>": {"logicalType": "array", "items": {"logicalType": "string"}},
    "amount": {"logicalType": "number"},
}
_POOLS = {**oracle.VALUES, "amount": (0.0, -0.0, 0.1, 0.2, 99.5, -1e6, math.nan)}
_KINDS = tuple(_COLUMNS)
_RANGED = (
    "int",
    "bigint",
    "decimal(38,6)",
    "double",
    "float",
    "date",
    "timestamp",
    "timestamp_ntz",
)
_STEPS = ("1", "2", "7", "0.1", "0.05", "2.5", "0.000001")


@pytest.fixture(scope="module")
def spark(job: Job) -> SparkSession:
    return reading_session(job.warm_spark)


def _written(value: Any) -> Any:
    """Return a value as written in a contract; numbers keep their digits (see `_unquoted`)."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    return f"@@{value:f}@@" if isinstance(value, Decimal) else f"@@{value!r}@@"


def _unquoted(text: str) -> str:
    return text.replace('"@@', "").replace('@@"', "")


def _literals(kind: str) -> st.SearchStrategy[Any]:
    finite = [v for v in _POOLS[kind] if not isinstance(v, float) or math.isfinite(v)]
    return st.sampled_from(finite)


@st.composite
def _limits(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    low, high = sorted((draw(_literals(kind)), draw(_literals(kind))))
    names = [["minimum", "exclusiveMinimum"], ["maximum", "exclusiveMaximum"]]
    ends = draw(st.sampled_from([(0,), (1,), (0, 1)]))
    kept = [names[n][:1] if low == high else names[n] for n in ends]
    values = [_written((low, high)[n]) for n in ends]
    return {draw(st.sampled_from(each)): value for each, value in zip(kept, values, strict=True)}


def _given(key: str, value: Any) -> dict[str, Any]:
    return {key: value}


def _arguments(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return arguments that define a column's valid values."""
    if kind == "array<string>":
        size = st.integers(0, 2).map(lambda n: _given("minItems", n))
        return st.one_of(size, st.just(_given("uniqueItems", True)), st.just(_given("maxItems", 1)))
    several = st.lists(_literals(kind), min_size=1, max_size=14)
    either = [several.map(lambda values: _given("validValues", [*map(_written, values)]))]
    if kind in _RANGED:
        either.append(_limits(kind))
    if kind in _RANGED[:5]:
        either.append(st.sampled_from(_STEPS).map(lambda step: _given("multipleOf", f"@@{step}@@")))
    if kind == "string":
        either.append(st.sampled_from([*oracle.PATTERNS]).map(lambda text: _given("pattern", text)))
        either.append(st.integers(0, 3).map(lambda n: _given("minLength", n)))
        either.append(st.integers(0, 3).map(lambda n: _given("maxLength", n)))
    return st.one_of(*either)


@st.composite
def _rules(draw: st.DrawFn, kind: str) -> list[dict[str, Any]]:
    """Return rules for a column, over all rows or over those where `boolean` is true."""
    any_ = {"mustBeGreaterOrEqualTo": 0}
    found: list[dict[str, Any]] = [{"metric": "nullValues", **any_}]
    stated = draw(st.lists(_arguments(kind), min_size=1, max_size=2))
    found += [{"metric": "invalidValues", "arguments": each, **any_} for each in stated]
    if kind == "string":
        listed = draw(st.lists(st.one_of(st.none(), _literals(kind)), min_size=1, max_size=4))
        found.append({"metric": "missingValues", "arguments": {"missingValues": listed}, **any_})
        found.append(custom("encoding"))
    if kind in _NUMBERS:
        share = draw(st.sampled_from([0, 0.1, 0.5, 0.95, 1]))
        found += [custom(name, **any_) for name in ("sum", "mean", "stddev")]
        found.append(custom("quantile", share=share, **any_))
    if kind in _RANGED[5:]:
        found.append(custom("freshness", **any_))
    where = options(where="boolean") if draw(st.booleans()) else {}
    return [{**rule, **where} for rule in found]


@st.composite
def _contracts(draw: st.DrawFn) -> str:
    columns = [
        {"name": kind, **column, "quality": draw(_rules(kind))} for kind, column in _COLUMNS.items()
    ]
    return _unquoted(contract_of(columns))


def _table(seed: int, *, empty: bool) -> list[tuple[Any, ...]]:
    """Return rows of hostile values; some columns hold only nulls."""
    random = Random(seed)  # noqa: S311 - no secret
    columns = []
    for kind in _KINDS:
        nulls = random.choice((0, 1, 3, 30)) if not empty else 10**6
        weights = [nulls, *[1] * len(_POOLS[kind])]
        columns.append(random.choices((None, *_POOLS[kind]), weights, k=_ROWS))
    return list(zip(*columns, strict=True))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # an example is a Spark job: too dear to be shrunk
)
@given(text=_contracts(), seed=st.integers(0, 2**32), empty=st.sampled_from([False] * 9 + [True]))
def test_every_number_is_the_oracles(
    spark: SparkSession, text: str, seed: int, *, empty: bool
) -> None:
    """Counts equal those of plain Python, and other numbers are within a float's error."""
    contract, rows = parse(text, "rows.yaml"), _table(seed, empty=empty)
    found = measured(spark, contract, rows)
    now = datetime.now(UTC)
    for check in contract.checks:
        checked = [row for row in rows if not check.where or row[_KINDS.index("boolean")]]
        values = [row[_KINDS.index(check.columns[0])] for row in checked]
        got = found[check.id]
        assert (got.problem, got.rows) == ("", len(checked)), check
        event(check.metric.value)
        if check.metric in OF_ROWS:
            assert got.value == oracle.count(check, values, narrow=check.columns == ("float",)), (
                check
            )
            continue
        assert check.metric in OF_VALUES
        wanted = oracle.aggregate(check, values, now)
        if wanted is None or isinstance(wanted, Fraction):
            exact = None if got.value is None else Fraction(got.value)
            assert exact == wanted, check
        else:
            spread = sum(abs(float(v)) for v in values if isinstance(v, float) and v == v)  # noqa: PLR0124
            slack = 0.5 if check.metric is Metric.AGE else spread * 1e-14
            assert got.value == pytest.approx(wanted, rel=1e-9, abs=slack), check
