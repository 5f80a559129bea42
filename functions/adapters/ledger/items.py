"""An ingestion as DynamoDB's item, and back.

Each kilobyte of an item is paid for at every write, in the table and in each of its indexes. So an
item leaves out what has its default, and what the members of a large group have alike.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from functions.adapters.ledger.groups import COMMON, GROUP, is_large, packed
from functions.model import queueing, steps
from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Action, Approval, Decisions, Mends
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from lakegate.audit.report import Reason
from lakegate.errors import Transient
from lakegate.job.batch import BatchFile
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject

# Raise it where a release without the change could not read an item, or must not work on it. What
# such a release can leave alone needs no new number: it keeps attributes that it does not know.
SCHEMA = 1
SILENT = "silent"  # the value of `unrecorded` of what ended without a report
CLOSED = "~"  # begins `reason_code` of decided failures, so that open ones are read alone
BATCHES = "*"  # the value of `queue` of all batches, which may have several tables
_LANDED = tuple(f.name for f in dataclasses.fields(LandedObject))
_JSON = (
    *("times", "check_counts", "checks", "group", "approval", "branches_to_delete", "replaced"),
    *("change", "actions", "parts", "mends"),
)
_NUMBERS = (
    *("revision", "attempt", "failures", "rows", "tries_from", "replaced_rows", "updated_rows"),
    "recorded",
)
_DERIVED = (
    *("schema", "landed_day", "brief", "reason_code", "unfinished", "unrecorded", "queue"),
    *(GROUP, COMMON),
)
_TERMS = {f.name for f in dataclasses.fields(ContractTerms)}
_AUDIT = {f.name for f in dataclasses.fields(AuditOutcome)}
_DECISIONS = {f.name for f in dataclasses.fields(Decisions)}
_FIELDS = {f.name for f in dataclasses.fields(Ingestion)} - {"terms", "audit", "decisions"}
_KNOWN = {*_FIELDS, *_LANDED, *_TERMS, *_AUDIT, *_DECISIONS, *_DERIVED}
# An item without these is not to be understood.
_ALWAYS = {"id", "landed", "state", "revision", "saved_at", "times", "checks", "announced"}
_DEFAULTS = {
    f.name: f.default_factory() if callable(f.default_factory) else f.default
    for value in (Ingestion, ContractTerms, AuditOutcome, Decisions)
    for f in dataclasses.fields(value)
    if f.name not in _ALWAYS
}


def to_item(ingestion: Ingestion) -> dict[str, Any]:
    """Return the item that keeps an ingestion; of a large group's member the short one."""
    item = whole_item(ingestion)
    return packed(item) if is_large(ingestion.group) else item


def whole_item(ingestion: Ingestion) -> dict[str, Any]:
    """Return the item with all that it has in common with others."""
    item = {f.name: getattr(ingestion, f.name) for f in dataclasses.fields(ingestion)}
    unknown = item.pop("unknown")
    item.pop("shared_intent")
    for value in ("terms", "audit", "decisions"):
        item |= vars(item.pop(value))
    item["revision"] = own_revision(ingestion)
    usual = {name for name, value in _DEFAULTS.items() if item.get(name) == value}
    item = {name: value for name, value in item.items() if name not in usual | {"reason"}}
    landed = dataclasses.asdict(item.pop("landed"))
    item |= {**unknown, "schema": SCHEMA, **landed}
    if not item["etag"]:
        del item["etag"]  # a key of an index, where "" is refused
    item |= {name: json.dumps(item[name], default=_plain) for name in _JSON if name in item}
    item["state"] = ingestion.state.value
    item |= {
        "landed_day": landed["landed_at"][:10],
        "brief": IngestionSummary.of(ingestion).to_json(),
    }
    if ingestion.reason:
        item["reason"] = ingestion.reason.message
    return item | _keys(ingestion)


def own_revision(ingestion: Ingestion) -> int:
    """Return the revision of the ingestion's item, without the writes of its shared intent."""
    return ingestion.revision - ingestion.shared_intent.revision


def _keys(ingestion: Ingestion) -> dict[str, str]:
    """Return the keys of the sparse indexes that the ingestion is in."""
    keys = {}
    if ingestion.reason or ingestion.state in ALERTED:
        code = ingestion.reason.code if ingestion.reason else "UNKNOWN"
        is_decided = ingestion.state in ALERTED and not ingestion.is_open
        keys["reason_code"] = f"{CLOSED}{code}" if is_decided else code
    if steps.unfinished(ingestion):
        keys["unfinished"] = "yes"
    if steps.needs_recording(ingestion):
        keys["unrecorded"] = "yes"
    elif steps.is_silent(ingestion):
        keys["unrecorded"] = SILENT
    if queueing.is_waiting(ingestion) and ingestion.tables:
        keys["queue"] = BATCHES if ingestion.parts else ingestion.table
    return keys


def size(ingestion: Ingestion) -> int:
    """Return the bytes of an ingestion's item, as DynamoDB counts them."""
    return sum(len(f"{name}{value}".encode()) for name, value in to_item(ingestion).items())


def from_item(item: dict[str, Any]) -> Ingestion:
    """Return the ingestion of a whole item; what is not written there has its default."""
    item = item | {name: json.loads(item[name]) for name in _JSON if name in item}
    item |= {name: int(item[name]) for name in _NUMBERS if name in item}
    fields = {name: value for name, value in item.items() if name in _FIELDS}
    audit = {name: item[name] for name in _AUDIT if name in item}
    landed = {"etag": ""} | {name: item[name] for name in _LANDED if name in item}
    landed |= {"size": int(item["size"])}
    return Ingestion(
        **fields
        | {
            "landed": LandedObject(**landed),
            "terms": ContractTerms(**{name: item[name] for name in _TERMS if name in item}),
            "unknown": {name: value for name, value in item.items() if name not in _KNOWN},
            "state": State(item["state"]),
            "audit": AuditOutcome(**audit | {"checks": tuple(item["checks"])}),
            "group": tuple(fields.get("group", ())),
            "replaced": tuple(fields.get("replaced", ())),
            "reason": _reason(item) if "reason" in item else None,
            "decisions": _decisions({name: item[name] for name in _DECISIONS if name in item}),
            "change": Change(**fields["change"]) if fields.get("change") else None,
            "parts": tuple(BatchFile(**part) for part in fields.get("parts", ())),
            "mends": Mends(**fields["mends"]) if fields.get("mends") else None,
        }
    )


def require_known(item: Mapping[str, Any]) -> None:
    """Raise Transient NEWER_RELEASE if the item, as it is stored, is not to be understood."""
    schema = int(item.get("schema", SCHEMA))
    if schema > SCHEMA:
        message = (
            f"a newer release of lakegate wrote the ledger's item of {item['id']} "
            f"(schema {schema}; this release knows {SCHEMA} at most): deploy that release, or a "
            "later one"
        )
        raise Transient("NEWER_RELEASE", message)


def _plain(value: Any) -> dict[str, Any]:
    ours = isinstance(value, Action | Approval | Change | BatchFile | Mends)
    return dataclasses.asdict(value) if ours else dict(value)


def _reason(item: Mapping[str, Any]) -> Reason:
    return Reason(item["reason_code"].removeprefix(CLOSED), item["reason"])


def _decisions(fields: dict[str, Any]) -> Decisions:
    actions = tuple(Action(**each) for each in fields.get("actions", ()))
    approval = fields.get("approval")
    if approval:
        approval = Approval(**approval | {"checks": tuple(approval["checks"])})
    return Decisions(**fields | {"approval": approval, "actions": actions})
