"""Count keys by sorting 64-bit hashes of them, over Arrow data. Pure.

Equal keys have equal hashes, so where no hash repeats no key does. Keys are equal as in `keys`: 0.0
equals -0.0, NaN equals NaN, and text differs by every byte. Key digests keep the hashes of `mixed`:
whoever changes them raises `key_digest.VERSION`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.audit.keys.column_hashes import Array, complete_rows, is_exact, mixed, words_of
from spark_jobs.audit.keys.counts import Keys

# Returns a hash of each row's key; that of a row with a null is arbitrary.
HashRows: TypeAlias = Callable[[Sequence[pa.ChunkedArray]], Array]


@dataclass(frozen=True)
class Hashes:
    """The sorted hashes of a key's values, by parts of a file; rows with a null have none.

    With `exact`, each hash is the key itself. `counted` are the exact counts, known for one part.
    """

    parts: tuple[Array, ...]
    exact: bool
    counted: Keys | None = None

    def __add__(self, other: "Hashes") -> "Hashes":
        return Hashes(self.parts + other.parts, self.exact)


def hashes(columns: Sequence[pa.ChunkedArray], hash_rows: HashRows | None = None) -> Hashes:
    """Return the hashes of a key over one or more columns, as `arrow_values.Values` has them.

    Without `hash_rows` a key that fits 64 bits is its own hash, and others are `mixed`.
    """
    exact = hash_rows is None and len(columns) == 1 and is_exact(columns[0].type)
    by_row = words_of(columns[0]) if exact else (hash_rows or mixed)(columns)
    complete = complete_rows(columns)
    ordered = np.sort(by_row if complete.all() else by_row[complete])
    same = ordered[1:] == ordered[:-1]
    if exact or not same.any():
        return Hashes((ordered,), exact, counts(ordered))
    rows = np.flatnonzero(complete & occur(by_row, ordered[1:][same]))
    return Hashes((ordered,), exact, _grouped(columns, rows, len(ordered)))


def with_hashes(columns: Sequence[pa.ChunkedArray], wanted: Array, hash_rows: HashRows) -> pa.Table:
    """Return the different keys whose hash is one of `wanted`, which are sorted.

    In the columns `key0`, `key1`, … equal keys have equal values, and different ones different.
    """
    rows = np.flatnonzero(complete_rows(columns) & occur(hash_rows(columns), wanted))
    return _distinct_rows(columns, rows)


def with_values(columns: Sequence[pa.ChunkedArray], wanted: pa.Table) -> pa.Table:
    """Return the different keys each part of which is one of the wanted keys' (`with_hashes`)."""
    parts = zip(map(_comparable, columns), wanted.columns, strict=True)
    masks = [pc.is_in(column, value_set=pc.unique(values)) for column, values in parts]
    among_wanted = reduce(pc.and_, masks).to_numpy()
    return _distinct_rows(columns, np.flatnonzero(complete_rows(columns) & among_wanted))


def count(key_hashes: Hashes) -> Keys | None:
    """Return the exact counts of keys; None where equal hashes may be of different keys."""
    if key_hashes.counted is not None:
        return key_hashes.counted
    keys = counts(np.sort(np.concatenate(key_hashes.parts)))
    return keys if key_hashes.exact or keys.repeated == 0 else None


def counts(ordered: Array) -> Keys:
    """Return the counts of keys by their sorted hashes, each of which is taken for one key."""
    same = ordered[1:] == ordered[:-1]
    excess = int(np.count_nonzero(same))
    first = int(np.count_nonzero(same[1:] & ~same[:-1])) + int(same[:1].any())
    return Keys(len(ordered) - excess, first, excess + first)


def occur(hashes: Array, ordered: Array) -> Array:
    """Return which of the hashes occur among others, which are sorted."""
    if not len(ordered):
        return np.zeros(len(hashes), bool)
    at = np.searchsorted(ordered, hashes)
    at[at == len(ordered)] = 0
    mask: Array = ordered[at] == hashes
    return mask


def _grouped(columns: Sequence[pa.ChunkedArray], rows: Array, complete: int) -> Keys:
    """Count by comparing the keys of `rows` themselves; the other complete rows are different."""
    compared = _comparable_rows(columns, rows)
    groups = compared.group_by(compared.column_names, use_threads=False)
    groups = groups.aggregate([([], "count_all")])
    sizes = groups["count_all"].to_numpy()
    several = sizes[sizes > 1]
    return Keys(complete - len(rows) + len(sizes), len(several), int(several.sum()))


def _distinct_rows(columns: Sequence[pa.ChunkedArray], rows: Array) -> pa.Table:
    table = _comparable_rows(columns, rows)
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def _comparable_rows(columns: Sequence[pa.ChunkedArray], rows: Array) -> pa.Table:
    names = [f"key{n}" for n in range(len(columns))]
    return pa.table([_comparable(column.take(pa.array(rows))) for column in columns], names)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which equal values have equal bytes; nulls among numbers become any."""
    floating = pa.types.is_floating(column.type)
    return pa.chunked_array([pa.array(words_of(column))]) if floating else column
