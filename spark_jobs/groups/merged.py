"""Merge the rows of files in order into the table of a group, in one commit.

Of the table only the keys that the files bring are read, with their places in its order.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.errors import Permanent
from lakegate.job.change import Effect
from spark_jobs.groups.fold import Changes, Folded, Present, Steps, fold, keys_of, ranked
from spark_jobs.groups.group_commit import GroupTable
from spark_jobs.groups.group_sql import in_memory
from spark_jobs.spark.iceberg import table_name
from spark_jobs.write import replacing

_NUMBER = "n"  # beside the columns of keys, which are renamed
_BOUNDED = ("int", "bigint", "decimal", "string", "date")  # whose literals are the same everywhere


def has_sound_keys(rows: pa.Table, mode: WriteMode) -> bool:
    """Return if each key is there once, or at most once at the same place, and none is null."""
    names = [*mode.key, *filter(None, (mode.latest_by,))]
    if any(rows[name].null_count for name in names):
        return False
    return keys_of([rows[name] for name in names])[1] == len(rows)


def merge(table: GroupTable, files: Sequence[pa.Table]) -> tuple[str, list[Effect]]:
    """Merge the rows of files with sound keys; return the commit and the effect of each file.

    Raises Permanent if that is another than the table's, or if the table has a key twice, Transient
    when a retry may help.
    """
    spark, contract, rows = table.spark, table.contract, pa.concat_tables(files)
    folded = _folded(spark, contract, rows, [len(each) for each in files])
    types = [f"{quoted(c.name)} {c.type}" for c in contract.table_columns]
    source = in_memory(spark, rows.take(pa.array(folded.rows)), types)
    audited_hash, whole = replacing.put(  # of each key the row that stays was found above
        table.run, source, table.opened, table.branch, table.name, older_too=True
    )
    _require(whole, folded)
    return audited_hash, list(_effects(whole.before, folded.of_files))


def _folded(
    spark: SparkSession, contract: Contract, rows: pa.Table, lengths: Sequence[int]
) -> Folded:
    """Return the change of the rows of files with these lengths, of which some may be 0."""
    mode = contract.write_mode
    file = np.repeat(np.arange(len(lengths)), lengths)
    keys, count = keys_of([rows[name] for name in mode.key])
    present = _present(spark, contract, _distinct(rows, mode.key, keys, count))
    places = present[_NUMBER].to_numpy()
    there, rank = np.zeros(count, bool), np.zeros(count, np.int64)
    there[places] = True
    own = np.zeros(len(rows), np.int64)
    if mode.latest_by:
        values = rows[mode.latest_by]
        both = ranked(pa.chunked_array([*values.chunks, *present["at"].cast(values.type).chunks]))
        own, rank[places] = both[: len(rows)], both[len(rows) :]
    deletes = _deletes(rows, contract)
    return fold(len(lengths), Steps(file, keys, own, deletes), Present(there, rank))


def _distinct(rows: pa.Table, key: Sequence[str], keys: np.ndarray, count: int) -> pa.Table:
    """Return each key once, as columns with its number; these have names of their own."""
    first = np.unique(keys, return_index=True)[1]
    distinct = rows.select(list(key)).take(pa.array(first)).rename_columns(_names(key))
    return distinct.append_column(_NUMBER, pa.array(np.arange(count)))


def _names(key: Sequence[str]) -> list[str]:
    return [f"k{place}" for place in range(len(key))]


def _present(spark: SparkSession, contract: Contract, keys: pa.Table) -> pa.Table:
    """Return the numbers of the keys that the table has, and the values that order their rows.

    Raises Permanent if it has one of them twice.
    """
    mode, table = contract.write_mode, spark.table(table_name(contract.table))
    columns = [contract.column(name) for name in mode.key]
    names = _names(mode.key)
    types = [f"{name} {c.type}" for name, c in zip(names, columns, strict=True)]
    asked = in_memory(spark, keys, [*types, f"{_NUMBER} bigint"])
    same = [table[quoted(c.name)] == asked[n] for n, c in zip(names, columns, strict=True)]
    rows = _rows_in_key_range(table, columns, keys).join(F.broadcast(asked), reduce(and_, same))
    at = [table[quoted(mode.latest_by)].alias("at")] if mode.latest_by else []
    present = rows.select(asked[_NUMBER], *at).toArrow()
    if pc.count_distinct(present[_NUMBER]).as_py() < len(present):
        raise Permanent("UNSOUND_KEYS", f"{contract.table} has several rows of one key")
    return present


def _rows_in_key_range(table: DataFrame, columns: Sequence[Column], keys: pa.Table) -> DataFrame:
    """Return the table's rows between the least and the greatest key, for which files are left out.

    The bounds of each column are on their own.
    """
    bounds = [
        table[quoted(column.name)].between(
            *(F.lit(end).cast(column.type) for end in _ends(keys[name]))
        )
        for name, column in zip(keys.column_names[:-1], columns, strict=True)
        if column.kind in _BOUNDED
    ]
    return table.where(reduce(and_, bounds)) if bounds else table


def _ends(column: pa.ChunkedArray) -> tuple[object, object]:
    """Return the least and the greatest value; dates as texts: PySpark takes not all of them."""
    ends = pc.min_max(column).as_py()
    low, high = (end.isoformat() if isinstance(end, date) else end for end in ends.values())
    return low, high


def _deletes(rows: pa.Table, contract: Contract) -> np.ndarray:
    """Return which rows delete their key."""
    mode = contract.write_mode
    if not mode.delete_column:
        return np.zeros(len(rows), bool)
    column = rows[mode.delete_column]
    equal = pc.equal(column, pa.scalar(mode.delete_value).cast(column.type))
    return pc.fill_null(equal, False).to_numpy()


def _effects(before: int, files: Sequence[Changes]) -> Iterator[Effect]:
    """Yield the effect of each file on what the one before it left."""
    for each in files:
        added, removed = each.inserted + each.updated, each.deleted + each.updated
        after = before + added - removed
        yield Effect(before, after, added, removed, each.updated)
        before = after


def _require(whole: Effect, folded: Folded) -> None:
    """Raise Permanent COUNT_MISMATCH unless the table has changed as was foreseen."""
    changes = Changes(whole.added - whole.updated, whole.updated, whole.removed - whole.updated)
    gained = sum(each.inserted - each.deleted for each in folded.of_files)
    if changes != folded.together or whole.after - whole.before != gained:
        message = (
            f"the files should have made {folded.together}, {gained:+,} rows, but made {changes}, "
            f"{whole.after - whole.before:+,} rows"
        )
        raise Permanent("COUNT_MISMATCH", message)
