"""The Arrow tier's findings over a file, from its parts, and what it leaves to other tiers."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakegate.contract.checks import Check, CheckSpec, Metric, Scope
from lakegate.contract.columns import ITEM, Column
from lakegate.contract.expectations import NONE
from lakegate.contract.model import Contract
from lakegate.contract.rules import Condition, Quantile, Rule
from spark_jobs.audit.arrow.tier_arrow import Pass, answerable, divided, measure, measures
from spark_jobs.audit.keys.column_hashes import mix
from spark_jobs.files.arrow.values import ColumnStatistics, statistics

NAN, DUPLICATE, DISTINCT = math.nan, Metric.DUPLICATE, Metric.DISTINCT
NOT_UTF8 = pa.array([b"a", b"\xff\xfe", None], pa.binary()).view(pa.string())


def check(metric: Metric, *columns: str, rule: CheckSpec = Rule(), **other: Any) -> Check:  # noqa: B008
    """Return a check whose id is its metric and its columns."""
    return Check(f"{metric} {' '.join(columns)}", metric, columns, rule, NONE, **other)


def contract(types: dict[str, str], *checks: Check) -> Contract:
    columns = tuple(Column(name, type_, "any") for name, type_ in types.items())
    nested = (Column("tags[]", "string", "string", path=("tags", ITEM)),)
    return Contract("", "", "a.b", "", "parquet", columns, checks, "", nested=nested)


def found_in(asked: Contract, *parts: dict[str, Any]) -> Pass:
    """Return the findings over the parts of a file."""
    first, *others = (measure(pa.table(part), asked) for part in parts)
    for other in others:
        first += other
    return first


def numbers(asked: Contract, *parts: dict[str, Any]) -> dict[str, Any]:
    """Return the measured numbers by check id."""
    found = measures(found_in(asked, *parts), asked)
    return {id_: measured.value for id_, measured in found.items()}


def test_parts_add_up_to_the_file() -> None:
    """Rows, counts and sums over two row groups are those over both together."""
    asked = contract(
        {"n": "bigint"},
        *(check(metric, "n") for metric in (Metric.NULL, Metric.SUM, Metric.MEAN, DISTINCT)),
        check(Metric.INVALID, "n", rule=Rule(maximum="3")),
        check(Metric.ROWS),
    )
    parts = {"n": pa.array([1, None, 5])}, {"n": pa.array([4, 4], pa.int64())}
    found = found_in(asked, *parts)
    assert found.rows == 5
    assert numbers(asked, *parts) == {
        "nullValues n": 1,
        "sum n": Decimal(14),
        "mean n": 3.5,
        "distinctCount n": 3,
        "invalidValues n": 3,
        "rowCount ": 5,
    }


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        ("double", pa.array([NAN, None, 2.5, -1.0]), ColumnStatistics(4, 1, 1, -1.0, 2.5)),
        ("float", pa.array([NAN, None], pa.float32()), ColumnStatistics(2, 1, 1, None, None)),
        ("string", pa.array([], pa.string()), ColumnStatistics(0, 0, None, None, None)),
        ("string", pa.array(["\uffff", "😀", "a"]), ColumnStatistics(3, 0, None, "a", "😀")),
        ("binary", pa.array([b"\xff", b"a"]), ColumnStatistics(2, 0, None, b"a", b"\xff")),
        ("boolean", pa.array([True, None]), ColumnStatistics(2, 1, None, True, True)),
        (
            "decimal(5,2)",
            pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(5, 2)),
            ColumnStatistics(2, 0, None, Decimal("-0.01"), Decimal("1.50")),
        ),
        ("date", pa.array([date(1969, 12, 31)]), ColumnStatistics(1, 0, None, -1, -1)),
        (
            "timestamp",
            pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            ColumnStatistics(1, 0, None, 1_000_000, 1_000_000),
        ),
    ],
)
def test_statistics_are_those_of_a_manifest(
    type_: str, values: pa.Array, expected: ColumnStatistics
) -> None:
    """Extremes leave out nulls and NaN, which are counted, and are plain Python values."""
    assert statistics(Column("x", type_, "any"), pa.chunked_array([values])) == expected


def test_a_zero_is_within_its_bounds_for_readers_that_order_zeros() -> None:
    """A lower bound of zero is -0.0 and an upper one 0.0, whichever zero the column has."""
    column, zeros = Column("x", "double", "any"), pa.chunked_array([[0.0], [-0.0]])
    found = [statistics(column, pa.chunked_array([zero])) for zero in zeros.chunks]
    ends: tuple[Any, Any] = (found[0] + found[1]).low, (found[1] + found[0]).high
    assert [math.copysign(1, end) for end in ends] == [-1, 1]


def test_a_column_that_is_no_text_is_left_out() -> None:
    """If any part of a text column is not UTF-8, all its checks are left out, and no others."""
    asked = contract(
        {"s": "string", "n": "bigint"},
        check(Metric.NULL, "s"),
        check(DUPLICATE, "n", "s"),
        check(Metric.NULL, "n"),
    )
    good = {"s": pa.array(["a"]), "n": pa.array([1])}
    bad = {"s": NOT_UTF8, "n": pa.array([1, None, 2])}
    found = found_in(asked, good, bad)
    assert found.undecodable == {"s"}
    assert numbers(asked, good, bad) == {"nullValues n": 1}


def test_sums_are_exact_or_left_out() -> None:
    """A sum beyond 64 bits is exact; one that might exceed 38 digits on the way is left out."""
    asked = contract({"x": "bigint"}, check(Metric.SUM, "x"), check(Metric.MEAN, "x"))
    largest = {"x": pa.array([2**63 - 1, 2**63 - 1])}
    assert numbers(asked, largest)["sum x"] == 2**64 - 2
    assert numbers(asked, {"x": pa.array([None], pa.int64())}) == {"sum x": None, "mean x": None}
    asked = contract({"x": "decimal(38,0)"}, check(Metric.SUM, "x"))
    huge = Decimal(6 * 10**37)
    part = {"x": pa.array([huge, -huge], pa.decimal128(38, 0))}
    assert numbers(asked, part) == {}
    half = {"x": pa.array([huge], pa.decimal128(38, 0))}
    assert numbers(asked, half) == {"sum x": huge}
    one = {"x": pa.array([Decimal(1)], pa.decimal128(38, 0))}
    assert numbers(asked, one, half) == {"sum x": Decimal(6 * 10**37 + 1)}
    assert numbers(asked, one, half, half) == {}


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("string", ["a", "b", "a", None]),
        ("binary", [b"", b"a", b"", None]),
        ("decimal(38,0)", [Decimal(2**64), Decimal(0), Decimal(2**64), None]),
    ],
)
def test_a_repeated_long_key_is_counted_within_one_part_only(
    type_: str, values: Sequence[Any]
) -> None:
    """A repeated hash is looked into while its rows are at hand, and later left to other tiers."""
    asked = contract({"x": type_}, check(DUPLICATE, "x"), check(DISTINCT, "x"))
    array = pa.array(values, pa.decimal128(38, 0) if "decimal" in type_ else None)
    assert numbers(asked, {"x": array}) == {"duplicateValues x": 1, "distinctCount x": 2}
    assert numbers(asked, {"x": array.slice(0, 1)}, {"x": array.slice(1, 2)}) == {}
    once = numbers(asked, {"x": array.slice(0, 1)}, {"x": array.slice(1, 1)})
    assert once == {"duplicateValues x": 0, "distinctCount x": 2}


def test_different_keys_with_one_hash_are_told_apart() -> None:
    """Rows whose hashes are equal are compared themselves, so that no key is called a duplicate."""
    asked = contract({"a": "bigint", "b": "bigint"}, check(DUPLICATE, "a", "b"))
    first = np.array([1, 2], np.uint64)
    mix(first)
    second = np.array([0, first[0] ^ first[1]], np.uint64).view(np.int64)
    table = {"a": pa.array([1, 2]), "b": pa.array(second)}
    assert numbers(asked, table) == {"duplicateValues a b": 0}
    assert numbers(asked, *({k: v.slice(n, 1) for k, v in table.items()} for n in (0, 1))) == {}


def test_a_repeated_short_key_is_counted_over_all_parts() -> None:
    """A key of 64 bits is its own hash, so parts with the same key still have an exact count."""
    asked = contract({"x": "double"}, check(DUPLICATE, "x"), check(DISTINCT, "x"))
    parts = {"x": pa.array([0.0, NAN, None])}, {"x": pa.array([-0.0, -NAN, 1.0])}
    assert numbers(asked, *parts) == {"duplicateValues x": 2, "distinctCount x": 3}


def test_notes_on_keys_name_repeats_and_unique_parts() -> None:
    """A repeated key is noted with its rows, and a key that contains a unique one says so."""
    asked = contract(
        {"a": "int", "b": "int"}, *(check(DUPLICATE, *key) for key in (("b", "a"), ("b",), ("a",)))
    )
    table = pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "b": pa.array([7] * 4, pa.int32())})
    notes = {id_: each.note for id_, each in measures(measure(table, asked), asked).items()}
    assert notes == {
        "duplicateValues a": "",
        "duplicateValues b": "1 key on 4 rows",
        "duplicateValues b a": "a alone is unique",
    }


ALL = {
    "n": "bigint",
    "real": "double",
    "d": "decimal(5,2)",
    "s": "string",
    "day": "date",
    "t": "timestamp",
    "local": "timestamp_ntz",
    "tags": "array<string>",
    "raw": "binary",
    "flag": "boolean",
}


@pytest.mark.parametrize(
    "declined",
    [
        check(Metric.NULL, "n", where="n > 0"),
        check(Metric.NULL, "n", scope=Scope.TABLE),
        check(Metric.ROWS, scope=Scope.TABLE),
        check(Metric.BROKEN, "n", rule=Condition("n > 0")),
        check(Metric.SUM, "real"),
        check(Metric.MEAN, "real"),
        check(Metric.STDDEV, "n"),
        check(Metric.QUANTILE, "n", rule=Quantile(Decimal("0.5"))),
        check(Metric.AGE, "t"),
        check(Metric.NULL, "tags[]"),
        check(DISTINCT, "n", "tags"),
        check(Metric.INVALID, "raw", rule=Rule(min_length=1)),
        check(Metric.INVALID, "flag", rule=Rule(minimum="true")),
        check(Metric.INVALID, "s", rule=Rule(pattern="(?=a)")),
        check(Metric.INVALID, "s", rule=Rule(max_length=2**40)),
        *(
            check(Metric.INVALID, column, rule=Rule(multiple_of=step))
            for column, step in (("n", "2.5"), ("n", "0"), ("d", "2"), ("real", "2"))
        ),
        *(
            check(Metric.INVALID, column, rule=Rule(minimum=text))
            for column, text in (
                *(("n", " 1"), ("n", "1e3"), ("n", "+1"), ("n", f"{2**63}"), ("n", "\u0661")),
                *(("d", "0.001"), ("d", "1000"), ("real", "1e999"), ("real", "NaN")),
                *(("day", "2013-1-1"), ("day", "2013-02-30"), ("day", "2013-01-01T00:00:00")),
            )
        ),
    ],
    ids=lambda each: f"{each.id} {each.rule}"[:80],
)
def test_what_may_mean_something_else_is_declined(declined: Check) -> None:
    """Checks with the owner's SQL, of nested columns or in doubt are for Spark, and no others."""
    sure = check(Metric.NULL, "n")
    asked = contract(ALL, declined, sure)
    assert [each for each in asked.checks if answerable(each, asked)] == [sure]


def test_a_quarantined_row_that_is_no_text_is_known() -> None:
    """A row with bytes that are no UTF-8 is unparseable, also if a check quarantines it."""
    asked = contract({"s": "string", "n": "bigint"}, check(Metric.NULL, "n", quarantine=True))
    rows = {"s": NOT_UTF8, "n": pa.array([1, None, 3])}
    assert divided(pa.table(rows), asked).found.undecodable == {"s"}
