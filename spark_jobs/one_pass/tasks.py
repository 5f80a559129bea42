"""Spread the parts of a large file over Spark's tasks, which write their data files themselves.

Hashes of keys, which are as many as the rows, stay with the tasks: they are counted in buckets.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD, StorageLevel
from pyspark.sql import SparkSession

from lakegate.contract.checks import KEYED
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from spark_jobs.audit.keys import arrow_keys, column_hashes
from spark_jobs.audit.keys.arrow_keys import Hashes
from spark_jobs.audit.keys.counts import Keys
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.text import TextRows
from spark_jobs.one_pass.examined import Examined, Part, together
from spark_jobs.spark.errors import returned
from spark_jobs.spark.jvm import JavaError

_MOST_APART = 16 << 20  # bytes of rows that stay out of the table, which a task returns
_BITS = 5  # of a hash, by which it has its bucket: so a task has a 32nd of all
_Item = TypeVar("_Item")
_Key: TypeAlias = tuple[str, ...]
_Array: TypeAlias = NDArray[Any]
_Found: TypeAlias = Part | MustRewrite | LakegateError


def spread(
    spark: SparkSession,
    work: Callable[[_Item], Part],
    items: Sequence[_Item],
    contract: Contract,
    read: TextRows | None = None,
) -> Examined:
    """Return a file by the work on its items, each in a task; raises as `examined.together`."""
    done = spark.sparkContext.parallelize(items, len(items)).map(partial(_or_reason, work))
    done.persist(StorageLevel.DISK_ONLY)  # so that no part is read twice
    try:
        parts: list[Part] = returned(done.map(_without_keys).collect())
        is_keyed = any(check.basis.metric in KEYED for check in contract.checks)
        return together(parts, contract, read, _counted(done) if is_keyed else {})
    except JavaError as error:
        raise MustRewrite("Spark's tasks cannot decode it") from error
    finally:
        done.unpersist()


def _or_reason(work: Callable[[_Item], Part], item: _Item) -> _Found:
    """Return a part, or why there is none: a task cannot raise it."""
    try:
        part = work(item)
        part.apart.require_at_most(_MOST_APART)
    except (MustRewrite, LakegateError) as why:
        return why
    return part


def _without_keys(part: _Found) -> _Found:
    if not isinstance(part, Part):
        return part
    return replace(part, found=replace(part.found, hashes={}))


def _counted(done: "RDD[_Found]") -> dict[_Key, Hashes]:
    """Return the counts of all keys over all parts, without those that hashes leave in doubt."""
    buckets = done.flatMap(_buckets).groupByKey(1 << _BITS).mapValues(_in_bucket).collect()
    by_key: dict[tuple[_Key, bool], list[Keys]] = {}
    for (key, is_exact, _), counts in buckets:
        by_key.setdefault((key, is_exact), []).append(counts)
    sums = {of: reduce(add, counts) for of, counts in by_key.items()}
    return {
        key: Hashes((), is_exact, counts)
        for (key, is_exact), counts in sums.items()
        if is_exact or not counts.repeated
    }


def _buckets(part: _Found) -> Iterator[tuple[tuple[_Key, bool, int], _Array]]:
    """Yield the hashes of each key, equal ones in the same bucket."""
    for key, hashes in (part.found.hashes if isinstance(part, Part) else {}).items():
        for words in hashes.parts:
            mixed = words.copy()
            column_hashes.mix(mixed)
            places = mixed >> np.uint64(64 - _BITS)
            for place in range(1 << _BITS):
                yield (key, hashes.exact, place), words[places == place]


def _in_bucket(words: Iterable[_Array]) -> Keys:
    return arrow_keys.counts(np.sort(np.concatenate(list(words))))
