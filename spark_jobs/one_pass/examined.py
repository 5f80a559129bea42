"""What is found in a file in one pass over its rows, and in each part of it."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lakegate.contract.model import Contract
from lakegate.contract.reading.provenance import Origin
from lakegate.errors import Permanent
from spark_jobs.audit import tier_arrow
from spark_jobs.audit.arrow_keys import Hashes
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.audit.tier_arrow import Pass
from spark_jobs.files.arrow import MustRewrite
from spark_jobs.files.arrow_text import TextRows
from spark_jobs.one_pass.text import BadPart, BadRows
from spark_jobs.write.description import Written
from spark_jobs.write.files import Rows
from spark_jobs.write.origins import ROW

WAY = "written by Arrow"  # how a file came into its table, for the report


class Sink(Protocol):
    """What takes decoded rows, such as `write.files.DataFiles`."""

    def write(self, rows: Iterable[Rows]) -> list[Written]:
        """Take rows; return data files."""


@dataclass(frozen=True)
class Part:
    """The findings over the rows of a part of a file, their data files, and a text's bad rows."""

    found: Pass
    files: tuple[Written, ...]
    bad: BadPart | None = None


@dataclass(frozen=True)
class Examined:
    """A file whose rows Arrow has read: the findings over all of them, and their data files.

    `bad` are the rows of a text that are not in these, as they cannot be read.
    """

    found: Pass
    measured: Mapping[str, Measured]
    files: tuple[Written, ...]
    bad: BadRows | None = None

    @property
    def rows(self) -> RowCounts:
        """Return the file's row counts: those that cannot be read are quarantined, and no other."""
        bad = self.bad.count if self.bad else 0
        return RowCounts(self.found.rows + bad, bad, quarantined=bad)


class Prepared(Protocol):
    """A file that Arrow can read, as far as its head or its footer tells."""

    def examined(self, files: Sink | None = None) -> Examined:
        """Read all rows, measure them, and give them to `files` if there are any.

        Raises MustRewrite if Spark must read them, Damaged if they must not be published,
        LakegateError if they cannot be requested or put.
        """


def require_all(found: Examined, files: Sequence[Written]) -> None:
    """Raise Permanent COUNT_MISMATCH unless data files hold all rows that were read."""
    held = sum(file.rows for file in files)
    if held != found.found.rows:
        message = f"{found.found.rows:,} rows were read, but the data files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)


def write(files: Sink | None, rows: Iterable[Rows]) -> tuple[Written, ...]:
    """Write all rows; without `files` read them only."""
    if files:
        return tuple(files.write(rows))
    deque(rows, maxlen=0)
    return ()


def measured_rows(
    table: pa.Table, found: Pass, numbers: np.ndarray[Any, Any], contract: Contract
) -> Rows:
    """Return rows with their statistics, and their numbers in the file if the contract asks."""
    wanted = Origin.ROW in contract.provenance.names
    table = table.append_column(ROW, pa.array(numbers)) if wanted else table
    return Rows(table, found.columns)


def together(
    parts: Sequence[Part],
    contract: Contract,
    read: TextRows | None = None,
    keys: Mapping[tuple[str, ...], Hashes] | None = None,
) -> Examined:
    """Return a file by its parts; `read` is how a text is read.

    `keys` are counted over all parts where they were not measured by these. Raises MustRewrite if a
    row must stay out of the table.
    """
    found = reduce(add, (each.found for each in parts))
    found = found if keys is None else replace(found, hashes=keys)
    bad = BadRows(read, reduce(add, (each.bad or BadPart() for each in parts))) if read else None
    measured = tier_arrow.measures(found, contract)
    for check in contract.checks:
        if check.quarantine and check.id in measured and measured[check.id].value:
            raise MustRewrite(f"{check.id} quarantines rows")
    files = tuple(file for each in parts for file in each.files)
    return Examined(found, measured, files, bad)
