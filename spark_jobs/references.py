"""Foreign keys: rows whose key the table that they refer to has not.

A null in a key refers to nothing. The other table is main's as it was where the branch was cut; a
table that refers to itself is looked at with the file's rows in it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.checks import Check
from lakegate.columns import quoted
from lakegate.errors import Permanent
from lakegate.rules import Reference
from spark_jobs import beyond, keys
from spark_jobs.run import Run

_WHOLE = ("int", "bigint", "decimal")
_FLOATING = ("float", "double")


def missing(run: Run, check: Check, reference: Reference, rows: DataFrame) -> tuple[int, str]:
    """How many of `rows` refer to nothing, and what is to be said of them.

    Raises Permanent NO_REFERENCE where the other table or its columns cannot be compared with.
    """
    of_rows = keys.keys_of(rows, keys.of_check(check.columns, run.contract))
    groups = of_rows.groupBy(*of_rows.columns).agg(F.count(F.lit(1)).alias("n")).persist()
    try:
        distinct = groups.count()
        there = _there(run, check, reference, whole=rows is not run.rows) if distinct else None
        if there is None:
            lost = groups
        else:
            known = groups.select(*of_rows.columns)
            met = keys.found_in(known, keys.Keys(distinct, 0, 0), there)
            lost = groups.join(met, of_rows.columns, "left_anti")
        gone, count = lost.agg(F.count(F.lit(1)), F.coalesce(F.sum("n"), F.lit(0))).collect()[0]
    finally:
        groups.unpersist()
    return int(count), f"{gone:,} of {distinct:,} different keys" if gone else ""


def _there(run: Run, check: Check, reference: Reference, *, whole: bool) -> DataFrame | None:
    """The keys that are there to be referred to; None where statistics rule all of them out."""
    columns = [run.contract.column(name) for name in check.columns]
    if reference.table == run.contract.table:
        rows: DataFrame | None = beyond.whole(run)
        targets = keys.of_check(reference.columns, run.contract)
    else:
        other = beyond.main(run, reference.table)
        if other.table is None:
            raise Permanent("NO_REFERENCE", f"there is no table {reference.table} on main")
        _compare_types(run, check, reference, other)
        bounds = "" if whole else beyond.between(run, columns, reference.columns)
        rows = other.had(bounds)
        targets = [F.col(quoted(name)) for name in reference.columns]
    return None if rows is None else keys.keys_of(rows, targets)


def _compare_types(run: Run, check: Check, reference: Reference, other: beyond.Main) -> None:
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
