"""A summary of an ingestion, for lists, counts and charts of many."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields

from functions.model.ingestion import IN_FLIGHT, Ingestion, State
from lakegate.job.batch import BatchFile
from lakegate.job.landing import BATCH_MEMBER, batch_of
from lakegate.times import moment


@dataclass(frozen=True)
class IngestionSummary:
    """An ingestion as the ledger's index by day keeps it.

    `name` is the file's, or names the changed table; `table` is "" if no contract claims the key.
    `rows` are those on its branch. `landed_at` and `ended_at` are ISO 8601 in UTC, the latter ""
    while it is in flight. `reason_code` says why it was not published, `channel` gets its alerts;
    `batch` is the one in whose folder its file lies. For a batch, `parts` maps each of its tables
    to its rows, and `table` names none. `approved_by` approved its publishing although its audit
    failed. `replayed_at` is when it was last replayed.
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
    approved_by: str = ""
    replayed_at: str = ""
    parts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, ingestion: Ingestion) -> "IngestionSummary":
        """Return the summary of an ingestion."""
        return cls(
            id=ingestion.id,
            name=ingestion.name,
            table=ingestion.table,
            state=ingestion.state,
            rows=ingestion.audit.rows,
            landed_at=ingestion.landed.landed_at,
            ended_at=ingestion.ended_at,
            reason_code=ingestion.reason_code,
            branch=ingestion.branch,
            channel=ingestion.terms.channel,
            batch=batch_of(ingestion.landed.key),
            discarded=ingestion.decisions.discarded,
            superseded_by=ingestion.superseded_by,
            approved_by=ingestion.decisions.approved_by,
            replayed_at=ingestion.times.get("replayed", ""),
            parts=_rows_by_table(ingestion.parts),
        )

    def to_json(self) -> str:
        """Return it as one text, which is read far faster than a dozen attributes of each item."""
        document = {name: value for name, value in asdict(self).items() if value or name == "rows"}
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "IngestionSummary":
        """Return the summary that `to_json` of any release wrote."""
        document, names = json.loads(text), {each.name for each in fields(cls)}
        known = {name: value for name, value in document.items() if name in names}
        return cls(**{"table": ""} | known | {"state": State(document["state"])})

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables that its rows are for, none while they are unknown."""
        return tuple(self.parts) or ((self.table,) if self.table else ())

    def rows_for(self, table: str) -> int:
        """Return how many of its rows are for one of its tables."""
        return self.parts.get(table, self.rows)

    @property
    def is_member(self) -> bool:
        """Return whether its file is ingested with its batch, and not by itself."""
        return self.reason_code == BATCH_MEMBER

    @property
    def ended(self) -> bool:
        """Return whether its state is final."""
        return self.state not in IN_FLIGHT

    @property
    def is_open(self) -> bool:
        """Return whether it failed and waits for a decision."""
        settled = self.discarded or self.superseded_by
        return self.state in (State.REJECTED, State.ERRORED) and not settled


def _rows_by_table(parts: Iterable[BatchFile]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for part in parts:
        rows[part.table] = rows.get(part.table, 0) + part.rows
    return rows


def status_text(ingestion: Ingestion) -> str:
    """Return the ingestion's state in words, to say why it cannot be changed otherwise."""
    state, times = ingestion.state, ingestion.times
    words = f"it is {state}"
    if ingestion.decisions.discarded:
        by = ingestion.by_whom("discarded")
        words += f", already discarded{by} on {moment(times.get('discarded', ''))}"
    elif ingestion.superseded_by:
        words += (
            f", superseded by {ingestion.superseded_by}, a newer version that is published "
            f"({moment(times.get('superseded', ''))})"
        )
    elif approval := ingestion.decisions.approval:
        words += f", approved by {approval.by} ({moment(approval.at)})"
    elif replayed := times.get("replayed"):
        by = ingestion.by_whom("replayed")
        words += f", attempt {ingestion.attempt}, replayed{by} ({moment(replayed)})"
    if ingestion.awaits_shared_run:
        words += ", and waits for a shared run"
    return words
