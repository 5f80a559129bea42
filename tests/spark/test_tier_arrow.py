"""The numbers of the Arrow tier are Spark's, for random rules over random columns."""

import math
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lakegate.audit.report import Tier
from lakegate.contract.checks import OF_VALUES, Check, Drift, Metric
from lakegate.contract.columns import Column
from lakegate.contract.expectations import NONE
from lakegate.contract.model import Contract
from lakegate.contract.rules import Rule
from lakegate.ecma_patterns import PATTERNS
from spark_jobs.audit import tiers
from spark_jobs.audit.arrow import tier_arrow
from spark_jobs.audit.run import Measured
from spark_jobs.files.source import FILE
from tests.fakes.amounts import RUNS, SEED
from tests.spark.conftest import Job
from tests.spark.measuring import reading_session
from tests.unit.contract.pattern_examples import COMMON

pytestmark = pytest.mark.spark

_ROUND = 600  # of the runs that are asked for: about 2,000 pairs of a check and its columns
_FILES, _CHECKS, _KEYS = 36, 3, 4
_DAY = 86_400_000_000
_DAYS = (-719_162, -141_428, -141_427, -1, 0, 1, 18_321, 2_932_896)  # year 1, 1582, 2020, 9999
_MOMENTS = (-719_162 * _DAY, -141_427 * _DAY - 1, -1, 0, 1, 2_932_897 * _DAY - 1, 10**15)
_TEXTS = (
    *("", " ", "a", "A", "a ", " a", "ab", "b", "é", "e\u0301", "ß", "\u017f", "K", "a\u00a0b"),
    *("😀", "a😀", "😀b", "\U0010ffff", "\ue000", "\uffff", "\u2028", "a\u2029b", "\r", "a\rb"),
    *("a\n", "\x00", "a\x00", "\x7f", "\x1f", "\x80", "\ufffd", "\t", "12345", "٣", "N/A", "0"),
    *("-1", "x1", "a@b.de", "me@example.org", "10.0.0.1", "::1", "AbC=", "https://a.b/c", "a.org"),
    *("_", "\\", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "a'b", "%", "x" * 70),
    *("y" * 600, "y" * 599 + "z", "y" * 511 + "z" + "y" * 88),
)  # fmt: skip
_REAL = (0.0, -0.0, 0.1, 0.3, 0.1 + 0.2, -1.5, 1.0, 7.0, 1e-7, 5e-324, 2.0**53, 1e21, 1e308, -1e308)
_HUGE = 10**38 - 1


def _single(value: float) -> float:
    with suppress(OverflowError):
        return float(struct.unpack("f", struct.pack("f", value))[0])
    return math.copysign(math.inf, value)


def _scaled(units: int, places: int) -> Decimal:
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -places))


_TYPES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "string": (pa.string(), _TEXTS),
    "int": (pa.int32(), (0, 1, -1, 2, 6, 7, 100, 2**31 - 1, -(2**31))),
    "bigint": (pa.int64(), (0, 1, -1, 6, 7, 100, 2**53 + 1, 2**63 - 1, -(2**63), 10**18)),
    "float": (pa.float32(), (*map(_single, _REAL), math.nan, math.inf, -math.inf, _single(0.7))),
    "double": (pa.float64(), (*_REAL, math.nan, math.inf, -math.inf)),
    "decimal(9,2)": (pa.decimal128(9, 2), [_scaled(n, 2) for n in (0, 1, -1, 150, 10**9 - 1)]),
    "decimal(18,0)": (pa.decimal128(18, 0), [_scaled(n, 0) for n in (0, 5, -5, 10**18 - 1)]),
    "decimal(38,6)": (
        pa.decimal128(38, 6),
        [_scaled(n, 6) for n in (0, 1, -1, 1_500_000, _HUGE, -_HUGE, 10**36, 2**64, 2**64 + 1)],
    ),
    "decimal(38,38)": (pa.decimal128(38, 38), [_scaled(n, 38) for n in (0, 3, -3, _HUGE)]),
    "boolean": (pa.bool_(), (True, False)),
    "date": (pa.date32(), _DAYS),
    "timestamp": (pa.timestamp("us", "UTC"), _MOMENTS),
    "timestamp_ntz": (pa.timestamp("us"), _MOMENTS),
    "binary": (pa.binary(), (b"", b"\x00", b"\xff", b"a", b"a\x00", b"y" * 600)),
}
_COLUMNS = {f"c{n} {kind[:4]}": kind for n, kind in enumerate((*_TYPES, *["string"] * 3, "bigint"))}
_INNER = {
    "text": "string",
    "big": "bigint",
    "real": "double",
    "price": "decimal(9,2)",
    "day": "date",
}
_NESTED = {f"s.{name}": kind for name, kind in _INNER.items()}
_ORDERED = [kind for kind in _TYPES if kind not in ("boolean", "binary", "string")]
_ADDED = [kind for kind in _TYPES if kind in ("int", "bigint") or kind.startswith("decimal")]


def _table(random: Random, rows: int) -> pa.Table:
    """Return random rows: few or many different values, with or without nulls, or only nulls."""
    found = {name: _values(random, kind, rows) for name, kind in _COLUMNS.items()}
    parts = [_values(random, kind, rows) for kind in _INNER.values()]
    share = random.choice((0.0, 0.3, 1.0))
    absent = pa.array([random.random() < share for _ in range(rows)], pa.bool_())
    structs = pa.StructArray.from_arrays(parts, list(_INNER), mask=absent)
    return pa.table({**found, "s": structs})


def _values(random: Random, kind: str, rows: int) -> pa.Array:
    type_, pool = _TYPES[kind]
    nulls = random.choice((0.0, 0.0, 0.2, 1.0 if random.random() < 0.3 else 0.5))
    known = random.sample(pool, random.randint(1, len(pool)))
    make = random.choice((lambda: random.choice(known), lambda: _any(random, kind)))
    found = [None if random.random() < nulls else make() for _ in range(rows)]
    return pa.array(found, type_)


def _any(random: Random, kind: str) -> Any:
    """Return any value of a type; of text and numbers, few are likely to come twice."""
    if kind.startswith("decimal"):
        digits, places = map(int, kind[8:-1].split(","))
        largest = 10 ** random.randint(1, digits) - 1
        return _scaled(random.randint(-largest, largest), places)
    return _MAKERS[kind](random)


def _text(random: Random) -> str:
    size = random.choice((1, 2, 3, 8, 9, 17))
    return "".join(random.choice("aAb1 -_.é😀\n\r\u2028\x00~") for _ in range(size))


def _whole(random: Random, most_bits: int) -> int:
    bits = random.randint(1, most_bits)
    return random.randrange(-(2**bits), 2**bits)


def _number(random: Random) -> float:
    return random.uniform(-1, 1) * 10 ** random.randint(-3, 6)


def _microseconds(random: Random) -> int:
    return random.randint(_MOMENTS[0], _DAYS[-1] * _DAY)


_MAKERS: Mapping[str, Callable[[Random], Any]] = {
    "string": _text,
    "int": lambda random: _whole(random, 31),
    "bigint": lambda random: _whole(random, 63),
    "float": lambda random: _single(_number(random)),
    "double": _number,
    "boolean": lambda random: random.random() < 0.5,
    "date": lambda random: random.randint(_DAYS[0], _DAYS[-1]),
    "timestamp": _microseconds,
    "timestamp_ntz": _microseconds,
    "binary": lambda random: random.randbytes(random.choice((0, 1, 8, 20))),
}


def _literal(random: Random, kind: str) -> str:
    """Return a literal of a type, as contracts have it."""
    value = random.choice(_TYPES[kind][1]) if random.random() < 0.7 else _any(random, kind)
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "date" or kind.startswith("timestamp"):
        return _moment(value * (_DAY if kind == "date" else 1), kind)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "0.1"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _moment(microseconds: int, kind: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    if kind == "date":
        return moment.date().isoformat()
    return (moment if kind == "timestamp" else moment.replace(tzinfo=None)).isoformat()


def _rule(random: Random, kind: str) -> Rule:
    """Return a rule of one or two parts for valid values of a type."""
    several = tuple(_literal(random, kind) for _ in range(random.randint(1, 14)))
    parts: list[Callable[[], dict[str, Any]]] = [lambda: {"valid_values": several}]
    if kind in _ORDERED:
        names = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum")
        parts += 3 * [lambda: {random.choice(names): _literal(random, kind)}]
    if kind in ("int", "bigint"):
        parts.append(lambda: {"multiple_of": random.choice(("1", "2", "7", "1000", "2.5"))})
    if kind == "string":
        parts += 3 * [lambda: {"pattern": random.choice(COMMON)}]
        parts.append(lambda: {"format": random.choice([*PATTERNS])})
        parts.append(lambda: {random.choice(("min_length", "max_length")): random.randint(0, 4)})
        parts.append(lambda: {random.choice(("minimum", "maximum")): _literal(random, kind)})
    chosen = random.choices(parts, k=random.choice((1, 1, 2)))
    return Rule(**{name: value for part in chosen for name, value in part().items()})


def _column_check(random: Random, name: str, kind: str) -> Check:
    """Return a random check of one column."""
    missing = random.choice(((), (None,))) + tuple(_literal(random, kind) for _ in range(3))
    able = [Metric.NULL]
    if kind != "binary":
        able += [Metric.INVALID] * 8 + [Metric.MISSING] * 2
    able += [Metric.UNDECODED] * 2 if kind == "string" else []
    able += [Metric.SUM, Metric.MEAN] if kind in _ADDED else []
    metric = random.choice(able)
    rule = {Metric.INVALID: _rule(random, kind), Metric.MISSING: Rule(missing_values=missing)}
    return Check("", metric, (name,), rule.get(metric, Rule()), NONE)


def _key_check(random: Random) -> Check:
    columns = tuple(random.sample([*_COLUMNS, *_NESTED], random.choice((1, 1, 2, 3))))
    return Check("", random.choice((Metric.DISTINCT, Metric.DUPLICATE)), columns, Rule(), NONE)


def _nested_check(random: Random, name: str, kind: str) -> Check:
    """Return a random check of a field of the struct; sums of it are not supported."""
    while (found := _column_check(random, name, kind)).metric in (Metric.SUM, Metric.MEAN):
        pass
    return found


def _contract(random: Random) -> Contract:
    checks = [_column_check(random, *column) for column in _COLUMNS.items() for _ in range(_CHECKS)]
    checks += [_nested_check(random, *field) for field in _NESTED.items() for _ in range(_CHECKS)]
    checks.append(Check("", Metric.NULL, ("s",), Rule(), NONE))
    checks += [_key_check(random) for _ in range(_KEYS)]
    checks.append(Check("", Metric.ROWS, (), Rule(), NONE))
    checks.append(replace(checks[-1], metric=Metric.DRIFT, rule=Drift(Metric.ROWS, Rule())))
    numbered = (replace(check, id=f"{n}") for n, check in enumerate(checks))
    columns = tuple(Column(name, kind, "any") for name, kind in _COLUMNS.items())
    struct = f"struct<{','.join(f'{name}:{kind}' for name, kind in _INNER.items())}>"
    columns += (Column("s", struct, "object", fields=tuple(_INNER)),)
    nested = tuple(
        Column(name, kind, "any", path=tuple(name.split("."))) for name, kind in _NESTED.items()
    )
    return Contract("", "", "tests.t", "", "parquet", columns, tuple(numbered), "", nested=nested)


@pytest.fixture(scope="module")
def spark(job: Job) -> SparkSession:
    session = reading_session(job.warm_spark)
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    return session


def _rows(spark: SparkSession, tables: Sequence[pa.Table], place: Path) -> DataFrame:
    """Return the tables as Spark reads them, with the number of each in FILE."""
    names = [pa.array([str(n)] * each.num_rows) for n, each in enumerate(tables)]
    named = [each.append_column(FILE, name) for each, name in zip(tables, names, strict=True)]
    pq.write_table(pa.concat_tables(named), place)
    return spark.read.parquet(str(place))


def _compare(
    spark: SparkSession, random: Random, place: Path
) -> Iterator[tuple[Check, Measured | None, Measured]]:
    """Yield a random check, what this tier says on a random table and what Spark says.

    The tier's number is of a whole table, in one chunk or three, or of three parts of it.
    """
    contract = _contract(random)
    tables = [_table(random, random.choice((1, 2, 5, 30, 60))) for _ in range(_FILES)]
    truth = tiers.measure_files(_rows(spark, tables, place), contract)
    for n, table in enumerate(tables):
        found = tier_arrow.measures(_passed(random, table, contract), contract)
        expected = truth[str(n)]
        yield from ((c, found.get(c.id), expected[c.id]) for c in contract.checks)


def _passed(random: Random, table: pa.Table, contract: Contract) -> tier_arrow.Pass:
    parts = [table.slice(0, 1), table.slice(1, 20), table.slice(21)]
    if random.random() < 0.5:
        return tier_arrow.measure(random.choice((table, pa.concat_tables(parts))), contract)
    first, *others = (tier_arrow.measure(part, contract) for part in parts)
    for other in others:
        first += pickle.loads(pickle.dumps(other))  # noqa: S301 - our own
    return first


def test_every_number_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """A measure that this tier gives is the one that Spark SQL gives, to the last digit."""
    random = Random(SEED)  # noqa: S311 - no secret
    counted = {"pairs": 0, "answered": 0}
    wrong = []
    for round_ in range(max(1, RUNS // _ROUND)):
        for check, found, expected in _compare(spark, random, tmp_path / f"{round_}.parquet"):
            counted["pairs"] += 1
            counted["answered"] += found is not None
            if found is not None and not _same(check, found, expected):
                wrong.append((check, found, expected))
    print(counted, "different:", len(wrong))
    assert wrong[:5] == []
    assert counted["answered"] > 0.7 * counted["pairs"]


def _same(check: Check, found: Measured, expected: Measured) -> bool:
    """Return if a measure is Spark's. `file_keys` notes a part of a key also if it repeats."""
    noted = not found.note or found.value or found.note == expected.note
    same_type = check.metric not in OF_VALUES or type(found.value) is type(expected.value)
    numbers = Measured(expected.value, expected.rows, Tier.ARROW, note=found.note)
    return bool(found == numbers and noted and same_type)
