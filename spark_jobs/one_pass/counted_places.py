"""Count the places of rows in a landed file that Arrow has written in its order. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from lakegate.audit.diagnosis import place
from spark_jobs.audit.places import FindPlaces, Stored
from spark_jobs.files.source import PLACE
from spark_jobs.one_pass.apart import Apart, Numbers
from spark_jobs.one_pass.examined import Examined
from spark_jobs.write.layout import Layout


def counted(examined: Examined, layout: Layout) -> FindPlaces | None:
    """Return a function that counts where rows stand in the landed file; None if it must be read.

    It must if the rows were divided or sorted, if unparseable ones are known by their number alone,
    and if lines of a text are no rows.
    """
    part, read = examined.apart.part, examined.apart.read
    before = int(examined.apart.contract.options.get("header") == "true") if read else 0
    is_moved = layout.spec.fields or layout.order.keys or (part.bad and not part.texts)
    if is_moved or (read and part.units != part.rows + before):
        return None
    starts = accumulate((file.rows for file in examined.files), initial=0)
    of_files = {file.location: start for file, start in zip(examined.files, starts, strict=False)}
    unit = read.unit if read else "row"
    return _Counted(of_files, _kept_before(part), unit, before + 1)


@dataclass(frozen=True)
class _Counted:
    """The number of the first row of each data file among those in data files, from 0.

    `kept` are the numbers of these before each row that is in none. The landed file's first row
    is the `first` of its units.
    """

    starts: dict[str, int]
    kept: Numbers
    unit: str
    first: int

    def __call__(self, rows: Sequence[Stored]) -> list[str]:
        """Return the places of rows: see `FindPlaces`."""
        return [place(self.unit, self._number(row) + self.first) for row in rows]

    def _number(self, row: Stored) -> int:
        """Return a row's number among all rows of the landed file."""
        if not row.file:
            return row.position
        number = self.starts[row.file] + row.position
        return number + int(np.searchsorted(self.kept, number, side="right"))


def _kept_before(part: Apart) -> Numbers:
    """Return how many rows in data files are before each row that is in none."""
    apart = [rows[PLACE].to_numpy() for rows in (*part.broken, *part.texts)]
    ordered = np.sort(np.concatenate([np.zeros(0, np.int64), *apart]))
    return ordered - np.arange(len(ordered))
