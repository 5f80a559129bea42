"""An ingestion in brief: what lists, counts and pictures of many ingestions go by."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields

from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from lakegate.batch import BatchFile
from lakegate.landing import BATCH_MEMBER, batch_of


@dataclass(frozen=True)
class IngestionSummary:
    """What the ledger's index by day keeps of an ingestion.

    `name` is the file's, or says which table is changed; `table` is "" where no contract claims the
    key. `rows` are those on its branch. `landed_at` and `ended_at` are ISO 8601 in UTC, the latter
    "" while it is on its way. `reason_code` says why it was not published, `channel` who is told;
    `batch` is the one in whose folder its file lies; of a batch itself `parts` maps each of its
    tables to its rows, and `table` stands for none. `replayed_at` is when it last was, if ever.
    """

    id: str
    name: str
    table: str
    state: State
    rows: int
    landed_at: str
    ended_at: str = ""
    reason_code: str = ""
    branch: str = ""
    channel: str = ""
    batch: str = ""
    discarded: bool = False
    superseded_by: str = ""
    replayed_at: str = ""
    parts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, ingestion: Ingestion) -> "IngestionSummary":
        """An ingestion as it stands."""
        return cls(
            id=ingestion.id,
            name=ingestion.name,
            table=ingestion.table,
            state=ingestion.state,
            rows=ingestion.rows,
            landed_at=ingestion.landed.landed_at,
            ended_at=ingestion.ended_at,
            reason_code=ingestion.reason.code if ingestion.reason else "",
            branch=ingestion.branch,
            channel=ingestion.channel,
            batch=batch_of(ingestion.landed.key),
            discarded=ingestion.discarded,
            superseded_by=ingestion.superseded_by,
            replayed_at=ingestion.times.get("replayed", ""),
            parts=_rows_by_table(ingestion.parts),
        )

    def to_json(self) -> str:
        """It as text: one attribute is read far quicker than a dozen, of ten thousand items."""
        told = {name: value for name, value in asdict(self).items() if value or name == "rows"}
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "IngestionSummary":
        """What `to_json` wrote, also of another release."""
        told, names = json.loads(text), {each.name for each in fields(cls)}
        known = {name: value for name, value in told.items() if name in names}
        return cls(**{"table": ""} | known | {"state": State(told["state"])})

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that its rows are for; none where that is not known."""
        return tuple(self.parts) or ((self.table,) if self.table else ())

    def rows_for(self, table: str) -> int:
        """How many of its rows are for one of its tables."""
        return self.parts.get(table, self.rows)

    @property
    def is_member(self) -> bool:
        """Whether its file comes with its batch, and not by itself."""
        return self.reason_code == BATCH_MEMBER

    @property
    def ended(self) -> bool:
        """Whether the verdict is final."""
        return self.state not in IN_FLIGHT

    @property
    def is_open(self) -> bool:
        """Whether a person is still to decide on it: it failed, and nothing settled that since."""
        settled = self.discarded or self.superseded_by
        return self.state in (State.REJECTED, State.ERRORED) and not settled


def _rows_by_table(parts: Iterable[BatchFile]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        found[part.table] = found.get(part.table, 0) + part.rows
    return found
