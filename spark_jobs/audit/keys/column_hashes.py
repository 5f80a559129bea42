"""Hashes of single columns, a row each. Rows with a null get any."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
_FACTOR, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_HALF = np.uint64(32)
_LONG = 512  # bytes of a text after which the rest is hashed by itself
_EXACT_DIGITS = 18  # of a decimal that fits 64 bits


def is_exact(type_: pa.DataType) -> bool:
    """Return whether a word of 64 bits is the value itself."""
    text = pa.types.is_string(type_) or pa.types.is_binary(type_)
    return not (text or (pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS))


def _present(column: pa.ChunkedArray) -> Array:
    if column.null_count == 0:
        return np.ones(len(column), bool)
    mask: Array = pc.is_valid(column).to_numpy()
    return mask


def complete_rows(columns: Sequence[pa.ChunkedArray]) -> Array:
    """Return for each row whether it has no null."""
    complete: Array = reduce(np.logical_and, map(_present, columns))
    return complete


def mixed(columns: Sequence[pa.ChunkedArray]) -> Array:
    """Return a hash of each row's key, spread over all 64 bits."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes ^= words_of(column)
        mix(hashes)
    return hashes


def mix(words: Array) -> None:
    """Spread each word's bits, in place; different words stay different."""
    words *= _FACTOR
    words ^= words >> _HALF
    words *= _OTHER
    words ^= words >> _HALF


def words_of(column: pa.ChunkedArray) -> Array:
    """Return a word of 64 bits a row: the value itself where it fits, else a hash of it."""
    if not column.chunks:
        return np.zeros(0, np.uint64)
    words = [_chunk_words(chunk) for chunk in column.chunks]
    return words[0] if len(words) == 1 else np.concatenate(words)


def _chunk_words(chunk: pa.Array) -> Array:
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


def _decimal_words(halves: Array, precision: int) -> Array:
    low = halves[:, 0].copy()
    if precision > _EXACT_DIGITS:
        mix(low)
        low ^= halves[:, 1]
    return low


def _buffer(chunk: pa.Array, type_: Any, each: int = 1) -> Array:
    """Return the numbers in a chunk's buffer, `each` a row."""
    if not len(chunk):
        return np.zeros(0, type_)
    numbers = np.frombuffer(chunk.buffers()[1], type_)
    return numbers[each * chunk.offset : each * (chunk.offset + len(chunk))]


def _text_hashes(chunk: pa.Array) -> Array:
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


def _add_words(hashed: Array, text: Array, starts: Array, sizes: Array) -> None:
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


def _rows_by_word(sizes: Array) -> Iterator[tuple[int, Any]]:
    """Yield each word's place in the texts, with the rows whose text reaches it."""
    rows: Any = slice(None)
    for at in range(0, int(sizes.max(initial=0)), 8):
        if not (sizes[rows] > at).all():
            rows = np.flatnonzero(sizes > at)
        yield at, rows
