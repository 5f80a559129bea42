"""What the ledger keeps of a source object that a backfill copied."""

import json
from dataclasses import asdict, dataclass, fields

from lakegate.job.landing import LandedObject


@dataclass(frozen=True)
class Brought:
    """The last copy of a source object for one table.

    `mark` identifies the state of the source, and `key` is where its copies land, now and later.
    `version`, `etag` and `size` are the copy's; without a version the copy was only begun.
    `revision` counts saves.
    """

    mark: str
    key: str
    version: str = ""
    etag: str = ""
    size: int = 0
    revision: int = 0

    def as_landed(self, bucket: str) -> LandedObject:
        """Return the copy as the landed object that it is in the landing bucket."""
        return LandedObject(bucket, self.key, self.version, self.etag, self.size)

    def to_json(self) -> str:
        """Return all but the revision, which the ledger keeps beside it."""
        kept = asdict(self)
        del kept["revision"]
        return json.dumps(kept)

    @classmethod
    def from_json(cls, text: str) -> "Brought":
        """Return what `to_json` wrote; fields of a newer release are ignored."""
        document, names = json.loads(text), [each.name for each in fields(cls)]
        return cls(**{name: document[name] for name in names if name in document})
