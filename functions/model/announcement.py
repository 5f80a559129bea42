"""What readers are told of an ingestion's end: a value, the same one in the queue and the event."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from functions.model.commits import Tip
from functions.model.ingestion import Ingestion, State
from lakegate.errors import Permanent
from lakegate.report_schema import schema_of

SCHEMA = "lakegate-announcement-1"


@dataclass(frozen=True)
class Announcement:
    """The end of an ingestion, of one of its tables: published, rejected or errored.

    `id` is the same whenever the same end is announced again, after a crash; a replayed ingestion
    has another end, and so has one that was to be published anyway in vain. `kind` is "file",
    "batch" where a manifest named files of several tables, each of which is announced by itself, or
    "change" where a person asked for it. `table` is "" where it never came to one. `object` is the
    address of what landed and `version` which of its versions. `rows` are those that it added to
    the table and `removed_rows` those that it removed; where it was not published, those that it
    would have. `contract` is the contract's key, with its version behind an `@`. `landed_at` and
    `ended_at` are ISO 8601 in UTC. `approved_by` names the person who had it published although its
    audit failed, and `approved_because` is why.

    `branch`, `reason_code` and `reason` are of what was not published: where its rows wait, and
    why. `commit`, `metadata_location` and `position` are of what was published: the commit on main
    that did it, the table's metadata file as main had it when this was said (that commit's, or a
    newer one), and how many commits main had then. Of two announcements the one with the larger
    position has the newer metadata. The location is "" where the table was dropped since. What does
    not apply is "" or 0.
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
    approved_by: str = ""
    approved_because: str = ""
    commit: str = ""
    metadata_location: str = ""
    position: int = 0

    @classmethod
    def read(cls, text: str) -> "Announcement":
        """The announcement in a message's body. Raises Permanent BAD_ANNOUNCEMENT.

        What a newer release added is left out.
        """
        try:
            told = json.loads(text)
            known = {field.name: told[field.name] for field in fields(cls) if field.name in told}
            return cls(**{**known, "state": State(told["state"])})
        except (ValueError, TypeError, KeyError) as error:
            message = f"this is no announcement ({error!r}): {text[:300]}"
            raise Permanent("BAD_ANNOUNCEMENT", message) from error

    def text(self) -> str:
        """The announcement as JSON."""
        return json.dumps({"schema": SCHEMA, **vars(self)}, ensure_ascii=False)


def announcements(
    ingestion: Ingestion, tip: Tip | None = None, metadata: Mapping[str, str] | None = None
) -> list[Announcement]:
    """What is told of an ingestion that ended: once of each of its tables.

    Of one that was published, `metadata` maps each table to where it stands on main at `tip`.
    """
    standing = metadata or {}
    tables = ingestion.tables or ("",)
    told = [_of_end(ingestion, table, tip, standing.get(table, "")) for table in tables]
    return [_of_part(ingestion, each) for each in told] if ingestion.parts else told


def _of_part(ingestion: Ingestion, whole: Announcement) -> Announcement:
    """What is told of one table of a batch."""
    mine = [part for part in ingestion.parts if part.table == whole.table]
    return replace(
        whole,
        id=f"{whole.id}-{whole.table}",
        kind="batch",
        rows=sum(part.rows for part in mine),
        contract=f"{mine[0].contract_key}@{mine[0].contract_version}",
    )


def _of_end(
    ingestion: Ingestion, table: str, tip: Tip | None, metadata_location: str
) -> Announcement:
    reason, approval = ingestion.reason, ingestion.approval
    waits = ingestion.state is not State.PUBLISHED
    again = f"-{ingestion.times['approved']}" if waits and "approved" in ingestion.times else ""
    version = ingestion.contract_version
    return Announcement(
        id=f"{ingestion.id}-{ingestion.attempt}-{ingestion.state}{again}",
        ingestion=ingestion.id,
        attempt=ingestion.attempt,
        state=ingestion.state,
        table=table,
        kind="change" if ingestion.change else "file",
        object=ingestion.landed.uri,
        version=ingestion.landed.version,
        rows=ingestion.rows,
        removed_rows=ingestion.replaced_rows,
        contract=f"{ingestion.contract_key}@{version}" if version else ingestion.contract_key,
        landed_at=ingestion.landed.landed_at,
        ended_at=ingestion.ended_at or ingestion.landed.landed_at,
        branch=ingestion.branch if waits else "",
        reason_code=reason.code if reason and waits else "",
        reason=reason.message if reason and waits else "",
        approved_by=approval.by if approval else "",
        approved_because=approval.reason if approval else "",
        commit=ingestion.merge_hash,
        metadata_location=metadata_location,
        position=tip.position if tip else 0,
    )


# What a warehouse is asked for after main moved: to read a table's newest metadata.


@dataclass(frozen=True)
class Refresh:
    """A table as main had it when it had `position` commits: `metadata` is its metadata file.

    Main only ever gets more commits, so a refresh is older than any with a larger position.
    """

    table: str
    position: int
    metadata: str

    @classmethod
    def read(cls, text: str) -> "Refresh":
        """The refresh in a message's body. Raises Permanent BAD_REFRESH."""
        try:
            told = json.loads(text)
            return cls(str(told["table"]), int(told["position"]), str(told["metadata"]))
        except (ValueError, TypeError, KeyError) as error:
            message = f"this is no refresh ({error!r}): {text[:300]}"
            raise Permanent("BAD_REFRESH", message) from error

    def text(self) -> str:
        """The refresh as a message's body."""
        return json.dumps(asdict(self), ensure_ascii=False)


def taken(table: str, other: str, remedy: str) -> Permanent:
    """That a table's name is another one's already, and what frees it."""
    message = f"{table} and {other} are one table to the warehouse, which has it follow {other}"
    return Permanent("NAME_TAKEN", f"{message}; to have it follow {table} instead, {remedy}")


# The JSON Schema of an event's detail, made from the class that is written and read.


def announcement_schema() -> dict[str, Any]:
    """What the detail of every event is like (JSON Schema, draft 2020-12).

    What newer releases add is allowed.
    """
    made = schema_of(Announcement, SCHEMA)
    stage = {"type": "string", "description": "The deployment that says so."}
    return {
        **made,
        "properties": {"stage": stage, **made["properties"]},
        "required": ["stage", *made["required"]],
    }


if __name__ == "__main__":
    print(json.dumps(announcement_schema(), indent=2))
