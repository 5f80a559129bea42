"""Count keys, and look them up in other rows.

A key is the values of one or more columns. Rows with a null among them have no key. Keys are equal
as in Spark's GROUP BY: 0.0 equals -0.0, NaN equals NaN, and text differs by case and by trailing
spaces. Only the columns of the key are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from lakegate.contract.checks import Check
from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract
from lakegate.contract.rules import Reference
from lakegate.errors import Permanent
from spark_jobs.audit import main_table
from spark_jobs.audit.run import Run

_NARROW = (IntegralType, DateType, TimestampType, TimestampNTZType)
_FEW = 1000  # hashes that are filtered one by one
_BROADCAST = 1_000_000  # keys that every core may hold


@dataclass(frozen=True)
class Keys:
    """Counts over some rows: different keys, keys that repeat, and rows with a repeated key."""

    distinct: int
    repeated: int
    rows: int

    def __add__(self, other: "Keys") -> "Keys":
        """Return the counts over rows of both, which have no key in common."""
        return Keys(
            self.distinct + other.distinct, self.repeated + other.repeated, self.rows + other.rows
        )

    @property
    def excess(self) -> int:
        """Return the number of rows beyond the first of each key."""
        return self.rows - self.repeated

    @property
    def note(self) -> str:
        """Return the repeated keys in words, `1 key on 2 rows`; "" if no key repeats."""
        return f"{in_words(self.repeated)} on {self.rows:,} rows" if self.repeated else ""


def in_words(count: int) -> str:
    """Return a number of keys in words."""
    return "1 key" if count == 1 else f"{count:,} keys"


def of_check(columns: Sequence[str], contract: Contract) -> list[Expression]:
    """Return the key columns of a check, nested ones too."""
    return [_column(contract.column(name)) for name in columns]


def keys_of(rows: DataFrame, key: Sequence[Expression]) -> DataFrame:
    """Return the keys of the rows that have one, in columns `key0`, `key1`, …"""
    complete = reduce(lambda a, b: a & b, [part.isNotNull() for part in key])
    return rows.where(complete).select([part.alias(f"key{n}") for n, part in enumerate(key)])


def count(keys: DataFrame) -> Keys:
    """Count how often each key occurs.

    Long keys are counted by their hashes first, because hashes are cheaper to shuffle and to hold.
    Only keys whose hash repeats are then compared themselves.
    """
    if len(keys.columns) == 1 and _is_narrow(keys.schema[0].dataType):
        return _exact(keys)
    hashed = keys.withColumn("hash", F.xxhash64(*keys.columns))
    groups = hashed.groupBy("hash").agg(F.count(F.lit(1)).alias("n"))
    found = _summed(groups)
    if found.repeated == 0:
        return found
    if found.repeated > _FEW:
        return _exact(keys)
    # Counting again is cheap for a bad file; caching the groups would cost every good file more.
    hashes = [row[0] for row in groups.where(F.col("n") > 1).collect()]
    compared = _exact(hashed.where(F.col("hash").isin(hashes)).drop("hash"))
    distinct = found.distinct - found.repeated + compared.distinct
    return Keys(distinct, compared.repeated, compared.rows)


def found_in(keys: DataFrame, counted: Keys, others: DataFrame) -> DataFrame:
    """Return the keys, each once, that also occur among the keys `others`.

    Few keys are broadcast, so that `others` is not shuffled.
    """
    wanted = keys if counted.excess == 0 else keys.distinct()
    if counted.distinct <= _BROADCAST:
        wanted = F.broadcast(wanted)
    return others.join(wanted, keys.columns, "left_semi").distinct()


def _column(column: Column) -> Expression:
    return F.col(".".join(quoted(step) for step in column.steps))


def _is_narrow(type_: DataType) -> bool:
    return isinstance(type_, _NARROW)


def _exact(keys: DataFrame) -> Keys:
    return _summed(keys.groupBy(*keys.columns).agg(F.count(F.lit(1)).alias("n")))


def _summed(groups: DataFrame) -> Keys:
    n, zero = F.col("n"), F.lit(0)
    several = F.coalesce(F.sum(F.when(n > 1, n)), zero)
    distinct, repeated, rows = groups.agg(F.count(zero), F.count_if(n > 1), several).collect()[0]
    return Keys(int(distinct), int(repeated), int(rows))


# Foreign keys: rows whose key is missing in the table that they refer to.

_EXACT = ("int", "bigint", "decimal")
_FLOATING = ("float", "double")


def missing(run: Run, check: Check, reference: Reference, rows: DataFrame) -> tuple[int, str]:
    """Return how many of `rows` refer to a missing key, and a note for the report.

    A key with a null refers to nothing. The other table is read as it was on main when the branch
    was created; a table that refers to itself includes the file's rows. Raises Permanent
    NO_REFERENCE where the other table or its columns cannot be compared.
    """
    of_rows = keys_of(rows, of_check(check.columns, run.contract))
    groups = of_rows.groupBy(*of_rows.columns).agg(F.count(F.lit(1)).alias("n")).persist()
    try:
        distinct = groups.count()
        others = (
            _target_keys(run, check, reference, whole_table=rows is not run.rows)
            if distinct
            else None
        )
        if others is None:
            lost = groups
        else:
            known = groups.select(*of_rows.columns)
            met = found_in(known, Keys(distinct, 0, 0), others)
            lost = groups.join(met, of_rows.columns, "left_anti")
        gone, count = lost.agg(F.count(F.lit(1)), F.coalesce(F.sum("n"), F.lit(0))).collect()[0]
    finally:
        groups.unpersist()
    return int(count), f"{gone:,} of {distinct:,} different keys" if gone else ""


def orphans(run: Run, check: Check, reference: Reference, rows: DataFrame) -> DataFrame:
    """Return those of a file's `rows` whose key (`key0`, `key1`, …) is missing in the other table.

    Raises Permanent as `missing`.
    """
    others = _target_keys(run, check, reference, whole_table=False)
    return rows if others is None else rows.join(others, others.columns, "left_anti")


def _target_keys(
    run: Run, check: Check, reference: Reference, *, whole_table: bool
) -> DataFrame | None:
    """Return the keys of the other table; None where statistics exclude every match."""
    columns = [run.contract.column(name) for name in check.columns]
    if reference.table == run.contract.table:
        rows: DataFrame | None = main_table.whole_table(run)
        targets = of_check(reference.columns, run.contract)
    else:
        other = main_table.open_table(run, reference.table)
        if other.table is None:
            raise Permanent("NO_REFERENCE", f"there is no table {reference.table} on main")
        _compare_types(run, check, reference, other)
        bounds = "" if whole_table else main_table.key_range(run, columns, reference.columns).sql
        rows = other.find_rows(bounds)
        targets = [F.col(quoted(name)) for name in reference.columns]
    return None if rows is None else keys_of(rows, targets)


def _compare_types(
    run: Run, check: Check, reference: Reference, other: main_table.MainTable
) -> None:
    types = {f.name.lower(): f.dataType.simpleString() for f in run.spark.table(other.name).schema}
    for name, target in zip(check.columns, reference.columns, strict=True):
        own, others = run.contract.column(name).type, types.get(target.lower())
        if others is None:
            raise Permanent("NO_REFERENCE", f"{reference.table} has no column {target}")
        if _family(own) != _family(others):
            message = f"{name} is {own}, but {target} of {reference.table} is {others}"
            raise Permanent("NO_REFERENCE", message)


def _family(type_: str) -> str:
    """Return the group of types that are compared without a cast that could fail or round."""
    plain = type_.partition("(")[0]
    if plain in _EXACT:
        return "exact number"
    return "floating" if plain in _FLOATING else type_
