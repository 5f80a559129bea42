"""Documents of upkeep: what a compaction's second job run found."""

import dataclasses
import json
from dataclasses import dataclass

from lakegate.errors import Permanent
from lakegate.text import load_json

UPKEEP = "upkeep/"  # how the names of compactions' branches, and the keys of their reports, begin
# So many small data files of one partition are worth a job run. A file is small below this share of
# the table's target size, as in Iceberg's own rewriting (`min-file-size-bytes`).
FEWEST, SMALL_SHARE = 8, 0.75
TARGET_SIZE, USUAL_TARGET = "write.target-file-size-bytes", 512 * 1024 * 1024


@dataclass(frozen=True)
class Fingerprint:
    """The number of some rows, and the sum of their hashes, which no order changes."""

    rows: int
    hashes: str


@dataclass(frozen=True)
class Comparison:
    """The report of the job run that compares two states of a table, and writes nothing else.

    `before` and `after` are of the rows in all data files that only the state at `base_hash`, or
    only that at `rewritten_hash`, has.
    """

    table: str
    branch: str
    base_hash: str
    rewritten_hash: str
    before: Fingerprint
    after: Fingerprint

    @property
    def same_rows(self) -> bool:
        """Return if both states have the same rows."""
        return self.before == self.after

    def to_json(self) -> str:
        """Return the report's text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes, key: str) -> "Comparison":
        """Return the report that `to_json` wrote. Raises Permanent BAD_REPORT."""
        try:
            fields = load_json(text)
            before, after = (Fingerprint(**fields.pop(name)) for name in ("before", "after"))
            return cls(**fields, before=before, after=after)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            message = f"{key} is not the report of a comparison: {error!r}"
            raise Permanent("BAD_REPORT", message) from error
