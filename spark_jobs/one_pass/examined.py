"""What is found in a file in one pass over its rows, and in each part of it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Protocol

import pyarrow as pa

from lakegate.audit.report import DataFile
from lakegate.contract.model import Contract
from lakegate.contract.reading.other_columns import Origin
from lakegate.errors import Permanent
from spark_jobs.audit.arrow import tier_arrow
from spark_jobs.audit.arrow.tier_arrow import Divided, Pass
from spark_jobs.audit.keys.arrow_keys import Hashes
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.files.arrow.text import TextRows, Unparseable
from spark_jobs.one_pass.apart import Apart, Numbers, RowsApart
from spark_jobs.write.description import Written
from spark_jobs.write.files import Rows
from spark_jobs.write.origins import ROW

_MOST_APART = 64 << 20  # bytes of rows that Spark gets from the driver
WAY = "written by Arrow"  # how a file came into its table, for the report


class Sink(Protocol):
    """What takes decoded rows, such as `write.files.DataFiles`."""

    def write(self, rows: Iterable[Rows]) -> list[Written]:
        """Take rows; return data files."""

    def keep(self, rows: Unparseable) -> tuple[DataFile, ...]:
        """Take unparseable rows; return the files that have them, if any are to be kept."""


@dataclass(frozen=True)
class Part:
    """The findings over the rows of a part of a file, their data files, and the rows in none."""

    found: Pass
    files: tuple[Written, ...]
    apart: Apart


@dataclass(frozen=True)
class Examined:
    """A file whose rows Arrow has read: the findings over all of them, and their data files.

    `apart` are the rows that are not in these, `changes` sentences about columns that differ.
    """

    found: Pass
    measured: Mapping[str, Measured]
    files: tuple[Written, ...]
    apart: RowsApart
    changes: tuple[str, ...] = ()

    @property
    def rows(self) -> RowCounts:
        """Return the file's row counts."""
        bad = self.apart.part.bad
        apart = bad + self.found.quarantined
        return RowCounts(self.found.rows + apart, bad, apart)


@dataclass(frozen=True)
class Prepared:
    """A file that Arrow can read, as far as its head or its footer tells.

    The `contract` has the columns to write: the file may add some. `read` is `examined`.
    """

    contract: Contract
    read: Callable[[Sink | None], Examined]

    def examined(self, files: Sink | None = None) -> Examined:
        """Read all rows, measure them, and give them to `files` if there are any.

        Raises MustRewrite if Spark must read them, Damaged if they must not be published,
        LakegateError if they cannot be requested or put.
        """
        return self.read(files)


def require_all(examined: Examined, files: Sequence[Written]) -> None:
    """Raise Permanent COUNT_MISMATCH unless data files hold all rows that were read."""
    held = sum(file.rows for file in files)
    if held != examined.found.rows:
        message = f"{examined.found.rows:,} rows were read, but the data files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)


def part_of(
    tables: Iterable[tuple[Divided, Numbers]], apart: Apart, contract: Contract, files: Sink | None
) -> Part:
    """Return a part of a file, whose rows are written as they are found; `apart` gets all others.

    Each table comes with its rows' numbers from 0: in the file, or in a part without provenance.
    """
    passes: list[Pass] = []

    def rows() -> Iterator[Rows]:
        for divided, numbers in tables:
            passes.append(divided.found)
            apart.add(divided, numbers)
            yield _measured_rows(divided, numbers + 1, contract)

    written = _written(files, rows())
    return Part(reduce(add, passes), written, _kept(files, apart, contract))


def _written(files: Sink | None, rows: Iterable[Rows]) -> tuple[Written, ...]:
    """Write all rows; without `files` read them only."""
    if files:
        return tuple(files.write(rows))
    deque(rows, maxlen=0)
    return ()


def _kept(files: Sink | None, apart: Apart, contract: Contract) -> Apart:
    """Return the rows without their texts, if these need not be read again: the files keep them.

    Checks that quarantine rows also count unparseable ones, by the cells that Spark can read.
    """
    if any(check.quarantine for check in contract.checks):
        return apart
    kept = files.keep(apart.texts) if files and apart.texts else ()
    return replace(apart, texts=[], kept=kept)


def _measured_rows(divided: Divided, numbers: Numbers, contract: Contract) -> Rows:
    """Return the rows to write with their statistics, and their numbers if the contract asks.

    `numbers` are those of all rows in the file.
    """
    table = divided.rows
    if Origin.ROW in contract.provenance.names:
        table = table.append_column(ROW, pa.array(numbers[divided.places]))
    return Rows(table, divided.found.columns)


def together(
    parts: Sequence[Part],
    contract: Contract,
    read: TextRows | None = None,
    keys: Mapping[tuple[str, ...], Hashes] | None = None,
) -> Examined:
    """Return a file by its parts; `read` is how a text is read.

    `keys` are counted over all parts where they were not measured by these. Raises MustRewrite if
    very many rows are to be quarantined.
    """
    findings = reduce(add, (each.found for each in parts))
    findings = findings if keys is None else replace(findings, hashes=keys)
    apart = RowsApart(contract, reduce(add, (each.apart for each in parts)), read)
    apart.part.require_at_most(_MOST_APART)
    files = tuple(file for each in parts for file in each.files)
    return Examined(findings, tier_arrow.measures(findings, contract), files, apart)
