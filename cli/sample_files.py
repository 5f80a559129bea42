"""Made-up parcels: typed columns, and the same rows for the same numbers on every machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TABLE = "shop.parcels"
_CONTRACT = Path(__file__).with_suffix(".yaml")
_BATCH = 100_000  # rows that are in memory at a time
_COUNTRIES, _SHARES = ("DE", "ES", "FR", "IT", "PL"), (0.4, 0.1, 0.2, 0.2, 0.1)
_NOTES = ("leave with a neighbour", "ring twice", "fragile", "this side up", "call before delivery")
_NAMES = ("ada", "blaise", "carl", "emmy", "grace", "kurt", "rosa", "sofia")
_FIRST_DAY = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
_DAY, _MICROS = 86_400, 1_000_000
_HEAVIEST = 31_500  # grams
_CENT = pa.scalar(Decimal("0.01"))
_NULLABLE = ("insured", "delivered_at", "note")
SCHEMA = pa.schema(
    [
        ("parcel_id", pa.int64()),
        ("tracking", pa.string()),
        ("email", pa.string()),
        ("country", pa.string()),
        ("weight_kg", pa.float64()),
        ("postage", pa.decimal128(8, 2)),
        ("insured", pa.bool_()),
        ("packed_on", pa.date32()),
        ("sent_at", pa.timestamp("us", tz="UTC")),
        ("delivered_at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)


@dataclass(frozen=True)
class Wanted:
    """One file's rows: how many, in which of the seed's files (from 1), and which share is null.

    Of columns that may be null `null_rate` of the values are, from 0 to 1.
    """

    rows: int
    file: int = 1
    seed: int = 0
    null_rate: float = 0.1


def contract(format_: str) -> str:
    """The text of the contract that the parcels keep, for files of one format."""
    return _CONTRACT.read_text(encoding="utf-8").replace("value: parquet", f"value: {format_}")


def parcels(wanted: Wanted) -> Iterator[pa.Table]:
    """One file's rows, some at a time.

    Each part is drawn by itself, from the seed and its place: no number depends on those before.
    """
    for first in range(0, wanted.rows, _BATCH):
        yield _part(wanted, first, min(_BATCH, wanted.rows - first))


def _part(wanted: Wanted, first: int, count: int) -> pa.Table:
    draw = np.random.default_rng([wanted.seed, wanted.file, first])
    ids = (wanted.seed * 1_000 + wanted.file) * 1_000_000_000 + first + np.arange(count)
    grams = draw.integers(50, _HEAVIEST, count, endpoint=True)
    sent = _FIRST_DAY + draw.integers(0, 300 * _DAY, count)
    columns = {
        "parcel_id": pa.array(ids),
        "tracking": _tracking(draw.integers(0, 10**9, count), draw.choice(_COUNTRIES, count)),
        "email": _emails(draw.choice(_NAMES, count), draw.integers(0, 10_000, count)),
        "country": pa.array(draw.choice(_COUNTRIES, count, p=_SHARES)),
        "weight_kg": pa.array(grams / 1_000),
        "postage": pc.multiply(pa.array(350 + grams // 1_000 * 45), _CENT),
        "insured": pa.array(draw.random(count) < 0.3),
        "packed_on": pa.array((sent // _DAY).astype("int32")),
        "sent_at": pa.array(sent * _MICROS),
        "delivered_at": pa.array((sent + draw.integers(_DAY, 6 * _DAY, count)) * _MICROS),
        "note": pa.array(draw.choice(_NOTES, count)),
    }
    for name in _NULLABLE:
        nulls = draw.permutation(count) < int(count * wanted.null_rate)  # never more than asked for
        columns[name] = pc.if_else(pa.array(nulls), None, columns[name])
    return pa.table([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)


def _tracking(numbers: Any, countries: Any) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise("LG", digits, pa.array(countries), "")


def _emails(names: Any, numbers: Any) -> pa.Array:
    numbered = pc.binary_join_element_wise(pa.array(names), pa.array(numbers).cast(pa.string()), "")
    return pc.binary_join_element_wise(numbered, "example.org", "@")
