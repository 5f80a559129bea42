"""The note of the daily upkeep: since when tables' states are whole, and how each table is."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field


@dataclass(frozen=True)
class TableUpkeep:
    """A table as the daily upkeep found it.

    Of its data `files`, `small` are below three quarters of the target size. `metadata_bytes` are
    those of all metadata stored for it, of which main's newest state needs `manifest_bytes` in
    manifests. `dead_bytes` are those of files without a reader that are too young to delete.
    `compacted_at` is when it was compacted last, "" for never.
    """

    files: int = 0
    small: int = 0
    manifest_bytes: int = 0
    metadata_bytes: int = 0
    dead_bytes: int = 0
    compacted_at: str = ""

    @property
    def small_share(self) -> float:
        """Return the share of small data files, 0 without any."""
        return self.small / self.files if self.files else 0.0


@dataclass(frozen=True)
class UpkeepNote:
    """The note of a daily run at the time `at`, "" before the first.

    States of main since `kept_since` have all their files: older ones may have lost them, "" if
    nothing was ever deleted.
    """

    at: str = ""
    kept_since: str = ""
    tables: Mapping[str, TableUpkeep] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as JSON, short enough for an item of the ledger with thousands of tables."""
        tables = {name: astuple(each) for name, each in self.tables.items()}
        return json.dumps([self.at, self.kept_since, tables])

    @classmethod
    def from_json(cls, text: str) -> "UpkeepNote":
        """Return what `to_json` wrote."""
        at, kept_since, tables = json.loads(text)
        return cls(at, kept_since, {name: TableUpkeep(*each) for name, each in tables.items()})
