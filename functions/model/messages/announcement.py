"""The announcement of an ingestion's final state to consumers, in the queue and as an event."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from functions.model.commits import Tip
from functions.model.ingestion import Ingestion, State
from lakegate.audit.report_schema import schema_of
from lakegate.errors import Permanent

SCHEMA = "lakegate-announcement-1"


@dataclass(frozen=True)
class Announcement:
    """The final state of an ingestion, for one of its tables: published, rejected or errored.

    `id` is the same if the same state is announced again, after a crash; a replay, or an approval
    that failed, has another one. `kind` is "file", "batch" for one of the tables of a manifest's
    files, or "change" for a requested change. `table` is "" if it is unknown. `object` is the
    address of the landed object and `version` its version. `rows` are those that it added to the
    table and `removed_rows` those that it removed, or would have if it was not published; a row
    that it put in the place of one with the same key counts as both, and in `updated_rows`.
    `contract` is the contract's key, with its version behind an `@`. `landed_at` and `ended_at` are
    ISO 8601 in UTC. If its audit failed, `approved_by` names who approved it, and
    `approved_because` is why.

    If it was not published, its rows are on `branch`; `reason_code` and `reason` say why. If it was
    published, `commit` is the commit on main, `metadata_location` the table's metadata file on main
    at the time of the announcement (of that commit, or newer), and `position` how many commits main
    had then. Of two announcements the one with the larger position has the newer metadata. The
    location is "" if the table was dropped since. `report` is the audit report's key in the lake
    bucket; a run that broke off left none there. What does not apply is "" or 0.
    """

    id: str
    ingestion: str
    attempt: int
    state: State
    table: str
    kind: str
    object: str
    version: str
    rows: int
    removed_rows: int
    contract: str
    landed_at: str
    ended_at: str
    branch: str = ""
    reason_code: str = ""
    reason: str = ""
    updated_rows: int = 0
    approved_by: str = ""
    approved_because: str = ""
    commit: str = ""
    metadata_location: str = ""
    position: int = 0
    report: str = ""

    @classmethod
    def read(cls, text: str) -> "Announcement":
        """Return the announcement in a message's body. Raise Permanent BAD_ANNOUNCEMENT.

        Fields that a newer release added are left out.
        """
        try:
            body = json.loads(text)
            known = {each.name: body[each.name] for each in fields(cls) if each.name in body}
            return cls(**{**known, "state": State(body["state"])})
        except (ValueError, TypeError, KeyError) as error:
            message = f"this is no announcement ({error!r}): {text[:300]}"
            raise Permanent("BAD_ANNOUNCEMENT", message) from error

    def text(self) -> str:
        """Return the announcement as JSON."""
        return json.dumps({"schema": SCHEMA, **vars(self)}, ensure_ascii=False)


def announcements(
    ingestion: Ingestion, tip: Tip | None = None, metadata: Mapping[str, str] | None = None
) -> list[Announcement]:
    """Return the announcements of an ingestion that ended: one for each of its tables.

    If it was published, `metadata` maps each table to its metadata file on main at `tip`.
    """
    locations = metadata or {}
    tables = ingestion.tables or ("",)
    ends = [_end_announcement(ingestion, table, tip, locations.get(table, "")) for table in tables]
    return [_part_announcement(ingestion, each) for each in ends] if ingestion.parts else ends


def _part_announcement(ingestion: Ingestion, of_batch: Announcement) -> Announcement:
    """Return the announcement of one table of a batch."""
    mine = [part for part in ingestion.parts if part.table == of_batch.table]
    return replace(
        of_batch,
        id=f"{of_batch.id}-{of_batch.table}",
        kind="batch",
        rows=sum(part.rows for part in mine),
        contract=f"{mine[0].contract_key}@{mine[0].contract_version}",
    )


def _end_announcement(
    ingestion: Ingestion, table: str, tip: Tip | None, metadata_location: str
) -> Announcement:
    reason, approval = ingestion.reason, ingestion.decisions.approval
    waits = ingestion.state is not State.PUBLISHED
    approved = f"-{ingestion.times['approved']}" if waits and "approved" in ingestion.times else ""
    key, version = ingestion.terms.contract
    return Announcement(
        id=f"{ingestion.id}-{ingestion.attempt}-{ingestion.state}{approved}",
        ingestion=ingestion.id,
        attempt=ingestion.attempt,
        state=ingestion.state,
        table=table,
        kind="change" if ingestion.change else "file",
        object=ingestion.landed.uri,
        version=ingestion.landed.version,
        rows=ingestion.audit.rows,
        removed_rows=ingestion.audit.replaced_rows,
        contract=f"{key}@{version}" if version else key,
        landed_at=ingestion.landed.landed_at,
        ended_at=ingestion.ended_at or ingestion.landed.landed_at,
        branch=ingestion.branch if waits else "",
        reason_code=reason.code if reason and waits else "",
        reason=reason.message if reason and waits else "",
        updated_rows=ingestion.audit.updated_rows,
        approved_by=approval.by if approval else "",
        approved_because=approval.reason if approval else "",
        commit=ingestion.merge_hash,
        metadata_location=metadata_location,
        position=tip.position if tip else 0,
        report=ingestion.report_key,
    )


def announcement_schema() -> dict[str, Any]:
    """Return the JSON Schema of every event's detail (draft 2020-12).

    Fields that newer releases add are allowed.
    """
    made = schema_of(Announcement, SCHEMA)
    stage = {"type": "string", "description": "The deployment that announces it."}
    return {
        **made,
        "properties": {"stage": stage, **made["properties"]},
        "required": ["stage", *made["required"]],
    }


if __name__ == "__main__":
    print(json.dumps(announcement_schema(), indent=2))
