"""The note of the daily upkeep: the catalog that it saw, what it kept, and how each table is."""

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
class Look:
    """The look at a catalog at the time `at`: its identity, and main's head. Empty before any.

    `is_accepted` says that a person accepted main as it was, with what it lacked.
    """

    at: str = ""
    catalog: str = ""
    head: str = ""
    is_accepted: bool = False


@dataclass(frozen=True)
class UpkeepNote:
    """The note of a daily run at the time `at`, "" before the first.

    States of main since `kept_since` have all their files: older ones may have lost them, "" if
    nothing was ever deleted. `look` is the last one after which files were deleted, or could be.
    `doubt` says why the last run deleted nothing, "" if it was sure. `revision` counts saves.
    """

    at: str = ""
    kept_since: str = ""
    tables: Mapping[str, TableUpkeep] = field(default_factory=dict)
    look: Look = Look()
    doubt: str = ""
    revision: int = 0

    def to_json(self) -> str:
        """Return time and tables as JSON, short enough for an item with thousands of tables."""
        tables = {name: astuple(each) for name, each in self.tables.items()}
        return json.dumps([self.at, self.kept_since, tables])

    @classmethod
    def from_json(cls, text: str) -> "UpkeepNote":
        """Return what `to_json` wrote."""
        at, kept_since, tables = json.loads(text)
        return cls(at, kept_since, {name: TableUpkeep(*each) for name, each in tables.items()})
