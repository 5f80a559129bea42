"""Foreign keys: rows whose key is missing in the table that they refer to."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.checks import Check
from lakegate.contract.columns import quoted
from lakegate.contract.rules import Reference
from lakegate.errors import Permanent
from spark_jobs.audit import main_table
from spark_jobs.audit.keys.counts import found_in, key_expressions, keys_of
from spark_jobs.audit.run import Run

_EXACT = ("int", "bigint", "decimal")
_FLOATING = ("float", "double")


def missing(run: Run, check: Check, reference: Reference, rows: DataFrame) -> tuple[int, str]:
    """Return how many of `rows` refer to a missing key, and a note for the report.

    A key with a null refers to nothing. The other table is read as it was on main when the branch
    was created; a table that refers to itself includes the file's rows. Raises Permanent
    NO_REFERENCE where the other table or its columns cannot be compared.
    """
    of_rows = keys_of(rows, key_expressions(check.columns, run.contract))
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
            met = found_in(groups.select(*of_rows.columns), others)
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
        targets = key_expressions(reference.columns, run.contract)
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
