"""How many rows a table has, as its metadata says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class TableChange:
    """What became of a table from one commit to a later one, by its manifests.

    `rows` is by how many live rows it grew. `added` and `removed` map the addresses of data files
    to how often the table lists them more, or less, than before.
    """

    rows: int = 0
    added: Mapping[str, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DoubledFile:
    """A data file that a table lists more than once: a reader sees its `rows` that many `times`."""

    path: str
    rows: int
    times: int
