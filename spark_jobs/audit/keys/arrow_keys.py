"""Count keys by sorting 64-bit hashes of them, over Arrow data. Pure.

Equal keys have equal hashes, so where no hash repeats no key does. Keys are equal as in `keys`: 0.0
equals -0.0, NaN equals NaN, and text differs by every byte. Key digests keep the hashes of `mixed`:
whoever changes them raises `key_digest.VERSION`.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.audit.keys.counts import Keys

_Array: TypeAlias = NDArray[Any]
# Returns a hash of each row's key; that of a row with a null is arbitrary.
HashRows: TypeAlias = Callable[[Sequence[pa.ChunkedArray]], _Array]
_FACTOR, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)
_LONG = 512  # bytes of a text after which the rest is hashed by itself
_EXACT_DIGITS = 18  # of a decimal that fits 64 bits


@dataclass(frozen=True)
class Hashes:
    """The sorted hashes of a key's values, by parts of a file; rows with a null have none.

    With `exact`, each hash is the key itself. `counted` are the exact counts, known for one part.
    """

    parts: tuple[_Array, ...]
    exact: bool
    counted: Keys | None = None

    def __add__(self, other: "Hashes") -> "Hashes":
        return Hashes(self.parts + other.parts, self.exact)


def hashes(columns: Sequence[pa.ChunkedArray], hash_rows: HashRows | None = None) -> Hashes:
    """Return the hashes of a key over one or more columns, as `arrow_values.Values` has them.

    Without `hash_rows` a key that fits 64 bits is its own hash, and others are `mixed`.
    """
    exact = hash_rows is None and len(columns) == 1 and _is_exact(columns[0].type)
    by_row = _words(columns[0]) if exact else (hash_rows or mixed)(columns)
    complete = _complete(columns)
    ordered = np.sort(by_row if complete.all() else by_row[complete])
    same = ordered[1:] == ordered[:-1]
    if exact or not same.any():
        return Hashes((ordered,), exact, counts(ordered))
    rows = np.flatnonzero(complete & among(by_row, ordered[1:][same]))
    return Hashes((ordered,), exact, _grouped(columns, rows, len(ordered)))


def with_hashes(
    columns: Sequence[pa.ChunkedArray], wanted: _Array, hash_rows: HashRows
) -> pa.Table:
    """Return the different keys whose hash is one of `wanted`, which are sorted.

    In the columns `key0`, `key1`, … equal keys have equal values, and different ones different.
    """
    rows = np.flatnonzero(_complete(columns) & among(hash_rows(columns), wanted))
    return _distinct_rows(columns, rows)


def with_values(columns: Sequence[pa.ChunkedArray], wanted: pa.Table) -> pa.Table:
    """Return the different keys each part of which is one of the wanted keys' (`with_hashes`)."""
    parts = zip(map(_comparable, columns), wanted.columns, strict=True)
    found = [pc.is_in(column, value_set=pc.unique(values)) for column, values in parts]
    among_wanted = reduce(pc.and_, found).to_numpy()
    return _distinct_rows(columns, np.flatnonzero(_complete(columns) & among_wanted))


def count(found: Hashes) -> Keys | None:
    """Return the exact counts of keys; None where equal hashes may be of different keys."""
    if found.counted is not None:
        return found.counted
    keys = counts(np.sort(np.concatenate(found.parts)))
    return keys if found.exact or keys.repeated == 0 else None


def counts(ordered: _Array) -> Keys:
    """Return the counts of keys by their sorted hashes, each of which is taken for one key."""
    same = ordered[1:] == ordered[:-1]
    excess = int(np.count_nonzero(same))
    first = int(np.count_nonzero(same[1:] & ~same[:-1])) + int(same[:1].any())
    return Keys(len(ordered) - excess, first, excess + first)


def among(hashes: _Array, ordered: _Array) -> _Array:
    """Return which of the hashes occur among others, which are sorted."""
    if not len(ordered):
        return np.zeros(len(hashes), bool)
    at = np.searchsorted(ordered, hashes)
    at[at == len(ordered)] = 0
    found: _Array = ordered[at] == hashes
    return found


def _grouped(columns: Sequence[pa.ChunkedArray], rows: _Array, complete: int) -> Keys:
    """Count by comparing the keys of `rows` themselves; the other complete rows are different."""
    compared = _comparable_rows(columns, rows)
    groups = compared.group_by(compared.column_names, use_threads=False)
    groups = groups.aggregate([([], "count_all")])
    sizes = groups["count_all"].to_numpy()
    several = sizes[sizes > 1]
    return Keys(complete - len(rows) + len(sizes), len(several), int(several.sum()))


def _distinct_rows(columns: Sequence[pa.ChunkedArray], rows: _Array) -> pa.Table:
    found = _comparable_rows(columns, rows)
    return found.group_by(found.column_names, use_threads=False).aggregate([])


def _comparable_rows(columns: Sequence[pa.ChunkedArray], rows: _Array) -> pa.Table:
    names = [f"key{n}" for n in range(len(columns))]
    return pa.table([_comparable(column.take(pa.array(rows))) for column in columns], names)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which equal values have equal bytes; nulls among numbers become any."""
    floating = pa.types.is_floating(column.type)
    return pa.chunked_array([pa.array(_words(column))]) if floating else column


# Hashes of single columns, a row each. Rows with a null get any.


def _is_exact(type_: pa.DataType) -> bool:
    text = pa.types.is_string(type_) or pa.types.is_binary(type_)
    return not (text or (pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS))


def _present(column: pa.ChunkedArray) -> _Array:
    if column.null_count == 0:
        return np.ones(len(column), bool)
    found: _Array = pc.is_valid(column).to_numpy()
    return found


def _complete(columns: Sequence[pa.ChunkedArray]) -> _Array:
    complete: _Array = reduce(np.logical_and, map(_present, columns))
    return complete


def mixed(columns: Sequence[pa.ChunkedArray]) -> _Array:
    """Return a hash of each row's key, spread over all 64 bits."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found ^= _words(column)
        mix(found)
    return found


def mix(words: _Array) -> None:
    """Spread each word's bits, in place; different words stay different."""
    words *= _FACTOR
    words ^= words >> _HALF
    words *= _OTHER
    words ^= words >> _HALF


def _words(column: pa.ChunkedArray) -> _Array:
    """Return a word of 64 bits a row: the value itself where it fits, else a hash of it."""
    if not column.chunks:
        return np.zeros(0, np.uint64)
    found = [_chunk_words(chunk) for chunk in column.chunks]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _chunk_words(chunk: pa.Array) -> _Array:
    type_ = chunk.type
    if pa.types.is_boolean(type_):
        chunk, type_ = chunk.cast(pa.uint8()), pa.uint8()
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return _text_hashes(chunk)
    if pa.types.is_decimal(type_):
        return _decimal_words(_buffer(chunk, "<u8", 2).reshape(-1, 2), type_.precision)
    values = _buffer(chunk, type_.to_pandas_dtype())
    if pa.types.is_floating(type_):
        with np.errstate(invalid="ignore"):
            values = values.astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    return values.astype(np.int64).view(np.uint64)


def _decimal_words(halves: _Array, precision: int) -> _Array:
    low = halves[:, 0].copy()
    if precision > _EXACT_DIGITS:
        mix(low)
        low ^= halves[:, 1]
    return low


def _buffer(chunk: pa.Array, type_: Any, each: int = 1) -> _Array:
    """Return the numbers in a chunk's buffer, `each` a row."""
    if not len(chunk):
        return np.zeros(0, type_)
    numbers = np.frombuffer(chunk.buffers()[1], type_)
    return numbers[each * chunk.offset : each * (chunk.offset + len(chunk))]


def _text_hashes(chunk: pa.Array) -> _Array:
    """Hash texts by words of eight bytes, the n-th words of all texts at once."""
    if not len(chunk):
        return np.zeros(0, np.uint64)
    _, ends, data = chunk.buffers()
    offsets = np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    text = np.zeros(last - first + 8, np.uint8)
    if last > first:
        text[:-8] = np.frombuffer(data, np.uint8)[first:last]
    starts, sizes = offsets[:-1].astype(np.int64) - first, np.diff(offsets).astype(np.int64)
    hashed = sizes.astype(np.uint64)
    _add_words(hashed, text, starts, np.minimum(sizes, _LONG))
    for row in np.flatnonzero(sizes > _LONG):
        rest = text[starts[row] + _LONG : starts[row] + sizes[row]]
        digest = hashlib.blake2b(rest.tobytes(), digest_size=8).digest()
        hashed[row] ^= np.frombuffer(digest, np.uint64)[0]
    return hashed


_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def _add_words(hashed: _Array, text: _Array, starts: _Array, sizes: _Array) -> None:
    """Mix the words of each text into its hash, in place; `text` has eight bytes more."""
    words = np.ndarray((len(text) - 7,), "<u8", text.data, strides=(1,))
    for at, rows in _rows_by_word(sizes):
        left = sizes[rows] - at
        word = words[starts[rows] + at]
        short = left < 8
        if short.any():
            word &= _MASKS[np.minimum(left, 8)]
        mixed = hashed[rows] ^ word
        mix(mixed)
        hashed[rows] = mixed


def _rows_by_word(sizes: _Array) -> Iterator[tuple[int, Any]]:
    """Yield each word's place in the texts, with the rows whose text reaches it."""
    rows: Any = slice(None)
    for at in range(0, int(sizes.max(initial=0)), 8):
        if not (sizes[rows] > at).all():
            rows = np.flatnonzero(sizes > at)
        yield at, rows
