"""Files of made-up parcels, as parquet or csv."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from cli import sample_files
from cli.fault_injection import Fault, damaged, reshaped, spoil
from cli.sample_files import Wanted
from lakegate.errors import LakegateError


def write(
    made: Mapping[Path, Wanted], faults: frozenset[Fault], written: Callable[[int], None]
) -> None:
    """Write files, the last one with its faults; `written` is told rows as they are written.

    The ending of a file's name is its format. Raises LakegateError CANNOT_WRITE.
    """
    last = list(made)[-1]
    for file, wanted in made.items():
        wrong = faults if file == last else frozenset()
        try:
            for count in _written(file, _rows(wanted, wrong)):
                written(count)
            spoil(file, wrong)
        except OSError as error:
            message = f"{file} cannot be written: {error.strerror or error}"
            raise LakegateError("CANNOT_WRITE", message) from error


def write_contract(folder: Path, format_: str) -> Path:
    """Write the contract that the parcels keep into a folder, for files of one format.

    Raises LakegateError CANNOT_WRITE.
    """
    file = folder / f"{sample_files.TABLE}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(sample_files.contract(format_), encoding="utf-8")
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}"
        raise LakegateError("CANNOT_WRITE", message) from error
    return file


def _rows(wanted: Wanted, faults: frozenset[Fault]) -> Iterator[pa.Table]:
    for number, part in enumerate(sample_files.parcels(wanted)):
        yield reshaped(part if number else damaged(part, faults), faults)


def _written(file: Path, parts: Iterator[pa.Table]) -> Iterator[int]:
    """Write the parts; yields how many rows each had, once it is written."""
    first = next(parts)
    with _writer(file, first.schema) as writer:
        for part in chain((first,), parts):
            writer.write_table(part)
            yield part.num_rows


def _writer(file: Path, schema: pa.Schema) -> csv.CSVWriter | parquet.ParquetWriter:
    if file.suffix == ".csv":
        return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed"))
    return parquet.ParquetWriter(file, schema)
