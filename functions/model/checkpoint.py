"""What reconcile found to be right, so that its next run begins from there."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from lakegate.errors import Permanent

KEY = "reconcile/checkpoint.json"
_SCHEMA = "reconcile-checkpoint/1"


@dataclass(frozen=True)
class TableCount:
    """A table at the checkpoint: its live rows, those published, and what others made of them."""

    rows: int
    published: int
    by_others: int


@dataclass(frozen=True)
class Checkpoint:
    """Main at `hash`, up to which all of main's log agreed with the ledger and the tables.

    What the ledger called published before the time `since` (ISO 8601, UTC), that run found there.
    """

    hash: str
    since: str
    tables: Mapping[str, TableCount] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as the JSON document that lies in the lake bucket."""
        return json.dumps({"schema": _SCHEMA, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> "Checkpoint":
        """Return what `to_json` wrote. Raises Permanent BAD_CHECKPOINT."""
        try:
            told = json.loads(text)
            if told["schema"] != _SCHEMA:
                raise ValueError(f"the schema is not {_SCHEMA}")
            tables = {name: TableCount(**each) for name, each in told["tables"].items()}
            return cls(str(told["hash"]), str(told["since"]), tables)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{KEY} in the lake bucket is no checkpoint ({error}): delete it"
            raise Permanent("BAD_CHECKPOINT", message) from error
