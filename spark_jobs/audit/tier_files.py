"""Measure every check for many files in one pass: the aggregates of the other tiers, by file."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.checks import Check, Metric
from lakegate.contract.expectations import Unit
from lakegate.contract.model import Contract
from lakegate.report import Tier
from spark_jobs.audit import check_sql, tier_scan
from spark_jobs.audit.keys import counts as keys
from spark_jobs.audit.run import Measured
from spark_jobs.audit.tier_scan import MAX_AGGREGATES
from spark_jobs.files.source import FILE

_ROWS = "rows"
Found = Mapping[str, Any]


def measure(rows: DataFrame, contract: Contract) -> dict[str, dict[str, Measured]]:
    """Return each check's measure by its id, for each file with rows by its address in `FILE`.

    Raises one of `JavaError` where a file cannot be read, or a condition of the contract cannot be
    evaluated.
    """
    scanned = sorted(filter(tier_scan.is_measured, contract.checks), key=lambda c: c.columns)
    keyed = sorted(filter(_is_keyed, contract.checks), key=lambda check: len(check.columns))
    first = scanned[:MAX_AGGREGATES]
    every = F.count(F.lit(1)).alias(_ROWS)
    counts = _by_file(rows, [every, *tier_scan.aggregates(first, contract)])
    # A pass of its own: with distinct keys, Spark would add up the others in another order.
    keys_of = _by_file(rows, list(_key_counts(keyed, contract))) if keyed else {}
    found = {
        file: _measures({**each, **keys_of.get(file, {})}, contract, first, keyed)
        for file, each in counts.items()
    }
    for start in range(MAX_AGGREGATES, len(scanned), MAX_AGGREGATES):
        more = scanned[start : start + MAX_AGGREGATES]
        for file, each in _by_file(rows, list(tier_scan.aggregates(more, contract))).items():
            found[file] |= tier_scan.read(more, each, counts[file][_ROWS], Tier.SCAN)
    return found


def _by_file(rows: DataFrame, asked: Sequence[Expression]) -> dict[str, Found]:
    return {row[FILE]: row.asDict() for row in rows.groupBy(FILE).agg(*asked).collect()}


def _measures(
    found: Found, contract: Contract, scanned: Sequence[Check], keyed: Sequence[Check]
) -> dict[str, Measured]:
    rows = found[_ROWS]
    counted = {c.id: Measured(rows, rows, Tier.SCAN) for c in contract.checks if _counts_all(c)}
    scan = tier_scan.read(scanned, found, rows, Tier.SCAN)
    return {**counted, **dict(_of_keys(found, keyed)), **scan}


def _counts_all(check: Check) -> bool:
    return check.basis.metric is Metric.ROWS and not check.where


# Keys. Spark's count of distinct keys leaves out keys with a null, as `keys.keys_of` does.


def _is_keyed(check: Check) -> bool:
    return check.basis.metric in (Metric.DUPLICATE, Metric.DISTINCT)


def _key_counts(checks: Sequence[Check], contract: Contract) -> Iterator[Expression]:
    """Yield each key's number of different values, of rows with it, and of rows to check."""
    for n, check in enumerate(checks):
        covered = F.expr(check_sql.checks_row(check))
        key = [F.when(covered, part) for part in keys.of_check(check.columns, contract)]
        complete = reduce(and_, [part.isNotNull() for part in key])
        yield F.count_distinct(*key).alias(f"distinct_{n}")
        yield F.count_if(complete).alias(f"keys_{n}")
        yield F.count_if(covered).alias(f"covered_{n}")


def _of_keys(found: Found, checks: Sequence[Check]) -> Iterator[tuple[str, Measured]]:
    for n, check in enumerate(checks):
        distinct, rows = found[f"distinct_{n}"], found[_ROWS]
        if check.basis.metric is Metric.DISTINCT:
            yield check.id, Measured(distinct, rows, Tier.KEYS)
            continue
        of = found[f"covered_{n}"] if _is_share(check) else rows
        note = unique_part(check, checks[:n])
        yield check.id, Measured(found[f"keys_{n}"] - distinct, of, Tier.KEYS, note=note)


def _is_share(check: Check) -> bool:
    expected = [check.expect, *([check.warn] if check.warn else [])]
    return any(each.unit is Unit.PERCENT for each in expected)


def unique_part(check: Check, before: Sequence[Check]) -> str:
    """Return which part of a key is unique alone, among the keys without duplicates before it."""
    own = frozenset(check.columns)
    for each in before:
        smaller = each.basis.metric is Metric.DUPLICATE and frozenset(each.columns) <= own
        if smaller and each.where in ("", check.where):
            return f"{', '.join(sorted(each.columns))} alone is unique"
    return ""
