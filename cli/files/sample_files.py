"""Generate files of made-up parcels: typed columns, the same rows on every machine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from cli.files.fault_injection import Fault, break_bytes, with_column_faults, with_row_faults
from lakegate.errors import LakegateError

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
class FileSpec:
    """The rows of one file: how many, the file's number (from 1), the seed and the share of nulls.

    `null_rate` is from 0 to 1 and concerns nullable columns only.
    """

    rows: int
    file: int = 1
    seed: int = 0
    null_rate: float = 0.1


def contract(format_: str) -> str:
    """Return the text of the parcels' contract, for files of one format."""
    return _CONTRACT.read_text(encoding="utf-8").replace("value: parquet", f"value: {format_}")


def parcels(spec: FileSpec) -> Iterator[pa.Table]:
    """Yield one file's rows in parts.

    Each part is drawn from the seed and its position, independent of the parts before it.
    """
    for first in range(0, spec.rows, _BATCH):
        yield _part(spec, first, min(_BATCH, spec.rows - first))


def write(
    made: Mapping[Path, FileSpec], faults: frozenset[Fault], written: Callable[[int], None]
) -> None:
    """Write files, the last one with faults; call `written` with the rows of each part.

    A file's suffix is its format. Raises LakegateError CANNOT_WRITE.
    """
    last = list(made)[-1]
    for file, spec in made.items():
        wrong = faults if file == last else frozenset()
        with _translated(file):
            for count in _written(file, _rows(spec, wrong)):
                written(count)
            break_bytes(file, wrong)


def write_contract(folder: Path, format_: str) -> Path:
    """Write the parcels' contract into a folder, for files of one format.

    Raises LakegateError CANNOT_WRITE.
    """
    file = folder / f"{TABLE}.yaml"
    with _translated(file):
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(contract(format_), encoding="utf-8")
    return file


@contextmanager
def _translated(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"cannot write {file}: {error.strerror or error}"
        raise LakegateError("CANNOT_WRITE", message) from error


def _rows(spec: FileSpec, faults: frozenset[Fault]) -> Iterator[pa.Table]:
    for number, part in enumerate(parcels(spec)):
        yield with_column_faults(part if number else with_row_faults(part, faults), faults)


def _written(file: Path, parts: Iterator[pa.Table]) -> Iterator[int]:
    """Write the parts; yield the number of rows of each part after writing it."""
    first = next(parts)
    with _writer(file, first.schema) as writer:
        for part in chain((first,), parts):
            writer.write_table(part)
            yield part.num_rows


def _writer(file: Path, schema: pa.Schema) -> csv.CSVWriter | parquet.ParquetWriter:
    if file.suffix == ".csv":
        return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed"))
    return parquet.ParquetWriter(file, schema)


def _part(spec: FileSpec, first: int, count: int) -> pa.Table:
    draw = np.random.default_rng([spec.seed, spec.file, first])
    ids = (spec.seed * 1_000 + spec.file) * 1_000_000_000 + first + np.arange(count)
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
        nulls = draw.permutation(count) < int(count * spec.null_rate)
        columns[name] = pc.if_else(pa.array(nulls), None, columns[name])
    return pa.table([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)


def _tracking(numbers: Any, countries: Any) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise("LG", digits, pa.array(countries), "")


def _emails(names: Any, numbers: Any) -> pa.Array:
    numbered = pc.binary_join_element_wise(pa.array(names), pa.array(numbers).cast(pa.string()), "")
    return pc.binary_join_element_wise(numbered, "example.org", "@")
