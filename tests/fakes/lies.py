"""Parquet files with one lie: each number in the footer, and in each page's header, changed."""

import io
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from tests.fakes.lying_parquet import chunks
from tests.fakes.thrift import Struct, footer, read_struct, with_footer, written

_WHOLE, _LISTS, _STRUCT = (4, 5, 6), (9, 10), 12
CHANGES: Mapping[str, Callable[[int], int]] = {
    "one more": lambda number: number + 1,
    "one less": lambda number: number - 1,
    "none": lambda _: 0,
    "negative": lambda number: -number - 1,
    "huge": lambda _: (1 << 31) - 1,
}


def lies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each lie about a file, as its field ids and the change, and the file that tells it."""
    before, metadata = footer(body)
    for path in _numbers(metadata):
        for how, change in CHANGES.items():
            other = deepcopy(metadata)
            _change(other, path, change)
            if other != metadata:
                yield f"footer {_named(path)}: {how}", with_footer(before, other)
    for number in range(len([*chunks(metadata)])):
        yield from _of_pages(before, metadata, number)


def _of_pages(before: bytes, metadata: Struct, number: int) -> Iterator[tuple[str, bytes]]:
    """Yield the lies in the first page's header of a column chunk, whose pages move to the end."""
    own = [*chunks(metadata)][number]
    places = [own[id_][1] for id_ in (9, 11) if id_ in own and own[id_][1]]
    pages = io.BytesIO(before[min(places) : min(places) + own[7][1]])
    head, rest = read_struct(pages), pages.read()
    for path in _numbers(head):
        for how, change in CHANGES.items():
            other, footer_ = deepcopy(head), deepcopy(metadata)
            _change(other, path, change)
            if other == head:
                continue
            made, chunk = written(other), [*chunks(footer_)][number]
            grown = len(made) + len(rest) - own[7][1]
            for id_ in (9, 11):
                if chunk.get(id_, (6, 0))[1]:
                    moved = chunk[id_][1] - min(places) + len(before)
                    chunk[id_] = 6, moved + (grown if chunk[id_][1] > min(places) else 0)
            chunk[7] = 6, len(made) + len(rest)
            yield f"page {number} {_named(path)}: {how}", with_footer(before + made + rest, footer_)


def _numbers(struct: Struct, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for id_, (type_, value) in struct.items():
        yield from _within(type_, value, (*path, id_))


def _within(type_: int, value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if type_ in _WHOLE:
        yield path
    elif type_ == _STRUCT:
        yield from _numbers(value, path)
    elif type_ in _LISTS:
        for at, item in enumerate(value[1]):
            yield from _within(value[0], item, (*path, f"[{at}]"))


def _change(struct: Any, path: tuple[Any, ...], change: Callable[[int], int]) -> None:
    *parents, last = path
    held: Any = (_STRUCT, struct)
    for step in parents:
        held = _step(held, step)
    if isinstance(last, str):
        items = held[1][1]
        items[int(last[1:-1])] = change(items[int(last[1:-1])])
    else:
        type_, value = held[1][last]
        held[1][last] = type_, change(value)


def _step(held: Any, step: Any) -> Any:
    """Return a part of a value that is held with its type."""
    _, value = held
    return (value[0], value[1][int(step[1:-1])]) if isinstance(step, str) else value[step]


def _named(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)).replace(".[", "[")
