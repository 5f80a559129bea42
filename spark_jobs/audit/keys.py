"""Keys: how often they occur, and which of them other rows have.

A key is the values of one or more columns. With a null among them it is none, and equals no other.
Otherwise Spark's equality of groups holds: 0.0 and -0.0 are one, NaN equals NaN, and text differs
by case and by trailing spaces. Only the columns of the key are read.
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
_FEW = 1000  # hashes that are looked for one by one
_BROADCAST = 1_000_000  # keys that every core may hold


@dataclass(frozen=True)
class Keys:
    """How many different keys some rows have; of these, those on several rows, and these rows."""

    distinct: int
    repeated: int
    rows: int

    @property
    def excess(self) -> int:
        """The rows beyond the first of each key."""
        return self.rows - self.repeated


def of_check(columns: Sequence[str], contract: Contract) -> list[Expression]:
    """The key that columns of a contract make, nested ones too."""
    return [_column(contract.column(name)) for name in columns]


def keys_of(rows: DataFrame, key: Sequence[Expression]) -> DataFrame:
    """The keys of those rows that have one, in columns `key0`, `key1`, …"""
    whole = reduce(lambda a, b: a & b, [part.isNotNull() for part in key])
    return rows.where(whole).select([part.alias(f"key{n}") for n, part in enumerate(key)])


def count(keys: DataFrame) -> Keys:
    """How often each key occurs.

    Where keys are long their hashes are counted first: these are quicker moved and held. As long as
    no hash repeats, no key does; only those whose hash does are then compared themselves.
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
    # Counted again: to keep the groups would cost every good file more than this costs a bad one.
    hashes = [row[0] for row in groups.where(F.col("n") > 1).collect()]
    compared = _exact(hashed.where(F.col("hash").isin(hashes)).drop("hash"))
    distinct = found.distinct - found.repeated + compared.distinct
    return Keys(distinct, compared.repeated, compared.rows)


def found_in(keys: DataFrame, counted: Keys, there: DataFrame) -> DataFrame:
    """Those of the keys, each once, that are among the keys `there`.

    While the keys are few enough every core gets them all, so that nothing of `there` is moved.
    """
    wanted = keys if counted.excess == 0 else keys.distinct()
    if counted.distinct <= _BROADCAST:
        wanted = F.broadcast(wanted)
    return there.join(wanted, keys.columns, "left_semi").distinct()


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


# Foreign keys: rows whose key the table that they refer to has not.
#
# A null in a key refers to nothing. The other table is main's as it was where the branch was cut;
# a table that refers to itself is looked at with the file's rows in it.

_WHOLE = ("int", "bigint", "decimal")
_FLOATING = ("float", "double")


def missing(run: Run, check: Check, reference: Reference, rows: DataFrame) -> tuple[int, str]:
    """How many of `rows` refer to nothing, and what is to be said of them.

    Raises Permanent NO_REFERENCE where the other table or its columns cannot be compared with.
    """
    of_rows = keys_of(rows, of_check(check.columns, run.contract))
    groups = of_rows.groupBy(*of_rows.columns).agg(F.count(F.lit(1)).alias("n")).persist()
    try:
        distinct = groups.count()
        there = _there(run, check, reference, whole=rows is not run.rows) if distinct else None
        if there is None:
            lost = groups
        else:
            known = groups.select(*of_rows.columns)
            met = found_in(known, Keys(distinct, 0, 0), there)
            lost = groups.join(met, of_rows.columns, "left_anti")
        gone, count = lost.agg(F.count(F.lit(1)), F.coalesce(F.sum("n"), F.lit(0))).collect()[0]
    finally:
        groups.unpersist()
    return int(count), f"{gone:,} of {distinct:,} different keys" if gone else ""


def _there(run: Run, check: Check, reference: Reference, *, whole: bool) -> DataFrame | None:
    """The keys that are there to be referred to; None where statistics rule all of them out."""
    columns = [run.contract.column(name) for name in check.columns]
    if reference.table == run.contract.table:
        rows: DataFrame | None = main_table.whole(run)
        targets = of_check(reference.columns, run.contract)
    else:
        other = main_table.main(run, reference.table)
        if other.table is None:
            raise Permanent("NO_REFERENCE", f"there is no table {reference.table} on main")
        _compare_types(run, check, reference, other)
        bounds = "" if whole else main_table.between(run, columns, reference.columns)
        rows = other.had(bounds)
        targets = [F.col(quoted(name)) for name in reference.columns]
    return None if rows is None else keys_of(rows, targets)


def _compare_types(run: Run, check: Check, reference: Reference, other: main_table.Main) -> None:
    types = {f.name.lower(): f.dataType.simpleString() for f in run.spark.table(other.name).schema}
    for name, target in zip(check.columns, reference.columns, strict=True):
        own, there = run.contract.column(name).type, types.get(target.lower())
        if there is None:
            raise Permanent("NO_REFERENCE", f"{reference.table} has no column {target}")
        if _family(own) != _family(there):
            message = f"{name} is {own}, but {target} of {reference.table} is {there}"
            raise Permanent("NO_REFERENCE", message)


def _family(type_: str) -> str:
    """What is compared with each other without a cast that could fail or round."""
    plain = type_.partition("(")[0]
    if plain in _WHOLE:
        return "exact number"
    return "floating" if plain in _FLOATING else type_
