"""Tier 2: checks over a file's decoded Arrow data, in one pass and without a Spark job.

Spark SQL (`check_sql`, `tier_scan`, `keys`) defines what a check means. This tier answers the
checks whose answer is provably the same; the others are for the other tiers. A pass over some rows
can be pickled and added to those over other rows of the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakegate.audit.report import Tier
from lakegate.contract.checks import OF_ROWS, Check, Metric
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from spark_jobs.audit.arrow import rules as arrow_rules
from spark_jobs.audit.keys import arrow_keys, file_keys
from spark_jobs.audit.keys.arrow_keys import Hashes
from spark_jobs.audit.run import Measured
from spark_jobs.files.arrow import values as arrow_values
from spark_jobs.files.arrow.values import ColumnStatistics, Total

_ADDED = (Metric.SUM, Metric.MEAN)
_KEYED = (Metric.DUPLICATE, Metric.DISTINCT)
_Key = TypeVar("_Key")
_Sum = TypeVar("_Sum", int, Total, Hashes, ColumnStatistics)


@dataclass(frozen=True)
class Pass:
    """The findings over some rows of a file: a row group, several of them, or all.

    `rows` are those for its table; so many others are `quarantined`, of which only the checks that
    do so know. `counts` are the counted rows by check id, `totals` the sums by column, `hashes`
    those of keys by their columns, `columns` the statistics by column. `undecodable` are the string
    columns that are not valid UTF-8, of which nothing else is known.
    """

    rows: int
    counts: Mapping[str, int]
    totals: Mapping[str, Total]
    hashes: Mapping[tuple[str, ...], Hashes]
    columns: Mapping[str, ColumnStatistics]
    undecodable: frozenset[str] = frozenset()
    quarantined: int = 0

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(
            self.rows + other.rows,
            _added(self.counts, other.counts),
            _added(self.totals, other.totals),
            _added(self.hashes, other.hashes),
            _added(self.columns, other.columns),
            self.undecodable | other.undecodable,
            self.quarantined + other.quarantined,
        )


@dataclass(frozen=True)
class Divided:
    """The rows of a table to write, with their places in it and the findings, and all others."""

    rows: pa.Table
    places: np.ndarray[Any, Any]
    found: Pass
    quarantined: pa.Table


def answerable(check: Check, contract: Contract) -> bool:
    """Return if this tier can measure a check of the contract, unless the data forbid it."""
    basis = check.basis
    columns = [contract.column(name) for name in basis.columns]
    if basis.where or basis.checks_whole_table:
        return False
    if _is_of_group(basis, contract):
        return True
    if not all(map(arrow_values.is_plain, columns)):
        return False
    if basis.metric in _ADDED:
        return len(columns[0].steps) == 1 and arrow_values.is_addable(columns[0])
    if basis.metric in OF_ROWS:
        return len(columns) == 1 and arrow_rules.is_countable(basis, columns[0])
    return basis.metric in (*_KEYED, Metric.ROWS)


def _is_of_group(check: Check, contract: Contract) -> bool:
    """Return if a check counts the nulls of a struct, a list or a map."""
    columns = [contract.column(name) for name in check.columns]
    nested = len(columns) == 1 and columns[0].kind in ("struct", "array", "map")
    return check.metric is Metric.NULL and nested and arrow_values.is_single(columns[0])


def measure(table: pa.Table, contract: Contract) -> Pass:
    """Return the findings over a table of the contract's columns, each of the contract's type."""
    plain = filter(arrow_values.is_plain, (*contract.columns, *contract.nested))
    read = {c.name: arrow_values.read_values(c, table[c.top]) for c in plain}
    known = {name: values for name, values in read.items() if values is not None}
    groups = [c for c in _asked(contract) if _is_of_group(c, contract)]
    asked = [c for c in _asked(contract) if known.keys() >= set(c.columns)]
    added = {c.columns[0] for c in asked if c.metric in _ADDED}
    keyed = {c.columns for c in asked if c.metric in _KEYED}
    return Pass(
        table.num_rows,
        {
            **{
                c.id: arrow_rules.count(c, known[c.columns[0]])
                for c in asked
                if c.metric in OF_ROWS
            },
            **{
                c.id: arrow_values.trues(_nulls(contract.column(c.columns[0]), table))
                for c in groups
            },
        },
        {name: arrow_values.total(known[name]) for name in added},
        {key: arrow_keys.hashes([known[name].array for name in key]) for key in keyed},
        {name: values.statistics for name, values in known.items()},
        frozenset(read.keys() - known.keys()),
    )


def divided(table: pa.Table, contract: Contract) -> Divided:
    """Return a table as `measure`, without the rows that checks quarantine.

    Such a row counts for these checks, and for no others.
    """
    findings, every = measure(table, contract), np.arange(table.num_rows)
    counting = [c for c in contract.checks if c.quarantine and findings.counts.get(c.id)]
    if not counting:
        return Divided(table, every, findings, table.slice(0, 0))
    mask = reduce(pc.or_kleene, (_counted(check, table, contract) for check in counting))
    mask = pc.fill_null(mask, False)
    out, rows = table.filter(mask), table.filter(pc.invert(mask))
    kept = measure(rows, contract)
    counts = {**kept.counts, **{check.id: findings.counts[check.id] for check in counting}}
    findings = replace(kept, counts=counts, quarantined=len(out), undecodable=findings.undecodable)
    return Divided(rows, every[~mask.to_numpy()], findings, out)


def _counted(check: Check, table: pa.Table, contract: Contract) -> pa.ChunkedArray:
    """Return a mask of the rows that a check counts, one that has counted some."""
    column = contract.column(check.columns[0])
    if _is_of_group(check, contract):
        return _nulls(column, table)
    values = arrow_values.read_values(column, table[column.top])
    return None if values is None else arrow_rules.counted(check, values)


def _nulls(column: Column, table: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the rows in which a struct, list or map is null, but not what is around."""
    return arrow_values.missing(*arrow_values.within_structs(column, table[column.top]))


def measures(pass_: Pass, contract: Contract) -> dict[str, Measured]:
    """Return the measures, by check id, over all rows of a file.

    Checks that cannot be decided are left out: of columns that are not valid UTF-8, sums that may
    overflow, and keys whose hashes repeat.
    """
    asked = _asked(contract)
    single = {c.id: _measured(pass_, c, contract) for c in asked if c.metric not in _KEYED}
    of_keys = dict(_key_measures(pass_, [check for check in asked if check.metric in _KEYED]))
    return {id_: each for id_, each in {**single, **of_keys}.items() if each is not None}


def _measured(pass_: Pass, check: Check, contract: Contract) -> Measured | None:
    if check.metric is Metric.ROWS:
        return Measured(pass_.rows, pass_.rows, Tier.ARROW)
    if check.metric in OF_ROWS:
        counted = pass_.counts.get(check.id)
        of = pass_.rows + (pass_.quarantined if check.quarantine else 0)
        return None if counted is None else Measured(counted, of, Tier.ARROW)
    total = pass_.totals.get(check.columns[0])
    if total is None or not total.is_sure:
        return None
    places = arrow_values.scale(contract.column(check.columns[0]))
    number = total.sum(places) if check.metric is Metric.SUM else total.mean(places)
    return Measured(number, pass_.rows, Tier.ARROW)


def _key_measures(pass_: Pass, checks: Sequence[Check]) -> Iterator[tuple[str, Measured]]:
    """Yield the measures of keys, each counted once, with the notes of `file_keys`."""
    hashes = pass_.hashes.items()
    counted = {key: counts for key, each in hashes if (counts := arrow_keys.count(each))}
    unique: list[Check] = []
    for check in sorted(checks, key=lambda check: len(check.columns)):
        counts = counted.get(check.columns)
        if counts is None:
            continue
        if check.metric is Metric.DISTINCT:
            yield check.id, Measured(counts.distinct, pass_.rows, Tier.ARROW)
            continue
        note = counts.note or file_keys.unique_part(check, unique)
        yield check.id, Measured(counts.excess, pass_.rows, Tier.ARROW, note=note)
        unique += [] if counts.excess else [check]


@lru_cache(maxsize=64)
def _asked(contract: Contract) -> tuple[Check, ...]:
    """Return the checks to measure: for a check of drift the one behind it."""
    return tuple(check.basis for check in contract.checks if answerable(check, contract))


def _added(one: Mapping[_Key, _Sum], other: Mapping[_Key, _Sum]) -> dict[_Key, _Sum]:
    """Return the sums of what is known on both sides."""
    return {key: each + other[key] for key, each in one.items() if key in other}
