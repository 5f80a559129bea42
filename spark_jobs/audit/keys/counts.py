"""Count keys, and look them up in other rows.

A key is the values of one or more columns. Rows with a null among them have no key. Keys are equal
as in Spark's GROUP BY: 0.0 equals -0.0, NaN equals NaN, and text differs by case and by trailing
spaces. Only the columns of the key are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.model import Contract
from spark_jobs.audit.check_sql import path


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


def key_expressions(columns: Sequence[str], contract: Contract) -> list[Expression]:
    """Return the key columns of a check, nested ones too."""
    return [F.col(path(contract.column(name))) for name in columns]


def keys_of(rows: DataFrame, key: Sequence[Expression], *kept: Expression | str) -> DataFrame:
    """Return the keys of the rows that have one, in columns `key0`, `key1`, …, and what is `kept`.

    The columns of the key come first.
    """
    complete = reduce(and_, [part.isNotNull() for part in key])
    parts = [part.alias(f"key{n}") for n, part in enumerate(key)]
    return rows.where(complete).select(*parts, *kept)


def count(keys: DataFrame) -> Keys:
    """Count how often each key occurs."""
    groups = keys.groupBy(*keys.columns).agg(F.count(F.lit(1)).alias("n"))
    n, zero = F.col("n"), F.lit(0)
    several = F.coalesce(F.sum(F.when(n > 1, n)), zero)
    distinct, repeated, rows = groups.agg(F.count(zero), F.count_if(n > 1), several).collect()[0]
    return Keys(int(distinct), int(repeated), int(rows))


def found_in(keys: DataFrame, others: DataFrame) -> DataFrame:
    """Return the keys, each once, that also occur among the keys `others`."""
    return others.join(keys, keys.columns, "left_semi").distinct()
