"""How many rows a table has, as its metadata says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableRows:
    """A table at one commit, by its manifests; no `uuid` where there is no table.

    `records` are the rows in its data files, `position_deletes` the rows of them that delete files
    name; which rows its `equality_deletes` hide cannot be said without reading the data.
    """

    uuid: str = ""
    records: int = 0
    position_deletes: int = 0
    equality_deletes: int = 0

    @property
    def live(self) -> int:
        """The rows that a reader sees, as long as there are no equality deletes."""
        return self.records - self.position_deletes


@dataclass(frozen=True)
class DoubledFile:
    """A data file that a table lists more than once: a reader sees its `rows` that many `times`."""

    path: str
    rows: int
    times: int
