"""Names and documents of upkeep: how a table's small data files become few large ones.

A compaction has a branch of its own, whose name says when it began. Its job leaves a report beside
the staged copies, which expire after a day; whoever finds no report drops the branch.
"""

import dataclasses
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from lakegate.errors import Permanent
from lakegate.text import load_json

UPKEEP = "upkeep/"  # how the names of compactions' branches begin
# So many small data files of one partition are worth a job run. A file is small below this share of
# the table's target size, as in Iceberg's own rewriting (`min-file-size-bytes`).
FEWEST, SMALL_SHARE = 8, 0.75
TARGET_SIZE, USUAL_TARGET = "write.target-file-size-bytes", 512 * 1024 * 1024
_MOMENT = "%Y%m%dT%H%M%S"
_BRANCH = re.compile(rf"{UPKEEP}([^/]+)/(upkeep-(\d{{8}}T\d{{6}})-[0-9a-f]+)")


@dataclass(frozen=True)
class Begun:
    """A compaction by the name of its branch: `id` names its job run, `at` is when it began."""

    table: str
    id: str
    at: datetime

    @property
    def branch(self) -> str:
        """Return the name of its branch."""
        return f"{UPKEEP}{self.table}/{self.id}"

    @property
    def report_key(self) -> str:
        """Return the key of its report in the lake bucket, where objects expire after a day."""
        return f"staging/{self.id}/compaction.json"


def begin(table: str, at: datetime, token: str) -> Begun:
    """Return a new compaction of a table; `token` makes its name unique."""
    moment = at.astimezone(UTC).replace(microsecond=0)
    return Begun(table, f"upkeep-{moment.strftime(_MOMENT)}-{token}", moment)


def parse_branch(name: str) -> Begun:
    """Return the compaction with this branch. Raises ValueError for any other name."""
    found = _BRANCH.fullmatch(name)
    if not found:
        raise ValueError(f"not the name of a compaction's branch: {name!r}")
    return Begun(found[1], found[2], datetime.strptime(found[3], _MOMENT).replace(tzinfo=UTC))


@dataclass(frozen=True)
class Fingerprint:
    """The number of some rows, and the sum of their hashes, which no order changes."""

    rows: int
    hashes: str


@dataclass(frozen=True)
class Compaction:
    """The report of a compaction's job.

    `audited_hash` is the branch's commit that was compared with `base_hash`; both are equal where
    nothing was rewritten. `before` and `after` are of the rows in all data files that differ.
    """

    table: str
    branch: str
    base_hash: str
    audited_hash: str
    before: Fingerprint
    after: Fingerprint

    @property
    def has_effect(self) -> bool:
        """Return if data files were rewritten."""
        return self.audited_hash != self.base_hash

    @property
    def same_rows(self) -> bool:
        """Return if the table has the same rows after it as before."""
        return self.before == self.after

    def to_json(self) -> str:
        """Return the report's text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes, key: str) -> "Compaction":
        """Return the report that `to_json` wrote. Raises Permanent BAD_REPORT."""
        try:
            found = load_json(text)
            before, after = (Fingerprint(**found.pop(name)) for name in ("before", "after"))
            return cls(**found, before=before, after=after)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            message = f"{key} is not the report of a compaction: {error!r}"
            raise Permanent("BAD_REPORT", message) from error
