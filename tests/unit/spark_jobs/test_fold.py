"""Rows of files in order become one change, compared with a table that is changed row by row."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_jobs.groups.fold import Changes, Folded, Present, Steps, fold, keys_of, ranked

_HISTORIES = 3_000


@dataclass(frozen=True)
class Row:
    """A row of a file: its key, its rank, and if it deletes."""

    key: int
    rank: int
    deletes: bool


Files = Sequence[Sequence[Row]]
Ranks = dict[int, int]  # of the keys that are there


def folded(files: Files, present: Ranks, keys: int) -> Folded:
    rows = [(n, *vars(row).values()) for n, file in enumerate(files) for row in file]
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    there = np.array([key in present for key in range(keys)])
    rank = np.array([present.get(key, -1) for key in range(keys)])
    steps = Steps(columns[0], columns[1], columns[2], columns[3].astype(bool))
    return fold(len(files), steps, Present(there, rank))


def one_by_one(files: Files, present: Ranks) -> tuple[list[Changes], dict[int, Row | None]]:
    """Return what each file changes, and what is there: None for a row of the table before."""
    table = dict.fromkeys(present)
    ranks, found = dict(present), []
    for file in files:
        counts = {"inserted": 0, "updated": 0, "deleted": 0}
        for key in {row.key for row in file}:
            row = max((row for row in file if row.key == key), key=lambda row: row.rank)
            if key not in table and not row.deletes:
                counts["inserted"] += 1
            elif key in table and row.rank >= ranks[key]:
                counts["deleted" if row.deletes else "updated"] += 1
            else:
                continue
            table[key], ranks[key] = row, row.rank
            if row.deletes:
                del table[key]
        found.append(Changes(**counts))
    return found, table


def _history(draw: random.Random) -> tuple[Files, Ranks, int]:
    """Return random files, a table, and the number of keys; some have only one rank."""
    keys, by_rank = draw.randint(1, 6), draw.random() < 0.6
    drawn = draw.sample(range(keys), draw.randint(0, keys))
    present = {key: draw.randint(-1, 5) if by_rank else 0 for key in drawn}
    places = [(key, rank) for key in range(keys) for rank in (range(6) if by_rank else [0])]
    files = [
        [Row(*each, draw.random() < 0.4) for each in draw.sample(places, draw.randint(0, keys))]
        for _ in range(draw.randint(1, 7))
    ]
    return files, present, keys


def test_files_together_change_what_they_change_one_by_one() -> None:
    """Each file's counts, the table's rows, and the sums are those of a table changed by rows."""
    draw = random.Random(46)  # noqa: S311 - no secret
    for _ in range(_HISTORIES):
        files, present, keys = _history(draw)
        found, (counts, table) = folded(files, present, keys), one_by_one(files, present)
        assert list(found.of_files) == counts
        rows = [row for file in files for row in file]
        left = dict.fromkeys(present)
        for row in (rows[n] for n in found.rows):
            assert row.key in present or not row.deletes
            left[row.key] = row
            if row.deletes:
                del left[row.key]
        assert left == table
        assert sum(c.inserted - c.deleted for c in counts) == len(table) - len(present)
        assert found.together.inserted == len(table.keys() - present.keys())
        assert found.together.deleted == len(present.keys() - table.keys())
        assert found.together.updated == sum(
            table[key] is not None for key in table.keys() & present.keys()
        )


def test_a_deleted_key_comes_back_with_an_older_row() -> None:
    """A delete is not remembered: the next file's row is inserted, whatever its rank."""
    files = [[Row(0, 5, deletes=True)], [Row(0, 1, deletes=False)], [Row(0, 0, deletes=False)]]
    found = folded(files, {0: 4}, 1)
    assert found.of_files == (Changes(0, 0, 1), Changes(1, 0, 0), Changes(0, 0, 0))
    assert (found.together, found.rows.tolist()) == (Changes(0, 1, 0), [1])


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
        (pa.string(), ["", "\0", "A", "a", "a ", "e\u0301", "é", "\uffff", "\U0001f600"]),
        (pa.decimal128(38, 2), [Decimal("-1.10"), Decimal("0.00"), Decimal("1.10")]),
        (pa.date32(), [date(1582, 10, 14), date(1582, 10, 15), date(2026, 1, 1)]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(1969, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)],
        ),
        (pa.timestamp("us"), [-62135596800000000, 0, 253402300799999999]),
        (pa.bool_(), [False, True]),
    ],
    ids=str,
)
def test_values_have_the_order_of_their_type(type_: pa.DataType, values: list[Any]) -> None:
    """Ascending values, texts by their bytes, have ascending ranks and keys of their own."""
    column = pa.chunked_array([pa.array([*values, None], type_), pa.array(values[::-1], type_)])
    ranks = list(range(len(values)))
    assert ranked(column).tolist() == [*ranks, -1, *ranks[::-1]]
    complete = column.drop_null()
    keys, count = keys_of([complete, complete])
    assert count == len(values)
    assert keys.tolist() == [*keys[: len(values)], *keys[: len(values)][::-1]]


def test_keys_of_several_columns_are_told_apart() -> None:
    """A key is all of its columns: neither one alone nor their texts joined."""
    columns = [pa.chunked_array([pa.array(each)]) for each in (["a", "ab", "a"], ["bc", "c", "c"])]
    assert keys_of(columns)[1] == 3
    assert keys_of([column.slice(0, 0) for column in columns])[1] == 0
