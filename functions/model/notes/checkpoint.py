"""The commit up to which reconcile found main right, where its next run begins."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from lakegate.errors import Permanent

KEY = "reconcile/checkpoint.json"
_SCHEMA = "reconcile-checkpoint/1"


@dataclass(frozen=True)
class TableCount:
    """A table at the checkpoint: its live rows, those published, and the changes by others."""

    rows: int
    published: int
    by_others: int


@dataclass(frozen=True)
class Checkpoint:
    """Main at `hash`, up to which all of main's log agreed with the ledger and the tables.

    Whatever the ledger called published before the time `since` (ISO 8601, UTC) was on main.
    """

    hash: str
    since: str
    tables: Mapping[str, TableCount] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as the JSON document that lies in the lake bucket."""
        return json.dumps({"schema": _SCHEMA, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> "Checkpoint":
        """Return the checkpoint that `to_json` wrote. Raise Permanent BAD_CHECKPOINT."""
        try:
            document = json.loads(text)
            if document["schema"] != _SCHEMA:
                raise ValueError(f"the schema is not {_SCHEMA}")
            tables = {name: TableCount(**each) for name, each in document["tables"].items()}
            return cls(str(document["hash"]), str(document["since"]), tables)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{KEY} in the lake bucket is no checkpoint ({error}): delete it"
            raise Permanent("BAD_CHECKPOINT", message) from error
