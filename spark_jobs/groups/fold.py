"""Fold the rows of files in order into one change of each key. Pure.

A table is changed file by file in small arrays that have a place for each key: so each file finds
what the earlier ones left, as if they had been merged one after the other. Keys and places in the
order are numbers, which `keys_of` and `ranked` give to Arrow's values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.files.arrow.values import numbered

_Array: TypeAlias = NDArray[Any]
_NONE = -1


@dataclass(frozen=True)
class Changes:
    """How many keys were inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True)
class Steps:
    """The rows of files in order: of each its file, its key, its rank, and if it deletes its key.

    Keys are numbers from 0. A row with a lower rank than that of the key's present row is ignored.
    """

    file: _Array
    key: _Array
    rank: _Array
    deletes: _Array


@dataclass(frozen=True)
class Present:
    """The table before: of each key if it is there, and its rank, -1 for the lowest."""

    there: _Array
    rank: _Array


@dataclass(frozen=True)
class Folded:
    """What each file changes, what all of them change together, and the rows that do so.

    These rows, one a key and in the order of the steps, leave the same table as all rows.
    """

    of_files: tuple[Changes, ...]
    together: Changes
    rows: _Array


def fold(files: int, steps: Steps, before: Present) -> Folded:
    """Return the change of so many files, of which only the row with a key's highest rank counts.

    Two rows of a file never have the same key and rank.
    """
    there, rank = before.there.copy(), before.rank.copy()
    decided = np.full(len(there), _NONE)
    last = _last_of_each_key(steps)
    parts = np.split(last, np.searchsorted(steps.file[last], np.arange(1, files)))
    of_files = [_step(rows, steps, there, rank, decided) for rows in parts]
    gone, new = before.there & ~there, ~before.there & there
    changed = (decided != _NONE) & (before.there | there)
    counts = Changes(_count(new), _count(changed & before.there & there), _count(gone))
    return Folded(tuple(of_files), counts, np.sort(decided[changed]))


def _last_of_each_key(steps: Steps) -> _Array:
    """Return the rows with the highest rank of their key in their file, ordered by file."""
    order = np.lexsort((steps.rank, steps.key, steps.file))
    file, key = steps.file[order], steps.key[order]
    is_last = np.ones(len(order), bool)
    is_last[:-1] = (file[1:] != file[:-1]) | (key[1:] != key[:-1])
    last: _Array = order[is_last]
    return last


def _step(rows: _Array, steps: Steps, there: _Array, rank: _Array, decided: _Array) -> Changes:
    """Change the table, in place, by the rows of one file; return what they change."""
    key, deletes, own = steps.key[rows], steps.deletes[rows], steps.rank[rows]
    was_there = there[key]
    newer = was_there & (own >= rank[key])
    inserted, updated, deleted = ~was_there & ~deletes, newer & ~deletes, newer & deletes
    effective = inserted | newer
    there[key[effective]] = ~deletes[effective]
    rank[key[effective]] = own[effective]
    decided[key[effective]] = rows[effective]
    return Changes(_count(inserted), _count(updated), _count(deleted))


def _count(mask: _Array) -> int:
    return int(np.count_nonzero(mask))


def keys_of(columns: Sequence[pa.ChunkedArray]) -> tuple[_Array, int]:
    """Return each row's key, as a number from 0, and how many keys there are."""
    keys = numbered([column.combine_chunks() for column in columns], len(columns[0]))
    return keys, int(keys.max(initial=_NONE)) + 1


def ranked(column: pa.ChunkedArray) -> _Array:
    """Return each value's place among the different ones in ascending order; -1 for null."""
    encoded = pc.dictionary_encode(column.combine_chunks())
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = _NONE
    places: _Array = ranks[pc.fill_null(encoded.indices, len(order)).to_numpy()]
    return places
