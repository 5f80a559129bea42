"""Count the keys of many files in one pass, each file by itself.

Spark's count of distinct keys leaves out keys with a null, as `counts.keys_of` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.audit.report import Tier
from lakegate.contract.checks import Check, Metric, Scope
from lakegate.contract.model import Contract
from spark_jobs.audit import check_sql
from spark_jobs.audit.keys.counts import key_expressions
from spark_jobs.audit.run import Measured
from spark_jobs.files.source import FILE

_ROWS = "rows"


def by_file(rows: DataFrame, contract: Contract) -> dict[str, dict[str, Measured]]:
    """Return the measures of the contract's keys, by check id, for each file by its `FILE`."""
    keyed = [c for c in contract.checks if c.basis.metric in (Metric.DUPLICATE, Metric.DISTINCT)]
    if not keyed:
        return {}
    keyed.sort(key=lambda check: len(check.columns))
    every = F.count(F.lit(1)).alias(_ROWS)
    counts = rows.groupBy(FILE).agg(every, *_key_counts(keyed, contract)).collect()
    return {row[FILE]: dict(_measures(row.asDict(), keyed)) for row in counts}


def _key_counts(checks: Sequence[Check], contract: Contract) -> Iterator[Expression]:
    """Yield each key's number of different values, of rows with it, and of rows to check."""
    for n, check in enumerate(checks):
        covered = F.expr(check_sql.checks_row(check))
        key = [F.when(covered, part) for part in key_expressions(check.columns, contract)]
        complete = reduce(and_, [part.isNotNull() for part in key])
        yield F.count_distinct(*key).alias(f"distinct_{n}")
        yield F.count_if(complete).alias(f"keys_{n}")
        yield F.count_if(covered).alias(f"covered_{n}")


def _measures(counts: Mapping[str, Any], checks: Sequence[Check]) -> Iterator[tuple[str, Measured]]:
    for n, check in enumerate(checks):
        distinct, rows = counts[f"distinct_{n}"], counts[_ROWS]
        if check.basis.metric is Metric.DISTINCT:
            yield check.id, Measured(distinct, rows, Tier.KEYS)
            continue
        of = counts[f"covered_{n}"] if check.is_share else rows
        note = unique_part(check, checks[:n])
        yield check.id, Measured(counts[f"keys_{n}"] - distinct, of, Tier.KEYS, note=note)


def unique_part(check: Check, before: Sequence[Check]) -> str:
    """Return which part of a key is unique alone, "" if none is known to be.

    It is one of the keys without duplicates `before`; it makes a larger key unique, too.
    """
    own = frozenset(check.columns)
    for each in before:
        smaller = each.basis.metric is Metric.DUPLICATE and frozenset(each.columns) <= own
        reaches = check.scope is Scope.FILE or each.scope in (Scope.TABLE, check.scope)
        if smaller and reaches and each.where in ("", check.where):
            return f"{', '.join(sorted(each.columns))} alone is unique"
    return ""
